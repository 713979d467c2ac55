"""A child of the kill storm: forks agents that record nested spans as fast as they can, and kills each at a random point.

Arguments: recording directory, file for the numbers of ended spans, how many agents to kill, seed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.processors import AgentRecSpanProcessor


def agent(recording: str, ended: int) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(AgentRecSpanProcessor(recording))
    tracer = provider.get_tracer("storm")
    number = 0
    while True:
        with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
            for operation in ("chat", "execute_tool"):
                number += 1
                name = f"{os.getpid()}-{number}"
                span = tracer.start_span(
                    f"{operation} x",
                    attributes={
                        "gen_ai.operation.name": operation,
                        "gen_ai.response.id": name,
                        "gen_ai.tool.call.id": name,
                        "gen_ai.tool.name": "x",
                        "gen_ai.input.messages": json.dumps(
                            [{"role": "user", "parts": [{"type": "text", "content": name}]}]
                        ),
                    },
                )
                span.end()
                os.write(ended, f"{name}\n".encode())  # only now may anybody rely on it


def main(recording: str, numbers: str, kills: int, seed: int) -> None:
    random.seed(seed)
    ended = os.open(numbers, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for n in range(kills):
        child = os.fork()
        if child == 0:
            try:
                agent(recording, ended)
            finally:
                os._exit(1)
        size, until = os.fstat(ended).st_size, time.monotonic() + 5
        time.sleep(random.uniform(0.02, 0.25))
        while n % 2 and os.fstat(ended).st_size < size + 400 and time.monotonic() < until:
            time.sleep(0.005)  # on a slow machine too, some live long enough to have recorded something
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "an agent ended by itself"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
