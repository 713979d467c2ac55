"""The body of a response without its ``content-encoding``."""

from __future__ import annotations

import importlib
import zlib
from typing import Any

__all__ = ["decoded"]

MAX_PLAIN = 64 << 20
"""Most bytes that a body may come to; more is hostile, and is not looked at."""


def decoded(body: bytes, encoding: str | None) -> bytes | None:
    """The plain body, as far as it came: what was cut off is missing. None: nobody here can decode it.

    ``br`` and ``zstd`` need the libraries that the HTTP client needed for them.
    """
    for name in reversed([part.strip().lower() for part in (encoding or "").split(",")]):
        plain = _one(body, name)
        if plain is None:
            return None
        body = plain
    return body


def _one(body: bytes, name: str) -> bytes | None:
    if name in ("", "identity"):
        return body
    try:
        if name in ("gzip", "x-gzip"):
            return _inflated(body, 31)
        if name == "deflate":
            try:
                return _inflated(body, 15)
            except zlib.error:
                return _inflated(body, -15)
        maker = _makers.get(name)
        return maker(body) if maker is not None else None
    except Exception:  # each library has errors of its own
        return None


def _inflated(body: bytes, bits: int) -> bytes | None:
    inflater = zlib.decompressobj(wbits=bits)
    plain = inflater.decompress(body, MAX_PLAIN)
    return None if inflater.unconsumed_tail else plain


def _brotli(body: bytes) -> bytes | None:
    library = _found("brotli", "brotlicffi")
    if library is None:
        return None
    decoder: Any = library.Decompressor()
    return bytes(decoder.process(body) if hasattr(decoder, "process") else decoder.decompress(body))


def _zstd(body: bytes) -> bytes | None:
    library = _found("compression.zstd", "backports.zstd", "zstandard")
    if library is None:
        return None
    make = getattr(library, "ZstdDecompressor")  # noqa: B009 - three libraries, one name
    decoder: Any = make()
    return bytes(
        decoder.decompressobj().decompress(body) if hasattr(decoder, "decompressobj") else decoder.decompress(body)
    )


_makers = {"br": _brotli, "zstd": _zstd}


def _found(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
