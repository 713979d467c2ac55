"""An agent is killed while a tool runs: the trace holds the model's request for the call, and nothing of the call itself."""

from __future__ import annotations

from pathlib import Path

from .case import expected, ingested


def test_the_file_alone_tells_which_call_has_no_outcome(tmp_path: Path) -> None:
    case, right = ingested("002", tmp_path), expected("002")
    assert [r.node_type for r in case.records].count("MODEL") == right["records"]["model"]
    assert [r.node_type for r in case.records].count("TOOL") == right["records"]["tool"]
    (run,) = case.runs
    (want,) = right["unpaired_calls"]
    assert run.unpaired == [
        {
            "callId": want["call_id"],
            "toolName": want["tool_name"],
            "requestedBy": want["requested_by"],
            "status": want["status"],
        }
    ]


def test_the_chain_is_valid_although_the_run_is_incomplete(tmp_path: Path) -> None:
    case, right = ingested("002", tmp_path), expected("002")
    assert case.verified.is_valid
    assert not case.runs[0].complete
    assert all(set(right["flags"]) <= set(r.flags) for r in case.records)
