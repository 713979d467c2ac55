"""Agents with HTTP tools: credentials in arguments, headers, URLs, events, links and the resource of their spans."""

from __future__ import annotations

import json
import re
from pathlib import Path

from otel_agentrec import ingest, read_events
from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.redaction import Redactor, is_marker

from .case import DATA, expected, ingested, lines

TOOL = "13ef2029668fa137"


def written(path: Path) -> str:
    return "".join(file.read_text() for file in sorted(path.rglob("*.jsonl")))


def test_no_credential_is_written_and_all_else_stays(tmp_path: Path) -> None:
    case, right = ingested("020", tmp_path), expected("020")
    data = written(tmp_path / "rec")
    for secret in right["secrets"]["by_key_default"]:
        assert secret not in data
    (record,) = (r for r in case.records if r.span_id == TOOL)
    arguments = record.inputs["arguments"]
    assert (arguments["city"], arguments["auth"]["note"]) == ("Oslo", "keep me")
    assert is_marker(arguments["api_key"])
    assert is_marker(json.loads(arguments["nested"])["password"])
    assert record.outputs["ok"] is True
    assert is_marker(record.outputs["access_token"])
    assert case.verified.is_valid


def test_the_telemetry_itself_can_be_handed_on_without_credentials() -> None:
    """OTLP as an exporter would send it: the HTTP span, too, which a recording does not keep."""
    redactor = Redactor()
    out = "".join(redactor.text(line) for line in lines("020"))
    for secret in expected("020")["secrets"]["by_key_default"]:
        assert secret not in out
    for stays in ("Oslo", "keep me", "q=1", "api.example.test", "agent-demo"):
        assert stays in out
    for line, new in zip(lines("020"), map(redactor.text, lines("020")), strict=True):
        assert json.loads(new).keys() == json.loads(line).keys()


def test_free_text_is_redacted_by_a_pattern_of_the_user(tmp_path: Path) -> None:
    (secret,) = expected("020")["secrets"]["free_text_needs_pattern"]
    source = DATA / "020" / "input.otlp.jsonl"
    ingest(source, tmp_path / "default")
    ingest(source, tmp_path / "pattern", redact=[re.compile(r"FAKESECRET-\d+-not-real")])
    assert secret not in written(tmp_path / "pattern")
    assert "for the API" in written(tmp_path / "pattern")
    assert any(secret in json.dumps(event.payload) for event in read_events(tmp_path / "default"))


def test_different_secrets_do_not_become_one_call() -> None:
    """A key over what is left is as different as the secrets were; equal secrets stay equal within a process."""
    redactor = Redactor()

    def key(secret: str) -> bytes:
        return canonical_any(["rest_call", redactor.value({"city": "Oslo", "api_key": secret})])

    assert key("one") != key("two")
    assert key("one") == key("one")
