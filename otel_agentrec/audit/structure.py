"""What the parsed events of one stream must agree on: numbers, origin, times, starts and ends, what was dropped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from otel_agentrec.journal.check import Fault
from otel_agentrec.journal.events import FORMAT, UPCASTERS

__all__ = ["OpenSpans", "Structure", "claims_format", "printable"]

Json = Any
OpenSpans = dict[tuple[str, str], dict[str, Json]]
MOST_GAPS = 1000
MOST_OPEN = 100_000
_STARTS = frozenset({"RUN_STARTED", "HANDOFF_STARTED", "STEP_STARTED", "NODE_STARTED"})
_ENDS = frozenset({"RUN_ENDED", "HANDOFF_ENDED", "STEP_ENDED", "NODE_RECORDED", "NODE_INTERRUPTED"})
_ENDED = frozenset(type_.encode() for type_ in _ENDS)
_LOOKED_INTO = frozenset(
    type_.encode() for type_ in (*_STARTS, "STREAM_OPENED", "STREAM_SEALED", "DROPPED", "OPENED", "SEALED")
)
"""Types whose payload says something about the stream."""

_HEAD = re.compile(rb'\{"id":"[^"\\]+","mono":"(\d{1,19})","payload":\{')
_TEXT = rb'"[^"\\]*"'
_TAIL = re.compile(
    rb',"seq":(\d{1,16})(?:,"session":%s)?(?:,"step":\d+)?,"stream":"([^"\\]*)"'
    rb'(?:,"trace":(\{[^{}]*\}))?,"ts":\d+(?:,"turn":%s)?,"type":"([A-Z_]+)","v":"%s"\}'
    % (_TEXT, _TEXT, re.escape(FORMAT.encode()))
)


def claims_format(e: bytes) -> bool:
    """Whether an event says that it is in our envelope (any version that can be read)."""
    version = (_parsed(e) or {}).get("v")
    return isinstance(version, str) and (version == FORMAT or version in UPCASTERS)


class Structure:
    """An observer of :func:`~otel_agentrec.journal.check.check_stream` for streams in our envelope.

    A stream whose first event does not claim the format is left alone: ``applies`` is then False.

    Args:
        name: the stream's name as its file says it.
        named: the stream is reopened by later processes (sessions, the index).
        earlier: spans that other streams left open, by stream: a later segment goes on with those of its predecessor.
    """

    def __init__(self, name: str, *, named: bool = False, earlier: Mapping[str, OpenSpans] | None = None) -> None:
        self._name = name
        self._encoded_name = name.encode()
        self._named = named
        self._earlier = earlier or {}
        self._mono = -1
        self._closed_at: int | None = None
        self.applies = True
        self.opened: dict[str, Json] = {}
        """Payload of STREAM_OPENED."""
        self.open_spans: OpenSpans = {}
        """Spans that were started and have not ended, with what is known of them."""
        self.predecessor: str | None = None
        """The stream whose open spans were taken over."""
        self.dropped: list[dict[str, Json]] = []
        self.backwards = 0
        """How many events have a monotonic time before that of the event ahead of them; ``backwards_at``: the first."""
        self.backwards_at = -1

    def __call__(self, index: int, offset: int, e: bytes, hash: str) -> Fault | None:
        if not self.applies or self._is_plain(index, e):
            return None
        event = _parsed(e)
        if index == 0:
            self.applies = claims_format(e)
            if not self.applies:
                return None
        if event is None:
            return Fault("frame", index, offset, "the event is no JSON object")
        return self._envelope(event, index, offset) or self._order(event, index, offset)

    def _is_plain(self, index: int, e: bytes) -> bool:
        """Take in an event whose payload need not be looked at, without parsing it. False: it must be parsed.

        The envelope's keys stand in canonical order around the payload. Nothing in the tail but the trace opens a brace,
        and no string in it holds a quote, so what matches there is the envelope and nothing inside the payload.
        """
        head, tail = _HEAD.match(e), _TAIL.fullmatch(e, max(0, e.rfind(b',"seq":')))
        if head is None or tail is None or index == 0 or self._closed_at is not None:
            return False
        seq, stream, trace, type_ = tail.groups()
        if int(seq) != index or stream != self._encoded_name or type_ in _LOOKED_INTO:
            return False
        self._time(index, int(head[1]))
        if trace is not None and type_ in _ENDED:
            self._end(orjson.loads(trace))
        return True

    def sealed(self, size: int) -> bool:
        """Whether the last of ``size`` events closes the stream."""
        return self._closed_at is not None and self._closed_at == size - 1

    def _envelope(self, event: dict[str, Json], index: int, offset: int) -> Fault | None:
        seq, stream = event.get("seq"), event.get("stream")
        if type(seq) is not int:
            return Fault("frame", index, offset, "the event has no sequence number")
        if stream != self._name:
            hint = f"the event belongs to stream {printable(stream)}: the file was copied over another one, or renamed"
            return Fault("wrong_origin", index, offset, hint, seq, self._name, printable(stream))
        if seq > index:
            count = seq - index
            hint = f"{count} record{'s' * (count > 1)} missing before it, and the chain was sealed anew"
            return Fault("seq_gap", index, offset, hint, seq, str(index), str(seq))
        if seq < index:
            return Fault("seq_repeat", index, offset, f"duplicate of {seq}", seq, str(index), str(seq))
        for key, kind in (("id", str), ("ts", int), ("type", str), ("v", str), ("payload", dict)):
            if not isinstance(event.get(key), kind):
                return Fault("frame", index, offset, f"the event has no usable {key!r}", seq)
        if (index == 0) != (event["type"] == "STREAM_OPENED"):
            if index == 0:
                hint = "the first event is not STREAM_OPENED: the beginning of the stream is gone"
                return Fault("genesis_missing", index, offset, hint, seq, "STREAM_OPENED", printable(event["type"]))
            return Fault("wrong_origin", index, offset, "a second STREAM_OPENED: two streams in one file", seq)
        return None

    def _order(self, event: dict[str, Json], index: int, offset: int) -> Fault | None:
        type_: str = event["type"]
        payload: dict[str, Json] = event["payload"]
        mono = event.get("mono")
        if isinstance(mono, str) and mono.isdecimal() and len(mono) < 20:
            self._time(index, int(mono))
        if self._closed_at is not None and not self._named:
            hint = f"the stream was closed at {self._closed_at}; this event was added afterwards"
            return Fault("close_count_mismatch", index, offset, hint, index)
        if type_ in _STARTS:
            self._start(event, payload, index)
        elif type_ in _ENDS:
            self._end(event.get("trace"))
        elif type_ == "DROPPED":
            count = payload.get("count")
            self.dropped.append(
                {
                    "index": index,
                    "count": count if type(count) is int else None,
                    "reason": printable(payload.get("reason")),
                }
            )
            del self.dropped[MOST_GAPS:]
        elif type_ == "STREAM_OPENED":
            self.opened = payload
            before = payload.get("prevStream")
            if isinstance(before, dict) and before.get("id") in self._earlier:
                self.predecessor = before["id"]
                self.open_spans = dict(self._earlier[before["id"]])
        elif type_ == "STREAM_SEALED":
            if payload.get("count") != index:
                hint = f"the close says {printable(payload.get('count'))} events came before it, the file has {index}"
                return Fault(
                    "close_count_mismatch", index, offset, hint, index, printable(payload.get("count")), str(index)
                )
            self._closed_at = index
        return None

    def _time(self, index: int, mono: int) -> None:
        if mono < self._mono and not self._named:  # a named stream goes on after a boot, whose clock starts anew
            self.backwards_at = self.backwards_at if self.backwards else index
            self.backwards += 1
        self._mono = mono

    def _start(self, event: dict[str, Json], payload: dict[str, Json], index: int) -> None:
        key = _span_key(event.get("trace"))
        if key is not None and len(self.open_spans) < MOST_OPEN:
            self.open_spans[key] = {
                "stream": self._name,
                "index": index,
                "type": event["type"],
                "nodeType": printable(payload.get("type") or payload.get("kind")),
                "name": printable(payload.get("name")),
                "run": printable(event.get("run")),
                "traceId": key[0],
                "spanId": key[1],
            }

    def _end(self, trace: Json) -> None:
        key = _span_key(trace)
        if key is not None:
            self.open_spans.pop(key, None)


def _span_key(trace: Json) -> tuple[str, str] | None:
    return (str(trace.get("traceId"))[:64], str(trace.get("spanId"))[:64]) if isinstance(trace, dict) else None


def _parsed(e: bytes) -> dict[str, Json] | None:
    try:
        value = orjson.loads(e)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def printable(value: Json) -> str | None:
    """A value out of a file as one short line: no control characters reach a terminal. None stays None."""
    if value is None:
        return None
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value)[:200])
