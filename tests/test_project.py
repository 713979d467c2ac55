"""What the project says about itself holds: commands, links, pins, markers."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec.cli.app import COMMANDS
from otel_agentrec.journal.events import TYPES

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("*.md"))]
if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOP_LEVEL = {
    "otel_agentrec", "collector-config", "tests", "examples", "docs", "benchmarks", ".ci", "pyproject.toml", "constraints.txt",
    "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", ".gitignore",
}  # fmt: skip
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def code(page: Path) -> str:
    """The code of a page: fenced and indented blocks, and what stands between backticks."""
    text = page.read_text()
    blocks = re.findall(r"^```.*?$(.*?)^```$", text, re.M | re.S)
    return "\n".join([*blocks, *re.findall(r"^    .*$", text, re.M), *re.findall(r"`([^`\n]+)`", text)])


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_every_make_command_of_the_pages_exists() -> None:
    named = {target for page in PAGES for target in re.findall(r"\bmake ([a-z][a-z-]*)", code(page))}
    assert {"demo", "test", "test-all", "lint"} <= named
    for target in named:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True, timeout=20)


def test_the_readme_lists_the_commands_that_there_are() -> None:
    rows = re.findall(r"^\| `otel-agentrec ([a-z-]+)[^|]*\|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(COMMANDS)


def test_every_command_line_of_the_pages_starts_a_command() -> None:
    named = {name for page in PAGES for name in re.findall(r"\botel-agentrec ([a-z-]+)\b", code(page))}
    assert {"run", "show", "verify"} <= named <= set(COMMANDS)


def test_the_format_page_names_event_types_that_there_are() -> None:
    table = (ROOT / "docs" / "format.md").read_text()
    named = set(re.findall(r"`([A-Z]+_[A-Z]+|DROPPED|LINKS|OPENED|SEALED|EVALUATED)`", table))
    assert {"STREAM_OPENED", "NODE_RECORDED", "OPENED", "DROPPED"} <= named <= set(TYPES)


@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="no git checkout")
def test_the_top_level_holds_only_what_belongs_there() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True, timeout=20)
    assert {name.split("/")[0] for name in listed.stdout.splitlines()} <= TOP_LEVEL


def test_links_between_pages_lead_somewhere() -> None:
    seen = 0
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"
            seen += 1
    assert seen


def test_pins_cover_what_is_asked_for_and_name_no_address() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    pins = {line.split("==")[0] for line in text.splitlines() if line and not line.startswith("#")}
    project = PYPROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(need for extra in project["optional-dependencies"].values() for need in extra),
    ]
    names = {re.match(r"[\w.-]+", need)[0].lower() for need in wanted}  # type: ignore[index]
    assert names - {"otel-agentrec"} <= pins


def test_every_extra_that_is_named_exists() -> None:
    """In the pages, and in what errors and the doctor tell people to install."""
    sources = [path.read_text() for path in (ROOT / "otel_agentrec").rglob("*.py")]
    texts = [page.read_text() for page in PAGES] + sources
    installs = {name for text in texts for name in re.findall(r"(?:otel-agentrec|clone)\[([a-z]+)\]", text)}
    missing = {name for text in sources for name in re.findall(r'ExtraMissing\("[^"]*", "([a-z]+)"\)', text)}
    assert {"run", "web"} <= installs
    assert {"demo", "prices", "web"} <= missing
    assert installs | missing <= set(PYPROJECT["project"]["optional-dependencies"])


def test_the_licence_is_the_one_that_is_named() -> None:
    assert PYPROJECT["project"]["license"] == "Apache-2.0"
    licence = (ROOT / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_the_generated_parts_of_the_pages_are_in_step() -> None:
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text()
        assert generate["in_step"](text) == text, "python docs/generate.py writes it anew"
    assert generate["in_step"]("<!-- settings -->\n\n<!-- end -->").count("OTEL_AGENTREC_PATH") == 1
