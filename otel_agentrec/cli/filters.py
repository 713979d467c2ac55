"""Which records a command is asked for."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from otel_agentrec.errors import UsageError
from otel_agentrec.nodes.text import legible
from otel_agentrec.records import NodeIoRecord

__all__ = ["Filter", "texts"]

Json = Any


@dataclass(frozen=True)
class Filter:
    """Conditions on a record; all that are given must hold.

    Args:
        run: run id, or its beginning.
        session: session id; ``*`` and ``?`` stand for any characters (so in ``model`` and ``tool``).
        node_type: ``MODEL`` or ``TOOL``.
        model: requested or answering model.
        tool: name of the tool.
        status: one of ``ok``, ``error``, ``interrupted``, ``partial``.
        since: earliest start in milliseconds since the epoch; a record without times does not pass.
        grep: regular expression, case ignored, searched in every text of input and output.
    """

    run: str | None = None
    session: str | None = None
    node_type: str | None = None
    model: str | None = None
    tool: str | None = None
    status: str | None = None
    since: int | None = None
    grep: re.Pattern[str] | None = None

    def place_fits(self, run: str | None, session: str | None, start: int | None) -> bool:
        """Whether something of this run and session that began at this time (ms) can pass."""
        return (
            (self.run is None or (run or "").startswith(self.run))
            and (self.session is None or _like(session, self.session))
            and (self.since is None or self.since <= (start or 0))
        )

    def fits(self, record: NodeIoRecord) -> bool:
        return (
            self.place_fits(record.run_id, record.session_id, record.started_at_epoch_ms or record.captured_at_epoch_ms)
            and (self.node_type is None or record.node_type.value == self.node_type)
            and (self.model is None or _like(record.model_id, self.model) or _like(record.response_model, self.model))
            and (self.tool is None or _like(record.tool_name, self.tool))
            and (self.status is None or record.status == self.status)
            and (self.grep is None or any(self.grep.search(text) for text in texts(record)))
        )


def pattern(text: str | None) -> re.Pattern[str] | None:
    """The pattern of ``--grep``.

    Raises:
        UsageError: it is no regular expression.
    """
    if text is None:
        return None
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise UsageError(f"--grep {text!r} is no regular expression: {error}", "put \\ before ( ) [ * + ? .") from None


def texts(record: NodeIoRecord) -> Iterator[str]:
    """Every string of a record's input and output, numbers as they print; keys of objects are not searched."""
    stack: list[Json] = [record.error, record.reasoning_text, record.outputs, record.output_text, record.inputs]
    while stack:
        value = stack.pop()
        text = legible(value)
        if text is not None:
            yield text
        elif isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, (list, tuple)):
            stack.extend(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield str(value)


def _like(value: str | None, wanted: str) -> bool:
    return value is not None and fnmatch.fnmatchcase(value, wanted)
