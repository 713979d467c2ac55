"""An event made ready outside the writer's lock: payload bytes with references, and the cells they refer to.

Only seq, times and prevHash are open; the writer fills them in under its lock.
"""

from __future__ import annotations

import functools
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from otel_agentrec.journal.canonical import (
    canonical,
    canonical_any,
    from_canonical,
    normal_form,
    normalise,
    quoted,
    spell_plain,
)
from otel_agentrec.journal.content import cell_line, commit, reference
from otel_agentrec.journal.events import FORMAT, content_of
from otel_agentrec.journal.facts import RawList
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.lists import ListCache, ListDraft, Run
from otel_agentrec.journal.pointers import Pointer

__all__ = ["ContentMode", "Draft", "Envelope", "NewEvent", "SealedAt", "make_draft"]

Json = Any
ContentMode = Literal["detached", "inline", "off"]


@dataclass(frozen=True, slots=True)
class Envelope:
    """Where an event belongs, as far as its span itself says so. ``trace``: ``{traceId, spanId, parentSpanId, path}``.

    ``scope`` is not written; it keeps the lists of two instrumentations apart that report the same conversation.
    """

    run: str | None = None
    session: str | None = None
    turn: str | None = None
    step: int | None = None
    trace: dict[str, Json] | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that is to be appended to a named stream. ``id``: a uuid; made anew when absent.

    ``copy_of``: the hash of the event in another stream that this one repeats; ``ts``: when that one happened (ms).
    """

    type: str
    payload: dict[str, Any]
    where: Envelope = Envelope()
    id: str | None = None
    copy_of: str | None = None
    ts: int | None = None


@dataclass(frozen=True, slots=True)
class SealedAt:
    """Where an event went: stream, seq, hash of its line, hash of the line before it, and its time (ms)."""

    stream: str
    seq: int
    hash: str
    prev_hash: str
    ts: int


@dataclass(slots=True)
class Draft:
    """``epoch``: the list cache that ``lists`` were compared with; they can be written only to its stream."""

    type: str
    payload: bytes
    cells: list[tuple[bytes, bytes]]
    """(salt, canonical V) in the order of their references."""
    lists: list[ListDraft]
    key: object
    epoch: ListCache
    before_seq: bytes
    between: bytes
    after_stream: bytes
    after_ts: bytes

    def event(
        self, stream: str, seq: int, ts: int, mono: int, id: str | None = None, copy_of: str | None = None
    ) -> bytes:
        """canonical(E). The envelope's keys stand in RFC 8785 order; tests compare it with the canonicaliser."""
        return b'{%s"id":%s,"mono":"%d","payload":%s%s,"seq":%d%s,"stream":%s%s,"ts":%d%s}' % (
            b'"copyOf":%s,' % quoted(copy_of) if copy_of else b"",
            quoted(id or str(uuid.uuid4())),
            mono,
            self.payload,
            self.before_seq,
            seq,
            self.between,
            quoted(stream),
            self.after_stream,
            ts,
            self.after_ts,
        )

    def cell_lines(self, seq: int) -> bytes:
        return b"".join(cell_line(i, salt, seq, value) for i, (salt, value) in enumerate(self.cells))


def make_draft(
    type_: str, payload: dict[str, Any], where: Envelope, cache: ListCache, gate: Gate, mode: ContentMode = "detached"
) -> Draft:
    """Canonicalise a payload, and take out its secrets. Total: a value that JSON can't say is kept in its ``$`` form (see
    canonical.py).

    Args:
        type_: event type; ``events.content_of`` says which payload paths hold content.
        payload: camelCase keys; content lists may be sequences or RawLists, content at the top a Pointer to where it stands.
        cache: the lists that the stream has stored so far.
        gate: what everything passes that is to be written; nothing below this function sees anything else.
    """
    paths = content_of(type_)
    pointers = {key: value for key, value in payload.items() if key in paths and isinstance(value, Pointer)}
    if pointers:
        payload = {key: value for key, value in payload.items() if key not in pointers}
    payload = gate.record(type_, payload)
    contents: dict[str, Any] = {}
    rest = _take_content(payload, type_, contents) if paths else payload
    tree, plain = normal_form(rest)
    key = (where.session, where.scope)
    cells: list[tuple[bytes, bytes]] = []
    lists: list[ListDraft] = []
    forms: dict[str, Json] = {key: pointer.to_json() for key, pointer in pointers.items()}
    for path in sorted(contents):
        if _holder(tree, path) is None:  # the rest was too large and was cut
            continue
        value = contents[path]
        if paths[path] == "list" and isinstance(value, (RawList, Sequence)) and not isinstance(value, (str, bytes)):
            forms[path] = _list_form(value, path, key, cache, gate, mode, cells, lists)
        else:
            forms[path] = _value_form(value, path, gate, mode, cells)
    bare = spell_plain(tree) if plain else canonical(tree)
    if bare is None:  # a lone surrogate, which is found only when it is written
        tree, plain = normalise(rest), False
        bare = canonical(tree)
    if len(bare) > gate.value_bytes:
        tree, plain = normalise(rest, max_bytes=gate.value_bytes), False
        bare = canonical(tree)
    if not gate.redactor.is_clean(bare):  # the content has passed the gate by itself
        tree, plain = gate.redactor.payload(normalise(rest, max_bytes=gate.value_bytes)), False
    whole = _put(tree, forms)
    data = (spell_plain(whole) if plain and mode != "inline" else None) or canonical(whole)
    return Draft(
        type=type_,
        payload=data,
        cells=cells,
        lists=lists,
        key=key,
        epoch=cache,
        before_seq=_text_field("run", gate.identifier(where.run)),
        between=_text_field("session", gate.identifier(where.session)) + _field("step", where.step),
        after_stream=_field("trace", where.trace),
        after_ts=_text_field("turn", gate.identifier(where.turn)) + _text_field("type", type_) + _VERSION,
    )


