"""What tools give comes back as it was, type by type, in another process; what would not is said when it is recorded."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import pathlib
import subprocess
import sys
import uuid
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from otel_agentrec.errors import RunStopped
from otel_agentrec.intercept.protocol import ToolOutcome
from otel_agentrec.intercept.tools.codecs import (
    Codec,
    NotKept,
    ResultUnreadable,
    from_json,
    handed_out,
    is_kept,
    outcome_of,
    outcome_of_error,
    register,
    to_json,
)
from otel_agentrec.intercept.tools.raised import RecordedToolError
from otel_agentrec.intercept.tools.values import same
from otel_agentrec.journal.canonical import canonical, from_canonical


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Word(str, enum.Enum):
    A = "a"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Place:
    name: str
    at: tuple[float, float]
    tags: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Counting:
    n: int
    twice: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.twice = 2 * self.n


class Point(NamedTuple):
    x: int
    y: float


class Forecast(BaseModel):
    place: str = Field(alias="where")
    when: dt.datetime
    rain: float | None = None


class Loose(BaseModel):
    thing: object


def through_the_journal(outcome: ToolOutcome) -> ToolOutcome:
    """The outcome as canonical JSON keeps it."""
    kept = from_canonical(canonical(dataclasses.asdict(outcome)))
    return ToolOutcome(**kept)


def again(value: Any) -> Any:
    outcome = outcome_of(value)
    assert is_kept(outcome), outcome.value
    return handed_out(through_the_journal(outcome))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
VALUES = st.recursive(
    JSON
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.datetimes(timezones=st.none() | st.just(dt.timezone.utc) | st.just(ZoneInfo("Europe/Oslo")))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.sampled_from([*Colour, *Word, Rights.READ | Rights.WRITE])
    | st.builds(Place, st.text(), st.tuples(st.floats(), st.floats()), st.sets(st.text())),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert same(again(value), value)


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        -0.0,
        math.nan,
        math.inf,
        2**80,
        {"b": 1, "a": 2},
        {"__py__": "tuple", "items": []},
        {1: "a", (2, 3): "b"},
        "half a character: \ud800",
        bytearray(b"\xff\x00"),
        frozenset({1}),
        1 + 2j,
        range(3),
        pathlib.PurePosixPath("/a/b"),
        OrderedDict(b=1, a=2),
        Point(1, 2.0),
        Counting(3),
        Forecast(where="Finse", when=dt.datetime(2026, 11, 30, tzinfo=dt.timezone.utc)),
        [Place("Finse", (60.6, 7.5), {"a"}), decimal.Decimal("1.10"), uuid.UUID(int=7)],
        dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Oslo")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_of_each_kind_comes_back(value: Any) -> None:
    assert same(again(value), value)


def test_plain_json_stays_readable() -> None:
    assert outcome_of({"a": [1, "b", None, 1.5]}) == ToolOutcome({"a": [1, "b", None, 1.5]})


def test_what_is_handed_out_is_the_programs_own() -> None:
    outcome = outcome_of({"a": []})
    handed_out(outcome)["a"].append(1)
    assert handed_out(outcome) == {"a": []}


def a_local_class() -> Any:
    @dataclasses.dataclass
    class Local:
        n: int

    return Local(1)


def a_cycle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


class Text(str):
    pass


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "no codec knows it"),
        (Text("a"), "no codec knows it"),
        (defaultdict(list, a=[1]), "no codec knows it"),
        ((n for n in "ab"), "no codec knows it"),
        (a_local_class(), "find this class"),
        (a_cycle(), "contains itself"),
        (Loose(thing=object()), "Unable to serialize"),
    ],
)
def test_what_would_not_come_back_is_said_when_it_is_recorded(value: Any, reason: str) -> None:
    outcome = outcome_of(value)
    assert not is_kept(outcome)
    assert reason in outcome.value["reason"]
    with pytest.raises(ResultUnreadable, match="was not kept"):
        handed_out(through_the_journal(outcome))


def test_a_class_that_is_gone_stops_the_run() -> None:
    outcome = outcome_of((Place("Finse", (1.5, 2.5)),))
    gone = ToolOutcome(outcome.value.replace('"Place"', '"Gone"'), outcome.codec)
    with pytest.raises(RunStopped, match=r"test_codecs\.Gone"):
        handed_out(gone)


@pytest.mark.parametrize("name", ["subprocess:Popen", "os:system", "builtins:eval", "builtins:object"])
@pytest.mark.parametrize("kind", ["dataclass", "pydantic", "enum", "namedtuple"])
def test_a_recording_calls_nothing_but_classes_of_the_kinds_it_may(kind: str, name: str) -> None:
    module, _, qualname = name.partition(":")
    cls = {"module": module, "name": qualname}
    tree = {"__py__": kind, "cls": cls, "fields": {}, "items": ["true"], "value": {"args": "true"}}
    with pytest.raises(ResultUnreadable):
        handed_out(ToolOutcome(json.dumps(tree), "python"))


# --- codecs of frameworks ---------------------------------------------------------------------------------------------


class Boxed:
    def __init__(self, inner: Any) -> None:
        self.inner = inner


BOXED = register(
    Codec(
        "test.Boxed",
        lambda value: type(value) is Boxed,
        lambda value: {"inner": to_json(value.inner)},
        lambda kept: Boxed(from_json(kept["inner"])),
    )
)


def test_a_codec_of_a_framework_holds_any_value() -> None:
    outcome = through_the_journal(outcome_of(Boxed((1.0, b"x")), [BOXED]))
    assert outcome.codec == "test.Boxed"
    assert handed_out(outcome).inner == (1.0, b"x")


def test_a_codec_that_loses_something_keeps_nothing() -> None:
    lossy = Codec("test.lossy", lambda value: True, lambda value: {"n": value.inner}, lambda kept: Boxed(0))
    foreign = Codec("test.foreign", lambda value: True, lambda value: b"bytes", lambda kept: Boxed(0))
    assert not is_kept(outcome_of(Boxed(1), [lossy]))
    assert not is_kept(outcome_of(Boxed(1), [foreign]))
    assert not is_kept(outcome_of(Boxed(object()), [BOXED]))


def test_an_unknown_codec_stops_the_run() -> None:
    with pytest.raises(ResultUnreadable, match=r"written by 'none\.such'"):
        handed_out(ToolOutcome({}, "none.such"))


def test_a_value_that_can_not_be_kept_says_so_to_a_codec() -> None:
    with pytest.raises(NotKept, match="object"):
        to_json(object())


# --- exceptions -------------------------------------------------------------------------------------------------------


class Strict(Exception):
    """Its constructor takes something else than what it keeps."""

    def __init__(self, code: int, *, handle: object) -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.handle = handle


class Shaped(Exception):
    def __init__(self, code: int) -> None:
        self.code = code

    def __str__(self) -> str:
        return f"code {self.code}"


def raised(error: Exception) -> Exception:
    with pytest.raises(Exception) as caught:
        handed_out(through_the_journal(outcome_of_error(error)))
    return caught.value


def unicode_error() -> Exception:
    try:
        b"\xff".decode()
    except UnicodeDecodeError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad"),
        KeyError("k"),
        FileNotFoundError(2, "no such file", "/x"),
        TimeoutError(),
        unicode_error(),
        json.JSONDecodeError("bad", "{", 1),
        subprocess.CalledProcessError(3, ["false"]),
        Shaped(7),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_comes_back_as_its_class(error: Exception) -> None:
    back = raised(error)
    assert type(back) is type(error)
    assert (str(back), back.args) == (str(error), error.args)
    assert vars(back) == vars(error)


def test_attributes_that_can_not_be_kept_are_left_out() -> None:
    back = raised(Strict(7, handle=object()))
    assert type(back) is Strict
    assert (str(back), vars(back)) == ("code 7", {"code": 7})


def test_the_cause_of_an_exception_comes_back() -> None:
    error = ValueError("bad")
    error.__cause__ = KeyError("k")
    assert repr(raised(error).__cause__) == "KeyError('k')"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_a_group_of_exceptions_comes_back() -> None:
    back = raised(ExceptionGroup("two", [ValueError("a"), KeyError("k")]))  # type: ignore[name-defined, unused-ignore] # noqa: F821
    assert repr(back) == "ExceptionGroup('two', [ValueError('a'), KeyError('k')])"


def test_an_exception_of_a_module_that_is_not_loaded_is_looked_for() -> None:
    code = "import zipimport, sys; assert 'wave' not in sys.modules; from otel_agentrec.intercept.tools.raised import error_again; print(repr(error_again({'type': 'Error', 'module': 'wave', 'message': 'bad'})), sys.modules['wave'].Error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "Error('bad') <class 'wave.Error'>", done.stderr


@pytest.mark.parametrize(
    ("module", "name"),
    [("gone", "Error"), ("os", "system"), ("builtins", "SystemExit"), ("pytest.__main__", "Error"), (7, None)],
)
def test_an_exception_without_its_class_is_a_general_one(module: Any, name: Any) -> None:
    outcome = ToolOutcome(error={"type": name, "module": module, "message": "bad", "args": '["bad"]'})
    with pytest.raises(RecordedToolError, match=r"^bad$") as caught:
        handed_out(outcome)
    assert caught.value.original == f"{module}.{name}"
