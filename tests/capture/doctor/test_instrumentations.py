"""Which calls would be recorded, and with what, as the metadata of an environment tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_agentrec.capture.content import CONTENT_VARIABLES
from otel_agentrec.capture.doctor.finding import Finding
from otel_agentrec.capture.doctor.instrumentations import (
    LIBRARIES,
    check_content,
    check_instrumentations,
    installed,
    recorded,
)
from otel_agentrec.capture.doctor.interpreter import Interpreter, interpreter_at
from tests.capture.doctor.environments import GENAI, environment, instrumentation, package

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
V2 = "opentelemetry-instrumentation-openai-v2"
TRACELOOP = "opentelemetry-instrumentation-openai"
OPENINFERENCE = "openinference-instrumentation-openai"


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    environment(
        tmp_path / "env", opentelemetry_sdk="1.45.2", openai="3.57.0", opentelemetry_instrumentation_httpx="0.66b2"
    )
    return tmp_path / "env"


def at(prefix: Path) -> Interpreter:
    found = interpreter_at(prefix / "bin" / "python")
    assert found is not None
    return found


def by_id(found: list[Finding]) -> dict[str, Finding]:
    assert len({f.id for f in found}) == len(found)
    return {f.id: f for f in found}


def check(prefix: Path) -> dict[str, Finding]:
    return by_id(list(check_instrumentations(at(prefix))))


def content(prefix: Path, asks: bool = True, **environ: str) -> dict[str, Finding]:
    return by_id(list(check_content(at(prefix), environ, asks)))


def test_one_that_fits_is_ok(prefix: Path) -> None:
    instrumentation(prefix, GENAI, "1.3b0", "openai<4,>=1.26.0")
    (found,) = check(prefix).values()
    assert (found.level, found.what) == ("ok", f"{GENAI} 1.3b0 makes spans of openai 3.57.0")


def test_none_at_all_is_a_problem_and_the_library_is_named(prefix: Path) -> None:
    found = check(prefix)
    assert found["instrumentations"].level == "problem"
    assert found["instrumentation.missing.openai"].mend == f"{prefix}/bin/python -m pip install {GENAI}"


def test_where_only_the_library_is_missing_the_mend_is_to_install_it(tmp_path: Path) -> None:
    prefix = tmp_path / "bare"
    environment(prefix)
    instrumentation(prefix, GENAI, "1.3b0", "openai<4,>=1.26.0")
    (found,) = check(prefix).values()
    assert (found.level, found.what) == ("problem", f"{GENAI} 1.3b0 is installed, but not openai, which it is for")
    assert found.mend == f"{prefix}/bin/python -m pip install openai"


def test_one_whose_library_is_not_there_is_no_matter(prefix: Path) -> None:
    instrumentation(prefix, GENAI, "1.3b0", "openai<4,>=1.26.0")
    instrumentation(prefix, "opentelemetry-instrumentation-genai-anthropic", "1.3b0", "anthropic>=0.50")
    assert list(check(prefix)) == [f"instrumentation.{GENAI}"]
    assert list(content(prefix)) == [f"content.{GENAI}"]


@pytest.mark.parametrize(
    ("name", "version", "wants", "beside", "says"),
    [
        (V2, "2.4b0", "openai>=1.26.0", {"opentelemetry-util-genai": "1.3b0"}, "can't be imported beside"),
        (V2, "2.1b0", "openai>=1.26.0", {}, "at most 1.36"),
        (TRACELOOP, "0.47.5", "openai>=0.27.0", {}, "at most 1.36"),
        ("opentelemetry-instrumentation-google-genai", "1.3b0", "google-genai>=1.32,<3", {"google-genai": "3.6.1"}, "knows google-genai >=1.32,<3, 3.6.1"),
    ],
)  # fmt: skip
def test_known_misfits_are_problems(
    prefix: Path, name: str, version: str, wants: str, beside: dict[str, str], says: str
) -> None:
    instrumentation(prefix, name, version, wants, maker="traceloop" if name == TRACELOOP else "")
    for other, its_version in beside.items():
        package(prefix, other, its_version)
    found = check(prefix)
    assert found[f"instrumentation.{name}"].level == "problem"
    assert says in found[f"instrumentation.{name}"].what
    assert found[f"instrumentation.{name}"].mend
    assert "instrumentations" in found, "nothing else makes spans"


@pytest.mark.parametrize(
    ("name", "version", "beside"),
    [(V2, "2.4b0", {"opentelemetry-util-genai": "0.4b0"}), (TRACELOOP, "0.62.4", {}), (OPENINFERENCE, "0.1.66", {})],
)
def test_what_works_is_no_misfit(prefix: Path, name: str, version: str, beside: dict[str, str]) -> None:
    instrumentation(prefix, name, version, "openai>=1", maker="traceloop" if name == TRACELOOP else "")
    for other, its_version in beside.items():
        package(prefix, other, its_version)
    assert [f.level for f in check(prefix).values()] == ["ok"]


def test_two_of_one_library_are_noted_and_a_clash_of_their_names(prefix: Path) -> None:
    instrumentation(prefix, GENAI, "1.3b0", "openai<4", point="openai")
    instrumentation(prefix, TRACELOOP, "0.62.4", "openai>=0.27", point="openai", maker="traceloop")
    twice = check(prefix)["instrumentation.twice.openai"]
    assert twice.level == "note"
    assert "switches off both" in twice.why


def test_the_anthropic_sdk_speaks_for_itself(prefix: Path) -> None:
    package(prefix, "anthropic", "2.14.0")
    found = check(prefix)
    assert found["instrumentation.anthropic"].level == "ok"
    assert "instrumentations" not in found
    assert content(prefix)["content.anthropic"].level == "ok"
    assert (
        content(prefix, asks=False)["content.anthropic"].mend == "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content"
    )


def test_repeated_attempts_are_seen_by_an_http_instrumentation_only(tmp_path: Path) -> None:
    environment(tmp_path / "env", openai="3.57.0")
    assert check(tmp_path / "env")["instrumentation.http"].level == "note"


def test_what_is_no_instrumentation_of_agents_is_left_out(prefix: Path) -> None:
    instrumentation(prefix, "opentelemetry-instrumentation-flask", "0.66b2", "flask>=1")
    assert installed(at(prefix)) == []


@pytest.mark.parametrize(
    ("name", "version", "environ", "level"),
    [
        (GENAI, "1.3b0", {}, "ok"),
        (GENAI, "1.3b0", {CAPTURE: "span_and_event"}, "ok"),
        (GENAI, "1.3b0", {CAPTURE: "EVENT_ONLY"}, "note"),
        (GENAI, "1.3b0", {CAPTURE: "NO_CONTENT"}, "problem"),
        (GENAI, "1.3b0", {CAPTURE: "true"}, "problem"),
        (GENAI, "1.3b0", {CAPTURE: "NO_CONTENT", "OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK": "agentrec"}, "note"),
        (V2, "2.4b0", {}, "ok"),
        (V2, "2.4b0", {CAPTURE: "true"}, "ok"),
        (V2, "2.4b0", {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_old", CAPTURE: "SPAN_ONLY"}, "problem"),
        (V2, "2.1b0", {}, "problem"),
        (V2, "2.1b0", {CAPTURE: "True"}, "ok"),
        (TRACELOOP, "0.62.4", {}, "ok"),
        (TRACELOOP, "0.62.4", {"TRACELOOP_TRACE_CONTENT": "false"}, "problem"),
        (OPENINFERENCE, "0.1.66", {}, "ok"),
        (OPENINFERENCE, "0.1.66", {"OPENINFERENCE_HIDE_OUTPUTS": "true"}, "problem"),
    ],
)
def test_content_switches_mean_something_else_to_each(
    prefix: Path, name: str, version: str, environ: dict[str, str], level: str
) -> None:
    instrumentation(prefix, name, version, "openai>=1", maker="traceloop" if name == TRACELOOP else "")
    (found,) = content(prefix, **environ).values()
    assert (found.id, found.level) == (f"content.{name}", level)
    assert bool(found.mend) == (level != "ok")


def test_where_nobody_asks_messages_are_left_out(prefix: Path) -> None:
    instrumentation(prefix, GENAI, "1.3b0", "openai>=1")
    (found,) = content(prefix, asks=False).values()
    assert found.what == f"{GENAI} leaves messages out: {CAPTURE} is not set"
    assert found.mend == f"{CAPTURE}={CONTENT_VARIABLES[CAPTURE]}"


def test_one_line_says_what_is_recorded(prefix: Path) -> None:
    instrumentation(prefix, GENAI, "1.3b0", "openai>=1")
    package(prefix, "anthropic", "2.14.0")
    (told,) = recorded(at(prefix), {"ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE": "none"}, asks=True)
    assert told.what == "calls that would be recorded: openai with messages; anthropic without messages"


def test_recommendations_are_packages_that_make_spans() -> None:
    assert all(
        name.startswith(("opentelemetry-instrumentation-genai-", "openinference-")) for name in LIBRARIES.values()
    )
