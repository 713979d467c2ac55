"""A stream whose last chunk holds usage and no choices, one whose calls of tools arrive in turns, and one that is cut.

Everybody meets it who streams chat completions with usage on: reading the last chunk as the answer empties it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.capture.configure import configure
from otel_agentrec.capture.emit import agent_run
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.records import NodeIoRecord

from .case import DATA, expected

CHUNKS = [json.loads(line) for line in (DATA / "004" / "input.jsonl").read_text().splitlines()]
STREAMS = expected("004")["streams"]


def streamed(where: Path, name: str, text_apart: bool) -> NodeIoRecord:
    with (
        configure(where) as recorder,
        agent_run("a") as run,
        run.step() as step,
        step.model_call("hi", model="demo-large") as call,
    ):
        for chunk in (c for c in CHUNKS if c["stream"] == name):
            call.delta(chunk["message"] if text_apart else None, raw=chunk["raw"])
    (node,) = read_nodes(recorder.path)
    return node


@pytest.mark.parametrize("text_apart", [True, False], ids=["text and chunk", "only chunk"])
@pytest.mark.parametrize("name", list(STREAMS))
def test_what_the_chunks_come_to(tmp_path: Path, otel_globals: None, name: str, text_apart: bool) -> None:
    want: dict[str, Any] = STREAMS[name]
    node = streamed(tmp_path / "rec", name, text_apart)
    assert (node.output_text or "") == want["output_text"]
    assert (node.input_tokens, node.output_tokens) == (want["input_tokens"], want["output_tokens"])
    assert node.finish_reasons == ([want["finish_reason"]] if want["finish_reason"] else [])
    assert node.status == ("ok" if want["complete"] else "partial")
    assert (node.tool_calls or []) == want.get("tool_calls", [])
    assert node.outputs["choices"][0]["message"]["content"] == (want["output_text"] or None)
    assert (node.response_id, node.response_model) == ("chatcmpl-004", "demo-large")


def test_the_whole_answer_beats_its_chunks(tmp_path: Path, otel_globals: None) -> None:
    whole = {"id": "w", "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
    with (
        configure(tmp_path / "rec") as recorder,
        agent_run("a") as run,
        run.step() as step,
        step.model_call("hi", model="m") as call,
    ):
        call.delta(raw=CHUNKS[0]["raw"])
        call.response(whole)
    (node,) = read_nodes(recorder.path)
    assert (node.outputs, node.status, node.response_id) == (whole, "ok", "w")


def test_a_process_that_dies_in_the_stream_leaves_what_was_said_and_asked(tmp_path: Path, otel_globals: None) -> None:
    recorder = configure(tmp_path / "rec")
    run = agent_run("a")
    run.__enter__()
    call = run.step().model_call("hi", model="m")
    call.__enter__()
    for chunk in [c["raw"] for c in CHUNKS if c["stream"] == "s2"][:5]:
        call.delta(raw=chunk)
    recorder.shutdown()
    (node,) = read_nodes(recorder.path)
    assert node.status == "partial"
    assert [c["id"] for c in node.tool_calls or ()] == ["call_1", "call_2"]
    call.__exit__(None, None, None)
    run.__exit__(None, None, None)
