"""Two calls of one tool with equal arguments run at once and finish in reverse order: two records, each with its result."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests.cases.case import expected, ingested, lines


def test_each_call_keeps_its_result_in_any_order_of_lines(tmp_path: Path) -> None:
    want = expected("001")
    orders = list(itertools.permutations(range(len(lines("001")))))
    for n, order in enumerate(orders[:: len(orders) // 20]):
        (tmp_path / str(n)).mkdir()
        case = ingested("001", tmp_path / str(n), order)
        assert len(case.records) == want["records"]["model"] + want["records"]["tool"]
        asked = {r.span_id: r.step for r in case.records if r.node_type.value == "MODEL"}
        for tool in want["tool"]:
            record = case.record(tool["span_id"])
            assert (record.tool_call_id, record.tool_name, record.outputs) == (
                tool["call_id"],
                tool["tool_name"],
                tool["result"],
            )
            assert record.step == asked[tool["requested_by"]] == tool["step"]
        for model in want["model"]:
            record = case.record(model["span_id"])
            assert (record.step, record.input_tokens, record.output_tokens) == (
                model["step"],
                model["input_tokens"],
                model["output_tokens"],
            )
        (run,) = case.runs
        assert run.unpaired == []
