"""Rules of the user: how they are named, how they chain, and that one which fails lets nothing through."""

from __future__ import annotations

import re
from typing import Any

import pytest

from otel_agentrec.errors import ConfigurationError
from otel_agentrec.redaction import Redactor, is_marker, whole_record
from otel_agentrec.settings import Settings


def shout(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def fail(value: Any) -> Any:
    raise RuntimeError("no")


@whole_record
def drop_scope(type_: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key != "scope"}


# --- the setting ---


@pytest.mark.parametrize("setting", [None, True, "default", "", "default,", Redactor(), []])
def test_the_default_rules_are_in_force_unless_switched_off(setting: Any) -> None:
    assert is_marker(Redactor.from_setting(setting).value({"password": "x"})["password"])


@pytest.mark.parametrize("setting", ["off", False, ["off"], "off, "])
def test_off_changes_nothing(setting: Any) -> None:
    redactor = Redactor.from_setting(setting)
    value = {"password": "x"}
    assert redactor.value(value) is value
    assert redactor.is_off
    assert redactor.is_clean(b'{"password":"x"}')


def test_rules_chain_after_the_default_ones_in_their_order() -> None:
    redactor = Redactor.from_setting(f"{__name__}:shout,$..city,email")
    new = redactor.value({"password": "x", "note": "me@example.test", "city": "Oslo", "n": 1})
    assert is_marker(new["password"])
    assert is_marker(new["note"])
    assert is_marker(new["city"])
    only = Redactor.from_setting(f"off,{__name__}:shout")
    assert only.value("password=x") == "PASSWORD=X"
    assert Redactor([shout, str.strip], credentials=False).value(" a ") == "A"


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("deafult", "redact='deafult' can't be used"),
        ("no.such.module:rule", "No module named"),
        (f"{__name__}:nothing", "nothing"),
        (f"{__name__}:__name__", "not callable"),
        ("$", "no path"),
        ("$.a[1]", "no path"),
        (17, "no redaction rule"),
    ],
)
def test_a_rule_that_cannot_be_used_is_named(setting: Any, what: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(what)) as error:
        Redactor.from_setting(setting)
    assert error.value.hint


def test_the_setting_comes_from_the_environment_or_an_argument() -> None:
    assert Settings.load({}).redact == "default"
    assert Settings.load({"OTEL_AGENTREC_REDACT": "off"}).redact == "off"
    assert Settings.load({"OTEL_AGENTREC_REDACT": "off"}, redact=[shout]).redact == [shout]
    assert Settings.load({}, redact=False).redact == "off"


# --- patterns ---


def test_a_pattern_of_the_user_is_replaced_wherever_it_stands() -> None:
    redactor = Redactor([re.compile(r"CUST-\d+")])
    new = redactor.value({"a CUST-17 b": ["x CUST-17", {"y": "CUST-18"}], "n": 17})
    (key, (first, second)), number = next(iter(new.items())), new["n"]
    assert "CUST" not in str(new)
    assert key.removeprefix("a ").removesuffix(" b") == first.removeprefix("x ") != second["y"]
    assert number == 17
    value = {"a": ["b"]}
    assert redactor.value(value) is value


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("write to Ada.Lovelace+x@mail.example.test.", True),
        ("a@b", False),
        ("4111 1111 1111 1111", True),
        ("4111-1111-1111-1111.", True),
        ("4111 1111 1111 1112", False),
        ("0000000000000000", False),
        ("1700000000123", False),
        ("order 12345", False),
    ],
)
def test_addresses_and_card_numbers_are_found_when_asked_for(text: str, found: bool) -> None:
    assert (Redactor.from_setting("email,card").text(text) != text) is found
    assert Redactor().text(text) is text


# --- paths ---


@pytest.mark.parametrize(
    ("path", "at", "value", "named"),
    [
        ("$..ssn", ("facts", "arguments"), {"a": [{"ssn": "S"}], "b": "B"}, "S"),
        ("$.facts.arguments.ssn", ("facts", "arguments"), {"ssn": "S", "a": {"ssn": "T"}}, "S"),
        ("$.facts.arguments", ("facts", "arguments"), "S", "S"),
        (
            "$.facts.messages[*].parts[*].content",
            ("facts", "messages", "*"),
            {"parts": [{"content": "S"}], "content": "T"},
            "S",
        ),
        ("$.facts.*.ssn", ("facts", "result"), {"ssn": "S"}, "S"),
        ("$['facts']['my key']", (), {"facts": {"my key": "S", "a": "T"}}, "S"),
        ("$..ssn", ("facts", "arguments"), '{"a": {"ssn": "S"}, "t": "T"}', '"S"'),
    ],
)
def test_a_path_names_what_is_withheld(path: str, at: tuple[str, ...], value: Any, named: str) -> None:
    new = Redactor([path], credentials=False).value(value, at)
    assert f"'{named}'" not in repr(new)
    assert named not in str(new)
    assert ("T" in str(value)) == ("'T'" in repr(new) or '"T"' in str(new))


def test_a_path_names_nothing_elsewhere() -> None:
    value = {"ssn": "S", "t": "no {json"}
    assert Redactor(["$.facts.result.ssn"], credentials=False).value(value, ("facts", "arguments")) is value


# --- failing closed ---


@pytest.mark.parametrize("rule", [fail, lambda value: object(), lambda value: {1: 2}])
def test_a_value_that_a_rule_fails_on_is_withheld_and_counted(rule: Any) -> None:
    redactor = Redactor([rule])
    assert redactor.value({"a": "secret"}) == "REDACTED(withheld)"
    assert redactor.text("secret") == "REDACTED(withheld)"
    assert redactor.counts["withheld"] == 2


def test_an_event_that_a_rule_fails_on_keeps_its_meaning_and_nothing_else() -> None:
    redactor = Redactor([fail])
    payload = {
        "type": "MODEL",
        "name": "chat",
        "startedAt": "17",
        "facts": {"inputTokens": 3, "model": "m", "flags": ["a"]},
    }
    assert redactor.payload(payload) == {
        "type": "MODEL",
        "name": "REDACTED(withheld)",
        "startedAt": "17",
        "facts": {"inputTokens": 3, "model": "REDACTED(withheld)", "flags": ["REDACTED(withheld)"]},
    }


def test_a_rule_may_not_turn_an_event_into_another() -> None:
    redactor = Redactor([lambda payload: {"type": "TOOL"}])
    assert redactor.payload({"type": "MODEL", "name": "chat"}) == {"type": "MODEL", "name": "REDACTED(withheld)"}


def test_an_id_that_a_rule_fails_on_still_differs_from_others() -> None:
    redactor = Redactor([fail])
    first, second = redactor.identifier("session-1"), redactor.identifier("session-2")
    assert first != second
    assert first == redactor.identifier("session-1")
    assert is_marker(first)


def test_a_value_nested_too_deep_to_be_looked_at_is_withheld() -> None:
    value: Any = "password=x"
    for _ in range(50_000):
        value = [value]
    assert Redactor().value(value) == "REDACTED(withheld)"


def test_a_rule_for_whole_records_sees_the_payload() -> None:
    redactor = Redactor([drop_scope])
    assert not redactor.per_element
    assert redactor.record("NODE_RECORDED", {"name": "n", "scope": "s"}) == {"name": "n"}
    broken = Redactor([whole_record(lambda type_, payload: None)])
    assert broken.record("NODE_RECORDED", {"type": "MODEL", "facts": {"messages": ["x"]}}) == {
        "type": "MODEL",
        "facts": {"messages": ["REDACTED(withheld)"]},
    }
