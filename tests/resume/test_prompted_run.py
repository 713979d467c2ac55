"""A program that resumes itself with the resumable clients keeps to the recorded course, and leaves it only where it may."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import agent_run, configure, read_nodes, resumable_tool
from otel_agentrec.errors import ResumeDivergence, ToolNotIntercepted, UnknownOutcomeError
from otel_agentrec.intercept.stopped import STOPPED
from otel_agentrec.prompts import AgentModelResult, AgentPrompt, AgentToolCall
from otel_agentrec.resume.attempt import forget_attempts
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.clients import ResumableModelClient


class Model:
    """Says what comes next. ``fails``: questions that it fails at, once."""

    def __init__(self, *fails: str) -> None:
        self.asked: list[str] = []
        self._fails = list(fails)

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        question = str(prompt.items[-1]["content"])
        self.asked.append(question)
        if question in self._fails:
            self._fails.remove(question)
            raise ConnectionRefusedError("busy")
        return AgentModelResult(f"answer to {question}", {"id": question}, finish_reasons=["stop"])

    create_stream: Any = None


class Shop:
    def __init__(self, where: Path, model: Model) -> None:
        self.where, self.model, self.effects = where / "rec", model, [""][:0]
        self.hits = 0

    def run(self, *steps: str, resume: bool = False) -> list[str]:
        """Ask what ends with ``?``, charge the rest; ``!`` is a crash."""
        STOPPED.clear()
        forget_attempts()
        cache = ResumeCache.from_recording(self.where) if resume else ResumeCache()
        client = ResumableModelClient(self.model, cache)

        @resumable_tool(cache=cache if resume else None)
        def charge(order: str) -> str:
            self.effects.append(order)
            return f"r-{order}"

        def do(step: str, run: Any) -> str:
            if not step.endswith("?"):
                return charge(step)
            prompt = AgentPrompt("m", step)
            with run.step() as one, one.model_call(prompt) as call:
                result = client.create(prompt)
                call.response(result)
                return str(result.output_text)

        said = []
        with configure(self.where), agent_run("shop") as run:
            for step in steps:
                if step == "!":
                    raise RuntimeError("the power is gone")
                try:
                    said.append(do(step, run))
                except ConnectionRefusedError as error:
                    said.append(str(error))
        self.hits = cache.model_hits
        return said

    def crashes(self, *steps: str) -> None:
        with pytest.raises(RuntimeError, match="power"):
            self.run(*steps, "!")


@pytest.fixture
def shop(tmp_path: Path, otel_globals: None) -> Iterator[Callable[..., Shop]]:
    yield lambda *fails: Shop(tmp_path, Model(*fails))
    STOPPED.clear()
    forget_attempts()


def test_it_goes_on_where_it_was_and_pays_nothing_twice(shop: Callable[..., Shop]) -> None:
    it = shop()
    steps = ["one?", "a", "two?", "b"]
    it.crashes(*steps)
    said = it.run(*steps, "three?", "c", resume=True)
    assert said == ["answer to one?", "r-a", "answer to two?", "r-b", "answer to three?", "r-c"]
    assert (it.model.asked, it.effects, it.hits) == (["one?", "two?", "three?"], ["a", "b", "c"], 2)
    answered = [r.answered_from for r in read_nodes(it.where) if r.model_id and r.answered_from]
    assert len({told["node"] for told in answered}) == 2


def test_another_question_before_the_frontier_stops_it(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.crashes("one?", "a", "two?")
    with pytest.raises(ResumeDivergence, match="the model is asked"):
        it.run("one?", "a", "at noon?", "b", resume=True)
    assert (it.model.asked, it.effects) == (["one?", "two?"], ["a"])
    assert it.run("one?", "a", "two?", "b", resume=True)[-1] == "r-b", "what was stopped can be resumed"


def test_an_effect_that_comes_before_the_frontier_stops_it(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.crashes("one?", "a", "two?")
    with pytest.raises(ResumeDivergence, match="the tool charge is called"):
        it.run("one?", "b", resume=True)
    assert it.effects == ["a"]


def test_live_goes_on_but_not_past_an_effect_that_may_be_the_same(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_ON_DIVERGENCE", "live")
    it = shop()
    it.crashes("one?", "a", "two?")
    with pytest.raises(UnknownOutcomeError, match="left the recorded course"):
        it.run("at noon?", "b", resume=True)
    assert (it.model.asked, it.effects) == (["one?", "two?", "at noon?"], ["a"])


def test_an_error_that_the_run_went_past_is_raised_again(shop: Callable[..., Shop]) -> None:
    it = shop("one?")
    it.crashes("one?", "one?", "a")
    assert it.run("one?", "one?", "a", "b", resume=True) == ["busy", "answer to one?", "r-a", "r-b"]
    assert (it.model.asked, it.effects) == (["one?", "one?"], ["a", "b"])


def test_an_answer_is_not_handed_out_that_asks_for_a_tool_which_nobody_intercepts(
    tmp_path: Path, otel_globals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asking(Model):
        def create(self, prompt: AgentPrompt) -> AgentModelResult:
            super().create(prompt)
            return AgentModelResult(None, {"id": "1"}, tool_calls=[AgentToolCall("pay", {}, "c1")])

    model, effects = Asking(), [""][:0]

    def run(*, resume: bool, pay: Callable[[], object]) -> None:
        STOPPED.clear()
        forget_attempts()
        cache = ResumeCache.from_recording(tmp_path / "rec") if resume else ResumeCache()
        prompt = AgentPrompt("m", [{"role": "user", "content": "Pay."}])
        with configure(tmp_path / "rec"), agent_run("shop") as one:
            with one.step() as step, step.model_call(prompt) as call:
                call.response(ResumableModelClient(model, cache).create(prompt))
            pay()
            raise RuntimeError("the power is gone")

    def bare() -> None:
        effects.append("paid")

    with pytest.raises(RuntimeError, match="power"):
        run(resume=False, pay=bare)
    with pytest.raises(ToolNotIntercepted, match="the tool pay, which nobody intercepts"):
        run(resume=True, pay=bare)
    assert effects == ["paid"]
    monkeypatch.setenv("OTEL_AGENTREC_RERUN_TOOLS", "pay")
    with pytest.raises(RuntimeError, match="power"):
        run(resume=True, pay=bare)
    assert effects == ["paid", "paid"], "as it was allowed"
    monkeypatch.delenv("OTEL_AGENTREC_RERUN_TOOLS")
    with pytest.raises(RuntimeError, match="power"):
        run(resume=True, pay=resumable_tool(name="pay")(bare))
    assert len(model.asked) == 1
