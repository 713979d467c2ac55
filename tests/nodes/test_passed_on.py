"""What is known of tool calls only from what stands around them: messages between agents, the tools that follow a call."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.nodes.fold import fold

from .telling import Telling, answer, asks, does

STOPPED = {"model": "m", "finishReasons": ["tool_use"]}


def letter(t: Telling, span: str, *messages: dict[str, Any], at: tuple[float, float] = (5, 6)) -> None:
    """A step in which one agent tells another of its call c1."""
    facts = {"messages": list(messages), "calls": [{"id": "c1", "name": "f"}]}
    t.span("STEP_ENDED", span, kind="process", trace=f"t-{span}", at=at, facts=facts)


def asked(arguments: Any) -> dict[str, Any]:
    return asks(("c1", "f", arguments))["outputMessages"][0]


class TestMessagesBetweenAgents:
    def test_they_tell_arguments_and_result_of_a_tool_that_does_not(self) -> None:
        t = Telling()
        t.agent("a", at=(0, 9))
        t.tool("x", parent="a", at=(2, 3), facts=does("f", call_id="c1"))
        letter(t, "l1", asked('{"q": 1}'))
        letter(t, "l2", answer("c1", "one"))
        view = fold(t.events)
        (record,) = view.records()
        assert (record.inputs["arguments"], record.outputs) == ({"q": 1}, "one")
        assert [run.id for run in view.runs] == ["t1"], "letters alone are no run"

    def test_what_the_tool_tells_itself_leads(self) -> None:
        t = Telling()
        t.tool("x", at=(2, 3), facts=does("f", '{"q": 1}', call_id="c1"))
        letter(t, "l1", asked('{"q": 2}'), answer("c1", "one"))
        (record,) = fold(t.events).records()
        assert (record.inputs["arguments"], record.outputs) == ({"q": 1}, "one")

    def test_of_a_repeated_id_the_nearest_message_counts(self) -> None:
        t = Telling()
        t.tool("x", at=(2, 3), facts=does("f", call_id="c1"))
        letter(t, "late", asked('{"q": 2}'), at=(900, 901))
        letter(t, "near", asked('{"q": 1}'), at=(4, 5))
        (record,) = fold(t.events).records()
        assert record.inputs["arguments"] == {"q": 1}

    def test_other_calls_are_not_meant(self) -> None:
        t = Telling()
        t.tool("x", at=(2, 3), facts=does("f", call_id="c2"))
        letter(t, "l1", asked('{"q": 1}'))
        (record,) = fold(t.events).records()
        assert (record.inputs["arguments"], record.outputs) == (None, None)


class TestToolsThatFollow:
    def loop(self, first: dict[str, Any], tool: dict[str, Any]) -> Telling:
        t = Telling()
        t.agent("a", at=(0, 9))
        t.model("m1", parent="a", at=(1, 3), facts=first)
        t.tool("x", parent="a", at=(2, 4), facts=tool)
        t.model("m2", parent="a", at=(5, 6), facts={"model": "m", "finishReasons": ["end_turn"]})
        return t

    def test_a_model_that_stopped_to_call_tools_asked_for_the_ones_that_follow(self) -> None:
        first, tool, second = fold(self.loop(STOPPED, does("f", '{"q": 1}', call_id="c1")).events).records()
        assert first.tool_calls == [{"id": "c1", "name": "f", "arguments": {"q": 1}}]
        assert (first.flags, second.tool_calls) == (["calls_implied"], None)
        assert (first.step, tool.step, second.step) == (1, 1, 2)

    @pytest.mark.parametrize(
        ("first", "tool"),
        [
            ({"model": "m", "finishReasons": ["stop"]}, does("f", "{}", call_id="c1")),
            ({"model": "m"}, does("f", "{}", call_id="c1")),
            (STOPPED, does("f", "{}")),
        ],
        ids=["it did not stop for tools", "it does not tell why it stopped", "the tool has no id of the model's"],
    )
    def test_nothing_is_guessed(self, first: dict[str, Any], tool: dict[str, Any]) -> None:
        record = next(iter(fold(self.loop(first, tool).events).records()))
        assert (record.tool_calls, record.flags) == (None, [])

    def test_calls_that_a_model_tells_lead(self) -> None:
        told = {**asks(("c9", "g", "{}")), "finishReasons": ["tool_use"]}
        record = next(iter(fold(self.loop(told, does("f", "{}", call_id="c1")).events).records()))
        assert [call["id"] for call in record.tool_calls or ()] == ["c9"]

    def test_tools_of_another_agent_are_not_meant(self) -> None:
        t = Telling()
        t.agent("a", at=(0, 9))
        t.model("m1", parent="a", at=(1, 2), facts=STOPPED)
        t.span("HANDOFF_ENDED", "b", parent="a", at=(3, 8))
        t.tool("x", parent="b", at=(4, 5), facts=does("f", "{}", call_id="c1"))
        assert next(iter(fold(t.events).records())).tool_calls is None


@pytest.mark.parametrize(
    ("outer", "status"),
    [({}, "error"), ({"result": "one"}, "ok"), ({"status": "partial"}, "partial")],
    ids=["tells nothing", "has a result", "tells how it ended"],
)
def test_a_tool_that_tells_no_end_ends_as_the_span_inside_it(outer: dict[str, Any], status: str) -> None:
    t = Telling()
    t.tool("x", at=(1, 9), facts={**does("f", call_id="c1"), **outer})
    inner = {"status": "error", "errorType": "E", "errorMessage": "no"}
    t.tool("y", parent="x", at=(2, 8), facts={**does("f", call_id="c1"), **inner})
    (record,) = fold(t.events).records()
    assert record.status == status
    assert record.error == ({"type": "E", "message": "no"} if status == "error" else None)
