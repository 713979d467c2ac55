"""A command line, looked at and not run: who would run it, and would it be recorded as it stands?"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from otel_agentrec.capture.doctor import examine
from otel_agentrec.capture.doctor.finding import Finding
from otel_agentrec.capture.doctor.program import read_program
from tests.capture.doctor.environments import GENAI, environment, instrumentation, package, site

PATH = {"OTEL_AGENTREC_PATH": "rec"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a program in it that must not be run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text("from pathlib import Path\nPath('it-ran').touch()\n")
    return tmp_path


def examined(*cmd: str, **environ: str) -> dict[str, Finding]:
    found = examine(cmd, {"PATH": os.environ["PATH"], **environ})
    assert not Path("it-ran").exists()
    assert len({f.id for f in found}) == len(found), "ids are unique"
    return {f.id: f for f in found}


def way(*cmd: str, **environ: str) -> tuple[str, str]:
    found = examined(*cmd, **environ)["program.way"]
    return found.level, found.mend


def test_a_path_and_plain_python_record_nothing(here: Path) -> None:
    run = f"otel-agentrec run -- {sys.executable} app.py"
    assert way(sys.executable, "app.py", **PATH) == ("problem", run)
    assert way(sys.executable, "app.py") == ("note", run)


def test_the_ways_that_do_record_it(here: Path) -> None:
    assert way("otel-agentrec", "run", "--out", "x", "--", sys.executable, "app.py")[0] == "ok"
    assert way("opentelemetry-instrument", "--agentrec_path", "x", sys.executable, "app.py", **PATH)[0] == "ok"
    assert way(sys.executable, "app.py", **PATH, OTEL_PYTHON_TRACER_PROVIDER="agentrec")[0] == "note"
    (here / "app.py").write_text("import os\nimport otel_agentrec\n")
    assert way(sys.executable, "app.py", **PATH)[0] == "ok"


def test_opentelemetry_instrument_without_a_path(here: Path) -> None:
    level, mend = way("opentelemetry-instrument", sys.executable, "app.py")
    assert level == "problem"
    assert mend.startswith("OTEL_AGENTREC_PATH=agentrec opentelemetry-instrument ")


def test_what_a_command_sets_itself_counts(here: Path) -> None:
    python = [sys.executable, "app.py"]
    assert way("env", "OTEL_AGENTREC_PATH=x", "opentelemetry-instrument", *python)[0] == "ok"
    assert way("opentelemetry-instrument", "--agentrec_path=x", "--traces_exporter", "none", *python)[0] == "ok"
    for run in (
        ["otel-agentrec", "run", "--out", "x"],
        [sys.executable, "-m", "otel_agentrec", "run", "--out=x", "--"],
    ):
        found = examined(*run, *python)
        assert found["program.way"].level == "ok"
        assert str(here / "x") in found["path"].what
    disabled = examined("opentelemetry-instrument", "--sdk_disabled", "true", *python)
    assert disabled["otel.disabled"].level == "problem"


def test_a_configuration_file_may_ask_for_it(here: Path) -> None:
    (here / "otel.yaml").write_text("instrumentation/development: {python: {agentrec: {path: rec}}}")
    file = {"OTEL_CONFIG_FILE": "otel.yaml"}
    assert way("opentelemetry-instrument", sys.executable, "app.py", **file)[0] == "ok"
    assert way(sys.executable, "app.py", **file)[0] == "note", "plain python does not read it"


def test_an_exporter_by_name_needs_a_configurator(here: Path) -> None:
    (here / "app.py").write_text("from opentelemetry.distro import OpenTelemetryConfigurator\n")
    assert way(sys.executable, "app.py", **PATH, OTEL_TRACES_EXPORTER="otlp,agentrec")[0] == "note"


def test_what_can_not_be_recorded_says_so(here: Path) -> None:
    found = examined("no-such-program")
    assert (found["program"].level, "program.way" in found) == ("problem", False)
    (here / "agent-in-rust").write_bytes(b"\x7fELF")
    (here / "agent-in-rust").chmod(0o755)
    assert "not a Python program" in examined("./agent-in-rust")["program"].what
    assert "leave out -I" in examined(sys.executable, "-I", "app.py")["program"].mend


def test_below_a_shell_the_interpreter_is_not_known(here: Path) -> None:
    assert "without running it" in examined("sh", "-c", "python app.py")["program.python"].what


class TestAnotherInterpreter:
    @pytest.fixture
    def python(self, here: Path) -> Path:
        return environment(here / "env", opentelemetry_sdk="1.44.0", anthropic="0.79.0", openai="3.57.0")

    def test_that_lacks_this_package(self, python: Path) -> None:
        found = examined(str(python), "app.py")
        assert found["python"].what == f"Python 3.12.4 at {python}"
        assert found["agentrec"].mend == f"{python} -m pip install 'otel-agentrec[run]'"
        assert found["otel.sdk"].level == "problem"
        assert "entry_points" not in found

    def test_that_has_an_old_one(self, python: Path, here: Path) -> None:
        package(here / "env", "otel-agentrec", "0.0.1", points="[opentelemetry_post_instrument]\nagentrec = x:y\n")
        found = examined(str(python), "app.py")
        assert found["agentrec"].level == "ok"
        assert "lacks opentelemetry_pre_instrument" in found["entry_points"].what

    def test_is_found_through_a_console_script_and_a_link(self, python: Path, here: Path) -> None:
        script = here / "my-agent"
        script.write_text(f"#!{python}\nimport anthropic\n")
        script.chmod(0o755)
        (here / "bin").mkdir()
        (here / "bin" / "my-agent").symlink_to(script)
        for command in ("./my-agent", str(here / "bin" / "my-agent")):
            found = examined(command)
            assert str(python) in found["python"].what
            assert found["program.imports.anthropic"].level == "problem", "its own source is read"

    def test_what_it_imports_and_nothing_makes_spans_of(self, python: Path, here: Path) -> None:
        instrumentation(here / "env", GENAI, "1.3b0", "openai<4")
        (here / "app.py").write_text("import openai\nif 1:\n    from anthropic import Anthropic\n")
        found = examined(str(python), "app.py")
        assert found["program.imports.anthropic"].level == "problem"
        assert "program.imports.openai" not in found
        assert found["recorded"].what == "calls that would be recorded: openai with messages"

    def test_packages_that_a_pth_file_or_pythonpath_brings(self, python: Path, here: Path) -> None:
        environment(here / "other", otel_agentrec="1.0")
        (site(here / "env") / "more.pth").write_text(f"# comment\nimport os\n{site(here / 'other')}\n")
        assert "1.0 is installed there" in examined(str(python), "app.py")["agentrec"].what
        (site(here / "env") / "more.pth").unlink()
        assert "1.0" in examined(str(python), "app.py", PYTHONPATH=str(site(here / "other")))["agentrec"].what


def test_what_a_broken_installation_left_behind_is_passed_over(here: Path) -> None:
    python = environment(here / "env", otel_agentrec="1.0")
    for name, text in (("empty-1.0", ""), ("no_version", "Metadata-Version: 2.1\nName: no-version\n")):
        (site(here / "env") / f"{name}.dist-info").mkdir()
        (site(here / "env") / f"{name}.dist-info" / "METADATA").write_text(text)
    (site(here / "env") / "bare-1.0.dist-info").mkdir()
    assert "1.0 is installed there" in examined(str(python), "app.py")["agentrec"].what


@pytest.mark.parametrize(
    ("words", "source"),
    [
        (["app.py"], "whole"),
        (["-u", "-W", "ignore", "-X", "dev", "app.py", "-c", "no"], "whole"),
        (["-c", "import openai"], "import openai"),
        (["-m", "package"], ""),
        (["missing.py"], ""),
        ([], ""),
    ],
)
def test_the_text_of_a_program_is_found(here: Path, words: list[str], source: str) -> None:
    (here / "app.py").write_text("whole")
    assert read_program([sys.executable, *words], os.environ).source == source


@pytest.mark.parametrize(
    ("text", "module", "named"),
    [
        ("import agents", "agents", True),
        ("    from google import genai", "google.genai", True),
        ("from google.genai import types", "google.genai", True),
        ("import agents_of_mine", "agents", False),
        ("# import agents", "agents", False),
    ],
)
def test_imports_are_read_from_the_text(here: Path, text: str, module: str, named: bool) -> None:
    assert read_program([sys.executable, "-c", f"x = 1\n{text}\n"], os.environ).names(module) == named
