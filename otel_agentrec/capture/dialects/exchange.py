"""What the raw request and the raw answer of a model call tell, whichever API or framework wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from otel_agentrec.journal.facts import RawList

__all__ = ["INSTRUCTING", "Asked", "Said", "parameters"]

Json = Any


@dataclass(slots=True)
class Asked:
    """A request. Messages, instructions and tools are normalised; None means that the request does not tell.

    ``instructed``: whether there are instructions among the messages, where these are still text.
    """

    messages: list[Json] | RawList
    instructions: list[Json] | None = None
    tools: list[Json] | None = None
    model: str | None = None
    streamed: bool | None = None
    parameters: dict[str, Json] | None = None
    instructed: bool = False

    def has_instructions(self) -> bool:
        """Whether the request tells instructions, apart from its messages or among them."""
        if self.instructions is not None or self.instructed:
            return True
        told = () if isinstance(self.messages, RawList) else self.messages
        return any(isinstance(m, Mapping) and m.get("role") in INSTRUCTING for m in told)


@dataclass(slots=True)
class Said:
    """An answer. ``raw`` is the provider's own payload, where this is one."""

    messages: list[Json]
    finish_reasons: list[str] | None = None
    response_id: str | None = None
    model: str | None = None
    raw: Json = None


INSTRUCTING = ("system", "developer")
"""Roles of messages that instruct a model."""

_RENAMED = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "stop": "stop_sequences",
    "n": "choice.count",
}
"""Names of providers -> names of the OTel GenAI conventions (``gen_ai.request.*``)."""


def parameters(held: Mapping[str, Json], apart: frozenset[str] = frozenset()) -> dict[str, Json] | None:
    """What is left of a request beside the keys in ``apart``, under the names of the GenAI conventions; nulls left out."""
    out: dict[str, Json] = {}
    for key, value in held.items():
        if value is None or key in apart:
            continue
        name = _RENAMED.get(key, key)
        if name == "stop_sequences" and isinstance(value, str):
            value = [value]
        if name == key or name not in held:
            out[name] = value
        else:
            out[key] = value
    return out or None
