"""Tools in threads without context start traces of their own, and a root was never exported."""

from __future__ import annotations

from pathlib import Path

from .case import expected, ingested


def test_tools_join_the_run_that_asked_for_them(tmp_path: Path) -> None:
    case, right = ingested("003", tmp_path), expected("003")
    assert sorted(run.members for run in case.runs) == sorted(sorted(r["members"]) for r in right["runs"])
    for want in right["tool"]:
        record = case.record(want["span_id"])
        assert (record.tool_call_id, record.outputs) == (want["call_id"], want["result"])
        if want["requested_by"] is not None:
            assert record.run_id == case.record(want["requested_by"]).run_id


def test_a_call_that_nobody_asked_for_stays_alone(tmp_path: Path) -> None:
    case, right = ingested("003", tmp_path), expected("003")
    (alone,) = (want["span_id"] for want in right["tool"] if want["requested_by"] is None)
    assert [r.run_id for r in case.records].count(case.record(alone).run_id) == 1


def test_a_missing_parent_is_no_fault_of_the_chain(tmp_path: Path) -> None:
    case, right = ingested("003", tmp_path), expected("003")
    assert case.verified.is_valid is right["verify"]["chain_valid"]
    by_members = {tuple(run.members): run for run in case.runs}
    incomplete = next(r for r in right["runs"] if "complete" in r)
    run = by_members[tuple(sorted(incomplete["members"]))]
    assert (run.complete, run.missing_parents) == (False, incomplete["missing_parents"])
