"""Each command on a good recording: what a person reads, and what a program reads."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.cli.app import run
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.records import NodeIoRecord, NodeType
from tests.cli.conftest import BEGIN, NEW, OLD
from tests.cli.test_frame import agentrec

Out = pytest.CaptureFixture[str]


def lines(capsys: Out, *argv: object) -> list[str]:
    """The lines of stdout of a command that must go well and say nothing on stderr."""
    assert run([str(word) for word in argv]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def jsons(capsys: Out, *argv: object) -> list[Any]:
    return [json.loads(line) for line in lines(capsys, *argv, "--json")]


# --- nodes -------------------------------------------------------------------------------------------------------------


def test_nodes_prints_one_line_per_call_in_cause_order(recording: Path, capsys: Out) -> None:
    said = lines(capsys, "nodes", recording)
    assert [line.split()[1:3] for line in said] == [
        ["MODEL", "gpt-5"],
        ["TOOL", "weather"],
        ["TOOL", "refund"],
        ["MODEL", "gpt-5"],
        ["MODEL", "gpt-5-mini"],
    ]
    assert "2.0 s" in said[0] and "100 in, 7 out" in said[0]
    assert "user: Refund order 42, please → calls weather(city=Tromsø), refund(order=42)" in said[0]
    assert "error" in said[2] and "order=42 → Timeout: the bank does not answer" in said[2]


def test_nodes_json_is_whole_records(recording: Path, capsys: Out) -> None:
    records = [NodeIoRecord.from_json(record) for record in jsons(capsys, "nodes", recording)]
    assert [r.node_type for r in records] == [
        NodeType.MODEL,
        NodeType.TOOL,
        NodeType.TOOL,
        NodeType.MODEL,
        NodeType.MODEL,
    ]
    assert records[1].inputs == {"name": "weather", "arguments": {"city": "Tromsø"}, "callId": "c1"}
    assert records[1].outputs == "☔ \x1b[31mred\x1b[0m", "data is never escaped for a terminal"
    assert records[4].output_text == "Hello 🌧"
    assert all(r.journal and len(r.journal.hash) == 64 for r in records)


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (["--run", NEW], ["model"]),
        (["--run", OLD[:6]], ["model", "tool", "tool", "model"]),
        (["--session", "chat-1"], ["model", "tool", "tool", "model"]),
        (["--type", "tool"], ["tool", "tool"]),
        (["--type", "TOOL", "--status", "error"], ["tool"]),
        (["--model", "gpt-5"], ["model", "model"]),
        (["--model", "gpt-5*"], ["model", "model", "model"]),
        (["--tool", "we?ther"], ["tool"]),
        (["--grep", "does NOT answer"], ["tool"]),
        (["--grep", "tromsø"], ["model", "tool"]),
        (["--since", "2023-11-14T23:00:00Z"], ["model"]),
        (["--since", "1s"], []),
        (["--limit", "2"], ["model", "tool"]),
        (["--limit", "0"], []),
        (["--grep", "nowhere"], []),
    ],
)
def test_nodes_filters(recording: Path, capsys: Out, flags: list[str], found: list[str]) -> None:
    assert [record["nodeType"].lower() for record in jsons(capsys, "nodes", recording, *flags)] == found


# --- runs and show -----------------------------------------------------------------------------------------------------


def test_runs_newest_first(recording: Path, capsys: Out) -> None:
    head, new, old = lines(capsys, "runs", recording)
    assert head.split() == ["run", "started", "took", "status", "calls", "tokens", "agent", "session"]
    assert new.startswith(NEW[:12] + " ") and old.startswith(OLD[:12] + " ")
    assert old.split()[3:] == ["10.0", "s", "ok", "4", "200/14", "clerk", "chat-1"]


def test_runs_json(recording: Path, capsys: Out) -> None:
    new, old = jsons(capsys, "runs", recording)
    assert (new["id"], old["id"], old["agent"], old["session"]) == (NEW, OLD, "clerk", "chat-1")
    assert old["startedAtEpochMs"] == BEGIN * 1000
    assert jsons(capsys, "runs", recording, "--limit", "1") == [new]


def test_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    from otel_agentrec.cli.runs import short_ids

    assert short_ids(["a" * 32, "b" * 32, "mine"]) == ["a" * 12, "b" * 12, "mine"]
    assert short_ids(["a" * 32, "a" * 13 + "b" * 19]) == ["a" * 16, "a" * 13 + "b" * 3]
    assert short_ids(["a" * 32, "a" * 32]) == ["a" * 12] * 2
    assert short_ids([]) == []


def test_show_is_a_tree_of_turns_steps_and_calls(recording: Path, capsys: Out) -> None:
    said = lines(capsys, "show", recording, OLD[:8])
    assert said[0].startswith(f"run {OLD}  clerk  session chat-1  ok")
    assert [line.lstrip("│├└─ ").split()[:2] for line in said[1:]] == [
        ["turn", "1"],
        ["step", "1"],
        ["model", "gpt-5"],
        ["tool", "weather"],
        ["tool", "refund"],
        ["step", "2"],
        ["model", "gpt-5"],
    ]
    assert "Refund order 42, please" in said[1]
    assert "+3.00 s, 1.0 s" in said[4]
    assert "I could not refund it." in said[7]


def test_show_without_a_run_is_the_newest_and_says_that_there_are_more(recording: Path, capsys: Out) -> None:
    assert run(["show", str(recording)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"run {NEW}")
    assert "1 other" in err and f"otel-agentrec runs {recording}" in err


def test_show_json(recording: Path, capsys: Out) -> None:
    (run_,) = jsons(capsys, "show", recording, OLD)
    assert run_["id"] == OLD
    (turn,) = run_["turns"]
    assert [(step["step"], [n["nodeType"] for n in step["nodes"]]) for step in turn["steps"]] == [
        (1, ["MODEL", "TOOL", "TOOL"]),
        (2, ["MODEL"]),
    ]
    node = turn["steps"][0]["nodes"][1]
    assert (node["toolName"], node["durationMs"], node["journal"]["stream"][:1]) == ("weather", 1000, "2")
    assert "outputs" not in node, "what was said is in nodes --json"


@pytest.mark.parametrize("name", ["cc", "a" * 33])
def test_show_of_a_run_that_is_not_there(recording: Path, capsys: Out, name: str) -> None:
    assert run(["show", str(recording), name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"no run {name!r}" in err and "otel-agentrec runs" in err


@pytest.mark.parametrize("command", ["nodes", "runs", "show"])
def test_a_damaged_recording_is_shown_up_to_the_damage(command: str, copy: Path, capsys: Out) -> None:
    stream = stream_of(copy)
    data = stream.read_bytes().splitlines(keepends=True)
    data[-2] = data[-2].replace(b"gpt-5-mini", b"gpt-5-mega")
    stream.write_bytes(b"".join(data))
    assert run([command, str(copy), "--json"]) == 0
    out, err = capsys.readouterr()
    assert all(json.loads(line) for line in out.splitlines())
    assert "gpt-5-mega" not in out and NEW not in out
    assert err.splitlines()[:2] == [
        f"damaged: {stream.name}, line {len(data) - 1}; what follows there is not shown",
        f"  otel-agentrec verify {copy}",
    ]


# --- verify ------------------------------------------------------------------------------------------------------------


def test_verify_of_what_was_not_touched(recording: Path, capsys: Out) -> None:
    said = lines(capsys, "verify", recording)
    assert said[0].startswith("INTACT  ")
    words = "\n".join(said)
    assert "nothing was cut off at the end" in words
    assert "not proven" in words and "not signed" in words


def test_verify_json(recording: Path, capsys: Out) -> None:
    (report,) = jsons(capsys, "verify", recording)
    assert (report["isValid"], report["firstBrokenIndex"], report["end"]) == (True, -1, "proven_close")


@pytest.fixture
def copy(recording: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recording, tmp_path / "copy"))


def stream_of(copy: Path) -> Path:
    (path,) = (p for p in copy.glob("2*.jsonl") if not p.name.endswith(".content.jsonl"))
    return path


def test_verify_of_a_changed_line_says_where(copy: Path, capsys: Out) -> None:
    stream = stream_of(copy)
    stream.write_bytes(stream.read_bytes().replace(b"refund", b"reward", 1))
    assert run(["verify", str(copy)]) == 1
    verdict, *rest = capsys.readouterr().out.splitlines()
    assert verdict.startswith(f"CHANGED  {stream.name}, line ")
    assert verdict.endswith("(hash_mismatch)")
    assert any(line.lstrip().startswith("proven") and "before it" in line for line in rest)
    assert run(["verify", str(copy), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["isValid"]) == ("hash_mismatch", False)
    assert f"line {report['firstBrokenIndex'] + 1}:" in verdict


def test_verify_of_an_end_that_is_cut_off(copy: Path, capsys: Out) -> None:
    (copy / "index.jsonl").unlink()
    stream = stream_of(copy)
    stream.write_bytes(b"".join(stream.read_bytes().splitlines(keepends=True)[:-1]))
    code = run(["verify", str(stream)])
    assert code == 3
    assert capsys.readouterr().out.startswith("NOT ALL PROVEN  what is there is intact")


def test_verify_of_words_that_are_gone(copy: Path, capsys: Out) -> None:
    stream = stream_of(copy)
    stream.with_name(stream.stem + ".content.jsonl").unlink()
    assert run(["verify", str(copy)]) == 1
    assert "payload_missing" in capsys.readouterr().out
    assert run(["verify", "--no-content", str(copy)]) == 0
    assert "the content files were not checked" in capsys.readouterr().out


def test_every_kind_of_finding_has_words() -> None:
    from otel_agentrec.audit.report import KINDS
    from otel_agentrec.cli.verdict import MEANING

    assert KINDS.keys() <= MEANING.keys()


# --- ingest and run ----------------------------------------------------------------------------------------------------


def test_ingest_counts_what_it_took_and_what_it_could_not_read(otlp_file: Path, tmp_path: Path, capsys: Out) -> None:
    assert run(["ingest", str(otlp_file), "--out", str(tmp_path / "rec")]) == 0
    out, err = capsys.readouterr()
    assert "3 model calls, 2 tool calls" in out
    assert f"otel-agentrec show {tmp_path / 'rec'}" in out
    assert "1 thing could not be read and is left out" in err and f"{otlp_file}:2: " in err


def test_run_records_and_keeps_the_exit_code(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom opentelemetry import trace\n"
        "with trace.get_tracer('mine').start_as_current_span('chat m', attributes={'gen_ai.operation.name': 'chat',"
        "'gen_ai.request.model': 'm'}): print(sys.argv[1:])\nsys.exit(7)\n"
    )
    (tmp_path / "agent.py").write_text(program)
    out = tmp_path / "rec"
    done = agentrec("run", "--out", str(out), "--", sys.executable, str(tmp_path / "agent.py"), "--out", "x", "-h")
    assert (done.returncode, done.stdout.decode().strip()) == (7, "['--out', 'x', '-h']"), done.stderr
    assert [record.model_id for record in read_nodes(out)] == ["m"]


@pytest.mark.parametrize("argv", [[], ["--"], ["--", "no-such-program-anywhere"], ["--", "ls"]])
def test_run_of_what_can_not_be_recorded(argv: list[str], tmp_path: Path) -> None:
    done = agentrec("run", "--out", str(tmp_path / "rec"), *argv)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 2, done.stderr


def test_ingest_json(otlp_file: Path, tmp_path: Path, capsys: Out) -> None:
    assert run(["ingest", str(otlp_file), "--out", str(tmp_path / "rec"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["models"], report["tools"], report["quarantinedCount"]) == (3, 2, 1)
