"""What one span says of one step: the payload shared by NODE_*, RUN_*, HANDOFF_* and STEP_* events.

A dialect (capture/dialects) fills a :class:`Facts`; the journal stores it; the fold (nodes/) reads it. It holds only what
the span itself says. ``None`` means that the telemetry does not tell; nothing is guessed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.records import camel

__all__ = ["Facts", "Kind", "RawList"]

Json = Any


class Kind:
    """What a span is. Only MODEL and TOOL become node records; AGENT and STEP give the runs their shape."""

    MODEL = "MODEL"
    TOOL = "TOOL"
    AGENT = "AGENT"
    STEP = "STEP"


@dataclass(frozen=True, slots=True)
class RawList:
    """A list that is still JSON text, so that a growing chat history need not be parsed again on every call.

    Args:
        text: a JSON array.
        element: brings one parsed element into the form that is stored (pure; the same element always gives the same form).
    """

    text: str
    element: Callable[[Json], Json]


@dataclass(slots=True)
class Facts:
    """The facts of one span. Lists of messages follow the OTel GenAI message schema ``[{role, parts: [...]}]``.

    Content (what a person wrote, or a model or tool said) is marked by ``metadata={"content": "one" | "list"}``; the journal
    keeps it in the content file. ``header`` facts (instructions, tools, parameters) go into a REQUEST_HEADER event.
    """

    dialect: str | None = None
    operation: str | None = None
    provider: str | None = None
    model: str | None = None
    response_model: str | None = None
    response_id: str | None = None
    finish_reasons: list[str] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    other_tokens: dict[str, int] | None = None
    streamed: bool | None = None
    retry_count: int | None = None
    retries: list[dict[str, Json]] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    calls: list[dict[str, Json]] | None = None
    """``[{id, name}]`` of the calls a model asked for; their arguments stand in ``output_messages``."""
    agent_name: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    status: str | None = None
    """``ok``, ``error`` or ``partial``; None is read as ok."""
    error_type: str | None = None
    flags: list[str] = field(default_factory=list)
    keys: dict[str, str] | None = None
    """``{prompt, wire, tool}``: keys of the call under the recording's secret, see nodes/keys."""
    asked: bytes | None = field(default=None, metadata={"process": True})
    """The canonical bytes of a whole prompt, for its key; they stay in the process."""
    # content
    messages: Sequence[Json] | RawList | None = field(default=None, metadata={"content": "list"})
    output_messages: Sequence[Json] | RawList | None = field(default=None, metadata={"content": "list"})
    output_text: str | None = field(default=None, metadata={"content": "one"})
    """Only where it can't be derived from ``output_messages``."""
    reasoning_text: str | None = field(default=None, metadata={"content": "one"})
    output_raw: Json = field(default=None, metadata={"content": "one"})
    """The provider's raw payload, where it is known."""
    arguments: Json = field(default=None, metadata={"content": "one"})
    """JSON text as it came (str) or the structured value."""
    result: Json = field(default=None, metadata={"content": "one"})
    error_message: str | None = field(default=None, metadata={"content": "one"})
    attributes: dict[str, Json] | None = field(default=None, metadata={"content": "one"})
    """Span attributes that no other fact holds."""
    # header
    system_instructions: Sequence[Json] | RawList | None = field(default=None, metadata={"header": True})
    tools: Sequence[Json] | RawList | None = field(default=None, metadata={"header": True})
    parameters: dict[str, Json] | None = field(default=None, metadata={"header": True})
    # envelope
    session_id: str | None = field(default=None, metadata={"envelope": "session"})
    run_id: str | None = field(default=None, metadata={"envelope": "run"})
    turn_id: str | None = field(default=None, metadata={"envelope": "turn"})
    step: int | None = field(default=None, metadata={"envelope": "step"})

    def payload(self) -> dict[str, Any]:
        """The facts of the payload key ``facts``: camelCase, absent ones left out, header and envelope facts not in it."""
        out: dict[str, Any] = {}
        for name, key in _PAYLOAD:
            value = getattr(self, name)
            if value is not None and value != []:
                out[key] = value
        return out


_PAYLOAD: list[tuple[str, str]] = [
    (f.name, camel(f.name))
    for f in dataclasses.fields(Facts)
    if not f.metadata.keys() & {"header", "envelope", "process"}
]
CONTENT: dict[str, str] = {
    camel(f.name): f.metadata["content"] for f in dataclasses.fields(Facts) if "content" in f.metadata
}
"""camelCase name of each content fact -> ``"one"`` or ``"list"``."""
