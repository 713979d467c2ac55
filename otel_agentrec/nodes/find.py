"""Find the one record that a person means."""

from __future__ import annotations

from otel_agentrec.errors import UsageError
from otel_agentrec.nodes.fold import View
from otel_agentrec.records import NodeIoRecord

__all__ = ["find_record"]

MOST_NAMED = 5


def find_record(view: View, wanted: str) -> NodeIoRecord:
    """The record with this record id or node id, or the only one whose id begins so; without what was said in it.

    Raises:
        UsageError: there is no such record, or more than one.
    """
    same: list[NodeIoRecord] = []
    begin: list[NodeIoRecord] = []
    if wanted:
        for _, record in view.calls(contents=False):
            if record.record_id == wanted:
                return record
            if record.node_id == wanted:
                same.append(record)
            elif record.record_id.startswith(wanted) or record.node_id.startswith(wanted):
                begin.append(record)
            del same[MOST_NAMED + 1 :], begin[MOST_NAMED + 1 :]
    found = same or begin
    if not found:
        raise UsageError(
            f"there is no record {wanted!r}", "give recordId or nodeId as `nodes --json` prints them, or its beginning"
        )
    if len(found) > 1:
        ids = ", ".join(record.record_id for record in found[:MOST_NAMED])
        more = ", …" if len(found) > MOST_NAMED else ""
        raise UsageError(f"{wanted!r} means more than one record", f"give one of their ids: {ids}{more}")
    return found[0]
