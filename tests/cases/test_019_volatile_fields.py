"""Keys of requests whose volatile fields differ from run to run: nothing is left out unless it was declared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agentrec.nodes.keys import KeyRing, split_key, wire_key
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.requests import WireRequest

from .case import DATA, expected

PAIRS: list[dict[str, Any]] = [json.loads(line) for line in (DATA / "019" / "input.jsonl").read_text().splitlines()]
EXPECTED = {one["pair"]: one for one in expected("019")["pairs"]}


def wire(body: Any) -> WireRequest:
    return WireRequest("POST", "/v1/chat/completions", body, "openai.chat")


def outcome(pair: dict[str, Any], inert: list[str], form: Any) -> str:
    cache = ResumeCache(inert=inert)
    cache.record_model(form(pair["a"]), "answer")
    return "hit" if cache.lookup_model(form(pair["b"])) == "answer" else "miss"


@pytest.mark.parametrize("form", [wire, dict], ids=["wire", "prompt"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["pair"])
def test_each_pair_hits_or_misses_as_it_should(pair: dict[str, Any], form: Any) -> None:
    right = EXPECTED[pair["pair"]]
    assert outcome(pair, [], form) == right["strict"]
    assert outcome(pair, pair["ignore"], form) == right["with_ignore"]


def test_the_list_is_named_in_the_scheme_and_lists_are_never_mixed() -> None:
    ring = KeyRing.random()
    schemes = set()
    for pair in PAIRS:
        key = wire_key(ring, "POST", "/v1/chat/completions", pair["a"], pair["ignore"], api="openai.chat")
        schemes.add(split_key(key).scheme)
    assert schemes == {
        "wire/openai.chat",
        "wire/openai.chat[$.messages[*].id]",
        "wire/openai.chat[$.metadata.trace_id]",
        "wire/openai.chat[$.extra_headers]",
        "wire/openai.chat[order:tools by name]",
    }


WHERE = {
    "message_id": ("$.messages[1].id", "value", ["$.messages[*].id"]),
    "metadata_trace_id": ("$.metadata.trace_id", "value", ["$.metadata.trace_id"]),
    "extra_headers": ("$.extra_headers.x-request-id", "value", ["$.extra_headers.x-request-id"]),
    "date_in_system_text": ("$.messages[0].content", "value", []),
    "tool_order": ("$.tools", "order", ["order:tools by name"]),
    "tool_schema_changed": ("$.tools[0].parameters.required", "added", []),
    "temperature": ("$.temperature", "value", ["$.temperature"]),
    "model": ("$.model", "value", []),
    "message_order": ("$.messages", "order", []),
    "unicode_nfc_nfd": ("$.messages[1].content", "value", []),
    "trailing_space": ("$.messages[1].content", "value", []),
    "absent_vs_null": ("$.max_tokens", "added", ["$.max_tokens"]),
}


@pytest.mark.parametrize("pair", [p for p in PAIRS if p["pair"] in WHERE], ids=lambda pair: pair["pair"])
def test_a_miss_names_the_path_that_differs_and_what_would_heal_it(pair: dict[str, Any]) -> None:
    cache = ResumeCache()
    cache.record_model(wire(pair["a"]), "answer")
    report = cache.why_miss(wire(pair["b"]))
    path, kind, heal = WHERE[pair["pair"]]
    assert not report.hit
    assert (report.differences[0].where, report.differences[0].kind, list(report.heal)) == (path, kind, heal)
    if heal:
        assert outcome(pair, heal, wire) == "hit"


def test_the_walk_through_all_pairs_names_every_one() -> None:
    assert (
        {pair["pair"] for pair in PAIRS} == set(EXPECTED) == {*WHERE, "identical", "key_order", "metadata_user_differs"}
    )
