"""The hash chain: the golden vectors, the frame of a line, and the event logs."""

from __future__ import annotations

import dataclasses
import gc
import json
import math
import sys
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.journal.canonical import canonical, canonical_any
from otel_agentrec.journal.chain import (
    GENESIS,
    PREFIX_LEN,
    SUFFIX_LEN,
    ChainVerification,
    HashChainedEventLog,
    InMemoryEventLog,
    Link,
    seal,
    split,
)

GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "golden_chain.json").read_text(encoding="utf-8"))["links"]
INTACT = ChainVerification(True, -1)


@dataclasses.dataclass
class AgentEvent:
    type: str
    payload: Any = None
    sequence: int | None = None


class Opaque:
    """An event class that shows less of itself than it holds."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "<Opaque>"


EVENTS: list[Any] = [
    {"type": "MODEL_REQUEST", "payload": {"n": 2**60, "x": math.nan}},
    AgentEvent("TOOL_CALL", {"args": (1, 2)}),
    Opaque("hello"),
    "text",
    None,
]


def filled(events: list[Any] = EVENTS) -> HashChainedEventLog:
    log = HashChainedEventLog()
    for event in events:
        log.append(event)
    return log


# --- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", GOLDEN, ids=lambda link: link["event"]["type"])
def test_golden_line_by_line(link: dict[str, Any]) -> None:
    e = canonical(link["event"])
    line, hash_ = seal(link["prevHash"], e)
    assert e.hex() == link["canonical_hex"]
    assert hash_ == link["hash"]
    assert line.endswith(b"}\n")
    assert sha256(line[:-1]).hexdigest() == link["sealed_line_sha256"]
    assert split(line[:-1]) == (e, link["hash"], link["prevHash"])


def test_golden_chain_as_a_log() -> None:
    log = HashChainedEventLog()
    for link in GOLDEN:
        assert log.append(link["event"]) == Link(link["event"], link["prevHash"], link["hash"])
    assert log.verify_chain() == INTACT


@given(st.dictionaries(st.text(), st.text() | st.integers(0, 9)), st.binary(min_size=32, max_size=32))
def test_a_line_is_canonical_json_and_splits_again(event: dict[str, Any], prev: bytes) -> None:
    e = canonical_any(event)
    line, hash_ = seal(prev.hex(), e)
    assert canonical(json.loads(line)) + b"\n" == line
    assert line[PREFIX_LEN : -SUFFIX_LEN - 1] == e
    assert split(line[:-1]) == (e, hash_, prev.hex())


def test_every_flipped_bit_of_the_frame_is_seen() -> None:
    e = canonical_any({"a": 1})
    line = seal(GENESIS, e)[0][:-1]
    _, hash_, prev = split(line) or (b"", "", "")
    for i in range(len(line)):
        for bit in range(8):
            changed = bytearray(line)
            changed[i] ^= 1 << bit
            parts = split(bytes(changed))
            in_event = PREFIX_LEN <= i < len(line) - SUFFIX_LEN
            if in_event:
                assert parts is not None
                assert parts[0] != e
            else:
                # A changed digit of a hash may still be a digit; everything else is no frame.
                assert parts is None or (parts[0] == e and (parts[1], parts[2]) != (hash_, prev))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: line[:-1],
        lambda line: line + b"\n",
        lambda line: line + b" ",
        lambda line: b" " + line,
        lambda line: line.upper(),
        lambda line: line.replace(b'"hash"', b'"Hash"'),
        lambda line: line[:-2] + b"A" + line[-2:],
        lambda line: line[PREFIX_LEN:],
        lambda line: b"",
        lambda line: line[:PREFIX_LEN] + line[-SUFFIX_LEN:],
        lambda line: line[-SUFFIX_LEN:],
    ],
)
def test_what_is_no_frame_does_not_split(spoil: Any) -> None:
    assert split(spoil(seal(GENESIS, b"{}")[0][:-1])) is None


def test_upper_case_hex_is_refused() -> None:
    line, hash_ = seal(GENESIS, b"{}")
    assert hash_ != hash_.upper()
    assert split(line[:-1].replace(hash_.encode(), hash_.upper().encode())) is None


# --- what ai4j's own tests assert -----------------------------------------------------------------------------------


def test_chain_fresh_intact_64_hex_distinct() -> None:
    assert HashChainedEventLog().verify_chain() == INTACT
    log = filled([{"same": 1}] * 3)
    assert log.verify_chain() == INTACT
    assert all(len(link.hash) == 64 and set(link.hash) <= set("0123456789abcdef") for link in log.links)
    assert len({link.hash for link in log.links}) == 3
    assert [link.prev_hash for link in log.links] == [GENESIS, *(link.hash for link in log.links[:-1])]


def test_chain_tamper_index_1_reports_1() -> None:
    log = filled()
    log.tamper_event(1, {"type": "other"})
    assert log.verify_chain() == ChainVerification(False, 1)


def test_chain_restore_of_the_same_events_same_hashes() -> None:
    log, again = filled(), HashChainedEventLog()
    again.append("something else")
    again.restore(log.events)
    assert again.links == log.links
    again.restore(log.links)
    assert again.links == log.links
    assert again.verify_chain() == INTACT


def test_chain_clear_intact() -> None:
    log = filled()
    log.tamper_event(0, 1)
    log.clear()
    assert log.verify_chain() == INTACT
    assert (log.links, log.sequence, len(log)) == ([], 0, 0)
    assert log.append(1).prev_hash == GENESIS


# --- beyond them ------------------------------------------------------------------------------------------------------


def test_the_event_is_kept_as_the_caller_gave_it() -> None:
    log = filled()
    assert all(kept is given for kept, given in zip(log.events, EVENTS, strict=True))


@pytest.mark.parametrize(
    ("event", "replacement"),
    [
        (AgentEvent("A"), AgentEvent("B")),
        (Opaque("a"), Opaque("b")),
        ({"n": 2**60}, {"n": {"$int": str(2**60)}}),
        ({"n": 2**60}, {"n": 2**60 + 1}),
        ({"a": 1}, {"a": True}),
        ([["x"] * 9] * 9, [["x"] * 9] * 8 + [["x"] * 8 + ["y"]]),
        ("a\ud800", "a\ud801"),
        ({1: "a"}, {"1": "a"}),
    ],
    ids=repr,
)
def test_an_edit_of_any_kind_of_event_is_seen(event: Any, replacement: Any) -> None:
    log = filled([0, event, 2])
    log.tamper_event(1, replacement)
    assert log.verify_chain() == ChainVerification(False, 1)
    log.tamper_event(1, event)
    assert log.verify_chain() == INTACT


def test_an_edit_below_the_deepest_level_is_seen() -> None:
    deep: Any = "a"
    other: Any = "b"
    for _ in range(200):
        deep, other = [deep], [other]
    log = filled([deep])
    log.tamper_event(0, other)
    assert log.verify_chain() == ChainVerification(False, 0)


def test_verify_survives_any_replacement() -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    loop: list[Any] = []
    loop.append(loop)
    for replacement in (Hostile(), loop, float("nan"), object(), b"", {1: {2}}):
        log = filled([1, 2, 3])
        log.tamper_event(2, replacement)
        assert log.verify_chain() == ChainVerification(False, 2)


def test_there_is_no_event_to_tamper_with() -> None:
    with pytest.raises(IndexError, match="no event 5: the log holds 5"):
        filled().tamper_event(5, None)


@pytest.mark.parametrize("kind", [HashChainedEventLog, InMemoryEventLog])
def test_sequence(kind: type[InMemoryEventLog]) -> None:
    log = kind()
    assert log.sequence == 0
    log.on_event("a")
    log.append("b")
    assert (log.sequence, len(log)) == (2, 2)
    log.restore([{"seq": 7}, AgentEvent("x", sequence=9), {"seq": "11"}, {"seq": True}, object()])
    assert (log.sequence, len(log)) == (9, 5)
    log.append("c")
    assert log.sequence == 10
    log.restore(["a", "b"])
    assert log.sequence == 2


def test_a_log_without_a_chain_makes_no_claim() -> None:
    log = InMemoryEventLog()
    assert log.append({"a": 1}) == Link({"a": 1}, "", "")
    assert not hasattr(log, "verify_chain")


def test_threads_never_fork_the_chain() -> None:
    log = HashChainedEventLog()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=lambda t=t: [log.on_event({"t": t, "i": i}) for i in range(300)]) for t in range(4)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert log.verify_chain() == INTACT
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert log.verify_chain() == INTACT
    assert log.sequence == len(log) == 1200
    for t in range(4):
        assert [e["i"] for e in log.events if e["t"] == t] == list(range(300))  # type: ignore[index]


def test_an_event_from_a_finaliser_inside_an_append() -> None:
    """No lock is held, so code that interrupts an append may append too."""
    log = HashChainedEventLog()

    class Interrupts:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            log.append("finalised")

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for i in range(200):
            Interrupts()
            log.append({"i": i})
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert log.events.count("finalised") == 200
    assert log.verify_chain() == INTACT


def test_an_append_that_is_interrupted_just_before_its_place_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    log = HashChainedEventLog()
    log.append("first")
    make, interruptions = HashChainedEventLog._link, iter(["signal", "finaliser"])

    def interrupted(self: HashChainedEventLog, before: Link | None, event: object, sealed: bytes) -> Link:
        link = make(self, before, event, sealed)
        if event == "outer":
            for other in interruptions:
                self.append(other)
        return link

    monkeypatch.setattr(HashChainedEventLog, "_link", interrupted)
    assert log.append("outer") == log.links[-1]
    assert log.events == ["first", "signal", "finaliser", "outer"]
    assert log.verify_chain() == INTACT


@pytest.mark.parametrize("make", [HashChainedEventLog, InMemoryEventLog])
def test_an_empty_log_is_one_all_the_same(make: type[InMemoryEventLog]) -> None:
    log = make()
    assert len(log) == 0
    assert log, "`if log:` must not leave it out"
