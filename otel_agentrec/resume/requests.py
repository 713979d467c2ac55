"""Requests as a cache holds them: frozen when they were made, and without saying a growing conversation again each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from otel_agentrec.journal.canonical import canonical, denormalise, from_canonical, normalise
from otel_agentrec.nodes.exactjson import canonical_exact
from otel_agentrec.nodes.keys import (
    KeyRing,
    aliased_wire_key,
    arguments_value,
    body_value,
    prompt_key,
    prompt_value,
    tool_key,
    wire_key,
)

__all__ = ["Held", "Request", "Store", "WireRequest", "asked_model", "asked_tool", "named"]

Json = Any
_DEPTH, _BYTES = 20_000, 1 << 30


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A model call as a transport sees it. ``body``: bytes as they are sent, or parsed JSON; ``api`` as ``wire/<api>``."""

    method: str
    path: str
    body: object
    api: str
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: ``form`` is ``prompt``, ``wire`` or ``tool``, ``value`` all that its key is made of, as JSON.

    ``call_id`` tells equal tool calls apart; it is in no key.
    """

    form: str
    value: Json
    call_id: str | None = None

    def keys(self, ring: KeyRing, inert: tuple[str, ...]) -> tuple[str, str | None]:
        """(key, key of the second look-up or None).

        Raises:
            NoKey: the request can't be written out whole.
        """
        if self.form == "prompt":
            return prompt_key(ring, self.value, inert), None
        if self.form == "tool":
            return tool_key(ring, self.value["name"], self.value["arguments"], inert), None
        v = self.value
        first = wire_key(ring, v["method"], v["path"], v["body"], inert, api=v["api"])
        return first, aliased_wire_key(ring, v["method"], v["path"], v["body"], inert, api=v["api"])

    @property
    def compared(self) -> Json:
        """What inert paths speak of: the prompt, the body, the arguments."""
        if self.form == "tool":
            return arguments_value(self.value["arguments"])
        return self.value["body"] if self.form == "wire" else self.value

    @property
    def kind(self) -> str:
        """Requests of one kind can be compared."""
        if self.form == "tool":
            return f"tool {self.value['name']}"
        if self.form == "wire":
            return f"wire/{self.value['api']} {self.value['method'].upper()} {self.value['path']}"
        return self.form


def asked_model(prompt: object) -> Request:
    """A model's request: an ``AgentPrompt``, the dict of one, or a :class:`WireRequest`."""
    if isinstance(prompt, Request):
        return prompt
    if isinstance(prompt, WireRequest):
        body = body_value(prompt.body, prompt.content_type)
        return Request("wire", {"method": prompt.method, "path": prompt.path, "api": prompt.api, "body": body})
    return Request("prompt", prompt_value(prompt))


def asked_tool(call: object) -> Request:
    """A tool's request: an ``AgentToolCall``, or anything with its fields (as attributes, or as a dict)."""
    if isinstance(call, Request):
        return call
    return Request(
        "tool", {"name": named(call, "name"), "arguments": named(call, "arguments")}, named(call, "call_id", "callId")
    )


def named(held: object, *names: str) -> Any:
    """The first of these members or attributes; None when there is none."""
    if isinstance(held, dict):
        return next((held[name] for name in names if name in held), None)
    return next((getattr(held, name) for name in names if hasattr(held, name)), None)


class Held:
    """A request at rest: the canonical bytes of its members, those of long lists one by one and shared."""

    __slots__ = ("_members", "call_id", "form")

    def __init__(self, request: Request, members: dict[str, bytes | tuple[bytes, ...]]) -> None:
        self.form, self.call_id, self._members = request.form, request.call_id, members

    def request(self) -> Request:
        return Request(self.form, denormalise(self._whole()), self.call_id)

    def normal(self) -> Json:
        """The request's value in normal form, for a file."""
        return self._whole()

    def _whole(self) -> Json:
        value: dict[str, Json] = {}
        for name, member in self._members.items():
            whole = [from_canonical(item) for item in member] if isinstance(member, tuple) else from_canonical(member)
            if name.startswith("body\0"):
                value.setdefault("body", {})[name[5:]] = whole
            elif not name:
                return whole
            else:
                value[name] = whole
        return value


class Store:
    """Freezes requests; equal messages of different requests are one."""

    def __init__(self) -> None:
        self._seen: dict[bytes, bytes] = {}

    def hold(self, request: Request) -> Held:
        """Freeze a request.

        Raises:
            NoKey: it can't be written out whole.
        """
        canonical_exact(request.value)  # nothing of it may be cut
        value = normalise(request.value, max_depth=_DEPTH, max_bytes=_BYTES)
        if not isinstance(value, dict) or any(key[:1] == "$" for key in value):
            return Held(request, {"": canonical(value)})
        members: dict[str, bytes | tuple[bytes, ...]] = {}
        for name, x in value.items():
            if request.form == "wire" and name == "body" and isinstance(x, dict) and x and not _is_form(x):
                members.update({f"body\0{key}": self._member(y) for key, y in x.items()})
            else:
                members[name] = self._member(x)
        return Held(request, members)

    def _member(self, x: Json) -> bytes | tuple[bytes, ...]:
        if isinstance(x, list) and len(x) > 1:
            items = [canonical(item) for item in x]
            return tuple(self._seen.setdefault(item, item) for item in items)
        data = canonical(x)
        return self._seen.setdefault(data, data)


def _is_form(x: dict[str, Json]) -> bool:
    """A normal form such as ``{"$b64": …}``, which is one value."""
    return any(key[:1] == "$" for key in x)
