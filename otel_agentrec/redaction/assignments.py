r"""Named secrets in text that is no JSON: ``password=x``, ``Authorization: Bearer x``, ``?key=x&q=1``, ``--token x``,
``{'password': 'x'}``, ``{\"password\": \"x\"}``.

A name in quotes, a header, a parameter of a URL and a flag are sure. Prose and source code are not (*the password: it must be
long*, ``password = read()``): there a value that is plainly a word of prose or a piece of code is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from otel_agentrec.redaction.gate import name_behind
from otel_agentrec.redaction.names import credential, is_counted, query_credential
from otel_agentrec.redaction.quoted import closing_quote, slashes_before

__all__ = ["redact_assignments"]

Withhold = Callable[[str, str], str]
"""(rule, value) -> what stands in its place; the value itself when it is no secret after all."""

_SIGN_BEHIND_NAME = name_behind(r"(?:[:=]|[Dd]3%|[Aa]3%)")
_REST_OF_NAME = re.compile(r"(?:(?![0-9A-Fa-f]{2}%|[bfnrt]\\)[\w.$@-]){0,96}(?: [A-Za-z]{1,32}(?![\w.=:-]))?", re.ASCII)
"""Backwards, with a word before it (*api key*); ``%3F`` and ``\\n`` are no part of a name."""
_AFTER_SIGN = re.compile(r"(?:%3[DdAa]|[:=>]{1,3})?(?:\*\*)?\s{0,8}(?:[fbruFBRU]{1,2}(?=[\"']))?")
_FLAG = re.compile(r"(?:(?<![\w-])|(?<=\\[bfnrt]))--([A-Za-z][\w-]{1,64})[ \t]{1,8}(?=[^\s-])", re.ASCII)
_OPENING = re.compile(r"\\{0,64}[\"'`]")
_IN_QUERY = re.compile(r"(?:(?!%26)[^&#\s\"'<>\\`])*")
_LINE = re.compile(r"(?:(?!\\+[rn])[^\r\n\"'`])*")
_COOKIE = re.compile(r"[^\s=;,\"'`()\[\]{}]{1,256}=(?![\s=])")
_WORD = re.compile(r"[^\s\"'<>\\`,;]+")
_WORD_HEAD = re.compile(r"[^\s\"'<>\\`,;]{1,256}")
_BARE_SIGN = r"(?:[^\s,;&\"'<>\\`]|[,;&](?!\s|$|[\w. %-]{1,64}=))"
_BARE = re.compile(_BARE_SIGN + "+")
_LOOK = 256
"""So far a value is looked at to tell whether it is one: what it says then holds for all of it."""
_BARE_HEAD = re.compile(f"{_BARE_SIGN}{{1,{_LOOK}}}")
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Token|ApiKey|Api-Key|Negotiate|NTLM|OAuth|SSWS|GoogleLogin|Key)\s+", re.IGNORECASE
)
_SCHEME_WITH_FIELDS = re.compile(
    r"(?:Digest|AWS4-[A-Z0-9-]{1,40}|Hawk|OAuth|Signature)\s+(?=[A-Za-z]+=)", re.IGNORECASE
)
_SCHEMA = re.compile(r"\{\s*\\*[\"'](?:type|description|title|\$ref|anyOf|oneOf|allOf|format|enum)\\*[\"']")
_BRACKETS = re.compile(r"[\[\]{}]")
_CODE = re.compile(
    r"[A-Za-z_$][\w.$]*[(\[]|(?:self|this|os|process|config|settings|args|options|env|ctx|request|req)\.\w", re.ASCII
)
_REFERENCE = re.compile(
    r"\$\{?[A-Z][A-Z0-9_]*\}?|\$?\{\{?[^{}]*\}?\}|<[^<>]*>|%\(?\w*\)?s|\*+|[xX.…]{3,}|\$[({].*|@\w+|:\w+|\?", re.ASCII
)
_TYPE = re.compile(
    r"(?:str|string|bytes|text|int|integer|number|float|bool|boolean|any|none|null|nil|undefined|true|false|object|list|dict|"
    r"map|optional|required|secretstr|char|varchar|var|let|const|yes|no|empty|hidden|redacted|masked|secret|none\.|unknown|"
    r"invalid|missing|expired|valid|ok|error)(?:[\[|?(].*)?",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[A-Za-z_]+")
_PATH_OF_NAMES = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+")
_VARIABLE = re.compile(r"[A-Za-z_$][\w.$]{0,63}", re.ASCII)
_TRAILING = ").,;]}:!?"


class _Candidate(NamedTuple):
    """A sign at ``at`` with a name before it; ``name_start`` and ``name_end`` bound the name."""

    at: int
    name_start: int
    name_end: int


def redact_assignments(text: str, withhold: Withhold) -> str:
    """The text with the value of each name of a credential replaced."""
    out: list[str] = []
    done = 0
    for candidate in _candidates(text):
        if candidate.name_start < done:
            continue
        found = _value_at(text, candidate)
        if found is None:
            continue
        rule, start, end, left, right = found
        new = withhold(rule, text[start:end])
        if new != text[start:end]:
            out += (text[done:start], left, new, right)
            done = end
    if not out:
        return text
    out.append(text[done:])
    return "".join(out)


def _candidates(text: str) -> list[_Candidate]:
    """Signs and flags with a name of a credential before them, in the order of the text."""
    backwards = text[::-1]
    size = len(text)
    found: list[_Candidate] = []
    for sign in _SIGN_BEHIND_NAME.finditer(backwards):
        rest = _REST_OF_NAME.match(backwards, sign.end())
        name_start = size - (rest.end() if rest else sign.end())
        length = 3 if backwards[sign.start() + 1 : sign.start() + 3] == "3%" else 1
        at = size - sign.start() - length
        name_end = at
        while name_end > name_start and not (text[name_end - 1].isalnum() or text[name_end - 1] == "_"):
            name_end -= 1
        found.append(_Candidate(at, name_start, name_end))
    found.reverse()
    flags = [_Candidate(flag.end(1), flag.start(1), flag.end(1)) for flag in _FLAG.finditer(text)]
    return sorted([*found, *flags]) if flags else found


_Found = tuple[str, int, int, str, str]
"""(rule, start of the value, its end, what to put before and after what replaces it)."""


def _value_at(text: str, c: _Candidate) -> _Found | None:
    before = text[c.name_start - 1 : c.name_start]
    in_query = (before in ("?", "&") or text[max(0, c.name_start - 3) : c.name_start] in ("%3F", "%3f", "%26")) and (
        text[c.at : c.at + 1] == "=" or text[c.at : c.at + 3] in ("%3D", "%3d")
    )
    name = text[c.name_start : c.name_end]
    rule = query_credential(name) if in_query else credential(name)
    if rule is None:
        return None
    between = text[c.name_end : c.at]
    quote = between.strip("\\ \t\r\n*])?>:=!")[:1]
    is_quoted = quote in ('"', "'", "`") and quote != ""
    after = _AFTER_SIGN.match(text, c.at)
    start = after.end() if after else c.at
    sign = text[c.at : start].strip()
    opening = _OPENING.match(text, start)
    if opening is not None:
        mark = opening.group()[-1]
        if text.startswith(mark * 3, start):
            end = text.find(mark * 3, start + 3)
            return rule, start + 3, len(text) if end < 0 else end, "", ""
        end = closing_quote(text, opening.end(), mark, len(opening.group()) - 1)
        end = len(text) if end < 0 else end
        value = text[opening.end() : end]
        return None if _is_reference(rule, value) else (rule, opening.end(), end, "", "")
    if is_quoted and text[start : start + 1] in ("{", "["):
        if _SCHEMA.match(text, start):
            return None
        level = slashes_before(text, c.name_end + between.index(quote))
        mark = "\\" * level + quote
        return rule, start, _end_of_container(text, start), mark, mark
    if in_query:
        return rule, start, _end(_IN_QUERY, text, start), "", ""
    if rule == "authorization":
        return _authorization_at(text, start)
    if rule == "cookie":
        if _COOKIE.match(text, start) is None:
            return None
        return rule, start, _end(_LINE, text, start), "", ""
    end = _end(_BARE_HEAD, text, start)
    if _is_prose_or_code(rule, text, start, _without_stops(text, start, end), sign, name, is_quoted):
        return None
    end = _without_stops(text, start, _end(_BARE, text, start))
    mark = quote if is_quoted else ""  # a number or a bare word where a string stood would be no JSON and no Python
    return rule, start, end, mark, mark


def _authorization_at(text: str, start: int) -> _Found | None:
    """The credentials of a header, behind the name of their scheme."""
    if _SCHEME_WITH_FIELDS.match(text, start):
        return "authorization", start, _end(_LINE, text, start), "", ""
    scheme = _SCHEME.match(text, start)
    start = scheme.end() if scheme else start
    value = text[start : _end(_WORD_HEAD, text, start)]
    if not value or _LETTERS.fullmatch(value.rstrip(_TRAILING)) or _REFERENCE.fullmatch(value) or _CODE.match(value):
        return None
    return "authorization", start, _end(_WORD, text, start), "", ""


def _without_stops(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1] in _TRAILING:
        end -= 1
    return end


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


def _end_of_container(text: str, start: int) -> int:
    """Where the brackets that open at ``start`` are closed again; the end of the text when they are not."""
    depth = 0
    for bracket in _BRACKETS.finditer(text, start):
        depth += 1 if bracket.group() in "[{" else -1
        if depth <= 0:
            return bracket.end()
    return len(text)


def _is_reference(rule: str, value: str) -> bool:
    """Whether a string in source code only says where the secret comes from: ``f"Bearer {token}"``, ``"${TOKEN}"``."""
    if rule == "authorization":
        scheme = _SCHEME.match(value)
        value = value[scheme.end() :] if scheme else value
    return len(value) < 128 and _REFERENCE.fullmatch(value) is not None


def _is_prose_or_code(rule: str, text: str, start: int, end: int, sign: str, name: str, is_quoted: bool) -> bool:
    """Whether a value without quotes is no secret: nothing, a type, a call, another variable, a word of a sentence."""
    value = text[start:end]
    if not value or sign in ("::", "==", "===") or value.startswith("="):
        return True
    if len(value) < 128 and (_REFERENCE.fullmatch(value) or _TYPE.fullmatch(value)):
        return True
    if not is_quoted and value[0] in "([{":
        return True
    if value.lstrip("-").isdigit():
        return is_counted(rule)
    if is_quoted:  # {"password": variable}
        return _PATH_OF_NAMES.fullmatch(value) is not None or _LETTERS.fullmatch(value) is not None
    if _CODE.match(value) or _is_variable(value, name):
        return True
    if _PATH_OF_NAMES.fullmatch(value):
        return text[start - 1 : start].isspace()
    if not _LETTERS.fullmatch(value) or ("-" in name and sign == ":"):  # X-Api-Key: …
        return False
    if rule not in ("password", "pwd", "secret"):
        return True
    return not sign and value.isupper() if not sign.endswith((":", "=")) else _goes_on(text, end)


def _is_variable(value: str, name: str) -> bool:
    """Whether a word is another name for the same thing: ``token=access_token``, ``password=password``."""
    if _VARIABLE.fullmatch(value) is None or credential(value) is None:
        return False
    return "_" in value or "." in value or value.lower() == name.lower()


def _goes_on(text: str, end: int) -> bool:
    """Whether a sentence goes on after a word."""
    return re.compile(r"[,;]?[ \t]{1,3}(?:[a-z]|REDACTED\()").match(text, end) is not None
