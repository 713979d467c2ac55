"""A ``multipart/form-data`` body by its parts (RFC 7578): the boundary, which every client makes up anew, is not among them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

__all__ = ["Part", "boundary_of", "parts_of"]

_BOUNDARY = re.compile(r'multipart/[^;]+;.*?\bboundary=(?:"([^"]+)"|([^\s;]+))', re.IGNORECASE | re.DOTALL)
_PARAMETER = re.compile(r';\s*(name|filename\*?)=(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """One part: how it is named and typed, and the sha256 (hex) of its content."""

    name: str | None
    filename: str | None
    content_type: str | None
    sha256: str
    size: int


def boundary_of(content_type: str | None) -> str | None:
    """The boundary that a ``content-type`` header names; None when it is no multipart."""
    m = _BOUNDARY.match(content_type or "")
    return (m[1] or m[2]) if m else None


def parts_of(body: bytes, boundary: str) -> list[Part] | None:
    """The parts in their order; None when the body is not made that way."""
    mark = b"--" + boundary.encode("latin-1", "replace")
    first, *pieces = (b"\r\n" + body).split(b"\r\n" + mark)
    if not pieces or not pieces[-1].startswith(b"--") or first.strip():
        return None
    parts: list[Part] = []
    for piece in pieces[:-1]:
        head, found, content = piece.lstrip(b" \t").removeprefix(b"\r\n").partition(b"\r\n\r\n")
        if not found:
            return None
        parts.append(_part(head.decode("utf-8", "replace"), content))
    return parts


def _part(head: str, content: bytes) -> Part:
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head.split("\r\n"))
    }  # fmt: skip
    told = {m[1].lower(): m[2] if m[2] is not None else m[3] for m in _PARAMETER.finditer(
        headers.get("content-disposition", "")
    )}  # fmt: skip
    return Part(
        name=told.get("name"),
        filename=told.get("filename*", told.get("filename")),
        content_type=headers.get("content-type"),
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
    )
