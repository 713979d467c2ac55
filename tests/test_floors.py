"""The shape of the package: floors, lazy imports, names, sizes. The floors themselves stand in pyproject.toml."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import otel_agentrec
import otel_agentrec.errors

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "otel_agentrec"
MODULES = sorted(PACKAGE.rglob("*.py"))

UNIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
HEAVY = [
    "click",
    "cryptography",
    "google.protobuf",
    "grpc",
    "openai",
    "orjson",
    "requests",
    "rfc8785",
    "rich",
    "sqlalchemy",
    "wrapt",
]


def check_floors(where: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package that stands in ``where``, with this project's contracts."""
    code = (
        "import sys; from importlinter.cli import lint_imports;"
        f"sys.exit(lint_imports(config_filename={str(ROOT / 'pyproject.toml')!r}, no_cache=True, no_logo=True))"
    )
    return subprocess.run([sys.executable, "-c", code], cwd=where, capture_output=True, text=True, timeout=60)


def imports(tree: ast.AST, *, in_functions: bool) -> Iterator[str]:
    """Names of the modules that a source imports, those inside functions left out unless asked for."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
        elif in_functions or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from imports(node, in_functions=in_functions)


def test_a_room_imports_only_from_the_floors_below_it() -> None:
    result = check_floors(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        ("records.py", "otel_agentrec.journal", "records is not allowed to import"),
        ("nodes/fold.py", "otel_agentrec.audit", "nodes is not allowed to import"),
        ("tools.py", "json", "not listed as layers"),
    ],
    ids=["upward", "sideways", "on no floor"],
)
def test_an_import_against_the_floors_is_found(tmp_path: Path, low: str, high: str, says: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "otel_agentrec", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("nodes", "audit"):
        (tmp_path / "otel_agentrec" / room).mkdir(exist_ok=True)
        (tmp_path / "otel_agentrec" / room / "__init__.py").touch()
    with (tmp_path / "otel_agentrec" / low).open("a") as source:
        source.write(f"\nimport {high}\n")
    result = check_floors(tmp_path)
    assert result.returncode == 1
    assert says in result.stdout


def test_no_room_reaches_the_others_through_the_public_face() -> None:
    for path in MODULES:
        if path.parent != PACKAGE or path.name not in ("__init__.py", "__main__.py"):
            names = set(imports(ast.parse(path.read_text()), in_functions=True))
            assert "otel_agentrec" not in names, f"{path.relative_to(ROOT)} imports from the package itself"


def test_unix_only_modules_are_imported_inside_functions() -> None:
    for path in MODULES:
        early = UNIX_ONLY & set(imports(ast.parse(path.read_text()), in_functions=False))
        assert not early, f"{path.relative_to(ROOT)} imports {early} at its top"


SENDING = ["google.protobuf", "grpc", "opentelemetry.exporter", "opentelemetry.proto", "requests"]
"""What only sending out, and reading what was sent, needs: agents record in environments that lack it."""


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("otel_agentrec", HEAVY),
        ("otel_agentrec.otel", HEAVY),
        ("otel_agentrec.capture.configure", SENDING),
        ("otel_agentrec.otel.launched", SENDING),
    ],
)
def test_what_every_app_imports_pulls_in_nothing_heavy(module: str, heavy: list[str]) -> None:
    code = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in {heavy!r}:
            raise ModuleNotFoundError(f"{{name}} is not installed")

sys.meta_path.insert(0, Refuse())
import {module}
assert not [name for name in {heavy!r} if name in sys.modules]
try:
    import {heavy[0]}
except ModuleNotFoundError:
    print("refused")
"""
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout.strip()) == (0, "refused"), result.stderr


def test_the_public_face_only_re_exports() -> None:
    assert set(otel_agentrec.__all__) == set(otel_agentrec._HOME)
    for name in otel_agentrec.__all__:
        thing = getattr(otel_agentrec, name)
        if name != "__version__":
            assert thing.__module__.startswith("otel_agentrec."), f"{name} is defined in __init__"


def test_the_public_face_has_every_error() -> None:
    assert set(otel_agentrec.errors.__all__) <= set(otel_agentrec.__all__)
    defined = {name for name, thing in vars(otel_agentrec.errors).items() if isinstance(thing, type)}
    assert {name for name in defined if name[0].isupper() and name != "Any"} == set(otel_agentrec.errors.__all__)


def test_the_errors_need_no_import_of_their_own() -> None:
    code = "import otel_agentrec; print(otel_agentrec.errors.UnknownOutcomeError.exit_code)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.stdout.strip() == "75", result.stderr


def test_type_checkers_see_the_names_that_are_there() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    seen = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "__future__"]
    typed = {(alias.name, node.module) for node in seen for alias in node.names if "otel_agentrec" in str(node.module)}
    there = {(name, f"otel_agentrec.{room}") for name, room in otel_agentrec._HOME.items()}
    assert typed == {("errors", "otel_agentrec"), *there}


def test_a_thing_lives_where_its_name_says() -> None:
    for path in MODULES:
        assert path.stem not in ("utils", "util", "helpers", "helper", "common", "misc"), path.relative_to(ROOT)


def test_no_file_holds_two_rooms() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: n for name, n in lengths.items() if n > 450}, "about 400 lines are enough for one room"
