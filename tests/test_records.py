"""A node record as a person makes one: what was not given is made of what was."""

from __future__ import annotations

import uuid

from otel_agentrec import NodeIoRecord, NodeType
from otel_agentrec.records import record_id_of_span


def test_ids_that_are_not_given_are_made() -> None:
    record = NodeIoRecord(node_type=NodeType.TOOL, run_id="r", turn_id="t", step=1, tool_name="pay")
    assert record.node_id == "tool@r|t|1|pay"
    assert uuid.UUID(record.record_id).version == 4
    assert NodeIoRecord(node_type=NodeType.TOOL).record_id != record.record_id
    assert NodeIoRecord(node_type=NodeType.MODEL).node_id == "model@||null"


def test_the_record_of_a_span_always_has_the_same_id() -> None:
    spans = [NodeIoRecord(trace_id="t1", span_id="m1") for _ in range(2)]
    assert {record.record_id for record in spans} == {record_id_of_span("t1", "m1")}


def test_ids_that_are_given_stay() -> None:
    record = NodeIoRecord(record_id="", node_type=NodeType.MODEL, node_id="n", span_id="s")
    assert (record.record_id, record.node_id) == ("", "n")
    assert NodeIoRecord.from_json(record.to_json()) == record