def _field(name: str, value: Json) -> bytes:
    return b"" if value is None else b',"%s":%s' % (name.encode(), canonical_any(value))


def _text_field(name: str, value: str | None) -> bytes:
    return b"" if value is None else b',"%s":%s' % (name.encode(), quoted(value))


_VERSION = _text_field("v", FORMAT)


@functools.cache
def _parents(type_: str) -> frozenset[str]:
    """Paths of a type's payload below which content stands."""
    return frozenset(p[:i] for p in content_of(type_) for i, c in enumerate(p) if c == ".")


def _take_content(node: dict[str, Any], type_: str, out: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A copy of a payload without its content, which goes to ``out`` by path."""
    paths, parents = content_of(type_), _parents(type_)
    kept: dict[str, Any] = {}
    for key, value in node.items():
        path = prefix + key
        if path in paths:
            if value is not None:
                out[path] = value
        elif path in parents and isinstance(value, dict):
            kept[key] = _take_content(value, type_, out, path + ".")
        else:
            kept[key] = value
    return kept


def _holder(tree: Json, path: str) -> dict[str, Json] | None:
    """The dict of the normalised payload in which the content at ``path`` stands."""
    for key in path.split(".")[:-1]:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) and "$cut" not in tree else None


def _put(tree: Json, forms: dict[str, Json]) -> Json:
    """Put what stands for the content into its places."""
    for path, form in forms.items():
        *above, last = path.split(".")
        holder = tree
        for key in above:
            inner = holder.get(key)
            if not isinstance(inner, dict):  # a rule of the user took it out
                inner = holder[key] = {}
            holder = inner
        holder[last] = form
    return tree


def _value_form(value: Any, path: str, gate: Gate, mode: ContentMode, cells: list[tuple[bytes, bytes]]) -> Json:
    if isinstance(value, RawList):
        value = value.text
    data = gate.value(value, tuple(path.split(".")), cell=mode != "inline")
    if mode == "inline":
        return from_canonical(data)
    if mode == "off":
        return {"$off": {"bytes": len(data)}}
    return _cell(os.urandom(16), data, cells)


def _salts(count: int) -> list[bytes]:
    drawn = os.urandom(16 * count)
    return [drawn[i : i + 16] for i in range(0, len(drawn), 16)]


def _cell(salt: bytes, data: bytes, cells: list[tuple[bytes, bytes]]) -> dict[str, object]:
    cells.append((salt, data))
    return reference(commit(salt, data), len(data))


def _list_form(
    value: Sequence[Json] | RawList,
    path: str,
    key: object,
    cache: ListCache,
    gate: Gate,
    mode: ContentMode,
    cells: list[tuple[bytes, bytes]],
    lists: list[ListDraft],
) -> Json:
    path_in_event = "$.payload." + path
    if mode == "off":
        data = value.text.encode("utf-8", "replace") if isinstance(value, RawList) else canonical_any(list(value))
        return {"$off": {"bytes": len(data)}}
    try:
        draft = cache.draft(key, path_in_event, value)
    except (
        ValueError,
        RecursionError,
    ):  # cut or hostile text: kept as it came; readers see a string where a list should be
        return _value_form(value, path, gate, mode, cells)
    lists.append(draft)
    # Only what is new here passes the gate: what an earlier event holds has passed it then.
    fresh = gate.elements([item for item in draft.items if isinstance(item, bytes)], tuple(path.split(".")))
    new, salts = iter(fresh), iter(_salts(len(fresh)))
    draft.items = [next(new) if isinstance(item, bytes) else item for item in draft.items]
    items: list[Json] = []
    for item in draft.items:
        if isinstance(item, Run):
            run: list[Json] = [item.seq, item.start, item.stop]
            items.append(run if item.path == path_in_event else [*run, item.path])
        elif mode == "inline":
            items.append({"$v": from_canonical(item)})
        else:
            items.append(_cell(next(salts), item, cells))
    return {"$list": items, "n": draft.length}
