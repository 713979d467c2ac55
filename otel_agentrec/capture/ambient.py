"""What a span of the program's own, which is no step of an agent, tells of all steps below it: their session.

A web handler or a worker often sets the session on its span, and the model's instrumentation knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from otel_agentrec.capture.dialects import scope_verdict
from otel_agentrec.capture.dialects.values import text

__all__ = ["Above", "session_above", "session_in"]

KEYS = ("gen_ai.conversation.id", "session.id")


class Above(NamedTuple):
    """A span above a step. ``session``: what it tells."""

    is_step: bool
    session: str | None


def session_in(attributes: Mapping[str, Any] | None, further: str | None, scope: str = "") -> str | None:
    """The session that a span's attributes name; None for a span of an HTTP library, a database …

    Args:
        further: the attribute that the user's settings name.
    """
    if not attributes or scope_verdict(scope) == "foreign":
        return None
    keys = KEYS if further is None else (*KEYS, further)
    return next((told for key in keys if (told := text(attributes.get(key))) is not None), None)


def session_above(spans: Iterable[Above]) -> str | None:
    """The session that the nearest span above tells, unless that is a step: whoever reads a step's session finds it there.

    Args:
        spans: those above, nearest first.
    """
    nearest = next((one for one in spans if one.session is not None), None)
    return None if nearest is None or nearest.is_step else nearest.session
