"""The programs that the pages show do what the pages say, on a recording made here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from otel_agentrec.journal.journal import Journal

DOCS = Path(__file__).parent.parent / "docs"
MESSAGES = [{"role": "user", "parts": [{"type": "text", "content": f"Grüße {n}, 東京 \\ \u2028 {{"}]} for n in range(4)]


def program(page: str, language: str, where: Path) -> Path:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    where.write_text(text)
    return where


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A closed stream with content: three model calls that each resend what the ones before said."""
    journal = Journal(tmp_path / "recording", origin="docs")
    for n in range(1, 4):
        facts = {"model": "gpt-5", "messages": MESSAGES[:n], "outputMessages": [MESSAGES[n]]}
        journal.append("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": facts})
    journal.seal()
    (path,) = (p for p in (tmp_path / "recording").glob("2*.jsonl") if ".content." not in p.name)
    return path


def run(*command: str | Path) -> tuple[int, str]:
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout + result.stderr


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


VERIFIERS = [
    pytest.param(shell, language, marks=pytest.mark.skipif(not shutil.which(shell), reason=f"{shell} is not installed"))
    for shell, language in (("bash", "bash"), ("node", "javascript"))
]


@pytest.mark.parametrize(("command", "language"), VERIFIERS)
def test_a_verifier_in_another_language(command: str, language: str, stream: Path, tmp_path: Path) -> None:
    verifier = program("verify.md", language, tmp_path / "verifier.txt")
    lines = stream.read_text().splitlines()
    last_hash = lines[-1][-153:][9:73]

    code, said = run(command, verifier, stream)
    assert (code, f"{len(lines)} lines" in said, last_hash in said) == (0, True, True), said

    change(stream, '"name":"chat"', '"name":"chit"')
    code, said = run(command, verifier, stream)
    assert (code, "line 1" in said) == (1, True), said


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_verifier_that_reads_content_finds_a_changed_word(stream: Path, tmp_path: Path) -> None:
    verifier = program("verify.md", "javascript", tmp_path / "verifier.txt")
    change(stream.with_suffix(".content.jsonl"), "東京", "京都")
    code, said = run("node", verifier, stream)
    assert (code, "content of line 1" in said) == (1, True), said
