"""The key of a request without making it: requests that are spelt like a recorded one are known by their sorted JSON.

It gives the key or says that it does not know; then the key is made. Whatever is known here has the canonical form of a
recorded request, so no request finds more by this than by its key.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import orjson

from otel_agentrec.nodes.exchange import ModelRequest
from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.keys import WIRE_INERT

__all__ = ["QuickKeys", "Spelt"]

Json = Any
Spelt = tuple[str, str, str, bytes]
"""Method, path, API, and the body: as it is where it is short, else a digest of it."""
SHORT = 4096


class QuickKeys:
    """Args:
    inert: the paths under which keys are made.
    """

    def __init__(self, inert: Iterable[str]) -> None:
        self._inert = inert_of(inert, WIRE_INERT)
        self._known: dict[Spelt, str] = {}

    def spelt(self, method: str, path: str, api: str, body: Json) -> Spelt | None:
        """How a request is known here; None where it can't be."""
        if not isinstance(body, dict):
            return None
        try:
            text = orjson.dumps(self._inert.applied(body), option=orjson.OPT_SORT_KEYS)
        except TypeError:  # an integer beyond 64 bits
            return None
        return method, path, api, text if len(text) <= SHORT else blake2b(text, digest_size=32).digest()

    def learn(self, spelt: Spelt | None, key: str) -> None:
        """A recorded request has this key."""
        if spelt is not None:
            self._known[spelt] = key

    def key(self, request: ModelRequest) -> str | None:
        """The key of a request; None: it is not known here."""
        try:
            body = orjson.loads(request.body)
        except orjson.JSONDecodeError:
            return None
        spelt = self.spelt(request.method, request.path, request.api, body)
        return None if spelt is None else self._known.get(spelt)
