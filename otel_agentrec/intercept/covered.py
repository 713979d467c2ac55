"""What is covered, by package and version: model SDKs on the wire, frameworks with their tools. For the docs and ``doctor``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from otel_agentrec.capture.doctor.finding import Finding, note, ok
from otel_agentrec.capture.doctor.interpreter import Interpreter, numbers
from otel_agentrec.intercept.tools import adapters

__all__ = ["CLIENTS", "Client", "check_covered"]

EVERY_WAY = "whole, streamed, async, 429 then 200, error, zipped, broken off, cut"


@dataclass(frozen=True, slots=True)
class Client:
    """A model SDK. ``checked``: the versions that ``tests/frameworks/test_wire_matrix.py`` asks in every way; ``by``: the HTTP
    libraries that they use there; ``beside``: what its users must know."""

    package: str
    checked: tuple[str, ...]
    by: str
    ways: str = EVERY_WAY
    beside: str = ""


CLIENTS = (
    Client("openai", ("3.57.0", "2.54.0", "1.109.1"), "httpx2, httpx before 3", beside="Realtime sessions are not seen."),
    Client("anthropic", ("2.14.0", "0.125.0"), "httpx2, httpx before 1"),
    Client("google-genai", ("3.6.1",), "httpx2", beside="Where aiohttp is installed its asynchronous calls go by that: best effort. Live sessions are not seen."),
    Client("mistralai", ("3.7.0",), "httpx2"),
    Client("groq", ("1.7.0",), "httpx"),
    Client("huggingface_hub", ("2.4.0",), "httpx2", "whole, streamed, async, error, zipped, broken off, cut", "It does not repeat a 429."),
    Client("litellm", ("1.110.2",), "httpx", beside="Checked with the providers OpenAI and Anthropic."),
    Client("boto3", ("1.44.8",), "urllib3", "whole, streamed, 429 then 200, error, broken off, cut", "bedrock-runtime: Converse and InvokeModel, with event streams. aioboto3 is best effort, by aiohttp."),
    Client("requests", ("2.34.2",), "urllib3", "whole, streamed, 429 then 200, error, zipped, broken off, cut", "What urllib3's own Retry does inside is one attempt."),
)  # fmt: skip


def check_covered(python: Interpreter) -> Iterator[Finding]:
    """Which SDKs and frameworks of an environment are covered, and whether in a version that was checked."""
    for client in CLIENTS:
        version = python.version_of(client.package.replace("_", "-"))
        if version is not None:
            what = f"model calls of {client.package} {version} are recorded on the wire"
            yield _finding(f"wire.{client.package}", what, version, client.checked, client.beside)
    for adapter in adapters():
        version = python.version_of(adapter.package)
        if version is not None:
            what = f"tool calls of {adapter.package} {version} are intercepted"
            checked = tuple(re.findall(r"\d[\w.]*", adapter.checked.partition("(")[0]))
            yield _finding(f"tools.{adapter.package}", what, version, checked, adapter.beside)


def _finding(id: str, what: str, version: str, checked: tuple[str, ...], beside: str) -> Finding:
    told = f"checked with {', '.join(checked)}"
    if any(_line(version) == _line(one) for one in checked):
        return ok(id, f"{what}; {told}", beside)
    why = f"it is {told}; a recording's COVERAGE event says what was found in this one"
    return note(
        id, what, f"{why}. {beside}".rstrip(), f"otel-agentrec show says it after a run, or install {checked[0]}"
    )


def _line(version: str) -> tuple[int, ...]:
    """What may break between: the major version, of one before 1.0 the minor one too."""
    told = numbers(version)
    return told[:1] if told[:1] != (0,) else told[:2]
