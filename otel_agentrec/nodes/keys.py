"""Keys: what makes two calls the same call (docs/resume.md).

A key reads ``<scheme>:<key id>.<hmac>``, for example ``wire/openai.chat:9c1d02ab.5e1f…``: HMAC-SHA256 of scheme and
canonical value under the recording's ``resume.key``, whose id it names. Keys of different schemes are never equal:

=====================  =================================================================================================
``prompt``             a whole :class:`AgentPrompt`
``wire/<api>``         a request body with its method and path; ``wire/<api>+ids``: with its tool-call ids renamed
``tool``               name and arguments of a tool call; the call id is not in it
=====================  =================================================================================================

Declared inert paths follow the scheme in brackets (``prompt[$.user]``). The value is the one **before** redaction: two
secrets must not become one key. The order of JSON members does not matter, nor whether 1 is written 1.0; all else does.
"""

from __future__ import annotations

import dataclasses
import hmac
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.journal.resumekey import KEY_BYTES, key_id, read_resume_key, resume_key
from otel_agentrec.nodes.callids import aliased
from otel_agentrec.nodes.exactjson import NoKey, canonical_exact, read_text
from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.multipart import boundary_of, parts_of
from otel_agentrec.records import camel

__all__ = [
    "PROMPT_INERT",
    "WIRE_INERT",
    "KeyRing",
    "NoKey",
    "SplitKey",
    "aliased_wire_key",
    "arguments_value",
    "body_value",
    "prompt_bytes",
    "prompt_key",
    "prompt_value",
    "split_key",
    "tool_key",
    "wire_key",
]

Json = Any

PROMPT_INERT = ("$.stream", "$.streamExecution")
"""How an answer is brought, not what it says."""
WIRE_INERT = ("$.prompt_cache_key",)
"""Made anew for every run by some SDKs."""
_DOMAIN = b"agentrec/key/1\0"
_TRANSPORT = b"multipart"
"""Tells a body of parts from every JSON body, which can't hold bytes."""


