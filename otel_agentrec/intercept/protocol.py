"""What passes an interception point, and who may answer there (docs/wire.md).

Two kinds of calls are intercepted: a model call on its way out of an HTTP client, and a tool call on its way into the
tool. An *answerer* is asked first and gives one of three answers:

* a recorded outcome (:class:`RecordedResponse`, :class:`ToolOutcome`): it is handed to the program, nothing real happens;
* :data:`PASS`: the real thing happens;
* it raises: the call is refused. What is raised reaches the program as it is, so a refusal that no framework may turn
  into text for the model is a ``RunStopped``.

An *observer* is told what came of it. A point asks and tells; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, Protocol

from otel_agentrec.nodes.exchange import Exchange, ModelRequest, RecordedResponse, SpanRef

__all__ = [
    "PASS",
    "Exchange",
    "ModelAnswerer",
    "ModelRequest",
    "Pass",
    "RecordedResponse",
    "SpanRef",
    "ToolAnswerer",
    "ToolCall",
    "ToolOutcome",
    "WireObserver",
]

Json = Any


class Pass(Enum):
    """The answer "let it happen"."""

    PASS = "pass"


PASS: Final = Pass.PASS


class ModelAnswerer(Protocol):
    """Decides on model calls. Called on the thread (or event loop) of the program, before anything leaves."""

    def answer(self, request: ModelRequest) -> RecordedResponse | Pass: ...


class WireObserver(Protocol):
    """Is told every attempt of every model call, at the end of its body.

    ``ended`` may be called by the garbage collector, inside any lock: it only appends to a queue, and never raises.
    """

    def started(self, request: ModelRequest) -> None: ...

    def ended(self, exchange: Exchange) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that is about to run.

    ``hook``: the adapter that saw it (``openai-agents`` …); ``arguments``: JSON, what the model gave (context that a
    framework injects is left out); ``call_id``: the model's, where the framework passes it on. ``kind``: ``container``
    is an agent as a tool or a hand-off, ``read`` has no effect; ``None``: not known, taken as an effect.
    """

    hook: str
    name: str
    arguments: Json
    call_id: str | None = None
    kind: Literal["effect", "read", "container"] | None = None
    span: SpanRef | None = None
    token: Any = field(default=None, compare=False)
    """The answerer's own note of this call (say, the id of its effect)."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool gave: ``value`` as JSON written by ``codec`` (``None``: the result is that JSON), or ``error``.

    ``error``: ``{type, module, message, …}`` of an exception; ``codec`` may add what makes it the same class again.
    """

    value: Json = None
    codec: str | None = None
    error: Mapping[str, Json] | None = None


class ToolAnswerer(Protocol):
    """Decides on tool calls, and is told what came of those that ran.

    ``answer`` may give a :class:`ToolCall` (the same call, with its ``token`` set) in place of :data:`PASS`: the tool runs,
    and ``returned`` gets that call. ``returned`` is called before the result is handed on: what it raises replaces it.
    ``cancelled``: the tool was cut off (cancellation, KeyboardInterrupt, GeneratorExit): its outcome is unknown.
    """

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass: ...

    def returned(self, call: ToolCall, outcome: ToolOutcome) -> None: ...

    def cancelled(self, call: ToolCall, error: BaseException) -> None: ...
