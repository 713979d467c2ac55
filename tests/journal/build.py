"""Recordings made byte by byte from the format page, without any code of the package: the oracle for readers.

build = Builder(tmp_path)
with build.stream("20260101T000000Z-1-aa") as s:
    s.event("NODE_RECORDED", {"facts": {"result": s.cell("hello")}})
"""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

GENESIS = "0" * 64
TRACE = "0af7651916cd43dd8448eb211c80319c"


def canon(value: Any) -> bytes:
    """Canonical JSON, good for what the tests put in: no floats, no keys beyond the basic plane."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def seal(prev: str, e: bytes) -> tuple[bytes, str]:
    digest = hashlib.sha256(prev.encode() + b"|" + e).hexdigest()
    return b'{"event":' + e + b',"hash":"' + digest.encode() + b'","prevHash":"' + prev.encode() + b'"}\n', digest


class Cell:
    """A value to be stored as a cell; stands in a payload where its reference goes."""

    def __init__(self, value: Any, salt: bytes | None = None) -> None:
        self.data = canon(value)
        self.salt = salt or uuid.uuid4().bytes

    @property
    def reference(self) -> dict[str, Any]:
        digest = hashlib.sha256(b"agentrec/content/1\0" + self.salt + self.data).hexdigest()
        return {"$c": digest, "bytes": len(self.data)}


class Stream:
    """One stream under construction. ``lines`` and ``cells`` may be changed before :meth:`write`."""

    def __init__(self, directory: Path, name: str, *, tip: dict[str, Any] | None = None, **opened: Any) -> None:
        self.directory = directory
        self.name = name
        self.lines: list[bytes] = []
        self.cells: list[bytes] = []
        self.hashes: list[str] = []
        payload = {"origin": f"me/agentrec/{name}", "nonce": "00" * 16, **opened}
        if tip is not None:
            payload["indexTip"] = tip
        self.event("STREAM_OPENED", payload)

    @property
    def path(self) -> Path:
        return self.directory / f"{self.name}.jsonl"

    @property
    def content_path(self) -> Path:
        return self.directory / f"{self.name}.content.jsonl"

    @property
    def size(self) -> int:
        return len(self.lines)

    @property
    def tip(self) -> dict[str, Any]:
        return {"size": self.size, "hash": self.hashes[-1]}

    def event(self, type_: str, payload: dict[str, Any], **envelope: Any) -> int:
        """Append an event; returns its seq. ``Cell`` objects in the payload become references."""
        seq = self.size
        found: list[Cell] = []
        event = {
            "id": str(uuid.UUID(int=seq)),
            "v": "agentrec/1",
            "stream": self.name,
            "seq": seq,
            "ts": 1_780_000_000_000 + seq,
            "mono": str(10**9 + seq),
            "type": type_,
            "payload": _place(payload, found),
            **envelope,
        }
        return self.raw(canon(event), [(cell.salt, cell.data) for cell in found])

    def raw(self, e: bytes, cells: list[tuple[bytes, bytes]] | tuple[()] = ()) -> int:
        """Seal bytes as the next event."""
        seq = self.size
        for i, (salt, data) in enumerate(cells):
            self.cells.append(b'{"i":%d,"salt":"%s","seq":%d,"value":%s}\n' % (i, salt.hex().encode(), seq, data))
        line, digest = seal(self.hashes[-1] if self.hashes else GENESIS, e)
        self.lines.append(line)
        self.hashes.append(digest)
        return seq

    def reseal(self, start: int = 0) -> None:
        """Seal every line from ``start`` on anew, as somebody would who changed one."""
        for i in range(start, len(self.lines)):
            line, digest = seal(self.hashes[i - 1] if i else GENESIS, self.lines[i][9:-154])
            self.lines[i] = line
            self.hashes[i : i + 1] = [digest]
        del self.hashes[len(self.lines) :]

    def close(self) -> None:
        self.event("STREAM_SEALED", {"count": self.size})

    def write(self) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"".join(self.lines))
        if self.cells:
            self.content_path.write_bytes(b"".join(self.cells))
        return self.path


class Recording:
    """A directory with an index: streams are listed as they are opened and closed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.index = Stream(directory, "index")
        self.streams: list[Stream] = []

    def open(self, name: str, **opened: Any) -> Stream:
        stream = Stream(self.directory, name, tip=self.index.tip, **opened)
        self.index.event("OPENED", {"stream": name, "hash": stream.hashes[0]})
        self.streams.append(stream)
        return stream

    def close(self, stream: Stream) -> None:
        stream.close()
        self.index.event("SEALED", {"stream": stream.name, "size": stream.size, "hash": stream.hashes[-1]})

    def write(self) -> Path:
        for stream in (*self.streams, self.index):
            stream.write()
        return self.directory


def small(directory: Path) -> Recording:
    """Two closed streams with content, splices, an index and a DROPPED: a bit of everything."""
    recording = Recording(directory)
    one = recording.open("20260101T000000Z-1-aa")
    two = recording.open("20260101T000001Z-2-bb")
    for stream in (one, two):
        said = {"$list": [Cell({"text": "hällo"}), Cell("你好")], "n": 2}
        seq = stream.event("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": {"messages": said}})
        again = {"$list": [[seq, 0, 2], Cell("3")], "n": 3}
        stream.event("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": {"messages": again}})
        stream.event("DROPPED", {"count": 2, "reason": "ENOSPC"})
        recording.close(stream)
    recording.write()
    return recording


def _place(value: Any, found: list[Cell]) -> Any:
    """The value with references for cells, collected in canonical order."""
    if isinstance(value, Cell):
        found.append(value)
        return value.reference
    if isinstance(value, dict):
        return {key: _place(value[key], found) for key in sorted(value)}
    if isinstance(value, list):
        return [_place(item, found) for item in value]
    return value
