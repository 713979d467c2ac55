"""OTLP files become one new stream of a recording."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import IngestReport, ingest
from otel_agentrec.capture import dialects
from otel_agentrec.errors import AgentRecError, UsageError
from otel_agentrec.journal import writer

from .otlp_files import TRACE, agent, chat, http, log, logs, span, traces, write

Event = dict[str, Any]


def events(out: Path, report: IngestReport) -> list[Event]:
    return [json.loads(line)["event"] for line in (out / f"{report.stream}.jsonl").read_text().splitlines()]


def types(found: list[Event]) -> list[str]:
    return [e["type"] for e in found]


def recorded(tmp_path: Path, *lines: dict[str, Any] | str) -> tuple[list[Event], IngestReport]:
    report = ingest(write(tmp_path / "f.jsonl", *lines), tmp_path / "rec")
    return events(tmp_path / "rec", report), report


def of_span(found: list[Event], number: int) -> Event:
    (one,) = (e for e in found if e.get("trace", {}).get("spanId") == f"{number:016x}" and e["type"] != "LOG_RECORDED")
    return one


class TestEvents:
    def test_each_step_in_file_order_after_what_it_points_at(self, tmp_path: Path) -> None:
        found, report = recorded(
            tmp_path,
            traces(chat(2, 1, **{"request.seed": 7}), span(3, "GET", {"http.request.method": "GET"}, 9)),
            traces(span(4, "execute_tool f", {"gen_ai.operation.name": "execute_tool"}, 1)),
            traces(agent(1), span(5, "embeddings e", {"gen_ai.operation.name": "embeddings"}, 1)),
        )
        assert types(found) == [
            "STREAM_OPENED",
            "PROVIDER_SEEN",
            "REQUEST_HEADER",
            "NODE_RECORDED",
            "NODE_RECORDED",
            "RUN_ENDED",
            "STEP_ENDED",
            "STREAM_SEALED",
        ]
        model = found[3]
        assert (model["payload"]["provider"], model["payload"]["header"]) == (1, 2)
        assert model["trace"] == {"traceId": TRACE, "spanId": f"{2:016x}", "parentSpanId": f"{1:016x}"}
        assert (report.models, report.tools, report.agents, report.steps, report.foreign) == (1, 1, 1, 1, 1)
        assert (report.files, report.spans, report.quarantined_count) == (1, 5, 0)
        assert found[0]["payload"]["sdk"]["name"] == "otel-agentrec ingest"

    def test_an_agent_below_an_agent_is_a_handoff_also_across_files(self, tmp_path: Path) -> None:
        inner = write(tmp_path / "inner", traces(agent(3, 2)))
        outer = write(tmp_path / "outer", traces(span(2, "foreign", parent=1), agent(1)))
        found = events(tmp_path / "rec", ingest([inner, outer], tmp_path / "rec"))
        assert (of_span(found, 3)["type"], of_span(found, 1)["type"]) == ("HANDOFF_ENDED", "RUN_ENDED")
        assert [e["payload"]["links"] for e in found if e["type"] == "LINKS"] == [{TRACE: {f"{2:016x}": f"{1:016x}"}}]

    def test_equal_resources_and_headers_are_said_once(self, tmp_path: Path) -> None:
        one, two = chat(1, **{"request.seed": 1}), chat(2, **{"request.seed": 2})
        found, _ = recorded(
            tmp_path, *(traces({**s, "spanId": f"{n:016x}"}) for n, s in enumerate([one, two, one, two], 1))
        )
        assert Counter(types(found))["REQUEST_HEADER"] == 2
        assert Counter(types(found))["PROVIDER_SEEN"] == 1
        pointed = [e["payload"]["header"] for e in found if e["type"] == "NODE_RECORDED"]
        assert pointed[0] == pointed[2] != pointed[1] == pointed[3]

    def test_each_resource_has_its_provider(self, tmp_path: Path) -> None:
        found, _ = recorded(
            tmp_path, traces(chat(1)), traces(chat(2), service="b"), traces(span(3, "x"), service="foreign")
        )
        seen = {e["seq"]: e["payload"]["resource"]["service.name"] for e in found if e["type"] == "PROVIDER_SEEN"}
        assert [seen[of_span(found, n)["payload"]["provider"]] for n in (1, 2)] == ["app", "b"]

    def test_failed_attempts_below_a_model_call_are_retries(self, tmp_path: Path) -> None:
        found, _ = recorded(tmp_path, traces(http(2, 1, 429), http(3, 1, 200)), traces(chat(1)))
        payload = of_span(found, 1)["payload"]
        assert (payload["facts"]["retryCount"], payload["facts"]["retries"]) == (1, [{"statusCode": 429}])
        assert payload["via"] == [f"{2:016x}", f"{3:016x}"]

    def test_requests_of_a_tool_are_no_retries(self, tmp_path: Path) -> None:
        tool = span(1, "execute_tool f", {"gen_ai.operation.name": "execute_tool"})
        found, _ = recorded(tmp_path, traces(http(2, 1, 404), http(3, 1, 200), tool))
        payload = of_span(found, 1)["payload"]
        assert "retries" not in payload["facts"]
        assert payload["via"] == [f"{2:016x}", f"{3:016x}"]

    def test_the_same_file_twice_makes_two_streams(self, tmp_path: Path) -> None:
        path = write(tmp_path / "f", traces(chat(1)))
        first, second = ingest(path, tmp_path / "rec"), ingest(str(path), str(tmp_path / "rec"))
        assert first.stream != second.stream
        assert types(events(tmp_path / "rec", first)) == types(events(tmp_path / "rec", second))

    def test_a_session_attribute_of_the_settings(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTEL_AGENTREC_SESSION_ATTRIBUTE", "thread")
        found, _ = recorded(tmp_path, traces(span(1, "chat m", {"gen_ai.operation.name": "chat", "thread": 7})))
        assert of_span(found, 1)["session"] == "7"

    @pytest.mark.parametrize(("content", "holds"), [("inline", True), ("off", False)])
    def test_where_content_goes(self, tmp_path: Path, content: Any, holds: bool) -> None:
        path = write(tmp_path / "f", traces(chat(1, **{"input.messages": '[{"role":"user","parts":[]}]'})))
        report = ingest(path, tmp_path / "rec", content=content)
        assert ('"role":"user"' in (tmp_path / "rec" / f"{report.stream}.jsonl").read_text().replace("\\", "")) is holds
        assert not (tmp_path / "rec" / f"{report.stream}.content.jsonl").exists()


class TestLogs:
    DETAILS = "gen_ai.client.inference.operation.details"

    def test_events_join_their_span_across_files_in_either_order(self, tmp_path: Path) -> None:
        told = {"gen_ai.usage.input_tokens": 5}
        log_file = write(tmp_path / "logs", logs(log(self.DETAILS, 1, told)))
        trace_file = write(tmp_path / "traces", traces(chat(1)))
        for n, files in enumerate([(log_file, trace_file), (trace_file, log_file)]):
            out = tmp_path / str(n)
            report = ingest(files, out)
            found = events(out, report)
            assert of_span(found, 1)["payload"]["facts"]["inputTokens"] == 5
            assert (report.logs, report.logs_recorded) == (1, 0)

    def test_an_event_whose_span_is_not_there_is_recorded_by_itself(self, tmp_path: Path) -> None:
        found, report = recorded(tmp_path, logs(log(self.DETAILS, 1), log("gen_ai.choice", 1), log("app.started", 1)))
        assert [e["payload"]["name"] for e in found if e["type"] == "LOG_RECORDED"] == [self.DETAILS, "gen_ai.choice"]
        assert report.logs_recorded == 2

    def test_what_is_said_of_a_call_below_is_recorded_by_itself(self, tmp_path: Path) -> None:
        agent = span(1, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"})
        told = [log("gen_ai.user.message", 1), log(self.DETAILS, 1, {"gen_ai.operation.name": "chat"})]
        found, report = recorded(tmp_path, traces(agent, chat(2, parent=1)), traces(agent), logs(*told))
        kept = [e for e in found if e["type"] == "LOG_RECORDED"]
        assert [e["payload"]["name"] for e in kept] == ["gen_ai.user.message", self.DETAILS]
        assert all(e["trace"]["spanId"] == f"{1:016x}" for e in kept)
        assert report.logs_recorded == 2

    def test_records_without_a_span_are_kept(self, tmp_path: Path) -> None:
        lost = {**log("gen_ai.choice", 1), "traceId": "", "spanId": ""}
        found, _ = recorded(tmp_path, traces(chat(1)), logs(lost))
        (kept,) = (e for e in found if e["type"] == "LOG_RECORDED")
        assert (kept["payload"]["name"], kept.get("trace")) == ("gen_ai.choice", None)


class TestLosses:
    def test_quarantined_lines_are_counted_in_the_chain_and_told(self, tmp_path: Path) -> None:
        found, report = recorded(
            tmp_path, "nonsense", traces({**chat(1), "traceId": ""}, chat(2)), '{"a": 1}', traces(chat(3))
        )
        (dropped,) = (e for e in found if e["type"] == "DROPPED")
        assert dropped["payload"] == {"count": 3, "reason": "ingest: no readable OTLP"}
        assert report.models == 2
        assert [(q.line, q.reason.partition(":")[0]) for q in report.quarantined] == [
            (1, "not JSON"),
            (2, "a span without a readable trace id"),
            (3, "no OTLP"),
        ]
        assert report.to_json()["quarantinedCount"] == 3
        assert str(report.quarantined[2]).endswith("f.jsonl:3: no OTLP: no resourceSpans and no resourceLogs")

    def test_many_bad_lines_are_counted_but_not_all_told(self, tmp_path: Path) -> None:
        _, report = recorded(tmp_path, traces(chat(1)), *["bad"] * 250)
        assert (report.quarantined_count, len(report.quarantined)) == (250, 100)

    def test_a_span_that_a_dialect_fails_on_costs_only_itself(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read = dialects.read

        def failing(view: Any, logs: Any = ()) -> Any:
            if view.span_id == f"{2:016x}":
                raise RuntimeError("hostile")
            return read(view, logs)

        monkeypatch.setattr(dialects, "read", failing)
        found, report = recorded(tmp_path, traces(chat(1), chat(2), chat(3)))
        assert report.models == 2
        (dropped,) = (e for e in found if e["type"] == "DROPPED")
        assert dropped["payload"] == {"count": 1, "reason": "ingest: RuntimeError in a dialect"}

    def test_hostile_values_cost_nothing(self, tmp_path: Path) -> None:
        deep = '{"arrayValue":{"values":[' * 5000 + "{}" + "]}}" * 5000
        hostile = traces(
            chat(1, **{"input.messages": "[" * 10_000, "output.messages": "\ud800", "x": "~"}),
            chat(2, **{"input.messages": "[" * 10_000 + "]" * 10_000}),
            chat(3, **{"input.messages": '[{"role":"user","parts":[{"type":"text","content":"\ud800"}]}]'}),
        )
        text = json.dumps(hostile).replace('{"stringValue": "~"}', deep)
        found, report = recorded(tmp_path, text)
        assert report.models == 3
        assert types(found).count("NODE_RECORDED") == 3


class TestErrors:
    def refused(self, out: Path, *paths: Path) -> UsageError:
        with pytest.raises(UsageError) as error:
            ingest(paths, out)
        assert error.value.hint
        assert not out.exists(), "nothing is written for files that can't be used"
        return error.value

    def test_nothing_given(self, tmp_path: Path) -> None:
        assert "no files" in str(self.refused(tmp_path / "rec"))

    def test_no_otlp_at_all(self, tmp_path: Path) -> None:
        good, bad = write(tmp_path / "good", traces(chat(1))), write(tmp_path / "bad", "2026-11-30 started", '{"a": 1}')
        error = self.refused(tmp_path / "rec", good, bad)
        assert str(bad) in str(error)
        assert "holds no OTLP: not JSON" in str(error)

    def test_latin_1(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_bytes(json.dumps(traces(chat(1, note="é")), ensure_ascii=False).encode("latin-1"))
        assert "not UTF-8: byte 0xe9" in str(self.refused(tmp_path / "rec", path))

    def test_only_metrics(self, tmp_path: Path) -> None:
        path = write(tmp_path / "metrics", {"resourceMetrics": [{}]})
        assert "holds only metrics" in str(self.refused(tmp_path / "rec", path))
        report = ingest([path, write(tmp_path / "traces", traces(chat(1)))], tmp_path / "rec")
        assert report.notes == [f"{path} holds only metrics: nothing in it to record"]

    def test_an_out_that_is_a_file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "f", traces(chat(1)))
        with pytest.raises(UsageError, match="is no directory"):
            ingest(path, path)
        with pytest.raises(UsageError, match="is no directory"):
            ingest(path, path / "below")

    def test_an_out_that_holds_the_input(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path / "f.jsonl", traces(chat(1)))
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UsageError, match="lies in"):
            ingest("f.jsonl", tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ["f.jsonl"]

    def test_a_disk_that_fills_up_leaves_a_valid_stream(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        whole, writes = writer.write_whole, 0

        def failing(fd: int, data: bytes, end: int) -> None:
            nonlocal writes
            writes += 1
            if writes > 4:
                os.write(fd, data[: len(data) // 2])
                os.ftruncate(fd, end)
                raise OSError(28, "No space left on device")
            whole(fd, data, end)

        monkeypatch.setattr(writer, "write_whole", failing)
        path = write(tmp_path / "f", *(traces(chat(n)) for n in range(1, 9)))
        with pytest.raises(AgentRecError, match=r"No space left on device; 4 events") as error:
            ingest(path, tmp_path / "rec")
        assert error.value.hint
        (stream,) = (p for p in (tmp_path / "rec").glob("2*.jsonl") if "content" not in p.name)
        lines = stream.read_bytes()
        assert lines.endswith(b"\n")
        assert [json.loads(line)["event"]["seq"] for line in lines.splitlines()] == list(range(4))


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    paths = [write(tmp_path / str(n), traces(chat(n))) for n in (1, 2)]
    told: list[tuple[int, int]] = []
    ingest(paths, tmp_path / "rec", progress=lambda done, size: told.append((done, size)))
    size = 2 * sum(p.stat().st_size for p in paths)
    assert told[-1] == (size, size)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
