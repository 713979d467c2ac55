"""The frames of ``application/vnd.amazon.eventstream``: the bytes of a stream -> its messages.

A frame is total length (4 bytes), header length (4), checksum of both (4), headers, payload, checksum of all before (4); numbers
are big-endian, checksums CRC-32. A header is the length of its name (1), its name, its type (1) and its value; texts (type 7)
and bytes (type 6) have their length (2) in front.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

__all__ = ["Frame", "read_frames"]

_PRELUDE = struct.Struct(">III")
_SHORT = struct.Struct(">H")
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; those with a length of their own are not among them."""
_TEXT, _BYTES = 7, 6


class Frame(NamedTuple):
    """``headers``: those whose value is a text (``:event-type``, ``:message-type``, ``:content-type`` …)."""

    headers: dict[str, str]
    payload: bytes


def read_frames(body: bytes) -> list[Frame]:
    """The frames of a body, up to the first one that is cut or damaged."""
    frames: list[Frame] = []
    at = 0
    while len(body) - at >= 16:
        total, header_size, checked = _PRELUDE.unpack_from(body, at)
        end = at + total
        if total < 16 + header_size or end > len(body) or zlib.crc32(body[at : at + 8]) != checked:
            break
        if zlib.crc32(body[at : end - 4]) != int.from_bytes(body[end - 4 : end], "big"):
            break
        start = at + 12
        frames.append(
            Frame(_headers(body[start : start + header_size]), body[start + header_size : end - 4]),
        )
        at = end
    return frames


def _headers(data: bytes) -> dict[str, str]:
    told: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            size = data[at]
            name, kind = data[at + 1 : at + 1 + size].decode("utf-8", "replace"), data[at + 1 + size]
            at += 2 + size
            if kind in (_TEXT, _BYTES):
                (length,) = _SHORT.unpack_from(data, at)
                at += 2
                if kind == _TEXT:
                    told[name] = data[at : at + length].decode("utf-8", "replace")
                at += length
            else:
                at += _SIZES[kind]
    except (IndexError, KeyError, struct.error):
        pass
    return told
