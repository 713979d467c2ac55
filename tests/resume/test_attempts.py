"""A run has one root and one attempt at a time; each attempt says where it goes on from, and costs only what is new."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from otel_agentrec import AgentToolCall, ResumableToolExecutor, ResumeCache, agent_run, configure, read_nodes
from otel_agentrec.errors import LedgerUnavailable, RecordingBusy, RecordingTampered, UsageError
from otel_agentrec.intercept.stopped import STOPPED
from otel_agentrec.journal.claims import Claim, is_claimed
from otel_agentrec.journal.reader import Recording, read_events
from otel_agentrec.nodes.effects import read_effects
from otel_agentrec.nodes.fold import fold
from otel_agentrec.resume.attempt import Attempt, forget_attempts
from otel_agentrec.resume.tools import resumable_tool


class Shop:
    """A run that fails after its first payments; started again, it resumes itself."""

    def __init__(self, where: Path) -> None:
        self.where = where / "rec"
        self.effects: list[str] = []

    def run(self, *orders: str, agent: str = "shop", fail: bool = False, resume: bool = True) -> list[str]:
        @resumable_tool
        def pay(order: str) -> str:
            self.effects.append(order)
            return f"paid {order}"

        with pytest.MonkeyPatch.context() as patch, configure(self.where):
            if resume and self.where.exists():
                patch.setenv("OTEL_AGENTREC_RESUME", str(self.where))
            with agent_run(agent):
                out = [pay(order) for order in orders]
                if fail:
                    raise RuntimeError("the network is down")
        return out

    def fails(self, *orders: str, **how: object) -> None:
        with pytest.raises(RuntimeError):
            self.run(*orders, fail=True, **how)  # type: ignore[arg-type]
        forget_attempts()


def test_attempt_after_attempt(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a")
    shop.fails("a", "b")
    shop.fails("a", "b", "c")
    assert shop.run("a", "b", "c", "d") == ["paid a", "paid b", "paid c", "paid d"]
    assert shop.effects == ["a", "b", "c", "d"]
    runs = fold(Recording(shop.where)).runs
    assert [run.attempt for run in runs] == [1, 2, 3, 4]
    assert {run.root for run in runs} == {runs[0].id}
    events = sorted(read_events(shop.where), key=lambda e: (e.ts, e.stream, e.seq))
    resumed = [e.payload for e in events if e.type == "RUN_RESUMED"]
    assert [told["from"]["run"] for told in resumed] == [run.id for run in runs[:3]]
    assert {told["root"] for told in resumed} == {runs[0].id}
    assert {e.root for e in read_effects(Recording(shop.where))} == {runs[0].id}


def test_equal_calls_are_told_apart_by_their_order(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("poll", "poll")
    shop.run("poll", "poll", "poll")
    assert shop.effects == ["poll"] * 3


def test_a_run_of_another_agent_is_new(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a")
    shop.run("a", agent="other")
    assert shop.effects == ["a", "a"]
    assert not [e for e in read_events(shop.where) if e.type == "RUN_RESUMED"]


def test_the_second_run_of_the_agent_in_the_process_is_new(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a")
    shop.run("a")
    shop.run("a")
    assert shop.effects == ["a", "a"]


def test_which_run_is_meant(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a")
    shop.fails("b", resume=False)
    first, second = (run.id for run in fold(Recording(shop.where)).runs)
    with pytest.raises(UsageError, match=r"2 runs in .* did not come to their end: .*shop, error"):
        Attempt(shop.where)
    assert Attempt(shop.where, first[:10]).root == first
    with pytest.raises(UsageError, match="there is no run 'zz'"):
        Attempt(shop.where, "zz")
    with pytest.raises(UsageError, match="is one stream"):
        Attempt(next(shop.where.glob("2*[0-9a-f].jsonl")))
    assert Attempt(shop.where, second).chosen.status == "error"


def test_a_second_telling_of_the_run_without_any_call_is_not_meant(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a")
    with (
        pytest.raises(RuntimeError),
        configure(shop.where),
        agent_run("as callbacks tell it") as run,
        run.step() as step,
    ):
        with step.tool_call("pay", {"order": "a"}, call_id="c1") as call:
            call.result("paid a")
        raise RuntimeError("the network is down")
    assert shop.run("a", "b") == ["paid a", "paid b"]
    assert shop.effects == ["a", "b"]


def test_what_callbacks_told_of_a_finished_run_is_not_resumed(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    @resumable_tool
    def pay(order: str) -> str:
        return f"paid {order}"

    with pytest.raises(RuntimeError), configure(shop.where):
        with agent_run("shop"):
            pay("a")
        with agent_run("as callbacks tell it"):
            raise RuntimeError("cut off")
    with pytest.raises(UsageError, match="did not come to its end"):
        Attempt(shop.where)


def test_a_span_that_ended_as_the_run_was_stopped_is_no_call(tmp_path: Path) -> None:
    """A tool beside the one whose outcome is unknown is refused before it begins; its framework may end its span all the same."""
    shop = Shop(tmp_path)
    shop.fails("a")

    @resumable_tool
    def pay(order: str) -> str:
        raise AssertionError("it is answered")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError), configure(shop.where):
        patch.setenv("OTEL_AGENTREC_RESUME", str(shop.where))
        with agent_run("shop") as run:
            assert pay("a") == "paid a"
            with run.step() as step, step.tool_call("pay", {"order": "b"}, call_id="c2"):
                pass
            raise RuntimeError("stopped")
    forget_attempts()
    assert shop.run("a", "b") == ["paid a", "paid b"]
    assert shop.effects == ["a", "b"]


def test_an_agent_that_does_not_tell_its_name_is_called_as_its_span_is(tmp_path: Path) -> None:
    from opentelemetry import trace

    effects: list[str] = []

    @resumable_tool
    def pay(order: str) -> str:
        effects.append(order)
        return f"paid {order}"

    def run(fail: bool) -> None:
        with configure(tmp_path / "rec"):
            tracer = trace.get_tracer("some.sdk")
            with tracer.start_as_current_span("tool_runner", attributes={"gen_ai.operation.name": "invoke_agent"}):
                assert pay("a") == "paid a"
                if fail:
                    raise RuntimeError("the network is down")

    with pytest.raises(RuntimeError):
        run(fail=True)
    forget_attempts()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_AGENTREC_RESUME", str(tmp_path / "rec"))
        run(fail=False)
    assert effects == ["a"]


def test_a_finished_run_and_one_that_is_alive(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.run("a")
    (run,) = fold(Recording(shop.where)).runs
    for which in (None, run.id):
        with pytest.raises(UsageError, match=r"finished|did not come to its end"):
            Attempt(shop.where, which)
    code = """
        import sys
        from otel_agentrec import agent_run, configure
        configure(sys.argv[1])
        with agent_run("alive"):
            print("up", flush=True)
            sys.stdin.read()
    """
    argv = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "other")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        with pytest.raises(RecordingBusy, match="still running"):
            Attempt(tmp_path / "other")


def test_two_processes_can_not_resume_the_same_run(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a")
    (run,) = fold(Recording(shop.where)).runs
    code = """
        import sys
        from otel_agentrec.journal.claims import Claim
        claim = Claim(*sys.argv[1:])
        print("claimed", flush=True)
        sys.stdin.read()
    """
    argv = [sys.executable, "-c", textwrap.dedent(code), str(shop.where), run.id]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "claimed\n"
        assert is_claimed(shop.where, run.id)
        with pytest.raises(LedgerUnavailable, match=f"is being resumed or settled by process {child.pid}"):
            shop.run("a", "b")
    assert shop.effects == ["a"]
    forget_attempts()
    STOPPED.clear()
    shop.run("a", "b", resume=False)


def test_a_claim_that_is_lost_stops_the_attempt(tmp_path: Path) -> None:
    claim = Claim(tmp_path, "root/1")
    assert claim.is_held
    with pytest.raises(RecordingBusy):
        Claim(tmp_path, "root/1")
    claim.path.unlink()
    assert not claim.is_held
    claim.release()
    Claim(tmp_path, "root/1").release()


def test_a_recording_that_was_changed_is_refused(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a")
    stream = next(path for path in shop.where.glob("2*.jsonl") if ".content." not in path.name)
    lines = stream.read_bytes().splitlines(keepends=True)
    stream.write_bytes(b"".join([*lines[:2], lines[2].replace(b'"ts":1', b'"ts":2'), *lines[3:]]))
    with pytest.raises(RecordingTampered):
        Attempt(shop.where)


def test_an_attempt_records_into_the_recording_that_it_resumes(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a")
    with pytest.MonkeyPatch.context() as patch, configure(tmp_path / "third"):
        patch.setenv("OTEL_AGENTREC_RESUME", str(shop.where))

        @resumable_tool
        def pay(order: str) -> str:
            raise AssertionError("must not run")

        with agent_run("shop"), pytest.raises(LedgerUnavailable, match="can't be resumed into"):
            pay("a")


def test_what_was_answered_costs_nothing(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a")
    shop.run("a", "b")
    told = [(r.inputs["arguments"]["order"], bool(r.answered_from)) for r in read_nodes(shop.where)]
    assert told == [("a", False), ("a", True), ("b", False)]


def test_the_trace_of_an_attempt_is_new_and_linked_to_the_old_one(tmp_path: Path) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    shop = Shop(tmp_path)
    with configure(shop.where):
        pass
    trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))  # type: ignore[attr-defined]
    shop.fails("a")
    shop.run("a")
    first, second = [span for span in exporter.get_finished_spans() if span.name == "invoke_agent shop"]
    (link,) = second.links
    assert (link.context.trace_id, link.context.span_id) == (first.context.trace_id, first.context.span_id)
    assert first.context.trace_id != second.context.trace_id
    assert not first.links


def test_a_cache_made_from_the_recording_resumes_its_run(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails("a", "a")
    cache = ResumeCache.from_recording(shop.where)
    runs: list[str] = []

    @resumable_tool(cache=cache)
    def pay(order: str) -> str:
        runs.append(order)
        return f"paid {order}"

    class Tools:
        def execute(self, call: AgentToolCall) -> str:
            runs.append(f"by {call.name}")
            return "sent"

    tools = ResumableToolExecutor(Tools(), cache)
    with configure(shop.where), agent_run("shop"):
        assert [pay("a") for _ in range(3)] == ["paid a"] * 3
        tools.execute(AgentToolCall("mail", '{"to": "ann"}', "c1"))
    assert runs == ["a", "by mail"]
    names = {(e.name, e.root) for e in read_effects(Recording(shop.where))}
    assert {name for name, _ in names} == {"pay", "mail"}
    assert len({root for _, root in names}) == 1
