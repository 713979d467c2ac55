"""Who stands above whom, whatever the order in which spans come."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.capture.spans import CLIENT, SpanView
from otel_agentrec.capture.survey import MAX_LINKS, Survey
from otel_agentrec.journal.facts import Kind

TRACE = "a" * 32


def span(name: str, parent: str | None = None, status: int | None = None, trace: str = TRACE) -> SpanView:
    http = {} if status is None else {"http.request.method": "POST", "http.response.status_code": status}
    return SpanView(trace, name, parent, name, CLIENT, attributes=http, start_ns=1)


def survey(*spans: tuple[SpanView, str | None]) -> Survey:
    made = Survey()
    for view, kind in spans:
        made.add(view, kind)
    return made


def links(made: Survey) -> dict[str, str]:
    return {span: parent for chunk in made.links() for spans in chunk.values() for span, parent in spans.items()}


AGENT = (span("agent"), Kind.AGENT)
INNER = (span("inner", "between"), Kind.AGENT)
BETWEEN = (span("between", "agent"), None)
MODEL = (span("model", "inner"), Kind.MODEL)
FIRST = (span("first", "model", 429), None)
WRAP = (span("wrap", "model"), None)
SECOND = (span("second", "wrap", 200)._replace(start_ns=2), None)
APART = (span("apart", "elsewhere"), None)
ALL = [AGENT, INNER, BETWEEN, MODEL, FIRST, WRAP, SECOND, APART]


@given(st.permutations(ALL))
def test_the_order_does_not_matter(spans: list[tuple[SpanView, str | None]]) -> None:
    made = survey(*spans)
    assert made.is_outermost(AGENT[0])
    assert not made.is_outermost(INNER[0])
    assert made.attempts(MODEL[0]).retries == [{"statusCode": 429}]
    assert made.attempts(MODEL[0]).via == ["first", "second"]
    assert links(made) == {"between": "agent", "first": "model", "wrap": "model", "second": "wrap"}


def test_attempts_belong_to_the_nearest_step_only() -> None:
    made = survey(AGENT, MODEL, FIRST, (span("inside", "model"), Kind.MODEL), (span("x", "inside", 200), None))
    assert made.attempts(MODEL[0]).via == ["first"]
    assert made.attempts(span("inside")).via == ["x"]
    assert made.attempts(AGENT[0]).via == []


def test_foreign_roots_above_a_step_are_known() -> None:
    made = survey((span("request"), None), (span("view", "request"), None), (span("agent", "view"), Kind.AGENT))
    assert links(made) == {"request": "", "view": "request"}


def test_a_trace_without_steps_needs_no_links() -> None:
    assert links(survey((span("a"), None), (span("b", "a"), None))) == {}


def test_a_circle_ends() -> None:
    made = survey(
        (span("a", "b"), None), (span("b", "a"), None), (span("m", "a"), Kind.AGENT), (span("own", "own"), Kind.AGENT)
    )
    assert made.is_outermost(span("m", "a"))
    assert made.is_outermost(span("own", "own"))
    assert links(made) == {"a": "b", "b": "a"}


def test_a_span_seen_twice_is_a_step_when_either_copy_is_one() -> None:
    made = survey((span("m"), None), (span("m"), Kind.MODEL), (span("m"), None), FIRST, FIRST)
    assert made.is_step(TRACE, "m")
    assert not made.is_step(TRACE, "first")
    assert not made.is_step(None, None)


def test_links_come_in_bounded_portions_and_deep_chains_in_linear_time() -> None:
    depth = 5 * MAX_LINKS // 2
    chain = [(span(f"f{n}", f"f{n - 1}" if n else "agent"), None) for n in range(depth)]
    random.Random(1).shuffle(chain)
    made = survey(AGENT, *chain, (span("model", f"f{depth - 1}"), Kind.MODEL))
    portions = list(made.links())
    assert [sum(map(len, p.values())) for p in portions] == [MAX_LINKS, MAX_LINKS, MAX_LINKS // 2]
    assert len(links(made)) == depth
