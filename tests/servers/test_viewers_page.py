"""docs/viewers.md names the versions that the tests run, and shows pictures that its own program makes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.servers import built, mlflow_server, phoenix, pictures

PAGE = pictures.PICTURES.parent / "viewers.md"
TEXT = PAGE.read_text("utf-8")


def pinned(requirements: Path) -> str:
    return requirements.read_text("utf-8").strip().partition("==")[2]


def test_it_names_the_versions_that_are_run() -> None:
    (row,) = [line for line in TEXT.splitlines() if line.startswith("| how we know")]
    jaeger = built.JAEGER.partition("@v")[2]
    shown = re.findall(r"\*\*run\*\*, ([\d.]+)", row)
    assert shown == [pinned(phoenix.REQUIREMENTS), pinned(mlflow_server.REQUIREMENTS), jaeger]


def test_the_image_of_jaeger_is_that_of_the_compose_file() -> None:
    images = set(re.findall(r"jaegertracing/jaeger:\S+", TEXT))
    assert images == set(re.findall(r"jaegertracing/jaeger:\S+", (built.CONFIGS / "compose.yaml").read_text("utf-8")))
    assert images


def test_its_pictures_are_there_small_and_made_by_the_program() -> None:
    shown = set(re.findall(r"\]\(pictures/([\w-]+\.png)\)", TEXT))
    assert shown == {path.name for path in pictures.PICTURES.iterdir()}
    program = Path(pictures.__file__).read_text("utf-8")
    for name in shown:
        assert f'"{name}"' in program
        assert (pictures.PICTURES / name).stat().st_size <= pictures.MOST_BYTES
