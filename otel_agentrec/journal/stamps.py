"""What leads from telemetry that others kept back to the journal: the stamp of a span, and events as log records.

A stamp says where a span's event stands in the journal, so that a chain can be checked against what a viewer kept.
It is made of span *attributes*: some backends drop span events. The same ids stand under ``langfuse.observation.metadata.*``
because Langfuse can filter only by those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["CHECKPOINT", "EVENT", "PREFIX", "Stamp", "stamp_of"]

EVENT = "agentrec.event"
"""``eventName`` of a log record that is a journal event. Its body is canonical(E) as text, as it stands in the journal's line;
its attributes are ``agentrec.stream``, ``agentrec.seq`` (an integer), ``agentrec.hash`` and ``agentrec.prev_hash``, so that
``hash == sha256(prev_hash + "|" + body)``."""
CHECKPOINT = "agentrec.checkpoint"
"""Name of a span that says how far a stream had come: ``agentrec.stream``, ``agentrec.size`` (its number of events) and
``agentrec.hash`` (of the last of them)."""

PREFIX = "agentrec."
LANGFUSE = "langfuse.observation.metadata."


class Stamp(NamedTuple):
    """Event ``seq`` of ``stream``, sealed with ``hash`` behind ``prev_hash`` (64 hex each); ``record_id`` as in ``nodes``."""

    record_id: str
    stream: str
    seq: int
    hash: str
    prev_hash: str

    def attributes(self) -> dict[str, str | int]:
        """The attributes that a stamped span has besides its own."""
        own: dict[str, str | int] = {
            "record_id": self.record_id,
            "stream": self.stream,
            "seq": self.seq,
            "hash": self.hash,
            "prev_hash": self.prev_hash,
        }
        return {
            **{PREFIX + key: value for key, value in own.items()},
            **{f"{LANGFUSE}agentrec_{key}": value for key, value in own.items()},
        }


def stamp_of(attributes: Mapping[str, Any]) -> Stamp | None:
    """The stamp that a span carries; None when it has none, or not a whole one."""
    values = [attributes.get(PREFIX + key) for key in Stamp._fields]
    record_id, stream, seq, hash_, prev_hash = values
    if (
        isinstance(seq, str) and seq.isascii() and seq.isdecimal() and len(seq) < 20
    ):  # Jaeger and JSON write integers as text
        seq = int(seq)
    texts = (record_id, stream, hash_, prev_hash)
    if type(seq) is not int or not all(isinstance(value, str) and value for value in texts):
        return None
    return Stamp(str(record_id), str(stream), seq, str(hash_), str(prev_hash))
