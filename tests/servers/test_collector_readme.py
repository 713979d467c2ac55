"""The page of collector-config/ tells of every file and every variable, and the files open nothing to other machines."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parents[2] / "collector-config"
README = (HERE / "README.md").read_text("utf-8")
FILES = {path.name: path.read_text("utf-8") for path in HERE.glob("*.yaml")}
VARIABLE = re.compile(r"\$\{env:(\w+)(?::-([^}]*))?\}")


def rows() -> dict[str, tuple[str, str]]:
    """Variable -> (the cell that names files, its default) of the table."""
    found = {}
    for line in README.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 4 and cells[0].startswith("`"):
            names, defaults = re.findall(r"`(\w+)`", cells[0]), re.findall(r"`([^`]+)`", cells[2]) or [""]
            found.update({name: (cells[1], default) for name, default in zip(names, defaults, strict=True)})
    return found


def test_every_file_has_its_row() -> None:
    assert re.findall(r"^\| \[[\w.-]+\]\(([\w.-]+)\)", README, re.MULTILINE) == sorted(FILES, key=README.index)
    assert {"compose.yaml", "builder.yaml", "jaeger.yaml"} <= FILES.keys()


def test_every_variable_is_told_with_its_files_and_its_default() -> None:
    files, defaults = defaultdict(set), defaultdict(set)
    for name, text in FILES.items():
        for variable, default in VARIABLE.findall(text):
            files[variable].add(name.removesuffix(".yaml"))
            defaults[variable].add(default)
    everywhere = files["COLLECTOR_GRPC"]
    told = {}
    for variable, (where, default) in rows().items():
        told[variable] = (everywhere if where == "all" else set(where.split(", ")), {default})
    assert told == {variable: (files[variable], defaults[variable]) for variable in files}


def test_what_is_opened_is_opened_to_this_machine_only() -> None:
    for name, text in FILES.items():
        for address in re.findall(
            r"env:(?:COLLECTOR|JAEGER)_(?:METRICS_HOST|GRPC|HTTP|HEALTH|UI|QUERY_GRPC):-([^}]*)\}", text
        ):
            assert address.startswith("127.0.0.1"), name
    ports = re.findall(r"^      - (\S+:\d+)$", FILES["compose.yaml"], re.MULTILINE)
    assert len(ports) == 3 and all(port.startswith("127.0.0.1:") for port in ports)
