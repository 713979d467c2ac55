"""Makes the schemas from the dataclasses of events, facts and records."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Mapping
from typing import Any

from otel_agentrec.journal.events import FORMAT, TYPES, Payload, keys_of
from otel_agentrec.journal.facts import Facts
from otel_agentrec.records import JournalRef, NodeIoRecord, NodeType, camel

__all__ = ["as_text", "build"]

Json = Any
Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
HEX = "^[0-9a-f]{%d}$"


def build() -> dict[str, Schema]:
    """Name -> schema."""
    return {"event": _event(), "cell": _cell(), "record": _record()}


def as_text(schema: Schema) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _head(name: str, title: str, description: str) -> Schema:
    where = FORMAT.replace("/", ":")
    return {"$schema": DIALECT, "$id": f"urn:otel-agentrec:{where}:{name}", "title": title, "description": description}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _closed(properties: Mapping[str, Schema], required: list[str] | None = None) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return schema | {"required": required} if required else schema


# --- canonical values --------------------------------------------------------------------------------------------------


def _marks() -> dict[str, Schema]:
    """What says a value that JSON can't say, or that was left out."""
    size: Schema = {"type": ["integer", "null"], "minimum": 0}
    forms: dict[str, Schema] = {
        "$int": {"type": "string", "pattern": "^-?(0x[0-9a-f]+|[0-9]+)$"},
        "$f64": {"enum": ["nan", "inf", "-inf", "-0"]},
        "$b64": {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$"},
        "$u16": {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$"},
        "$map": {
            "type": "array",
            "items": {"type": "array", "prefixItems": [_ref("value"), _ref("value")], "minItems": 2, "maxItems": 2},
        },
        "$cut": _closed({"bytes": size, "sha256": {"type": "string", "pattern": HEX % 64}}, ["bytes"]),
    }
    return {key: _closed({key: form}, [key]) for key, form in forms.items()}


def _values() -> dict[str, Schema]:
    """Definitions of canonical values (docs/format.md, "Values that JSON can't say")."""
    marks = _marks()
    return {
        "value": {
            "description": "Any value in canonical form. A key that begins with one $ is a mark; a caller's own has one more.",
            "anyOf": [
                {"type": ["null", "boolean", "number", "string"]},
                {"type": "array", "items": _ref("value")},
                {
                    "type": "object",
                    "propertyNames": {"pattern": r"^(?!\$(?!\$))"},
                    "additionalProperties": _ref("value"),
                },
                _ref("mark"),
            ],
        },
        "mark": {"anyOf": list(marks.values())},
        "text": {"anyOf": [{"type": "string"}, marks["$u16"], marks["$cut"]]},
        "whole": {"anyOf": [{"type": "integer"}, marks["$int"]]},
        "nanoseconds": {"type": "string", "pattern": "^-?[0-9]+$"},
        "map": {
            "anyOf": [
                {
                    "type": "object",
                    "propertyNames": {"pattern": r"^(?!\$(?!\$))"},
                    "additionalProperties": _ref("value"),
                },
                marks["$map"],
                marks["$cut"],
            ]
        },
    }


# --- content -----------------------------------------------------------------------------------------------------------


def _contents() -> dict[str, Schema]:
    """What stands in an event where content belongs."""
    bytes_: Schema = {"type": "integer", "minimum": 0}
    splice: Schema = {
        "description": "[seq, from, to] or [seq, from, to, path]: items of a list of an earlier event of this stream",
        "type": "array",
        "prefixItems": [bytes_, bytes_, bytes_, {"type": "string", "pattern": r"^\$\.payload\."}],
        "minItems": 3,
        "maxItems": 4,
    }
    inline = _closed({"$v": _ref("value")}, ["$v"])
    where = {
        "stream": {"type": "string", "minLength": 1},
        "seq": bytes_,
        "hash": {"type": "string", "pattern": HEX % 64},
        "path": {"type": "string", "pattern": r"^\$\.payload\."},
    }
    return {
        "pointer": {
            "description": "The value at a path of the resolved payload of an event in another stream of the recording.",
            **_closed({"$node": _closed(where, list(where))}, ["$node"]),
        },
        "reference": _closed({"$c": {"type": "string", "pattern": HEX % 64}, "bytes": bytes_}, ["$c", "bytes"]),
        "off": _closed({"$off": _closed({"bytes": bytes_}, ["bytes"])}, ["$off"]),
        "content": {
            "description": "A reference to a cell; with content=off its size; with content=inline the value itself.",
            "anyOf": [_ref("reference"), _ref("off"), _ref("pointer"), _ref("value")],
        },
        "contentList": {
            "description": "A list as it was stored: pieces of earlier lists, and new items. Text where a list was not readable.",
            "anyOf": [
                _closed(
                    {
                        "$list": {"type": "array", "items": {"anyOf": [_ref("reference"), splice, inline]}},
                        "n": bytes_,
                    },
                    ["$list", "n"],
                ),
                _ref("content"),
            ],
        },
    }


# --- types of Python ---------------------------------------------------------------------------------------------------


def _of_type(hint: Any) -> Schema:
    """The schema of an annotation in an event. None is not told: an absent key is not there."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        told = [a for a in arguments if a is not type(None)]
        return _of_type(told[0]) if len(told) == 1 else {"anyOf": [_of_type(a) for a in told]}
    simple: dict[Any, Schema] = {
        str: _ref("text"),
        int: _ref("whole"),
        bool: {"type": "boolean"},
        Any: _ref("value"),
        dict[str, Any]: _ref("map"),
    }
    if hint in simple:
        return simple[hint]
    if origin is list:
        return {"type": "array", "items": _of_type(arguments[0])}
    if origin is dict:
        return {"anyOf": [{"type": "object", "additionalProperties": _of_type(arguments[1])}, _ref("mark")]}
    raise TypeError(f"no schema for {hint!r}")


def _about(cls: type) -> str:
    """The first paragraph of a docstring in one line, without the marks of reStructuredText."""
    if not cls.__doc__ or cls.__doc__.startswith(f"{cls.__name__}("):  # what dataclass makes up
        return ""
    return re.sub(r"``|:\w+:`|`", "", " ".join(inspect.cleandoc(cls.__doc__).partition("\n\n")[0].split()))


# --- events ------------------------------------------------------------------------------------------------------------

_KNOWN: dict[str, Schema] = {
    "facts": _ref("facts"),
    "startedAt": _ref("nanoseconds"),
    "endedAt": _ref("nanoseconds"),
    "observedAt": _ref("nanoseconds"),
    "hash": {"type": "string", "pattern": HEX % 64},
    "nonce": {"type": "string", "pattern": HEX % 32},
}
"""Keys that say more than their annotation."""
_CONTENT = {"one": _ref("content"), "list": _ref("contentList")}


def _payload(cls: type[Payload]) -> Schema:
    hints = typing.get_type_hints(cls)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field, (name, key) in zip(dataclasses.fields(cls), keys_of(cls), strict=True):
        how = cls.content.get(key)
        properties[key] = _CONTENT[how] if how else _KNOWN.get(key) or _holder(cls, key) or _of_type(hints[name])
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(key)
    if cls.event_type == "NODE_STARTED":  # the one key that is there though nothing is known
        properties["type"] = {"enum": ["MODEL", "TOOL", None]}
    elif cls.event_type == "NODE_RECORDED":
        properties["type"] = {"enum": ["MODEL", "TOOL"]}
        properties["given"] = {
            "type": "object",
            "properties": {"content": _ref("content")},
            "additionalProperties": _ref("value"),
        }
    elif cls.event_type == "NODE_INTERRUPTED":
        properties["record"] = {"description": "As the payload of a NODE_RECORDED.", "$ref": "#/$defs/NODE_RECORDED"}
    schema = _closed(properties, required)
    about = _about(cls)
    return {"description": about, **schema} if about else schema


def _holder(cls: type[Payload], key: str) -> Schema | None:
    """A value that is no content itself but holds some under names that are known; None for any other."""
    held = {path[len(key) + 1 :]: how for path, how in cls.content.items() if path.startswith(f"{key}.")}
    if not held:
        return None
    inside: Schema = {
        "type": "object",
        "properties": {name: _CONTENT[how] for name, how in held.items()},
        "additionalProperties": _ref("value"),
    }
    return {"anyOf": [inside, _ref("mark")]}


def _facts() -> Schema:
    hints = typing.get_type_hints(Facts)
    properties: dict[str, Schema] = {}
    for field in dataclasses.fields(Facts):
        if field.metadata.keys() & {"header", "envelope", "process"}:
            continue
        how = field.metadata.get("content")
        properties[camel(field.name)] = _CONTENT[how] if how else _of_type(hints[field.name])
    return {"description": _about(Facts), **_closed(properties)}


def _event() -> Schema:
    span_id: Schema = {"type": "string", "minLength": 1}
    trace = _closed(
        {
            "traceId": span_id,
            "spanId": span_id,
            "parentSpanId": span_id,
            "path": {
                "description": "Span ids of the agent steps around it, nearest first.",
                "type": "array",
                "items": span_id,
            },
        }
    )
    envelope: dict[str, Schema] = {
        "id": {"type": "string", "format": "uuid", "pattern": "^[0-9a-fA-F-]{36}$"},
        "v": {"const": FORMAT},
        "stream": {"type": "string", "minLength": 1},
        "seq": {"type": "integer", "minimum": 0},
        "ts": {"description": "Wall clock, milliseconds since the epoch.", "type": "integer"},
        "copyOf": {"description": "In a fork: the hash of the event repeated.", "pattern": HEX % 64},
        "mono": {"description": "Monotonic clock, nanoseconds.", "type": "string", "pattern": "^[0-9]+$"},
        "type": {"enum": list(TYPES)},
        "payload": {"type": "object"},
        "run": _ref("text"),
        "session": _ref("text"),
        "turn": _ref("text"),
        "step": {"type": "integer"},
        "trace": trace,
    }
    needed = ["id", "v", "stream", "seq", "ts", "mono", "type", "payload"]
    by_type = [
        {
            "if": {"properties": {"type": {"const": name}}},
            "then": {"properties": {"payload": _ref(name)}},
        }
        for name in TYPES
    ]
    about = 'The event E of a line {"event":E,"hash":"…","prevHash":"…"} of a recording, content not resolved.'
    return {
        **_head("event", f"Event of {FORMAT}", about),
        **_closed(envelope, needed),
        "allOf": by_type,
        "$defs": {
            **{name: _payload(cls) for name, cls in TYPES.items()},
            "facts": _facts(),
            **_contents(),
            **_values(),
        },
    }


def _cell() -> Schema:
    number: Schema = {"type": "integer", "minimum": 0}
    salted = _closed(
        {"i": number, "salt": {"type": "string", "pattern": HEX % 32}, "seq": number, "value": _ref("value")},
        ["i", "salt", "seq", "value"],
    )
    erased = _closed({"i": number, "salt": {"type": "null"}, "seq": number}, ["i", "salt", "seq"])
    return {
        **_head("cell", f"Content cell of {FORMAT}", "A line of a content file; without value when it was erased."),
        "oneOf": [salted, erased],
        "$defs": _values(),
    }


# --- records -----------------------------------------------------------------------------------------------------------


def _record() -> Schema:
    hints = typing.get_type_hints(NodeIoRecord)
    properties = {camel(f.name): _of_record(hints[f.name]) for f in dataclasses.fields(NodeIoRecord)}
    properties["status"] = {"enum": ["ok", "error", "interrupted", "partial"]}
    properties["toolCalls"] = {"anyOf": [{"type": "null"}, {"type": "array", "items": _ref("toolCall")}]}
    properties["evaluations"] = {"type": "array", "items": _ref("evaluation")}
    properties["error"] = {"anyOf": [{"type": "null"}, _ref("error")]}
    text = {"type": ["string", "null"]}
    messages: Schema = {
        "description": "Messages of the OTel GenAI semantic conventions; a mark where content is off, erased or lost.",
        "anyOf": [{"type": ["null", "string"]}, {"type": "array", "items": {"type": "object"}}, _ref("gone")],
    }
    model = _closed(
        {"model": text, "messages": messages, "systemInstructions": {}, "tools": {}, "parameters": {}},
        ["model", "messages", "systemInstructions", "tools", "parameters"],
    )
    tool = _closed({"name": text, "arguments": {}, "callId": text}, ["name", "arguments", "callId"])
    return {
        **_head("record", "NodeIoRecord", _about(NodeIoRecord) + " A line of `otel-agentrec nodes REC --json`."),
        **_closed(properties, list(properties)),
        "if": {"properties": {"nodeType": {"const": "MODEL"}}},
        "then": {"properties": {"inputs": model}},
        "else": {"properties": {"inputs": tool}},
        "$defs": {
            "toolCall": _closed({"id": text, "name": text, "arguments": {}}, ["id", "name", "arguments"]),
            "error": _closed({"type": text, "message": {}}, ["type", "message"]),
            "evaluation": _closed(
                {
                    "name": {"type": "string"},
                    "score": {},
                    "label": text,
                    "explanation": {},
                    "evaluatedAtEpochMs": {"type": "integer"},
                },
                ["name", "score", "label", "explanation", "evaluatedAtEpochMs"],
            ),
            "gone": {
                "description": "Stands for content that is not there.",
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "propertyNames": {"enum": ["$off", "$erased", "$missing", "$cut"]},
            },
            "journal": _closed(
                {
                    "stream": {"type": "string"},
                    "seq": {"type": "integer", "minimum": 0},
                    "hash": {"type": "string", "pattern": HEX % 64},
                },
                ["stream", "seq", "hash"],
            ),
        },
    }


def _of_record(hint: Any) -> Schema:
    """The schema of an annotation in a record, where every key is there and what is not known is null."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        told = [_of_record(a) for a in arguments if a is not type(None)]
        if len(told) == 1 and isinstance(told[0].get("type"), str):
            return {**told[0], "type": [told[0]["type"], "null"]}
        return {"anyOf": [*told, {"type": "null"}]}
    simple: dict[Any, Schema] = {
        str: {"type": "string"},
        int: {"type": "integer"},
        bool: {"type": "boolean"},
        Any: {},
        NodeType: {"enum": [kind.value for kind in NodeType]},
        JournalRef: _ref("journal"),
    }
    if hint in simple:
        return simple[hint]
    if origin is list:
        return {"type": "array", "items": _of_record(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_record(arguments[1])}
    raise TypeError(f"no schema for {hint!r}")
