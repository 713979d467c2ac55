"""Fit messages to a token budget. Pure: the log and the state of a projection keep everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from otel_agentrec.journal.canonical import canonical_any

__all__ = ["Counter", "estimate_tokens", "trimmed"]

Message = dict[str, Any]
Counter = Callable[[Message], int]
BYTES_PER_TOKEN = 4


def estimate_tokens(message: Message) -> int:
    """About how many tokens a message has: a quarter of the bytes of its canonical JSON, rounded up."""
    return -(-len(canonical_any(message)) // BYTES_PER_TOKEN)


def trimmed(messages: Sequence[Message], budget: int, count: Counter = estimate_tokens) -> list[Message]:
    """The newest messages that fit, and all system messages.

    Whole turns are left out, from the oldest on: a provider refuses a conversation that begins with a reply, or with the
    result of a call that is not there. Where the last turn alone is over the budget, its request stays, and the newest of
    what followed it; a result never stands without its call. So the outcome may be larger than a budget that is too small.
    """
    always = [i for i, m in enumerate(messages) if m.get("role") in ("system", "developer")]
    rest = [i for i, m in enumerate(messages) if m.get("role") not in ("system", "developer")]
    left = budget - sum(count(messages[i]) for i in always)
    tokens, after = {}, 0  # tokens[i]: of the rest from i on
    for i in reversed(rest):
        after += count(messages[i])
        tokens[i] = after
    requests = [i for i in rest if _is_request(messages[i])]
    first = next((i for i in requests if tokens[i] <= left), None)
    if first is not None or not rest:
        shown = [i for i in rest if first is not None and i >= first]
    elif not requests:
        shown = _newest(messages, rest, tokens, left)
    else:
        last = requests[-1]
        followed = [i for i in rest if i > last]
        shown = [last, *_newest(messages, followed, tokens, left - count(messages[last]))]
    return [messages[i] for i in sorted([*always, *shown])]


def _newest(messages: Sequence[Message], among: list[int], tokens: dict[int, int], left: int) -> list[int]:
    """As many of the newest as fit, beginning with a reply, and at least the last reply with all that follows it."""
    starts = [i for i in among if messages[i].get("role") == "assistant"] or among[:1]
    first = next((i for i in starts if tokens[i] <= left), starts[-1] if starts else None)
    return [i for i in among if first is not None and i >= first]


def _is_request(message: Message) -> bool:
    """Whether a turn begins here: a user's message that is not just the results of calls."""
    parts = message.get("parts") or []
    return message.get("role") == "user" and not any(p.get("type") == "tool_call_response" for p in parts)
