"""``why-miss``: would a request be answered from a recording, and if not, why?"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec import AgentRecSpanProcessor, agent_run
from otel_agentrec.cli.app import run
from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.prompts import AgentPrompt
from otel_agentrec.resume.whymiss import Known, explain

Out = pytest.CaptureFixture[str]


@pytest.fixture
def ask(recording: Path, tmp_path: Path, capsys: Out) -> Any:
    def asked(request: Any, *argv: str) -> tuple[int, str, str]:
        path = tmp_path / "request.json"
        path.write_text(request if isinstance(request, str) else json.dumps(request))
        code = run(["why-miss", str(recording), str(path), *argv])
        return code, *capsys.readouterr()

    return asked


def test_a_tool_call_that_was_recorded_would_be_answered(ask: Any) -> None:
    code, out, err = ask({"name": "weather", "arguments": '{"city":"Troms\\u00f8"}'})
    assert (code, err) == (0, "")
    assert out.startswith("a recorded answer fits: tool@")


def test_one_that_differs_is_told_where_and_what_would_heal_it(ask: Any) -> None:
    code, out, err = ask({"name": "weather", "arguments": {"city": "Oslo"}})
    assert (code, err) == (1, "")
    first, second, third = out.splitlines()
    assert "differs: $.city (value)" in first
    assert second == '  $.city: value: recorded "Tromsø", now "Oslo"'
    assert third == "  would hit with: --inert '$.city'"
    assert ask({"name": "weather", "arguments": {"city": "Oslo"}}, "--inert", "$.city")[0] == 0


def test_a_change_far_into_a_long_value_is_shown(ask: Any) -> None:
    long = "Be brief. " * 40
    known = [Known("m", "model", {"messages": [f"{long}Rome?"]})]
    report = explain({"messages": [f"{long}Oslo? {long}"]}, "model", known, inert_of())
    _, where, recorded, now = report.lines()
    assert where == "  $.messages[0]: value"
    assert recorded == '    recorded: …Be brief. Be brief. Be brief. Be brief. Be brief. Rome?"'
    assert now.startswith("    now:      …Be brief. Be brief. Be brief. Be brief. Be brief. Oslo? Be brief.")
    assert len(now) < 200


def test_json_has_stable_keys(ask: Any) -> None:
    code, out, _ = ask({"name": "weather", "arguments": {"city": None}}, "--json")
    told = json.loads(out)
    assert code == 1
    assert told.keys() == {"hit", "reason", "nearest", "step", "differences", "heal", "compared"}
    assert told["differences"] == [{"path": "$.city", "kind": "null", "recorded": "Tromsø", "asked": None}]


def test_a_call_that_was_recorded_and_failed_is_not_answered(ask: Any) -> None:
    code, out, _ = ask({"name": "refund", "arguments": {"order": 42}})
    assert code == 1
    assert "this very request was recorded as tool@" in out and "it failed" in out


def test_a_line_of_nodes_is_a_request(recording: Path, ask: Any) -> None:
    records = [r.to_json() for r in read_nodes(recording)]
    assert [ask(record)[0] for record in records if record["nodeType"] == "TOOL"] == [0, 1]
    code, out, _ = ask(records[0])
    assert code == 1
    assert "only its span is known" in out, "what an instrumentation tells may be less than what was asked"
    changed = json.loads(json.dumps(records[0]))
    changed["inputs"]["messages"][0]["parts"][0]["content"] += " "
    code, out, _ = ask(changed)
    assert code == 1
    assert "$.messages[0].parts[0].content: value" in out
    assert "--inert" not in out, "what the model reads is not advised to be left out"


def test_a_run_can_be_named(recording: Path, ask: Any) -> None:
    runs = {r.run_id for r in read_nodes(recording)}
    codes = {run_id: ask({"name": "weather", "arguments": {"city": "Tromsø"}}, "--run", run_id)[0] for run_id in runs}
    assert sorted(codes.values()) == [0, 1]
    assert ask({"name": "weather", "arguments": {}}, "--run", "nothing")[0] == 2


def test_standard_input_is_read_too(recording: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"name": "weather", "arguments": {"city": "Troms\xc3\xb8"}}'))
    )
    assert run(["why-miss", str(recording), "-"]) == 0


@pytest.mark.parametrize("request_", ["", "no json", "[]", "{}", "17"])
def test_what_is_no_request_is_a_usage_error_with_a_hint(ask: Any, request_: str) -> None:
    code, out, err = ask(request_)
    assert (code, out) == (2, "")
    assert "give" in err


def test_a_file_or_recording_that_is_not_there(recording: Path, tmp_path: Path, capsys: Out) -> None:
    assert run(["why-miss", str(recording), str(tmp_path / "nothing.json")]) == 2
    assert "can't be read" in capsys.readouterr().err
    (tmp_path / "r.json").write_text("{}")
    assert run(["why-miss", str(tmp_path / "nothing"), str(tmp_path / "r.json")]) == 2
    assert ask_path(recording, tmp_path, "--inert", "a..b") == 2
    assert "no inert path" in capsys.readouterr().err


def ask_path(recording: Path, tmp_path: Path, *argv: str) -> int:
    (tmp_path / "r.json").write_text('{"name": "t", "arguments": {}}')
    return run(["why-miss", str(recording), str(tmp_path / "r.json"), *argv])


def test_a_model_call_is_known_by_the_key_of_its_prompt(tmp_path: Path, capsys: Out) -> None:
    provider = TracerProvider()
    processor = AgentRecSpanProcessor(tmp_path / "rec")
    provider.add_span_processor(processor)
    prompt = AgentPrompt(model="m", items="2+2?", user="u1")
    with agent_run("agent", tracer_provider=provider) as agent, agent.step() as step, step.model_call(prompt) as call:
        call.response({"choices": [{"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}]})
    provider.shutdown()
    processor.recorder.shutdown()
    (tmp_path / "r.json").write_text(json.dumps(prompt.to_json()))
    assert run(["why-miss", str(tmp_path / "rec"), str(tmp_path / "r.json")]) == 0
    (tmp_path / "r.json").write_text(json.dumps({**prompt.to_json(), "user": "u2"}))
    assert run(["why-miss", str(tmp_path / "rec"), str(tmp_path / "r.json")]) == 1
