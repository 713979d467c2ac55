"""The event ``gen_ai.client.inference.operation.details``: what a span would say, said beside it.

Its attributes are those of the span: structured in a log record, JSON text in a span event. Some emitters put each fact into
an event of its own, all of this name. They are merged; what the span itself says wins, unless a limit cut it off there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["NAME", "merge"]

NAME = "gen_ai.client.inference.operation.details"

_CONTENT = (
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.definitions",
)


def merge(own: Mapping[str, Any], told: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The attributes of a span, filled up from its events. Among events the later value counts, empty ones never do."""
    merged: dict[str, Any] = {}
    for attributes in told:
        merged.update((key, value) for key, value in attributes.items() if not _is_empty(value))
    if not merged:
        return dict(own)
    better = {key: merged[key] for key in _CONTENT if key in own and key in merged and not _is_whole(own[key])}
    return {**merged, **own, **better}


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", "[]") or (isinstance(value, (list, tuple)) and not value)


def _is_whole(value: Any) -> bool:
    """Whether a content attribute has content, and text of JSON its end."""
    if _is_empty(value):
        return False
    if not isinstance(value, str) or not value[:256].lstrip().startswith(("[", "{")):
        return True
    return value[-256:].rstrip()[-1:] in ("]", "}")
