"""Which events of a session enter the model's context: a policy, which stands outside the log and may change.

A policy is a pure fold. ``step`` takes the next event into the state; ``render`` makes the messages of a state, and fits
them to a budget. The state is plain JSON, so that it can be saved (see saved.py); the same log, policy and end give the
same messages, byte for byte.

Messages are those of the OTel GenAI semantic conventions: ``{role, parts: [{type, …}]}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.session.trimming import Counter, estimate_tokens, trimmed

__all__ = ["CONVERSATION", "Message", "Policy", "State", "of_lane", "project", "with_compaction", "with_tools"]

Json = Any
Message = dict[str, Json]
State = dict[str, Json]
"""``{entries: [{seq, message | call | result}], header?: {instructions, tools, parameters}, lane?: that of the agent that began
the session}``; a policy may keep more."""

HEADER = ("instructions", "tools", "parameters")

Step = Callable[[State, Event], State]
Render = Callable[[State], list[Message]]

INTERRUPTED = "interrupted: the call did not end"
"""What the model is told in place of a result that never came."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A named way to project a session.

    Args:
        name, version: change the version with the meaning: projections saved under another one are not used.
        step: gives the next state; it may change the one it is given.
        messages: the messages of a state; must not change it.
        count: tokens of a message, for budgets; default: a quarter of its bytes.
    """

    name: str
    version: int
    step: Step
    messages: Render
    count: Counter = estimate_tokens
    lane: str | None = None
    """Which of several agents that share the session; None: the one that began it."""

    def render(self, state: State, budget: int | None = None) -> list[Message]:
        """The messages of a state; the oldest are left out until the rest has at most ``budget`` tokens."""
        messages = self.messages(state)
        return messages if budget is None else trimmed(messages, budget, self.count)


def start() -> State:
    """The state before the first event."""
    return {"entries": []}


def project(events: Iterable[Event], policy: Policy, state: State | None = None) -> State:
    """Fold events into a state (which is changed)."""
    now = start() if state is None else state
    for event in events:
        lane = event.payload.get("lane")
        if isinstance(lane, str):
            wanted = policy.lane if policy.lane is not None else now.setdefault("lane", lane)
            if lane != wanted:
                continue
        elif policy.lane is not None and event.payload.get("node") is not None:
            continue
        if event.type == "REQUEST_HEADER":
            now["header"] = {key: event.payload[key] for key in HEADER if event.payload.get(key) is not None}
        else:
            now = policy.step(now, event)
    return now


def of_lane(policy: Policy, lane: str) -> Policy:
    """The same for the context of another agent of the session than the one that began it."""
    return replace(policy, name=f"{policy.name}@{lane}", lane=lane)


def _conversation(state: State, event: Event) -> State:
    """What users and the agent said; a context that was replaced takes the place of all before it."""
    entries = state["entries"]
    if event.type == "USER_MESSAGE_APPENDED":
        entries.append({"seq": event.seq, "message": _said("user", event)})
    elif event.type == "AGENT_REPLY_APPENDED":
        entries.append({"seq": event.seq, "message": _said("assistant", event)})
    elif event.type == "CONTEXT_REPLACED":
        messages = event.payload.get("messages")
        kept = messages if isinstance(messages, list) else []
        state["entries"] = [{"seq": event.seq, "message": m} for m in kept if isinstance(m, dict)]
    return state


def _said(role: str, event: Event) -> Message:
    content = event.payload.get("content")
    if isinstance(content, list):
        parts = [part if isinstance(part, dict) else {"type": "text", "content": str(part)} for part in content]
    else:
        parts = [{"type": "text", "content": content if isinstance(content, str) else _plain(content)}]
    name = event.payload.get("name")
    return {"role": role, "parts": parts, **({"name": name} if isinstance(name, str) else {})}


def _plain(content: Json) -> Json:
    return "" if content is None else content


def _spoken(state: State) -> list[Message]:
    """Messages without what only a policy with tools can show whole."""
    out: list[Message] = []
    for entry in state["entries"]:
        message = entry["message"]
        parts = [p for p in message["parts"] if p.get("type") not in ("tool_call", "tool_call_response")]
        if parts:
            out.append({**message, "parts": parts})
    return out


CONVERSATION = Policy("conversation", 1, _conversation, _spoken)
"""The seed's: user messages and agent replies enter the context, nothing else."""


