"""Answers as a cache holds them, by key; and the answer that a record of a recording holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.clients.answers import result_of_record
from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.keys import PROMPT_INERT, WIRE_INERT, KeyRing, NoKey, split_key
from otel_agentrec.nodes.whole import lost_in
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.resume.requests import Held, Request, Store
from otel_agentrec.resume.results import output_of_record, unfit

__all__ = ["DEFAULT_INERT", "Entry", "Hit", "Side", "entry_of", "stored_key"]

DEFAULT_INERT: dict[str, tuple[str, ...]] = {"prompt": PROMPT_INERT, "wire": WIRE_INERT, "tool": ()}
"""What each form of request leaves out of its key by default."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A recorded answer. ``aliased``: found by the second look-up, with tool-call ids renamed."""

    value: Any
    aliased: bool = False
    label: str = ""


@dataclass(eq=False, slots=True)
class Entry:
    """One answer. ``keys`` of the request, ``aliases`` of its second look-up; ``used``: handed out (``occurrence``)."""

    kind: NodeType
    value: Any
    keys: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    held: Held | None = None
    call_id: str | None = None
    used: bool = False
    label: str = ""
    told: bool = False
    """It came from a span, not from who made the call."""
    step: int | None = None


@dataclass(slots=True)
class Side:
    """The answers of one node type, by key, in the order in which they came."""

    order: dict[int, Entry] = field(default_factory=dict)
    by_key: dict[str, list[Entry]] = field(default_factory=dict)
    direct: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)

    def add(self, entry: Entry) -> None:
        self.order[id(entry)] = entry
        for key in (*entry.keys, *entry.aliases):
            self.by_key.setdefault(key, []).append(entry)

    def remove(self, entry: Entry) -> None:
        del self.order[id(entry)]
        for key in (*entry.keys, *entry.aliases):
            self.by_key[key].remove(entry)
            if not self.by_key[key]:
                del self.by_key[key]


def entry_of(record: NodeIoRecord, ring: KeyRing, inert: tuple[str, ...], store: Store) -> Entry | None:
    """The answer that a record holds, under this ring; None when it must not be handed out or has no key."""
    if unfit(record) is not None:
        return None
    label = record.node_id
    if record.node_type is NodeType.TOOL:
        return _tool_entry(record, ring, inert, store, label)
    keys = tuple(k for form in ("prompt", "wire") if (k := stored_key(record, form, ring, inert)) is not None)
    if not keys:
        return None
    return Entry(NodeType.MODEL, result_of_record(record), keys, label=label, step=record.step)


def _tool_entry(record: NodeIoRecord, ring: KeyRing, inert: tuple[str, ...], store: Store, label: str) -> Entry | None:
    inputs = record.inputs if isinstance(record.inputs, dict) else {}
    name, arguments = record.tool_name, inputs.get("arguments")
    key = stored_key(record, "tool", ring, inert)
    held = None
    if name and arguments is not None and lost_in(arguments) is None and "input_truncated" not in record.flags:
        request = Request("tool", {"name": name, "arguments": arguments}, record.tool_call_id)
        try:
            key = key or request.keys(ring, inert)[0]
            held = store.hold(request)
        except NoKey:
            pass
    if key is None:
        return None
    output = output_of_record(record)
    return Entry(NodeType.TOOL, output, (key,), (), held, record.tool_call_id, label=label, step=record.step)


def stored_key(record: NodeIoRecord, form: str, ring: KeyRing, inert: tuple[str, ...]) -> str | None:
    """The key that was stored with a record, where it was made under this ring and this inert list."""
    key = record.keys.get(form)
    if not isinstance(key, str) or not ring.made(key):
        return None
    scheme = split_key(key).scheme
    bare, bracket, _ = scheme.partition("[")
    suffix = inert_of(inert, DEFAULT_INERT[form]).suffix
    return (
        key
        if bare.partition("/")[0] == form and scheme.removeprefix(bare) == suffix and bool(bracket) == bool(suffix)
        else None
    )
