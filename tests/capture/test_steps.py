"""Spans and facts become the events that live capture and ingest both write."""

from __future__ import annotations

import pytest

from otel_agentrec.capture.attempts import Attempts, attempt_of, summarise
from otel_agentrec.capture.spans import CLIENT, ERROR, LogView, SpanView
from otel_agentrec.capture.steps import ended_event, header_of, log_event, started_event, take_attempts
from otel_agentrec.journal.events import TYPES, Generic, payload_of
from otel_agentrec.journal.facts import Facts, Kind

SPAN = SpanView("1" * 32, "2" * 16, "3" * 16, "chat m", 3, "scope", None, 1_000, 2_000)


@pytest.mark.parametrize(
    ("kind", "outermost", "begins", "ends"),
    [
        (Kind.MODEL, True, "NODE_STARTED", "NODE_RECORDED"),
        (Kind.TOOL, True, "NODE_STARTED", "NODE_RECORDED"),
        (Kind.AGENT, True, "RUN_STARTED", "RUN_ENDED"),
        (Kind.AGENT, False, "HANDOFF_STARTED", "HANDOFF_ENDED"),
        (Kind.STEP, True, "STEP_STARTED", "STEP_ENDED"),
    ],
)
def test_each_kind_has_its_events(kind: str, outermost: bool, begins: str, ends: str) -> None:
    facts = Facts(operation="plan", model="m")
    first, last = (make(SPAN, kind, facts, (), outermost) for make in (started_event, ended_event))
    assert (first.type, last.type) == (begins, ends)
    for event in (first, last):
        assert not isinstance(payload_of(event.type, event.payload), Generic)
        assert set(event.payload) <= set(payload_of(event.type, event.payload).to_json())
        assert event.payload["facts"] == {"operation": "plan", "model": "m"}
    assert last.payload["endedAt"] == "2000"


def test_a_node_of_unknown_type_says_so() -> None:
    assert started_event(SPAN, None, Facts()).payload["type"] is None


def test_the_envelope_says_only_what_the_span_says() -> None:
    event = ended_event(SPAN, Kind.MODEL, Facts(session_id="s", run_id="r", turn_id="t", step=2), ("9" * 16,))
    assert (event.session, event.run, event.turn, event.step) == ("s", "r", "t", 2)
    assert event.trace == {"traceId": "1" * 32, "spanId": "2" * 16, "parentSpanId": "3" * 16, "path": ["9" * 16]}
    bare = ended_event(SPAN._replace(parent_span_id=None), Kind.MODEL, Facts())
    assert (bare.session, bare.run, bare.turn, bare.step) == (None, None, None, None)
    assert bare.trace == {"traceId": "1" * 32, "spanId": "2" * 16}


def test_references_to_other_events() -> None:
    payload = ended_event(SPAN, Kind.MODEL, Facts(), header=3, provider=1, via=["4" * 16]).payload
    assert (payload["header"], payload["provider"], payload["via"]) == (3, 1, ["4" * 16])
    for kind in (Kind.MODEL, Kind.AGENT, Kind.STEP):
        event = ended_event(SPAN, kind, Facts(), header=3, provider=1)
        assert set(event.payload) <= {*payload_of(event.type, event.payload).to_json()}


def test_the_header_holds_what_stays_the_same() -> None:
    facts = Facts(system_instructions=[{"type": "text", "content": "x"}], tools=[], parameters={"seed": 1})
    assert header_of(facts) == {
        "instructions": [{"type": "text", "content": "x"}],
        "tools": [],
        "parameters": {"seed": 1},
    }
    assert header_of(Facts(model="m")) is None
    assert "systemInstructions" not in facts.payload()


def test_a_log_record_of_its_own() -> None:
    log = LogView(
        "1" * 32, "2" * 16, "gen_ai.choice", 5, None, "scope", {"a": 1}, {"gen_ai.conversation.id": "s", "k": "v"}
    )
    event = log_event(log)
    assert (event.type, event.session, event.scope) == ("LOG_RECORDED", "s", "scope")
    assert event.trace == {"traceId": "1" * 32, "spanId": "2" * 16}
    assert event.payload["observedAt"] == "5"
    assert "LOG_RECORDED" in TYPES


def http(number: int, status: int | None, url: str = "http://a/v1/chat", **attributes: object) -> SpanView:
    code = {} if status is None else {"http.response.status_code": status}
    failed = status is None or status >= 400
    return SPAN._replace(
        span_id=f"{number:016x}",
        kind=CLIENT,
        start_ns=number,
        status_code=ERROR if failed else 0,
        attributes={"http.request.method": "POST", "url.full": url, **code, **attributes},
    )


class TestAttempts:
    def summary(self, *spans: SpanView) -> Attempts:
        return summarise(a for s in spans if (a := attempt_of(s)) is not None)

    def test_failed_attempts_before_the_last_are_retries(self) -> None:
        got = self.summary(http(3, 200), http(1, 429), http(2, None, **{"error.type": "ConnectTimeout"}))
        assert got.retries == [{"statusCode": 429}, {"errorType": "ConnectTimeout"}]
        assert got.retry_count == 2
        assert got.via == [f"{n:016x}" for n in (1, 2, 3)]

    def test_a_last_attempt_that_failed_is_no_retry(self) -> None:
        assert self.summary(http(1, 500)).retry_count == 0

    def test_the_same_span_twice_counts_once(self) -> None:
        assert self.summary(http(1, 429), http(1, 429), http(2, 200)).retry_count == 1

    def test_other_targets_are_no_attempts(self) -> None:
        assert self.summary(http(1, 401, "http://a/token"), http(2, 200)).retry_count == 0

    def test_the_old_http_names_and_a_resend_count(self) -> None:
        old = SPAN._replace(kind=CLIENT, attributes={"http.method": "POST", "http.status_code": 429})
        attempt = attempt_of(old)
        assert attempt is not None
        assert (attempt.status_code, attempt.failed) == (429, True)
        assert self.summary(http(1, 200, **{"http.request.resend_count": 2})).retry_count == 2

    def test_what_is_no_http_client_span(self) -> None:
        assert attempt_of(SPAN) is None
        assert attempt_of(http(1, 200)._replace(kind=1)) is None

    def test_the_larger_count_wins(self) -> None:
        facts = Facts(retry_count=3)
        take_attempts(facts, Attempts([{"statusCode": 429}], 1, []))
        assert (facts.retry_count, facts.retries) == (3, [{"statusCode": 429}])
        quiet = Facts()
        take_attempts(quiet, Attempts([], 0, []))
        assert quiet.retry_count is None
