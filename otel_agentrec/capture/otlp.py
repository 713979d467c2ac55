"""Files of OTLP: JSON lines (as the Collector's file exporter writes them) or protobuf, plain or gzip, read batch by batch.
The answers of Jaeger's API are read too.

What a file is shows in its first bytes, not in its name. A line that fits nothing is a batch with faults; only a file that
can't be OTLP at all (a directory, UTF-16, zstd) is an error.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from otel_agentrec.capture import jaeger_json, otlp_json, otlp_protobuf
from otel_agentrec.capture.batches import Batch
from otel_agentrec.errors import AgentRecError, UsageError
from otel_agentrec.journal.jsontext import parse

__all__ = ["MAX_LINE", "OtlpFile"]

MAX_LINE = 256 << 20
"""Bytes of one line or message; longer ones are a fault. They would need several times as much memory."""

MAX_DOCUMENT = 64 << 20
"""Bytes of a document that is spread over several lines: it is read whole."""

_FORMATS = "OTLP/JSON lines or OTLP/protobuf, as the Collector's file exporter writes them"
_BLANK = b" \t\r\n"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BOMS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_JSON_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*[\"}]|\[\s*[{\]])")
_WIDE = (b'{\0"\0', b'\0{\0"', b"[\0{\0", b"\0[\0{", b"{\0\0\0", b"\0\0\0{")


class OtlpFile:
    """One input file. Opening looks at its first bytes only.

    Raises:
        UsageError: the path is missing, no regular file, empty, unreadable, or in an encoding that is no OTLP.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.size = self._check()
        with self._open(None) as stream:
            try:
                head = stream.read(4096)
            except (OSError, EOFError, zlib.error) as e:
                raise _unreadable(self.path, e) from e
        self.format: Literal["json", "protobuf", "protobuf message"] = self._format(head)

    def batches(self, progress: Callable[[int], None] | None = None) -> Iterator[Batch]:
        """Every line or message of the file, in its order.

        Args:
            progress: called with the number of bytes of the file that were read since the last call.

        Raises:
            AgentRecError: the file can't be read any more.
        """
        place = 0
        with self._open(progress) as stream:
            reader = {"json": _lines, "protobuf": _frames, "protobuf message": _whole}[self.format]
            try:
                for batch in reader(stream):
                    place = batch.place
                    yield batch
            except (EOFError, zlib.error, gzip.BadGzipFile):
                yield Batch(place + 1, faults=["the compressed data ends early"], known=place > 0)
            except OSError as e:
                raise _unreadable(self.path, e) from e

    def raw_lines(self, progress: Callable[[int], None] | None, limit: int) -> Iterator[tuple[bytes, str]]:
        """(line, fault) of every line of a file that is JSON lines, for readers of other forms than OTLP.

        Raises:
            AgentRecError: the file can't be read any more.
        """
        with self._open(progress) as stream:
            try:
                while raw := stream.readline(limit + 1):
                    if len(raw) <= limit:
                        yield raw, ""
                        continue
                    while raw and not raw.endswith(b"\n"):
                        raw = stream.readline(1 << 20)
                    yield b"", f"longer than {limit >> 20} MiB"
            except (EOFError, zlib.error, gzip.BadGzipFile):
                yield b"", "the compressed data ends early"
            except OSError as e:
                raise _unreadable(self.path, e) from e

    def _check(self) -> int:
        try:
            info = self.path.stat()
        except FileNotFoundError:
            raise UsageError(f"{self.path}: no such file", f"give files of {_FORMATS}") from None
        except (OSError, ValueError) as e:
            raise _unreadable(self.path, e) from e
        if stat.S_ISDIR(info.st_mode):
            raise UsageError(f"{self.path} is a directory", f"give the files in it, for example {self.path}/*.jsonl")
        if not stat.S_ISREG(info.st_mode):
            raise UsageError(f"{self.path} is no regular file", "it is read twice: save the stream to a file first")
        if info.st_size == 0:
            raise UsageError(f"{self.path} is empty", "was the exporter flushed before the program ended?")
        return info.st_size

    @contextlib.contextmanager
    def _open(self, progress: Callable[[int], None] | None) -> Iterator[io.BufferedIOBase]:
        """The bytes of the file, decompressed."""
        try:
            raw = _Counted(self.path, progress)
        except OSError as e:
            raise _unreadable(self.path, e) from e
        with io.BufferedReader(raw, 1 << 20) as plain:
            if plain.peek(2)[:2] == _GZIP:
                with gzip.GzipFile(fileobj=plain) as unpacked:
                    yield unpacked
            else:
                yield plain

    def _format(self, head: bytes) -> Literal["json", "protobuf", "protobuf message"]:
        if head[:4] == _ZSTD:
            raise UsageError(f"{self.path} is compressed with zstd", f"zstd -d {self.path} first")
        if head.startswith(_BOMS) or head.startswith(_WIDE):
            raise _not_utf8(self.path, "it begins as UTF-16 or UTF-32")
        # the first byte of a protobuf message, field 1, is a newline too
        if _JSON_BEGINS.match(head):
            return "json"
        if head[:1] == b"\n":  # as the first byte of a length it would mean more than 160 MiB
            return "protobuf message" if head.strip(_BLANK) else "json"
        if head[4:5] == b"\n" and 0 < int.from_bytes(head[:4], "big") <= MAX_LINE:
            return "protobuf"
        return "json"