@dataclass(frozen=True, slots=True)
class SplitKey:
    """A key by its parts: ``<scheme>:<key id>.<digest>``."""

    scheme: str
    key_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The secret under which keys are made, and its id (8 hex digits)."""

    _secret: bytes = field(repr=False)
    key_id: str

    @classmethod
    def of(cls, directory: str | os.PathLike[str], create: bool = True) -> KeyRing:
        """The ring of a recording directory.

        Args:
            create: make its ``resume.key`` when there is none; otherwise a random ring stands for it, under which recorded
                keys are dead and requests are keyed anew.

        Raises:
            OSError: the key can't be made or read.
            RecordingUnreadable: the file is no key.
        """
        key = resume_key(directory) if create else read_resume_key(directory)
        return cls.random() if key is None else cls(key, key_id(key))

    @classmethod
    def random(cls) -> KeyRing:
        """A ring of its own, which nothing that was stored before fits."""
        key = secrets.token_bytes(KEY_BYTES)
        return cls(key, key_id(key))

    def digest(self, scheme: str, canonical_bytes: bytes) -> str:
        """The key of canonical bytes: ``<scheme>:<key id>.<64 hex>``."""
        made = hmac.digest(
            self._secret, _DOMAIN + scheme.encode("utf-8", "surrogatepass") + b"\0" + canonical_bytes, "sha256"
        )
        return f"{scheme}:{self.key_id}.{made.hex()}"

    def made(self, key: str) -> bool:
        """Whether a stored key was made under this ring."""
        return split_key(key).key_id == self.key_id


def split_key(key: str) -> SplitKey:
    """A key by its parts; what is no key has an empty scheme."""
    scheme, _, rest = key.rpartition(":")
    made_under, _, digest = rest.partition(".")
    return SplitKey(scheme, made_under, digest)


def prompt_key(ring: KeyRing, prompt: object, inert: Iterable[str] = ()) -> str:
    """The key of a whole prompt: an :class:`AgentPrompt`, or the dict of one.

    Raises:
        NoKey: it can't be written out whole.
    """
    return ring.digest("prompt" + inert_of(inert, PROMPT_INERT).suffix, prompt_bytes(prompt, inert))


def prompt_bytes(prompt: object, inert: Iterable[str] = ()) -> bytes:
    """What the key of a prompt is made of: to be digested later, when the prompt may have changed.

    Raises:
        NoKey: it can't be written out whole.
    """
    return canonical_exact(inert_of(inert, PROMPT_INERT).applied(prompt_value(prompt)))


def tool_key(ring: KeyRing, name: str, arguments: object, inert: Iterable[str] = ()) -> str:
    """The key of a tool call.

    Args:
        arguments: a JSON text as a model writes it (read exactly), or the arguments themselves.
        inert: paths below the arguments.

    Raises:
        NoKey: they can't be written out whole.
    """
    declared = inert_of(inert)
    value = [name, declared.applied(arguments_value(arguments))]
    return ring.digest("tool" + declared.suffix, canonical_exact(value))


def wire_key(
    ring: KeyRing,
    method: str,
    path: str,
    body: object,
    inert: Iterable[str] = (),
    *,
    api: str,
    content_type: str | None = None,
) -> str:
    """The key of a request on the wire: method, path (no host, no query) and body; no headers.

    Args:
        body: the bytes as they are sent (with ``content_type`` where they are multipart), or the parsed JSON.
        inert: paths below the body.
        api: the kind of endpoint, as ``intercept/endpoints.py`` names it.

    Raises:
        NoKey: the body can't be written out whole.
    """
    declared = inert_of(inert, WIRE_INERT)
    value = declared.applied(body_value(body, content_type))
    return ring.digest(f"wire/{api}{declared.suffix}", canonical_exact([method.upper(), _bare(path), value]))


def aliased_wire_key(
    ring: KeyRing,
    method: str,
    path: str,
    body: object,
    inert: Iterable[str] = (),
    *,
    api: str,
    content_type: str | None = None,
) -> str | None:
    """Like :func:`wire_key`, with the ids of tool calls renamed by first appearance; None when the body names none.

    Equal for two bodies that differ only by a consistent renaming: the second look-up, never mixed with the first.
    """
    declared = inert_of(inert, WIRE_INERT)
    value = declared.applied(body_value(body, content_type))
    renamed = aliased(value)
    if renamed is value:
        return None
    return ring.digest(f"wire/{api}+ids{declared.suffix}", canonical_exact([method.upper(), _bare(path), renamed]))


def prompt_value(prompt: object) -> Json:
    """A prompt as its key sees it: the JSON of an object that has ``to_json``, a dataclass with camelCase names, or itself."""
    to_json = getattr(prompt, "to_json", None)
    if callable(to_json) and not isinstance(prompt, type):
        return to_json()
    if dataclasses.is_dataclass(prompt) and not isinstance(prompt, type):
        return {camel(f.name): getattr(prompt, f.name) for f in dataclasses.fields(prompt)}
    return dict(prompt) if isinstance(prompt, Mapping) else prompt


def arguments_value(arguments: object) -> Json:
    """The arguments of a tool call as their key sees them: JSON text is read exactly; no arguments are an empty text."""
    if isinstance(arguments, (str, bytes)):
        return read_text(arguments) if arguments else None
    return arguments


def body_value(body: object, content_type: str | None = None) -> Json:
    """The body of a request as its key sees it: JSON parsed exactly, multipart by its parts, any other bytes as they are."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        raw = bytes(body)
        boundary = boundary_of(content_type)
        parts = parts_of(raw, boundary) if boundary else None
        return read_text(raw) if parts is None else [_TRANSPORT, [dataclasses.asdict(part) for part in parts]]
    return read_text(body) if isinstance(body, str) else body


def _bare(path: str) -> str:
    return path.partition("?")[0]
