"""What is made for tests of servers is made once, and is there whole or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.servers.built import _made


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "otel-agentrec" / "servers"


def test_it_is_made_once_for_what_it_is_made_from() -> None:
    made: list[Path] = []

    def make(place: Path) -> None:
        made.append(place)
        (place / "program").write_text("whole", encoding="utf-8")

    with ThreadPoolExecutor(4) as pool:
        places = set(pool.map(lambda _: _made("thing", ["1.0"], make), range(4)))
    assert len(places) == len(made) == 1
    assert (places.pop() / "program").read_text("utf-8") == "whole"
    assert _made("thing", ["1.1"], make) != _made("thing", ["1.0"], make)
    assert len(made) == 2


def test_what_could_not_be_made_leaves_nothing_and_is_tried_again(home: Path) -> None:
    def fail(place: Path) -> None:
        (place / "half").touch()
        raise RuntimeError("no such module")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no such module"):
            _made("thing", ["1.0"], fail)
    assert [path.name for path in home.iterdir()] == ["lock"]
