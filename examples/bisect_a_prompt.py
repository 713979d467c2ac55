"""Which commit changed what the agent does? ``git bisect run otel-agentrec replay`` finds out, offline and without a token.

A repository is made with six commits. The first one's run is recorded; the fourth changes one word of the prompt.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import scene

AGENT = (Path(__file__).parent / "regression_test" / "agent.py").read_text()
COMMITS = [
    ("An agent", lambda code: code),
    ("A comment", lambda code: code.replace("\n\nTOOLS =", "\n\n# what it may use\nTOOLS =")),
    ("A name", lambda code: code.replace("message = answer", "said = answer").replace("message.", "said.")),
    ("Friendlier words", lambda code: code.replace("keep it short", "keep it brief")),
    ("A docstring", lambda code: code.replace('"""Answer a question."""', '"""Answer one question."""')),
    (
        "Order of functions",
        lambda code: code.replace("TOOLS = {", "TOOLS = dict({").replace("last_train}\n", "last_train})\n"),
    ),
]
os.environ["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"] = "*"  # the wire tells enough, and a start takes half the time
OURS = [sys.executable, "-m", "otel_agentrec"]


def git(folder: Path, *words: str) -> str:
    """Run git there -> what it printed."""
    who = ["-c", "user.name=example", "-c", "user.email=example@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {words[0]}: {done.stdout}{done.stderr}")
    return done.stdout


with tempfile.TemporaryDirectory() as scratch:
    repository, recording, code = Path(scratch) / "agent", Path(scratch) / "recording", AGENT
    repository.mkdir()
    git(repository, "init", "--quiet")
    for n, (subject, change) in enumerate(COMMITS):
        code = change(code)
        (repository / "agent.py").write_text(code)
        git(repository, "add", "agent.py")
        git(repository, "commit", "--quiet", "--allow-empty", "-m", subject)
        if n == 0:
            with scene.model():
                record = [*OURS, "run", "--out", str(recording), "--", sys.executable, "agent.py"]
                subprocess.run(record, cwd=repository, check=True)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # two commits may be of the same second
    replay = [*OURS, "replay", str(recording), "--", sys.executable, "agent.py"]
    commits = git(repository, "log", "--format=%h").split()
    git(repository, "bisect", "start", commits[0], commits[-1])
    print("\n$ git bisect run otel-agentrec replay recording -- python agent.py")
    said = git(repository, "bisect", "run", "sh", "-c", '"$@"; code=$?; echo "exit $code"; exit $code', "sh", *replay)
    print(said)
    found = next(line for line in said.splitlines() if "is the first bad commit" in line)
    assert git(repository, "log", "-1", "--format=%s", found.split()[0]).strip() == "Friendlier words"
