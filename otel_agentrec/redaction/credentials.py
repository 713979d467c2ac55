"""The default rules: credentials by the name they stand under and by their shape, in values and in text of any form."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from otel_agentrec.redaction.assignments import redact_assignments
from otel_agentrec.redaction.embedded import (
    OPENING,
    JsonArray,
    JsonLeaf,
    JsonObject,
    JsonRead,
    Node,
    read_json,
    read_string,
)
from otel_agentrec.redaction.gate import suspicious
from otel_agentrec.redaction.marker import Marker, is_marker, withheld
from otel_agentrec.redaction.names import credential, is_counted
from otel_agentrec.redaction.shapes import redact_shapes
from otel_agentrec.redaction.structure import credential_items, credential_members, is_schema, is_text_blob

__all__ = ["Credentials"]

Json = Any
_MOST_PASSES = 4
_DEEPEST_TEXT = 8
"""JSON in a string in JSON in a string …: deeper ones are looked at as plain text."""
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|ApiKey|Negotiate|OAuth)(?:\s+|$)", re.IGNORECASE)
_PATH = re.compile(r"(?:[~.]?/|[A-Za-z]:[\\/]|~$|\.$)")
_HELD_IN_SCHEMA = ("default", "const", "enum", "example", "examples")
_SHORTEST = 16
"""Letters and digits alone are no secret that could be told by its shape, when they are fewer."""
_Edit = tuple[int, int, str]


class Credentials:
    """Pure: equal values give equal results. What nothing was found in is returned as the same object.

    Args:
        marker: makes what stands in the place of a secret.
        count: told the rule of each secret that was replaced.
    """

    def __init__(self, marker: Marker, count: Callable[[str], None]) -> None:
        self._marker = marker
        self._count = count

    # --- values ---

    def value(self, value: Json) -> Json:
        """A value of JSON types (bytes and tuples, too) without its credentials. Objects of other types are withheld: what they
        hold can't be seen."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, (list, tuple)):
            return self._list(value)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, (bytes, bytearray)):
            text = value.decode("latin-1")
            new = self.text(text)
            return value if new is text else new.encode("latin-1")
        self._count("object")
        return withheld("object")

    def _object(self, value: dict[Any, Json]) -> Json:
        if len(value) == 1 and "$b64" in value:
            return self._base64(value, "$b64")
        if len(value) == 1 and "$u16" in value:
            return self._utf16(value)
        keys = [key if isinstance(key, str) else _text_of(key) for key in value]
        rules = credential_members(keys, [x if isinstance(x, str) else None for x in value.values()])
        out: dict[Any, Json] = {}
        changed = False
        for i, (key, held) in enumerate(value.items()):
            rule = rules[i] if rules else None
            new = self._flat_pairs(held) if keys[i].lower() in _RAW_HEADERS else held
            new = self._withhold(new, rule) if rule else self.value(new)
            new_key = self.text(key) if isinstance(key, str) else key
            changed = changed or new is not held or new_key is not key
            out[new_key] = new
        blob = _blob_key(value)
        if blob is not None and out.get(blob) is value[blob]:
            new = self._base64(value, blob)
            if new is not value:
                out[blob], changed = new[blob], True
        return out if changed else value

    def _list(self, value: Any) -> Json:
        pairs = None
        if value and all(isinstance(item, (list, tuple)) and len(item) == 2 for item in value):
            pairs = [_text_of(item[0]) for item in value]
        rules = credential_items([x if isinstance(x, str) else None for x in value], pairs, flat=False)
        out = []
        changed = False
        for item, rule in zip(value, rules, strict=True):
            if rule is None:
                new = self.value(item)
            elif pairs is None:
                new = self._withhold(item, rule)
            else:
                new = type(item)((item[0], self._withhold(item[1], rule))) if type(item) in (list, tuple) else item
                new = item if new[1] is item[1] else new
            changed = changed or new is not item
            out.append(new)
        if not changed:
            return value
        return tuple(out) if isinstance(value, tuple) else out

    def _flat_pairs(self, value: Json) -> Json:
        if not isinstance(value, (list, tuple)):
            return value
        rules = credential_items([_text_of(x) for x in value], None, flat=True)
        return [self._withhold(x, rule) if rule else x for x, rule in zip(value, rules, strict=True)]

    def _withhold(self, value: Json, rule: str) -> Json:
        """A value that stands under the name of a credential."""
        if isinstance(value, str):
            return self._withhold_text(rule, value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return value if is_counted(rule) else self._replace(rule, str(value))
        if isinstance(value, (list, tuple)):
            held = [self._withhold(x, rule) for x in value]
            return value if all(new is old for new, old in zip(held, value, strict=True)) else type(value)(held)
        if isinstance(value, dict):
            return self._withhold_object(value, rule)
        if isinstance(value, (bytes, bytearray)):
            return self._replace(rule, value.decode("latin-1"))
        return self.value(value)

    def _withhold_object(self, value: dict[Any, Json], rule: str) -> Json:
        keys = [key if isinstance(key, str) else "" for key in value]
        if len(keys) == 1 and keys[0] in _NO_JSON and isinstance(value[keys[0]], str):
            return self._replace(rule, value[keys[0]])
        if is_schema(keys):
            seen = self._object({k: v for k, v in value.items() if k not in _HELD_IN_SCHEMA})
            held = {k: self._withhold(v, rule) for k, v in value.items() if k in _HELD_IN_SCHEMA}
            out = {k: held[k] if k in held else seen[k] for k in value}
        else:
            out = {k: self._withhold(v, rule) for k, v in value.items()}
        return value if all(out[k] is value[k] for k in value) else out

    def _withhold_text(self, rule: str, text: str) -> str:
        if not text or is_marker(text):
            return text
        if rule == "pwd" and _PATH.match(text):
            return self.text(text)
        if rule == "authorization":
            scheme = _SCHEME.match(text)
            if scheme is not None:
                rest = text[scheme.end() :]
                return text if not rest or is_marker(rest) else scheme.group() + self._replace(rule, rest)
        return self._replace(rule, text)

    def _replace(self, rule: str, secret: str) -> str:
        if is_marker(secret):
            return secret
        self._count(rule)
        return self._marker.of(rule, secret)

    def _base64(self, value: dict[Any, Json], key: str) -> Json:
        """An object with base64 under a key; the same object when what it holds is clean."""
        try:
            text = base64.b64decode(value[key], validate=True).decode("latin-1")
        except (ValueError, TypeError):
            return self._object_of_text(value, key)
        new = self.text(text)
        return value if new is text else {**value, key: base64.b64encode(new.encode("latin-1")).decode()}

    def _utf16(self, value: dict[Any, Json]) -> Json:
        try:
            text = base64.b64decode(value["$u16"], validate=True).decode("utf-16-be", "surrogatepass")
        except (ValueError, TypeError):
            return self._object_of_text(value, "$u16")
        new = self.text(text)
        if new is text:
            return value
        try:
            new.encode()
        except UnicodeEncodeError:
            return {"$u16": base64.b64encode(new.encode("utf-16-be", "surrogatepass")).decode()}
        return new

    def _object_of_text(self, value: dict[Any, Json], key: str) -> Json:
        new = self.value(value[key])
        return value if new is value[key] else {**value, key: new}

    # --- text ---

    def text(self, text: str, depth: int = 0) -> str:
        """A text without its credentials: JSON in it by its structure, the rest by names, signs and shapes."""
        if len(text) < _SHORTEST and text.isalnum():
            return text
        if not suspicious(text.encode("utf-8", "surrogatepass")) or is_marker(text):
            return text
        if depth > _DEEPEST_TEXT:
            return self._plain(text)
        if text[:1] == text[-1:] == '"' and (whole := read_string(text)) is not None:
            new = self.text(whole, depth + 1)
            return text if new == whole else _quoted(new, text)
        out: list[str] = []
        done = at = 0  # text[:done] is in ``out``; text[done:at] is no JSON
        while (opening := OPENING.search(text, at)) is not None:
            start = opening.start()
            read = read_json(text, start)
            at = max(read.end, start + 1)
            if read.open and not read.node.values:
                continue
            out.append(self._plain(text[done:start]))
            edits: list[_Edit] = []
            self._node(read.node, None, edits, text, depth)
            done = at = self._cut_off(read, edits, text)
            out.append(_edited(text, start, done, edits))
        out.append(self._plain(text[done:]))
        new = "".join(out)
        return text if new == text else new

    def _plain(self, text: str) -> str:
        for _ in range(_MOST_PASSES):  # what was taken out may have hidden where a name beside it begins
            new = redact_shapes(redact_assignments(text, self._withhold_text), self._replace) if text else text
            if new == text:
                break
            text = new
        return text

    def _cut_off(self, read: JsonRead, edits: list[_Edit], text: str) -> int:
        """Where the JSON of a text ends for good. A value that was cut off is withheld when its name says so, and all after it;
        a name whose value is no JSON is left to be looked at as plain text."""
        if not read.open:
            return read.end
        last = read.open[-1]
        rule = None
        if isinstance(last, JsonObject) and len(last.keys) > len(last.values):
            texts = [node.string if isinstance(node, JsonLeaf) else None for node in last.values]
            rules = credential_members(last.keys, [*texts, None])
            rule = rules[-1] if rules else None
            if rule is None or text[read.end : read.end + 1] != '"':
                return last.spans[-1][0]
        elif isinstance(last, JsonArray) and len(last.values) == 1 and isinstance(last.values[0], JsonLeaf):
            rule = credential(last.values[0].string or "") if len(read.open) > 1 else None
        if rule is None or read.end + 1 >= len(text):
            return read.end
        quote = read.end + (text[read.end] == '"')
        edits.append((quote, len(text), self._replace(rule, text[quote:])))
        return len(text)

    def _node(self, node: Node, rule: str | None, edits: list[_Edit], text: str, depth: int) -> None:
        """Collect the edits of one part, in the order of the text; ``rule``: it stands under the name of a credential."""
        if isinstance(node, JsonLeaf):
            self._leaf(node, rule, edits, text, depth)
        elif isinstance(node, JsonArray):
            rules: list[str | None] = [rule] * len(node.values)
            if rule is None and node.values:
                strings = [x.string if isinstance(x, JsonLeaf) else None for x in node.values]
                rules = credential_items(strings, None, flat=False)
                pairs = [_pair_name(x) for x in node.values]
                if None not in pairs:
                    for x, name in zip(node.values, pairs, strict=True):
                        assert isinstance(x, JsonArray)
                        self._node(x.values[0], None, edits, text, depth)
                        self._node(x.values[1], credential(name or ""), edits, text, depth)
                    return
            for x, its in zip(node.values, rules, strict=True):
                self._node(x, its, edits, text, depth)
        else:
            self._members(node, rule, edits, text, depth)

    def _members(self, node: JsonObject, rule: str | None, edits: list[_Edit], text: str, depth: int) -> None:
        keys = node.keys[: len(node.values)]
        strings = [x.string if isinstance(x, JsonLeaf) else None for x in node.values]
        schema = rule is not None and is_schema(keys)
        found = credential_members(keys, strings) if rule is None or schema else None
        for i, (key, x) in enumerate(zip(keys, node.values, strict=True)):
            its = found[i] if found else None
            if rule is not None and (not schema or key in _HELD_IN_SCHEMA):
                its = rule
            new_key = self.text(key, depth + 1)
            if new_key is not key:
                edits.append((*node.spans[i], _quoted(new_key, text[slice(*node.spans[i])])))
            if its is None and isinstance(x, JsonArray) and key.lower() in _RAW_HEADERS:
                items = [y.string if isinstance(y, JsonLeaf) else None for y in x.values]
                for y, flat in zip(x.values, credential_items(items, None, flat=True), strict=True):
                    self._node(y, flat, edits, text, depth)
            else:
                self._node(x, its, edits, text, depth)

    def _leaf(self, leaf: JsonLeaf, rule: str | None, edits: list[_Edit], text: str, depth: int) -> None:
        token = text[leaf.start : leaf.end]
        if leaf.string is not None:
            new = self._withhold_text(rule, leaf.string) if rule else self.text(leaf.string, depth + 1)
            if new is not leaf.string and new != leaf.string:
                edits.append((leaf.start, leaf.end, _quoted(new, token)))
        elif rule and not is_counted(rule) and token not in ("true", "false", "null"):
            edits.append((leaf.start, leaf.end, f'"{self._replace(rule, token)}"'))


_RAW_HEADERS = ("rawheaders", "raw_headers", "raw-headers")
_NO_JSON = ("$b64", "$u16", "$int", "$f64")


def _text_of(key: Any) -> str:
    if isinstance(key, (bytes, bytearray)):
        return key.decode("latin-1")
    return key if isinstance(key, str) else ""


def _blob_key(value: dict[Any, Json]) -> str | None:
    """The key under which an object holds base64 of a text, as its media type says."""
    media = value.get("mime_type") or value.get("mimeType") or value.get("media_type") or value.get("mediaType")
    if not isinstance(media, str) or not is_text_blob(media):
        return None
    return next((key for key in ("content", "data", "blob", "bytes") if isinstance(value.get(key), str)), None)


def _pair_name(node: Node) -> str | None:
    """The name of a pair ``["name", value]``; None for what is no pair."""
    if not isinstance(node, JsonArray) or len(node.values) != 2 or not isinstance(node.values[0], JsonLeaf):
        return None
    return node.values[0].string


def _quoted(new: str, token: str) -> str:
    return json.dumps(new, ensure_ascii=token.isascii())


def _edited(text: str, start: int, end: int, edits: list[_Edit]) -> str:
    out: list[str] = []
    for first, last, new in edits:
        out += (text[start:first], new)
        start = last
    out.append(text[start:end])
    return "".join(out)
