"""The normal form: any Python object as a JSON value that RFC 8785 can write and that loses nothing.

What JSON or RFC 8785 can't say is said by an object with one key:

=====================================  ===================================================================================
``{"$int": "9007199254740993"}``       an integer beyond ±(2^53−1); beyond 2048 bits in hex: ``"0x…"``, ``"-0x…"``
``{"$f64": "nan"}``                    a float that is no JSON number: ``nan``, ``inf``, ``-inf``; and minus zero: ``-0``
``{"$b64": "…"}``                      bytes: base64 of RFC 4648 section 4
``{"$u16": "…"}``                      a string with a lone surrogate: base64 of its UTF-16 code units, big-endian
``{"$map": [[key, value], …]}``        a mapping with a key that is no string, or has a lone surrogate, or that equals
                                       another key once written; ordered by the canonical bytes of the pairs
``{"$cut": {"bytes": n}}``             what was too deep, too large or cyclic; ``bytes`` of its canonical form, null where
                                       that can't be counted (a cycle; more than 8 times the limit); in a cell also its
                                       ``sha256`` where it was counted
=====================================  ===================================================================================

A key of the caller that starts with ``$`` gets one more, so that the forms above can't be forged. A surrogate pair that
Python holds as two characters is the character it means. There is no Unicode normalisation. 1.0 is 1.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from otel_agentrec.journal.jcs import BYTES_PER_MEMBER, MAX_INT, spell, spell_fast
from otel_agentrec.journal.plain import Unordered, plain, type_name

__all__ = ["MAX_BYTES", "MAX_DEPTH", "denormalise", "normalise", "restore"]

Json = Any

MAX_DEPTH = 64
MAX_BYTES = 32 * 1024 * 1024
_MAX_DECIMAL_BITS = 2048
"""Python may be told to refuse the decimal digits of larger integers (``sys.set_int_max_str_digits``)."""
_BOTTOM = 20_000
"""How deep a value is followed in order to measure what is cut off."""
_MEMBER_BYTES = 32
"""Most canonical bytes of a member without its characters: the longest number, or the frame of a form, with its comma."""
_CUT_BYTES = 128
"""Most canonical bytes of a member that is cut, with its digest."""
_COUNTED = 8
"""How many times the limit is counted before a cut says ``bytes: null``."""
_READ_DEPTH = 3 * MAX_DEPTH + 8
"""The deepest normal form: each ``$map`` takes three levels."""
_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "-0": -0.0}
_HOPS = 8
"""How many plain forms may lead from one to the next (an Enum whose value is a Path ...)."""


def normalise(
    value: object,
    *,
    max_depth: int = MAX_DEPTH,
    max_bytes: int = MAX_BYTES,
    cell: bool = False,
    signed_zero: bool = True,
) -> Json:
    """The normal form of any Python object. Total: it never raises, whatever the code of the object does.

    Different JSON values have different normal forms, numbers compared by value, unless a limit cuts them. An object that is
    no JSON gets the form of :func:`otel_agentrec.journal.plain.plain`. The result shares nothing mutable with the value.

    Args:
        max_depth: containers inside one another; deeper ones are cut.
        max_bytes: of canonical bytes. The smallest parts that are larger are cut, so that their neighbours stay.
        cell: the result is the value of a cell, where a cut leaves its digest too. (Outside a cell, content could be guessed
            back from its digest.)
        signed_zero: False writes −0.0 as 0, as RFC 8785 by itself does.
    """
    try:
        fast = spell_fast(value, min(max_depth, MAX_DEPTH), max_bytes, dollars=False)
        if fast is not None and len(fast) <= max_bytes:
            return orjson.loads(fast)
        return _Normaliser(max_depth, max_bytes, cell, signed_zero).run(value)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # _TooMany, or no memory or no stack left
        return {"$cut": {"bytes": None}}


class _TooMany(Exception):
    """The value holds more than is counted."""


_Todo = list[tuple[Any, Any, Any, int]]
"""(value, the container its form goes into, the place there, its depth); (value, None, None, 0): all in it is made."""


class _Normaliser:
    """One run of :func:`normalise`. Its own stack, since a value can be nested deeper than Python can call."""

    def __init__(self, max_depth: int, max_bytes: int, cell: bool, signed_zero: bool) -> None:
        self.max_depth = max_depth
        self.max_bytes = max_bytes
        self.cell = cell
        self.signed_zero = signed_zero
        self.max_members = max_bytes // BYTES_PER_MEMBER
        # A control character takes six bytes; one beyond the BMP in a string with a lone surrogate 16/3, and the frame 14.
        self.short = (max_bytes - 16) // 6
        self.members = 0
        self.chars = 0
        self.frames = 0  # bytes of cuts and of mappings' pairs, beside what is counted for members and their characters
        # Large leaves by id (and the leaf itself, so that its id stays taken): one of them may stand in many places.
        self.large: dict[int, tuple[object, Json]] = {}
        self.todo: _Todo = []
        # Each container that was made, after the one it lies in: (container, that one, the place in it, depth, unordered).
        self.made: list[tuple[Any, Any, Any, int, list[Json] | None]] = []

    def run(self, value: object) -> Json:
        top: list[Json] = [None]
        self.todo.append((value, top, 0, 1))
        path: set[int] = set()
        while self.todo:
            x, parent, place, depth = self.todo.pop()
            if parent is None:
                path.discard(id(x))
                continue
            form, is_container = self._form(x)
            if not is_container:
                parent[place] = form
            elif id(x) in path or depth > _BOTTOM or len(form) > self.max_members:
                parent[place] = {"$cut": {"bytes": None}}
            else:
                path.add(id(x))
                self.todo.append((x, None, None, 0))
                parent[place] = self._open(form, parent, place, depth)
        self._count(0)
        self._finish()
        return top[0]

    def _form(self, x: Any) -> tuple[Any, bool]:
        """The form of a leaf, or a container whose members are not looked at yet; and whether it is one."""
        for _ in range(_HOPS):
            kind = type(x)
            if kind is dict or kind is list or kind is tuple or kind is Unordered:
                return x, True
            if x is None or kind is bool:
                return x, False
            if kind is str:
                return self._fit(x, _text), False
            if kind is int:
                return (x if -MAX_INT <= x <= MAX_INT else self._integer(x)), False
            if kind is float:
                return self._float(x), False
            if kind is bytes:
                return self._fit(x, _bytes), False
            x = plain(x, self.max_members)
        return self._fit(type_name(type(x)), _text), False

    def _integer(self, x: int) -> Json:
        digits = str(x) if x.bit_length() <= _MAX_DECIMAL_BITS else hex(x)
        return self._fit(digits, lambda digits: {"$int": digits})

    def _float(self, x: float) -> Json:
        if x != x:
            return {"$f64": "nan"}
        if x - x != 0:
            return {"$f64": "inf" if x > 0 else "-inf"}
        if not x.is_integer():
            return x
        if x == 0 and self.signed_zero and str(x) == "-0.0":
            return {"$f64": "-0"}
        return int(x) if -MAX_INT <= x <= MAX_INT else x

    def _fit(self, x: Any, form: Callable[[Any], Json]) -> Json:
        """The form of a string or of bytes, cut if it is too large by itself."""
        if len(x) <= self.short:
            leaf = form(x)
        else:
            if id(x) not in self.large:
                leaf = form(x)
                self.large[id(x)] = (x, self._cut(leaf, only_above=self.max_bytes) or leaf)
            leaf = self.large[id(x)][1]
            if type(leaf) is dict and "$cut" in leaf:
                self.frames += _CUT_BYTES
                return leaf
        self.chars += len(x)
        self._count(0)
        return leaf

    def _count(self, members: int) -> None:
        self.members += members
        if self.members > self.max_members or self.chars > _COUNTED * self.max_bytes:
            raise _TooMany

    def _open(self, form: Any, parent: Any, place: Any, depth: int) -> Json:
        """A container of the normal form, its members looked at or put on the list of what is to do."""
        self._count(len(form))
        if depth == self.max_depth + 1:
            self.frames += _CUT_BYTES
        unordered: list[Json] | None = None
        made: Any
        if type(form) is dict:
            form = form.copy()
            made = self._named(form)
            if made is not None:
                self._fill(made, made.items(), depth)
            else:
                unordered = [list(pair) for pair in form.items()]
                made = {"$map": unordered}
                self.frames += _MEMBER_BYTES * (len(form) + 1)
                for pair in unordered:
                    self._fill(pair, enumerate(pair), depth)
        else:
            made = list(form)
            if type(form) is Unordered:
                unordered = made
            self._fill(made, enumerate(made), depth)
        self.made.append((made, parent, place, depth, unordered))
        return made

    def _named(self, form: dict[Any, Any]) -> dict[str, Any] | None:
        """The dict with its keys as they are written; None when they are no distinct strings of Unicode."""
        named: dict[str, Any] = {}
        for key, x in form.items():
            name: Any = key
            if type(key) is not str or not key.isascii():
                if not issubclass(type(key), str):
                    return None
                name = _text(str.__str__(key))
                if type(name) is not str:
                    return None
            self.chars += len(name)
            named["$" + name if name.startswith("$") else name] = x
            self.chars += len(name)
        return named if len(named) == len(form) else None

    def _fill(self, box: Any, members: Iterable[tuple[Any, Any]], depth: int) -> None:
        """Put the form of every member in its place in ``box``; what is no short plain leaf has to wait."""
        for place, x in members:
            kind = type(x)
            if kind is str and x.isascii() and len(x) <= self.short:
                self.chars += len(x)
            elif x is None or kind is bool or (kind is int and -MAX_INT <= x <= MAX_INT):
                pass
            else:
                self.todo.append((x, box, place, depth + 1))

    def _finish(self) -> None:
        """Order what has no order and cut what is too deep or too large, the innermost first."""
        large = 6 * self.chars + _MEMBER_BYTES * self.members + self.frames > self.max_bytes
        sizes: dict[int, int] = {}
        for made, parent, place, depth, unordered in reversed(self.made):
            if unordered is not None and len(unordered) > 1:
                unordered.sort(key=lambda x: b"".join(spell(x)))
            if depth == self.max_depth + 1:
                parent[place] = self._cut(made)
            elif large and depth <= self.max_depth:
                sizes[id(made)] = _size(made, sizes)
                if sizes[id(made)] > self.max_bytes:
                    parent[place] = self._cut(made)

    def _cut(self, form: Json, only_above: int = -1) -> Json:
        """What stands for a form that is cut; None if its canonical bytes are no more than ``only_above``."""
        count, digest = 0, hashlib.sha256()
        for piece in spell(form):
            count += len(piece)
            if self.cell:
                digest.update(piece)
            if count > _COUNTED * self.max_bytes:
                return {"$cut": {"bytes": None}}
        if count <= only_above:
            return None
        return {"$cut": {"bytes": count, "sha256": digest.hexdigest()} if self.cell else {"bytes": count}}


def _bytes(x: bytes) -> Json:
    return {"$b64": base64.b64encode(x).decode()}


def _text(x: str) -> Json:
    """The string, or its form when it holds a lone surrogate."""
    if x.isascii():
        return x
    try:
        x.encode()
        return x
    except UnicodeEncodeError:
        units = x.encode("utf-16-be", "surrogatepass")
    try:
        return units.decode("utf-16-be")
    except UnicodeDecodeError:
        return {"$u16": base64.b64encode(units).decode()}


def _size(form: Json, sizes: dict[int, int]) -> int:
    """Length of the canonical bytes; ``sizes`` knows those of the containers inside, by id."""
    if type(form) is dict:
        names = sum(len(b"".join(spell(name))) + 1 for name in form)
        return 1 + max(len(form), 1) + names + sum(sizes.get(id(x)) or _size(x, sizes) for x in form.values())
    if type(form) is list:
        return 1 + max(len(form), 1) + sum(sizes.get(id(x)) or _size(x, sizes) for x in form)
    return sum(map(len, spell(form)))


# --- reading ----------------------------------------------------------------------------------------------------------


def denormalise(value: Json) -> Json:
    """The Python value of a normal form: the inverse of :func:`normalise` for JSON values, up to number equality.

    ``$int`` gives int, ``$f64`` float, ``$b64`` bytes, ``$u16`` a string with its lone surrogates, ``$map`` a dict (a list as
    key becomes a tuple; where a key can't be a key, the list of pairs). Other ``$`` forms (``$cut``, the journal's
    references) and what no normaliser writes stay as they are.
    """
    return _read(value, True, 0)


def restore(value: Json) -> Json:
    """Like :func:`denormalise`, but what JSON can't say (``$f64`` but for -0.0, ``$b64``, ``$u16``, ``$map``) stays: the result
    is JSON."""
    return _read(value, False, 0)


def _read(value: Json, python: bool, depth: int) -> Json:
    if depth > _READ_DEPTH:
        return value
    if type(value) is list:
        return [_read(x, python, depth + 1) for x in value]
    if type(value) is int and not -MAX_INT <= value <= MAX_INT:
        return float(value)  # RFC 8785 writes a double such as 2^63 as a whole number, with its shortest digits
    if type(value) is not dict:
        return value
    if any(key.startswith("$") and not key.startswith("$$") for key in value):
        return _read_form(value, python, depth)
    return {key[1:] if key.startswith("$") else key: _read(x, python, depth + 1) for key, x in value.items()}


def _read_form(value: dict[str, Json], python: bool, depth: int) -> Json:
    if len(value) != 1:
        return value
    ((key, inner),) = value.items()
    try:
        if key == "$int":
            return int(inner, 16 if "0x" in inner else 10)
        if key == "$map":
            pairs = [[_read(k, python, depth + 3), _read(x, python, depth + 3)] for k, x in inner]
            return _as_dict(pairs) if python else {key: pairs}
        if key == "$f64" and (python or inner == "-0"):
            return _FLOATS[inner]
        if python and key == "$b64":
            return base64.b64decode(inner, validate=True)
        if python and key == "$u16":
            return base64.b64decode(inner, validate=True).decode("utf-16-be", "surrogatepass")
    except (ValueError, TypeError, KeyError):
        pass
    return value


def _as_dict(pairs: list[list[Json]]) -> Json:
    try:
        made = {_as_key(k): x for k, x in pairs}
    except TypeError:
        return pairs
    return made if len(made) == len(pairs) else pairs


def _as_key(key: Json) -> Json:
    return tuple(_as_key(x) for x in key) if type(key) is list else key
