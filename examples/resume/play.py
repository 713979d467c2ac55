"""Kill an agent of this folder twice and resume it: ``python examples/resume/play.py NAME [RECORDING]``.

It is killed (SIGKILL) while it waits for its second answer, and again in the moment between an effect and its record. Each
time ``otel-agentrec run --resume`` goes on with it. In the end every effect happened once, and every answer of the model was
given, and paid, once. Exit code 0 when that is so. The model is a script on this machine.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from otel_agentrec import Recording
from otel_agentrec.demo.script import Call, Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.nodes.effects import UNKNOWN, read_effects

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("play", "trip"))
SECONDS = 90
ANSWER = "Bed 7 and seat 42 are yours, 96 euros paid."
SCRIPT = [  # in this order, each once: a question that was answered before would get the wrong answer
    Turn(
        tool_calls=[Call("book_bed", {"place": "Finse"}), Call("book_train", {"start": "Oslo", "to": "Finse"})],
    ),
    Turn(end="hang"),
    Turn(tool_calls=[Call("pay", {"euros": 96})]),
    Turn(ANSWER),
]
EFFECTS = ["96 euros paid", "bed at Finse", "train Oslo to Finse"]


def play(name: str, recording: Path) -> None:
    effects = recording.parent / f"{recording.name}-effects.txt"
    effects.unlink(missing_ok=True)
    agent = [sys.executable, str(HERE / f"{name}.py")]
    with ScriptedServer(SCRIPT) as model:
        environ = {
            **os.environ,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            # three instrumentations of this SDK are installed here; resuming needs none of them
            "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "openai",
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
            "EXAMPLE_EFFECTS": str(effects),
        }

        def start(*options: str, **more: str) -> subprocess.Popen[str]:
            words = ["run", *options, "--", *agent]
            print(f"\n$ otel-agentrec {shlex.join(words)}", flush=True)
            command = [sys.executable, "-m", "otel_agentrec", *words]
            return subprocess.Popen(command, env={**environ, **more}, stdout=subprocess.PIPE, text=True)

        def end(child: subprocess.Popen[str], code: int, then: str) -> str:
            out, _ = child.communicate(timeout=SECONDS)
            assert child.returncode == code, f"it ended with {child.returncode}, not with {code}"
            print(f"{out}-> {then}")
            return out

        first = start("--out", str(recording))
        deadline = time.monotonic() + SECONDS
        while len(model.requests) < 2 and first.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        first.kill()
        end(first, -signal.SIGKILL, "killed while it waits for the second answer; two effects have happened")

        second = start("--resume", str(recording), EXAMPLE_DIES_IN="pay")
        end(second, -signal.SIGKILL, "went on, asked the model once, and was killed just after it had paid")

        end(start("--resume", str(recording)), 75, "stopped: nobody knows whether it paid. Look, and say so:")
        (unknown,) = (effect for effect in read_effects(Recording(recording)) if effect.state == UNKNOWN)
        assert unknown.name == "pay"
        resolve = ["resolve", str(recording), unknown.id, "--done", "paid"]
        print(f"\n$ otel-agentrec {shlex.join(resolve)}", flush=True)
        subprocess.run([sys.executable, "-m", "otel_agentrec", *resolve], check=True, timeout=SECONDS)

        out = end(start("--resume", str(recording)), 0, "came to its end")
        assert out == f"{ANSWER}\n"
        given = [request.turn for request in model.requests]
        assert given == SCRIPT, f"{len(given)} requests reached the model, not {len(SCRIPT)}"
    happened = sorted(effects.read_text().splitlines())
    assert happened == EFFECTS, happened
    print(f"\n{len(given) - 1} answers of the model, each given once; {len(happened)} effects, each happened once")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"name one of {', '.join(NAMES)}")
    play(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "agentrec"))
