"""Every SDK of the promise, asked in every way: what is recorded is what the server sent, and answers the same program.

Of each SDK one process records, and a fresh one in which no socket connects is answered. In the first the clients are made
before the points of interception, in the second after. The cases stand in ``wire_sdks/__main__.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.wire_sdks.server import SAID, Sent, serving

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

HERE = Path(__file__).parent
SECONDS = 180

NEWEST, EARLIER, LITELLM = "sdks-newest", "sdks-earlier", "adk-agent-framework"
OPENAI_2 = "autogen-haystack-llama-index"
CASES: dict[str, tuple[str, str, str, str]] = {
    "openai 3 chat": ("openai_chat", NEWEST, "openai.chat", "httpx2"),
    "openai 3 responses": ("openai_responses", NEWEST, "openai.responses", "httpx2"),
    "openai 2 chat": ("openai_chat", OPENAI_2, "openai.chat", "httpx"),
    "openai 2 responses": ("openai_responses", OPENAI_2, "openai.responses", "httpx"),
    "openai 1 chat": ("openai_chat", EARLIER, "openai.chat", "httpx"),
    "openai 1 responses": ("openai_responses", EARLIER, "openai.responses", "httpx"),
    "anthropic 2": ("anthropic", NEWEST, "anthropic.messages", "httpx2"),
    "anthropic 0.125": ("anthropic", EARLIER, "anthropic.messages", "httpx"),
    "google-genai": ("google_genai", NEWEST, "google.generate", "httpx2"),
    "mistralai": ("mistral", NEWEST, "openai.chat", "httpx2"),
    "groq": ("groq", NEWEST, "openai.chat", "httpx"),
    "huggingface_hub": ("huggingface", NEWEST, "openai.chat", "httpx2"),
    "litellm to openai": ("litellm", LITELLM, "openai.chat", "httpx"),
    "litellm to anthropic": ("litellm_anthropic", LITELLM, "anthropic.messages", "httpx"),
    "boto3 bedrock-runtime": ("bedrock", NEWEST, "bedrock.converse", "urllib3"),
    "requests": ("requests", NEWEST, "openai.chat", "urllib3"),
}
"""SDK → function in ``wire_sdks/sdks.py``, requirements, API, HTTP library."""
NO_ASYNC = {"boto3 bedrock-runtime", "requests"}
NO_RETRY = {"huggingface_hub"}
NO_GZIP = {"boto3 bedrock-runtime"}
"""AWS does not zip, and its SDK cannot read it."""

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(environments.SETUP_SECONDS + 4 * SECONDS)]


@dataclass
class Run:
    """``done``: what each case gave; ``seen``: what was recorded; ``sent``: by the server; ``again``: when answered."""

    sdk: str
    done: dict[str, str | None]
    seen: list[dict[str, Any]]
    sent: list[Sent]
    done_again: dict[str, str | None]
    seen_again: list[dict[str, Any]]
    sent_again: int


@pytest.fixture(scope="module", params=CASES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    name, requirements, _, _ = CASES[request.param]
    python = environments.python_with(HERE / "requirements" / f"{requirements}.txt")
    folder = tmp_path_factory.mktemp(name)

    def play(mode: str, base: str) -> dict[str, Any]:
        done = subprocess.run(
            [python, "-m", "tests.frameworks.wire_sdks", name, mode, folder / "recorded.json", base],
            env=environments.environment(HF_HOME=str(folder)),
            cwd=HERE.parents[1],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said

    with serving() as (base, log):
        recorded = play("record", base)
        sent = list(log)
        answered = play("answer", base)
        return Run(
            request.param,
            recorded["done"],
            recorded["again"],
            sent,
            answered["done"],
            answered["again"],
            len(log) - len(sent),
        )


def data(exchange: dict[str, Any]) -> list[bytes]:
    return [b64decode(chunk) for _, chunk in exchange["chunks"]]


def cuts(pieces: list[bytes]) -> set[int]:
    """Where one piece ends."""
    return set(accumulate(map(len, pieces)))


def test_every_case_goes_as_the_server_has_it(run: Run) -> None:
    whole = f"gave {SAID}"
    assert (run.done["json"], run.done["stream"]) == (whole, whole)
    assert run.done["async"] == (None if run.sdk in NO_ASYNC else f"{whole} / {SAID}")
    assert run.sdk in NO_RETRY or run.done["retry"] == whole
    assert run.sdk in NO_GZIP or run.done["gzip"] == whole
    assert (run.done["error"] or "").startswith("raised ")
    assert run.done["abort"] == "gave Light"
    assert run.done["cut"] != whole


def test_each_attempt_is_recorded_once_with_the_bytes_that_were_asked(run: Run) -> None:
    _, _, api, library = CASES[run.sdk]
    sent = run.sent
    if run.sdk == "requests":  # what urllib3's own Retry does is one call
        sent = [one for one in sent if one.status != 429]
    asked = [(one.path, one.asked, one.status) for one in sent]
    assert [(one["path"], b64decode(one["body"]), one["status"]) for one in run.seen] == asked
    assert {(one["api"], one["library"]) for one in run.seen} == {(api, library)}
    assert sum(one.behaviour == "retry" for one in run.sent) == (1 if run.sdk in NO_RETRY else 2)


def test_bodies_and_chunks_are_those_that_were_sent(run: Run) -> None:
    sent = [one for one in run.sent if run.sdk != "requests" or one.status != 429]
    for was, seen in zip(sent, run.seen, strict=True):
        got, gave = b"".join(data(seen)), b"".join(was.pieces)
        assert not seen["decoded"]
        if was.behaviour == "abort":
            assert seen["end"] == "closed"
            assert got and gave.startswith(got) and got != gave
        elif seen["end"] == "closed":  # some SDKs stop reading at the last event they know
            assert gave.startswith(got) and len(gave) - len(got) <= len(was.pieces[-1])
        else:
            assert got == gave
            assert seen["end"] == ("error" if was.behaviour == "cut" else "eof")
        assert cuts(data(seen)) <= cuts(was.pieces), was.path
        if len(was.pieces) > 2:  # not gathered: as chunks came, they were handed on
            assert len(data(seen)) > 1 or was.behaviour == "abort"


def test_answered_without_a_socket_the_program_does_the_same(run: Run) -> None:
    assert run.done_again == run.done
    assert run.sent_again == 0
    assert all(one["answered"] for one in run.seen_again)
    kept = [(one["path"], one["body"], one["status"], data(one), one["end"]) for one in run.seen_again]
    assert kept == [(one["path"], one["body"], one["status"], data(one), one["end"]) for one in run.seen]
