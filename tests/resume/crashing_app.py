"""A hand-written agent that is gone in the middle of its work. Arguments: where to record, how it ends (crash or done)."""

from __future__ import annotations

import os
import sys

from otel_agentrec import agent_run, configure
from otel_agentrec.prompts import AgentPrompt


def said(text: str, reason: str = "stop") -> dict[str, object]:
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": reason}]}


def prompt(text: str, **more: object) -> AgentPrompt:
    return AgentPrompt(model="m", items=[{"role": "user", "content": text}], **more)  # type: ignore[arg-type]


def main(path: str, ending: str) -> None:
    recorder = configure(path)
    with agent_run("agent") as run:
        with run.step() as step:
            for text, answer, reason in (("a", "A", "stop"), ("same", "first", "stop"), ("same", "second", "stop")):
                with step.model_call(prompt(text)) as call:
                    call.response(said(answer, reason))
            with step.model_call(prompt("key", user="sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD")) as call:
                call.response(said("whole"))
            with step.model_call(prompt("secret answer")) as call:
                call.response(said("use sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"))
            for n in (1, 2):
                with step.tool_call("poll", '{"job": 12345678901234567890}', call_id=f"c{n}") as tool:
                    tool.result(f"poll {n}")
            with step.tool_call("pay", {"eur": 5, "password": "hunter2hunter2"}) as tool:
                tool.result({"paid": True})
            with step.tool_call("fails", {}) as tool:
                tool.result(None, error="no")
        with run.step() as step:
            with step.model_call(prompt("cut", stream=True), stream=True) as call:
                call.delta("Once")
                call.response(said("Once", "length"))
            if ending == "crash":
                step.tool_call("begun", {"n": 1}).__enter__()
                os._exit(9)
    recorder.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
