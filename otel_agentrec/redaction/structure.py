"""What the members of an object or a list tell of one another: which of them are credentials.

Shared by values and by JSON text, so that both are judged alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from otel_agentrec.redaction.names import credential

__all__ = ["credential_items", "credential_members", "is_schema", "is_text_blob"]

_NAME_KEYS = frozenset(("name", "key", "header", "headername", "field", "param", "parameter", "k", "id"))
_VALUE_KEYS = frozenset(("value", "values", "val", "v", "stringvalue", "defaultvalue"))
_LOGPROB_KEYS = frozenset(("logprob", "logprobs", "top_logprobs", "bytes", "token_id", "prob", "probability"))
_SCHEMA_KEYS = frozenset(
    (
        *(
            "type",
            "description",
            "title",
            "enum",
            "default",
            "format",
            "minLength",
            "maxLength",
            "pattern",
            "anyOf",
            "oneOf",
        ),
        *(
            "allOf",
            "$ref",
            "items",
            "properties",
            "required",
            "examples",
            "example",
            "const",
            "nullable",
            "minimum",
            "maximum",
        ),
        *(
            "additionalProperties",
            "writeOnly",
            "readOnly",
            "deprecated",
            "minItems",
            "maxItems",
            "uniqueItems",
            "not",
            "$$ref",
        ),
    )
)
_SCHEMA_MARKS = frozenset(
    ("type", "anyOf", "oneOf", "allOf", "$ref", "$$ref", "enum", "const", "properties", "description")
)
_FLAG = re.compile(r"--?([A-Za-z][\w-]{0,64})\Z", re.ASCII)
_TEXT_BLOB = re.compile(
    r"\s*(?:text/|application/(?:[\w.+-]*(?:json|xml|yaml|javascript|x-sh|toml|sql|x-www-form-urlencoded)))",
    re.IGNORECASE,
)


def credential_members(keys: Sequence[str], texts: Sequence[str | None]) -> list[str | None] | None:
    """For each member of an object the rule that withholds its value, or None; None when no member has one.

    Args:
        texts: the value of each member where it is a string.
    """
    rules: list[str | None] = [credential(key) for key in keys]
    if "token" in rules and not _LOGPROB_KEYS.isdisjoint(keys):  # {"token": "Hel", "logprob": -0.1}
        rules = [None if key in ("token", "tokens") else rule for key, rule in zip(keys, rules, strict=True)]
    lower = [key.lower().replace("_", "").replace("-", "") for key in keys]
    named = None
    for key, text in zip(lower, texts, strict=True):
        if text is not None and key in _NAME_KEYS and named is None:
            named = credential(text)
    if named is not None:
        rules = [named if key in _VALUE_KEYS else rule for key, rule in zip(lower, rules, strict=True)]
    return rules if any(rules) else None


def credential_items(
    items: Sequence[str | None], pairs: Sequence[str | None] | None, *, flat: bool
) -> list[str | None]:
    """For each item of a list the rule that withholds it: the value of a pair, what follows a flag, a raw header's value.

    Args:
        items: each item where it is a string.
        pairs: when every item is a list of two, the first of each where it is a string: the rule is for the second.
        flat: names and values take turns, as in ``rawHeaders``.
    """
    if pairs is not None:
        return [credential(name) if name else None for name in pairs]
    rules: list[str | None] = [None] * len(items)
    for i in range(1, len(items)):
        name = items[i - 1]
        if name is None or (not flat and name[:1] != "-"):
            continue
        if flat and i % 2:
            rules[i] = credential(name)
        else:
            flag = _FLAG.match(name)
            rules[i] = credential(flag.group(1)) if flag and not (items[i] or "").startswith("-") else None
    return rules


def is_schema(keys: Sequence[str]) -> bool:
    """Whether an object describes a value instead of holding it: JSON Schema, the parameters of a tool."""
    return bool(keys) and _SCHEMA_KEYS.issuperset(keys) and not _SCHEMA_MARKS.isdisjoint(keys)


def is_text_blob(media_type: str) -> bool:
    """Whether base64 of this media type is text that can be looked at."""
    return _TEXT_BLOB.match(media_type) is not None