def with_tools(policy: Policy) -> Policy:
    """The same with tool calls and their results.

    A call belongs to the reply before it, as the model said both at once; a call that has no result when the messages are
    made is answered with :data:`INTERRUPTED`, and a result without a call is left out: providers refuse either alone.
    """

    def step(state: State, event: Event) -> State:
        payload = event.payload
        if event.type == "TOOL_CALLED":
            part = {"type": "tool_call", **_given(payload, id="callId", name="name", arguments="arguments")}
            state["entries"].append({"seq": event.seq, "call": part})
            return state
        if event.type == "TOOL_RESULT_APPENDED":
            result = payload.get("error") if payload.get("result") is None else payload.get("result")
            part = {"type": "tool_call_response", **_given(payload, id="callId"), "response": result}
            state["entries"].append({"seq": event.seq, "result": part})
            return state
        return policy.step(state, event)

    return replace(policy, name=f"{policy.name}+tools", step=step, messages=_with_calls)


def _with_calls(state: State) -> list[Message]:
    out: list[Message] = []
    open_calls: dict[str | None, Json] = {}

    def interrupted() -> None:
        for call_id in open_calls:
            given = {} if call_id is None else {"id": call_id}
            part = {"type": "tool_call_response", **given, "response": INTERRUPTED}
            out.append({"role": "tool", "parts": [part]})
        open_calls.clear()

    is_reply_open = False  # further calls belong to the last message
    for entry in state["entries"]:
        if "call" in entry:
            if not is_reply_open:
                interrupted()
                out.append({"role": "assistant", "parts": []})
                is_reply_open = True
            out[-1] = {**out[-1], "parts": [*out[-1]["parts"], entry["call"]]}
            open_calls[entry["call"].get("id")] = None
        elif "result" in entry:
            is_reply_open = False
            if entry["result"].get("id") in open_calls:  # else its call was replaced by a summary, or never made
                del open_calls[entry["result"].get("id")]
                out.append({"role": "tool", "parts": [entry["result"]]})
        else:
            interrupted()
            message = entry["message"]
            out.append(message)
            for part in message["parts"]:
                if part.get("type") == "tool_call":
                    open_calls[part.get("id")] = None
                elif part.get("type") == "tool_call_response":
                    open_calls.pop(part.get("id"), None)
            is_reply_open = message.get("role") == "assistant"
    interrupted()
    return out


def _given(payload: dict[str, Json], **keys: str) -> dict[str, Json]:
    """What the payload says of these keys, under the names of the message schema."""
    return {name: payload[key] for name, key in keys.items() if payload.get(key) is not None}


def with_compaction(policy: Policy, *, role: str = "user") -> Policy:
    """The same with summaries: CONTEXT_COMPACTED stands where the first event that it replaces stood.

    A later one wins: it may take in an earlier summary. What it replaces stays in the log, and a policy without compaction
    still shows it.

    Args:
        role: of the message that holds a summary.
    """

    def step(state: State, event: Event) -> State:
        if event.type != "CONTEXT_COMPACTED":
            return policy.step(state, event)
        first, stop = event.payload.get("from"), event.payload.get("to")
        if type(first) is not int or type(stop) is not int:
            return state
        summary = event.payload.get("summary")
        parts = summary if isinstance(summary, list) else [{"type": "text", "content": _plain(summary)}]
        entries: Sequence[State] = state["entries"]
        before = [e for e in entries if e["seq"] < first]
        after = [e for e in entries if e["seq"] >= max(first, stop)]
        state["entries"] = [*before, {"seq": first, "message": {"role": role, "parts": parts}}, *after]
        return state

    return replace(policy, name=f"{policy.name}+compaction({role})", step=step)
