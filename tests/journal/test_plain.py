"""What Python objects say in JSON terms, and that none of them can hurt."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import itertools
import pathlib
import types
import uuid
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, deque, namedtuple
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import MagicMock

import attrs
import orjson
import pydantic
import pytest

from otel_agentrec.journal.canonical import canonical_any, normalise
from otel_agentrec.journal.plain import plain_event


class Level(enum.IntEnum):
    HIGH = 3


class Place(enum.Enum):
    HOME = pathlib.PurePosixPath("/home")


@dataclasses.dataclass
class Point:
    x: float
    tags: set[str]
    inner: Point | None = None


@attrs.define
class Slotted:
    name: str
    _secret: int = 1


class Message(pydantic.BaseModel):
    role: str
    data: bytes = b"x"
    when: datetime.datetime | None = None


class Names(pydantic.RootModel[list[str]]):
    pass


class Array:
    dtype = "float64"

    def tolist(self) -> list[float]:
        return [1.0, 2.5]


class Bare:
    def __init__(self) -> None:
        self.shown, self._hidden = 1.0, 2


class Told:
    def __init__(self) -> None:
        self.shown = 1

    def __str__(self) -> str:
        return "in words"


Pair = namedtuple("Pair", "left right")
UTC = datetime.timezone.utc


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (Level.HIGH, 3),
        (Place.HOME, "/home"),
        (
            Point(1.0, {"b", "a"}, Point(0.5, set())),
            {"x": 1, "tags": ["a", "b"], "inner": {"x": 0.5, "tags": [], "inner": None}},
        ),
        (Slotted("n"), {"name": "n", "_secret": 1}),
        (Message(role="user"), {"role": "user", "data": {"$b64": "eA=="}, "when": None}),
        (Names(["a"]), ["a"]),
        (Array(), [1, 2.5]),
        (Bare(), {"shown": 1}),
        (Told(), "in words"),
        (types.SimpleNamespace(a=1.0), {"a": 1}),
        (datetime.datetime(2026, 11, 30, 7, 55, tzinfo=UTC), "2026-11-30T07:55:00+00:00"),
        (datetime.date(2026, 11, 30), "2026-11-30"),
        (datetime.time(7, 55), "07:55:00"),
        (datetime.timedelta(minutes=1), 60),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (pathlib.PurePosixPath("/a/b\udcff"), {"$u16": "AC8AYQAvAGLc/w=="}),
        (decimal.Decimal("1.10"), "1.10"),
        (fractions.Fraction(1, 3), "1/3"),
        (1 + 2j, "(1+2j)"),
        (ValueError("no"), "ValueError: no"),
        (Pair(1, 2.0), [1, 2]),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (Counter("aa"), {"a": 2}),
        (UserDict(a=1.0), {"a": 1}),
        (ChainMap({"a": 1}, {"b": 2}), {"a": 1, "b": 2}),
        (UserList([1.0]), [1]),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        ({"k": 1}.keys(), ["k"]),
        (len, "<built-in function len>"),
        (int, "<class 'int'>"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_plain_forms(value: object, form: object) -> None:
    assert normalise(value) == form
    assert normalise({"deep": [value]}) == {"deep": [form]}


def test_an_iterator_is_not_used_up() -> None:
    numbers = iter([1, 2, 3])
    made = (x for x in "ab")
    normalise({"numbers": numbers, "made": made, "count": itertools.count()})
    assert list(numbers) == [1, 2, 3]
    assert list(made) == ["a", "b"]


def test_a_text_holds_no_memory_address() -> None:
    """The same object reads the same in the next run."""
    assert normalise(lambda: 1) == normalise(lambda: 2)
    assert normalise(object()) == "<builtins.object>"


# --- hostile objects --------------------------------------------------------------------------------------------------


class Panic(BaseException):
    """What a panic inside a Rust extension looks like."""


def refuse(*_: object, **__: object) -> Any:
    raise Panic


HOSTILE_NAMES = [
    *(
        "__str__",
        "__repr__",
        "__eq__",
        "__hash__",
        "__len__",
        "__iter__",
        "__getattr__",
        "__getattribute__",
        "__bool__",
    ),
    *("__int__", "__float__", "__index__", "__format__", "__fspath__", "__getitem__", "__contains__", "__lt__"),
    *("items", "keys", "values", "tolist", "model_dump", "isoformat", "encode", "copy", "value", "startswith"),
]
BASES: list[type] = [
    *(object, str, int, float, bytes, bytearray, list, tuple, dict, set, frozenset, datetime.datetime, uuid.UUID),
    *(pathlib.PurePosixPath, Exception, OrderedDict, UserDict, decimal.Decimal, fractions.Fraction, Mapping, Sequence),
]
HEADLESS = (pathlib.PurePosixPath,)  # their own __new__ would call what refuses
ARGUMENTS: dict[type, tuple[Any, ...]] = {
    datetime.datetime: (2026, 1, 1),
    uuid.UUID: (None, None, None, None, 5),
    bytes: (b"x",),
}


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_whatever_an_object_refuses_it_has_a_normal_form(base: type) -> None:
    hostile = type("Hostile", (base,), dict.fromkeys(HOSTILE_NAMES, refuse) | {"__abstractmethods__": frozenset()})
    hostile.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    value = (object if base in HEADLESS else base).__new__(hostile, *ARGUMENTS.get(base, ()))
    for wrapped in (value, [value], {"a": value}, (value, 1.0)):
        orjson.loads(canonical_any(wrapped))


def test_one_hostile_value_costs_only_itself() -> None:
    class Hostile:
        __repr__ = refuse

    assert normalise({"a": 1, "b": Hostile()}) == {"a": 1, "b": f"<{__name__}.{Hostile.__qualname__}>"}


def test_a_model_that_cannot_dump_itself_shows_its_attributes() -> None:
    class Broken:
        def __init__(self) -> None:
            self.role = "user"

        model_dump = refuse

    assert normalise([Broken()]) == [{"role": "user"}]


def test_a_lying_class_is_not_believed() -> None:
    class Liar:
        @property
        def __class__(self) -> Any:  # type: ignore[override]
            raise Panic

        def __str__(self) -> str:
            return "liar"

    assert normalise(Liar()) == "liar"
    assert normalise(MagicMock(spec=dict)).startswith("<MagicMock spec='dict'")


def test_a_hostile_metaclass() -> None:
    class Meta(type):
        __module__ = property(refuse)  # type: ignore[assignment]
        __eq__ = refuse
        __hash__ = refuse
        __getattribute__ = refuse
        __instancecheck__ = refuse
        __subclasscheck__ = refuse

    value = Meta.__new__(Meta, "Odd", (), {"__module__": "m"})
    assert orjson.loads(canonical_any([type.__call__(value)]))


def test_a_model_that_dumps_itself_for_ever() -> None:
    class Endless:
        def model_dump(self, **_: object) -> Any:
            return Endless()

        def __str__(self) -> str:
            return "endless"

    class Nested:
        def model_dump(self) -> Any:
            return {"again": Nested(), "x": 1}

    assert normalise(Endless()) == "endless"
    form, levels = normalise(Nested()), 0
    while "again" in form:
        form, levels = form["again"], levels + 1
    assert levels == 64
    assert list(form) == ["$cut"]


def test_an_array_that_lists_itself_for_ever() -> None:
    class Array:
        dtype = "odd"

        def tolist(self) -> Any:
            return self

    assert normalise(Array()) == f"<{__name__}.{Array.__qualname__}>"


def test_a_sequence_and_a_mapping_without_end() -> None:
    class Endless(Sequence[int]):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, i: Any) -> Any:
            return i

    class Wide(Mapping[int, int]):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, i: int) -> int:
            return i

        def __iter__(self) -> Iterator[int]:
            return itertools.count()

    assert normalise([Endless(), Wide()], max_bytes=10_000) == [{"$cut": {"bytes": None}}] * 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_wish_to_stop_passes(error: type[BaseException]) -> None:
    class Stops:
        def __str__(self) -> str:
            raise error

    with pytest.raises(error):
        normalise([Stops()])


# --- events -----------------------------------------------------------------------------------------------------------


def test_an_event_object_is_known_by_its_attributes_not_by_its_text() -> None:
    class Slots:
        __slots__ = ("a", "b")

        def __init__(self) -> None:
            self.a = 1

    assert plain_event(Told()) == {"shown": 1}
    assert plain_event(Slots()) == {"a": 1}


@pytest.mark.parametrize(
    "event", [{"a": 1}, Point(1, set()), Message(role="r"), "text", None, [1], Level.HIGH], ids=repr
)
def test_an_event_with_a_form_is_taken_as_it_is(event: object) -> None:
    assert plain_event(event) is event