class _Counted(io.FileIO):
    """A file that tells how much of it was read."""

    def __init__(self, path: Path, progress: Callable[[int], None] | None) -> None:
        super().__init__(path, "rb")
        self._progress = progress

    def readinto(self, buffer: Any) -> int | None:
        done = super().readinto(buffer)
        if self._progress is not None and done:
            self._progress(done)
        return done


def _lines(stream: io.BufferedIOBase) -> Iterator[Batch]:
    place, first = 0, True
    while raw := stream.readline(MAX_LINE + 1):
        place += 1
        if len(raw) > MAX_LINE:
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(1 << 20)
            yield Batch(place, faults=[f"longer than {MAX_LINE >> 20} MiB"], known=False)
            continue
        line = raw.strip(_BLANK) if place > 1 else raw.removeprefix(codecs.BOM_UTF8).strip(_BLANK)
        if not line:
            continue
        batch, ended = _line(line)
        if first and ended:  # perhaps a document over several lines
            after = stream.tell()
            documents = _documents(raw + stream.read(MAX_DOCUMENT))
            if documents is not None and not stream.read(1):
                for batch in documents:
                    batch.place = place
                    yield batch
                return
            stream.seek(after)
        first = False
        batch.place = place
        yield batch


def _line(line: bytes) -> tuple[Batch, bool]:
    """-> (the batch, whether the line is the beginning of JSON that does not end in it)."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as e:
        return Batch(faults=[f"not UTF-8: byte 0x{line[e.start]:02x} at {e.start + 1}"], known=False), False
    try:
        document = parse(text)
    except json.JSONDecodeError as e:
        return Batch(faults=[f"not JSON: {e.msg} at column {e.colno}"], known=False), _is_cut(text, e)
    except ValueError:
        return Batch(faults=["not JSON"], known=False), False
    return _decoded(document), False


def _decoded(document: Any) -> Batch:
    return jaeger_json.decode(document) or otlp_json.decode(document)


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    return text[:1] in ("{", "[") and (error.pos >= len(text) or error.msg.startswith("Unterminated"))


def _documents(data: bytes) -> list[Batch] | None:
    """The batches of JSON documents that are spread over lines; None when it is no such file."""
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    out: list[Batch] = []
    while text:
        try:
            out.append(_decoded(parse(text)))
            return out
        except json.JSONDecodeError as e:
            if not e.msg.startswith("Extra data"):
                return None
            out.append(_decoded(parse(text[: e.pos])))
            text = text[e.pos :].strip()
        except ValueError:
            return None
    return out


def _frames(stream: io.BufferedIOBase) -> Iterator[Batch]:
    """The Collector's form: each message after its length, four bytes big-endian."""
    place = 0
    while prefix := stream.read(4):
        place += 1
        size = int.from_bytes(prefix, "big")
        if len(prefix) < 4 or size > MAX_LINE:
            fault = "the file ends in the middle of a message" if len(prefix) < 4 else "no message length"
            yield Batch(place, faults=[fault], known=False)
            return
        data = stream.read(size)
        if len(data) < size:
            yield Batch(place, faults=["the file ends in the middle of a message"], known=False)
            return
        batch = otlp_protobuf.decode(data)
        batch.place = place
        yield batch


def _whole(stream: io.BufferedIOBase) -> Iterator[Batch]:
    data = stream.read(MAX_LINE + 1)
    if len(data) > MAX_LINE:
        yield Batch(1, faults=[f"longer than {MAX_LINE >> 20} MiB"], known=False)
        return
    batch = otlp_protobuf.decode(data)
    batch.place = 1
    yield batch


def _not_utf8(path: Path, how: str) -> UsageError:
    return UsageError(
        f"{path} is not UTF-8: {how}", f"OTLP/JSON is UTF-8: iconv -f UTF-16 -t UTF-8 {path} > utf8.jsonl"
    )


def _unreadable(path: Path, error: BaseException) -> AgentRecError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return UsageError(f"{path} can't be read: {why}", "check its permissions, and that the file is whole")
