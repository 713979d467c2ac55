"""Reading a recording by hand, so that tests of the writer do not lean on the reader."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def events(path: Path) -> list[dict[str, Any]]:
    """The events of a stream file; fails unless every line is framed, chained and numbered without a gap."""
    out, prev = [], "0" * 64
    for n, line in enumerate(path.read_bytes().splitlines(keepends=True)):
        assert line.endswith(b"\n")
        e = line[9:-154]
        digest = hashlib.sha256(prev.encode() + b"|" + e).hexdigest()
        assert line == b'{"event":' + e + f',"hash":"{digest}","prevHash":"{prev}"}}\n'.encode()
        prev = digest
        out.append(json.loads(e))
        assert out[-1]["seq"] == n
    return out


def hashes(path: Path) -> list[str]:
    return [json.loads(line)["hash"] for line in path.read_bytes().splitlines()]


def cells(path: Path) -> dict[tuple[int, int], Any]:
    """(seq, i) -> value of a stream's content file."""
    file = path.with_name(path.name.replace(".jsonl", ".content.jsonl"))
    lines = file.read_bytes().splitlines() if file.exists() else []
    return {(c["seq"], c["i"]): c["value"] for c in map(json.loads, lines)}


def streams(directory: Path) -> list[Path]:
    names = sorted(directory.glob("*.jsonl"))
    return [p for p in names if p.name != "index.jsonl" and not p.name.endswith(".content.jsonl")]


def refs(value: Any) -> list[str]:
    """Commitments in canonical order."""
    if isinstance(value, dict):
        if "$c" in value:
            return [value["$c"]]
        return [r for key in sorted(value) for r in refs(value[key])]
    return [r for item in value for r in refs(item)] if isinstance(value, list) else []


def resolve_list(
    all_events: list[dict[str, Any]],
    owned: dict[tuple[int, int], Any],
    seq: int,
    path: str,
    start: int = 0,
    stop: int = -1,
) -> list[Any]:
    """Elements start to stop of a spliced list, by plain recursion."""
    node: Any = all_events[seq]
    for key in path.removeprefix("$.").split("."):
        node = node[key]
    order = refs(all_events[seq]["payload"])
    out: list[Any] = []
    at, stop = 0, node["n"] if stop < 0 else stop
    for item in node["$list"]:
        if isinstance(item, list):
            target, first, last = item[:3]
            assert target < seq
            low, high = max(start, at), min(stop, at + last - first)
            if low < high:
                there = item[3] if len(item) > 3 else path
                out += resolve_list(all_events, owned, target, there, first + low - at, first + high - at)
            at += last - first
            continue
        if start <= at < stop:
            out.append(item["$v"] if "$v" in item else owned[seq, order.index(item["$c"])])
        at += 1
    assert at == node["n"]
    return out
