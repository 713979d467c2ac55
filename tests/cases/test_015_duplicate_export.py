"""Two exporters, or a crash between sending and marking as sent: the same span arrives several times."""

from __future__ import annotations

from pathlib import Path

from .case import expected, ingested


def test_copies_are_one_record_and_counted_once(tmp_path: Path) -> None:
    case, right = ingested("015", tmp_path), expected("015")
    (tool,) = right["tool"]
    record = case.record(tool["span_id"])
    assert (record.copies_seen, record.outputs, record.tool_call_id) == (
        tool["copies_seen"],
        tool["result"],
        tool["call_id"],
    )
    totals = [run.tokens for run in case.runs if run.tokens["input"] is not None]
    assert totals == [{"input": right["totals"]["input_total"], "output": right["totals"]["output"]}]
    assert [r.node_type for r in case.records].count("MODEL") == right["records"]["model"]


def test_new_ids_with_the_same_content_are_suspected_and_not_counted(tmp_path: Path) -> None:
    case, right = ingested("015", tmp_path), expected("015")
    for suspect in right["suspects"]:
        assert suspect["reason"] in case.record(suspect["span_id"]).flags
        assert suspect["reason"] not in case.record(suspect["same_as"]).flags
    assert sum(run.records for run in case.runs) == sum(right["records"].values())


def test_copies_leave_the_chain_whole(tmp_path: Path) -> None:
    assert ingested("015", tmp_path).verified.is_valid
