"""Input tokens include cached ones by convention; where the numbers show that they can't, they are summed and flagged."""

from __future__ import annotations

from pathlib import Path

from tests.cases.case import expected, ingested


def test_cached_tokens_are_counted_once(tmp_path: Path) -> None:
    want = expected("011")
    case = ingested("011", tmp_path)
    for model in want["model"]:
        record = case.record(model["span_id"])
        assert record.input_tokens == model["input_total"]
        assert record.cache_read_tokens == model["cache_read"]
        assert record.cache_write_tokens == model.get("cache_creation")
        cached = (record.cache_read_tokens or 0) + (record.cache_write_tokens or 0)
        assert record.input_tokens - cached == model["uncached"]
        assert ("additive_cache" in record.flags) == (model["reading"] == "additive")
    assert sum(r.input_tokens or 0 for r in case.records) == want["totals"]["input_total"]
    assert sum(r.output_tokens or 0 for r in case.records) == want["totals"]["output"]
