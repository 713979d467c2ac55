"""Settings: arguments beat the environment, the environment beats the defaults, and typing errors are named."""

from __future__ import annotations

import dataclasses

import pytest

from otel_agentrec import otel
from otel_agentrec.errors import ConfigurationError
from otel_agentrec.settings import TABLE, Settings, unknown_names


def test_the_table_the_fields_and_the_flags_of_opentelemetry_instrument_are_one_list() -> None:
    assert [row.name for row in TABLE] == [field.name for field in dataclasses.fields(Settings)]
    assert [row.default for row in TABLE] == [field.default for field in dataclasses.fields(Settings)]
    assert {row.variable for row in TABLE} == {name for name in dir(otel) if name.startswith("OTEL_")}


def test_arguments_beat_the_environment_and_the_environment_beats_the_defaults() -> None:
    environ = {"OTEL_AGENTREC_PATH": "from-env", "OTEL_AGENTREC_CONTENT": "INLINE", "OTEL_AGENTREC_ORIGIN": ""}
    settings = Settings.load(environ, path="from-argument", durability=None)
    assert (settings.path, settings.content, settings.durability) == ("from-argument", "inline", "written")
    assert settings.origin is None, "an empty variable is an absent one"


@pytest.mark.parametrize(("size", "n"), [("2M", 2 << 20), ("2 MiB", 2 << 20), ("4096", 4096), (4096, 4096)])
def test_sizes_may_have_units(size: str | int, n: int) -> None:
    assert Settings.load({}, segment_bytes=size).segment_bytes == n


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("1", True), ("OFF", False), ("no", False)])
def test_flags_are_read_in_the_usual_spellings(text: str, flag: bool) -> None:
    assert Settings.load({"OTEL_AGENTREC_ENABLED": text}).enabled is flag


@pytest.mark.parametrize(
    ("environ", "arguments", "what", "hint"),
    [
        ({"OTEL_AGENTREC_CONTENT": "some"}, {}, "OTEL_AGENTREC_CONTENT='some'", "detached or inline or off"),
        ({}, {"content": "some"}, "content='some'", "detached or inline or off"),
        ({}, {"path": "a\0b"}, "path='a\\x00b'", "without NUL"),
        ({}, {"contents": "off"}, "unknown setting 'contents'", "did you mean content?"),
        ({"OTEL_AGENTREC_SEGMENT_BYTES": "many"}, {}, "='many'", "such as 33554432 or 32M"),
        ({"OTEL_AGENTREC_VALUE_BYTES": "33M"}, {}, "='33M'", "at most 32M"),
        ({}, {"segment_bytes": 0}, "segment_bytes=0", "such as 33554432 or 32M"),
        ({"OTEL_AGENTREC_ENABLED": "maybe"}, {}, "OTEL_AGENTREC_ENABLED='maybe'", "true or false"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_what_is_allowed(
    environ: dict[str, str], arguments: dict[str, str], what: str, hint: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        Settings.load(environ, **arguments)
    assert what in str(error.value)
    assert hint in error.value.hint


def test_an_unknown_variable_is_answered_with_the_nearest_known_one() -> None:
    environ = {"OTEL_AGENTREC_PAHT": "x", "OTEL_AGENTREC_PATH": "x", "OTEL_TRACES_EXPORTER": "none"}
    assert unknown_names(environ) == {"OTEL_AGENTREC_PAHT": "did you mean OTEL_AGENTREC_PATH?"}


def test_the_name_of_the_host_holds_no_secret() -> None:
    key = "sk-proj-" + "a1B2" * 12
    assert Settings.load({"OTEL_AGENTREC_ORIGIN": "build-7.example"}).host == "build-7.example"
    assert key not in Settings.load({"OTEL_AGENTREC_ORIGIN": f"build {key}"}).host
