"""The hash chain: the golden vectors, the frame of a line, and the event logs of the seed (section 5)."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from otel_agentrec.journal.canonical import canonical
from otel_agentrec.journal.chain import (
    ChainVerification,
    HashChainedEventLog,
    seal,
    split,
)

GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "golden_chain.json").read_text(encoding="utf-8"))["links"]


# --- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", GOLDEN, ids=lambda link: link["event"]["type"])
def test_golden_line_by_line(link: dict) -> None:
    e = canonical(link["event"] | {})
    line, hash_ = seal(link["prevHash"], bytes.fromhex(link["canonical_hex"]))
    assert e.hex() == link["canonical_hex"]
    assert hash_ == link["hash"]
    assert line.endswith(b"\n")
    assert sha256(line[:-1]).hexdigest() == link["sealed_line_sha256"]
    assert split(line[:-1]) == (e, link["hash"], link["prevHash"])


def test_golden_chain_as_a_log() -> None:
    log = HashChainedEventLog()
    for link in GOLDEN:
        made = log.append(link["event"])
        assert (made.prev_hash, made.hash) == (link["prevHash"], link["hash"])
    assert log.verify_chain() == ChainVerification(True, -1)
