"""Events of chat sessions: what was said, done and decided in a conversation, in the order in which it happened.

They stand in a stream of their own, ``sessions/<id>.jsonl``, behind its STREAM_OPENED: so SESSION_STARTED is number 1. The
keys ``scenario``, ``content`` and ``events`` of the first four types are ToyAgent's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from otel_agentrec.journal.events.base import Json, Payload, event

__all__ = [
    "AgentReplyAppended",
    "ApprovalDecided",
    "ApprovalRequested",
    "ContextCompacted",
    "ContextReplaced",
    "ProjectionSaved",
    "ScheduledTaskFired",
    "SessionEnded",
    "SessionEvent",
    "SessionForked",
    "SessionStarted",
    "SubagentJoined",
    "SubagentSpawned",
    "ToolCalled",
    "ToolResultAppended",
    "TurnCompleted",
    "UserMessageAppended",
]

_ALWAYS = {"attributes": "one"}


@dataclass(frozen=True)
class SessionEvent(Payload):
    """What every session event may say besides.

    ``lane``: which of several agents that share the session. ``node``: ``{stream, seq, hash}`` of the model or tool call
    that it was made from; content that stands there need not stand here. ``original``: ``{seq, ts, hash}`` of an event that
    came from another log, as far as that told them. ``attributes``: what the log said beyond the keys of the type.
    """

    lane: str | None = field(default=None, kw_only=True)  # KW_ONLY is no type hint that Python 3.10 can evaluate
    node: dict[str, Json] | None = field(default=None, kw_only=True)
    original: dict[str, Json] | None = field(default=None, kw_only=True)
    attributes: dict[str, Json] | None = field(default=None, kw_only=True)


@event("SESSION_STARTED", content=_ALWAYS)
class SessionStarted(SessionEvent):
    scenario: str | None = None


@event("USER_MESSAGE_APPENDED", content={"content": "one", **_ALWAYS})
class UserMessageAppended(SessionEvent):
    """A user said something: ``content`` is text, or parts of the message schema."""

    content_: Json = None


@event("AGENT_REPLY_APPENDED", content={"content": "one", **_ALWAYS})
class AgentReplyAppended(SessionEvent):
    """The agent answered the user: ``content`` is text, or parts of the message schema."""

    content_: Json = None


@event("TURN_COMPLETED", content=_ALWAYS)
class TurnCompleted(SessionEvent):
    """One request of the user was dealt with, in ``events`` events."""

    events: int | None = None


@event("TOOL_CALLED", content={"arguments": "one", **_ALWAYS})
class ToolCalled(SessionEvent):
    """The agent called a tool. Without a result behind it, the call was interrupted."""

    name: str
    call_id: str | None = None
    arguments: Json = None


@event("TOOL_RESULT_APPENDED", content={"result": "one", "error": "one", **_ALWAYS})
class ToolResultAppended(SessionEvent):
    """What a tool gave back; ``error``: it failed, and how."""

    call_id: str | None = None
    name: str | None = None
    result: Json = None
    error: Json = None


@event("APPROVAL_REQUESTED", content={"question": "one", **_ALWAYS})
class ApprovalRequested(SessionEvent):
    """Somebody was asked whether the agent may; ``call_id``: to make which call."""

    id: str
    question: Json = None
    call_id: str | None = None


@event("APPROVAL_DECIDED", content={"answer": "one", **_ALWAYS})
class ApprovalDecided(SessionEvent):
    """The request with this ``id`` was answered; ``by``: who decided."""

    id: str
    by: str | None = None
    answer: Json = None


@event("CONTEXT_COMPACTED", content={"summary": "one", **_ALWAYS})
class ContextCompacted(SessionEvent):
    """In the model's context ``summary`` stands where the events with numbers ``from`` (included) to ``to`` (excluded) stood.
    The log keeps them."""

    from_: int
    to: int
    summary: Json = None


@event("CONTEXT_REPLACED", content={"messages": "list", **_ALWAYS})
class ContextReplaced(SessionEvent):
    """From here on the model's context is these messages: it did not go on from the one before."""

    messages: list[Json]


@event("SUBAGENT_SPAWNED", content={"task": "one", **_ALWAYS})
class SubagentSpawned(SessionEvent):
    """Another agent was set to a ``task``; ``session``: the id of its session."""

    name: str
    session: str | None = None
    task: Json = None


@event("SUBAGENT_JOINED", content={"result": "one", **_ALWAYS})
class SubagentJoined(SessionEvent):
    """Another agent came back with its ``result``."""

    name: str
    session: str | None = None
    result: Json = None


@event("SCHEDULED_TASK_FIRED", content={"result": "one", **_ALWAYS})
class ScheduledTaskFired(SessionEvent):
    """Something ran in the background; ``due``: when it was to (text of ISO 8601, or milliseconds since the epoch)."""

    task: str
    due: Json = None
    result: Json = None


@event("SESSION_FORKED", content=_ALWAYS)
class SessionForked(SessionEvent):
    """This session began as a copy of the events up to number ``at`` of ``session``; ``hash``: of the last one copied."""

    session: str
    at: int
    hash: str | None = None


@event("PROJECTION_SAVED", ignorable=True, content=_ALWAYS)
class ProjectionSaved(SessionEvent):
    """A projection was saved: policy and version, up to which number, and the ``hash`` of that event."""

    policy: str
    version: Json
    upto: int
    hash: str | None = None


@event("SESSION_ENDED", content=_ALWAYS)
class SessionEnded(SessionEvent):
    reason: str | None = None
