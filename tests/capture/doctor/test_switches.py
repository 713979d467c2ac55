"""Variables that let spans through or hold them back, each with its mend."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import SpanLimits

from otel_agentrec.capture.doctor.finding import Finding
from otel_agentrec.capture.doctor.interpreter import interpreter_at, our_interpreter
from otel_agentrec.capture.doctor.switches import LIMITS, check_limits, check_sampler, check_settings, check_switches
from tests.capture.doctor.environments import environment


def one(found: list[Finding], id: str) -> Finding:
    (finding,) = (f for f in found if f.id == id)
    assert finding.level == "ok" or finding.why
    return finding


@pytest.mark.parametrize(
    ("sampler", "argument", "level"),
    [
        ("", "", "ok"),
        ("always_on", "", "ok"),
        ("parentbased_always_on", "", "ok"),
        ("always_off", "", "problem"),
        ("PARENTBASED_ALWAYS_OFF", "", "problem"),
        ("traceidratio", "0.1", "problem"),
        ("traceidratio", "1.0", "ok"),
        ("parentbased_traceidratio", "", "ok"),
        ("mine", "", "note"),
    ],
)
def test_a_sampler_that_drops_is_a_problem(sampler: str, argument: str, level: str) -> None:
    assert check_sampler({"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument}).level == level


@pytest.mark.parametrize(
    ("environ", "flat", "level"),
    [
        ({}, False, "ok"),
        ({}, True, "note"),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "64"}, False, "problem"),
        ({"OTEL_ATTRIBUTE_COUNT_LIMIT": "100"}, False, "problem"),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "128"}, False, "ok"),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "4096", "OTEL_ATTRIBUTE_COUNT_LIMIT": "10"}, True, "ok"),
    ],
)
def test_few_attributes_lose_the_beginning(environ: dict[str, str], flat: bool, level: str) -> None:
    found = one(list(check_limits(environ, flat)), "limits.count")
    assert found.level == level
    assert ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=4096" in found.mend) == (level != "ok")


@pytest.mark.parametrize(("value", "level"), [("", "ok"), ("4096", "problem"), ("4194304", "ok"), ("many", "ok")])
def test_short_values_cut_messages(value: str, level: str) -> None:
    found = one(list(check_limits({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": value}, False)), "limits.length")
    assert found.level == level


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", ["-7", "many", "1.5", "none"])
def test_a_limit_with_which_the_sdk_does_not_start_is_a_problem(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = one(list(check_limits({name: value}, False)), f"limits.unreadable.{name}")
    assert found.level == "problem" and name in found.mend
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=name):
        SpanLimits()


def test_limits_of_events_are_noted() -> None:
    environ = {"OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT": "100", "OTEL_SPAN_EVENT_COUNT_LIMIT": "8"}
    notes = [f.id for f in check_limits(environ, False) if f.level == "note"]
    assert notes == [f"limits.{name}" for name in environ]


def test_opentelemetry_switched_off() -> None:
    environ = {"OTEL_SDK_DISABLED": "TRUE", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "flask, *"}
    found = list(check_switches(environ, our_interpreter()))
    assert [(f.id, f.level) for f in found] == [("otel.disabled", "problem"), ("otel.instrumentations", "problem")]
    assert list(check_switches({"OTEL_SDK_DISABLED": "false"}, our_interpreter())) == []


class TestAConfigurationFile:
    def check(self, tmp_path: Path, **environ: str) -> Finding:
        python = interpreter_at(environment(tmp_path / "env"))
        return one(list(check_switches(environ, python)), "otel.config_file")

    def test_that_is_not_there(self, tmp_path: Path) -> None:
        found = self.check(tmp_path, OTEL_CONFIG_FILE=str(tmp_path / "otel.yaml"))
        assert (found.level, "not there" in found.what) == ("problem", True)

    def test_that_nothing_can_read(self, tmp_path: Path) -> None:
        (tmp_path / "otel.yaml").touch()
        found = self.check(tmp_path, OTEL_CONFIG_FILE=str(tmp_path / "otel.yaml"))
        assert found.level == "problem"
        assert found.mend.endswith("env/bin/python -m pip install opentelemetry-configuration")

    def test_under_a_name_that_is_ignored(self, tmp_path: Path) -> None:
        assert self.check(tmp_path, OTEL_EXPERIMENTAL_CONFIG_FILE="otel.yaml").level == "note"


def test_our_own_settings() -> None:
    found = list(check_settings({"OTEL_AGENTREC_DURABILTY": "fsync", "OTEL_AGENTREC_CONTENT": "off"}))
    assert [(f.id, f.level) for f in found] == [
        ("settings.unknown.OTEL_AGENTREC_DURABILTY", "note"),
        ("settings.content", "note"),
    ]
    assert "OTEL_AGENTREC_DURABILITY" in found[0].mend
    assert one(list(check_settings({"OTEL_AGENTREC_ENABLED": "no"})), "settings.enabled").level == "problem"
    assert one(list(check_settings({"OTEL_AGENTREC_QUEUE": "-1"})), "settings").level == "problem"
    assert one(list(check_settings({"OTEL_AGENTREC_DURABILITY": "deferred"})), "settings.durability").level == "note"
    assert list(check_settings({})) == []
