"""An agent whose span tells nothing shows what its model calls were asked first and answered last."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.nodes.agentsaid import REMEMBERED, AgentSaid
from otel_agentrec.nodes.spanattributes import PAIRS, shown_values

Json = Any


def call(question: str | None, answer: str | None) -> dict[str, Json]:
    def message(role: str, text: str) -> Json:
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    asked = [message("user", "earlier"), message("assistant", "so"), message("user", question)] if question else None
    return {"messages": asked, "outputMessages": [message("assistant", answer)] if answer else None}


def test_the_first_question_and_the_last_answer_rise_to_the_agent() -> None:
    said = AgentSaid()
    said.ended("t", "m1", "step", "MODEL", call("Rain?", None))
    said.ended("t", "http", "tool", None, {})
    said.ended("t", "tool", "step", "TOOL", {"arguments": {}, "result": 1})
    said.ended("t", "m2", "step", "MODEL", call("Rain? And then?", "Light rain."))
    assert said.ended("t", "step", "agent", "STEP", {}) == ("Rain?", "Light rain.")
    assert said.ended("t", "agent", None, "AGENT", {}) == ("Rain?", "Light rain.")
    assert said.ended("t", "agent", None, "AGENT", {}) == (None, None), "nothing is kept of what ended"


def test_an_agent_inside_another_answers_for_both_and_traces_are_apart() -> None:
    said = AgentSaid()
    said.ended("t", "m1", "outer", "MODEL", call("Plan.", "I ask a colleague."))
    said.ended("other", "m9", "inner", "MODEL", call("Secret", "Secret"))
    said.ended("t", "m2", "inner", "MODEL", call("Trains?", "21:42"))
    assert said.ended("t", "inner", "outer", "AGENT", {}) == ("Trains?", "21:42")
    assert said.ended("t", "outer", None, "AGENT", {}) == ("Plan.", "21:42")


def test_steps_that_never_end_are_forgotten() -> None:
    said = AgentSaid()
    for n in range(REMEMBERED + 1):
        said.ended("t", f"m{n}", f"a{n}", "MODEL", call("Q", "A"))
    assert said.ended("t", "a0", None, "AGENT", {}) == (None, None)
    assert said.ended("t", "a1", None, "AGENT", {}) == ("Q", "A")


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0])
@pytest.mark.parametrize("kind", ["MODEL", "TOOL", "AGENT"])
def test_a_pair_of_which_a_span_has_one_side_gets_the_other(kind: str, pair: tuple[str, str]) -> None:
    facts = call("Rain?", "No.") | {"arguments": {"city": "Oslo"}, "result": "dry"}
    for one, other in (pair, pair[::-1]):
        added = shown_values(kind, facts, {one})
        assert other in added and one not in added
    assert all(added for added in (shown_values(kind, facts, {one}) for one in pair))
    assert not set(pair) & shown_values(kind, facts, set(pair)).keys()


def test_what_the_agent_tells_itself_comes_first() -> None:
    shown = shown_values("AGENT", call("Its own", None), set(), ("of a call", "of a call"))
    assert (shown["input.value"], shown["output.value"]) == ("Its own", "of a call")
