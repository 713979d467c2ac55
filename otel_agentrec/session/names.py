"""Session ids as names of streams."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote, unquote

__all__ = ["PREFIX", "id_of", "stream_of"]

PREFIX = "sessions/"
LONGEST = 180
"""Characters of an encoded id that a file name surely holds, with all endings."""


def stream_of(session_id: str) -> str:
    """``sessions/<percent-encoded id>``; different ids have different names, whatever they hold.

    An id that is too long for a file name is cut and told apart by its digest; its events say it whole.

    Raises:
        ValueError: the id is empty.
    """
    if not session_id:
        raise ValueError("a session needs an id")
    name = quote(session_id, safe="", errors="surrogatepass").replace("~", "%7E")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > LONGEST:
        digest = sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        name = f"{name[: LONGEST - 40].rstrip('%')}~{digest}"
    return PREFIX + name


def id_of(stream: str) -> str | None:
    """The id of a session's stream; None for any other, and where the id was cut."""
    name = stream.removeprefix(PREFIX)
    if name == stream or "~" in name:
        return None
    return unquote(name, errors="surrogatepass")
