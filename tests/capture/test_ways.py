"""Recording switched on from outside, end to end: a real SDK, real instrumentation, programs that know nothing of us."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from otel_agentrec.capture.launch import program_of, run_command
from otel_agentrec.demo.script import Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import ConfigurationError, UsageError
from tests.capture.recording import events
from tests.capture.shell import INSTRUMENT, ROOT, RUN, Shell, as_installed

START = """
import os, sys
from opentelemetry import trace
from openai import OpenAI
client = OpenAI(base_url=os.environ["MODEL"], api_key="none")
def ask():
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello?"}])
    print(answer.choices[0].message.content)
"""

BARE = """
import os, sys
from opentelemetry import trace
def ask():
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": "[]"}
    with trace.get_tracer("app").start_as_current_span("chat m", attributes=attributes):
        print("Good day.")
"""
"""Starts sooner than a real SDK, where only the start matters."""

OWN_PROVIDER = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda s: f"OWN {s.name}\\n")))
"""

PROGRAMS = {
    "sets no provider": "ask()",
    "sets its own provider": OWN_PROVIDER + "trace.set_tracer_provider(provider); ask()",
    "sets its own provider after a tracer was made": "tracer = trace.get_tracer('app')"
    + OWN_PROVIDER
    + "trace.set_tracer_provider(provider)\nwith tracer.start_as_current_span('mine'): ask()",
    "sets its own provider after the first call": "tracer = trace.get_tracer('app')\n"
    + "ask()\nwith tracer.start_as_current_span('before'): pass"
    + OWN_PROVIDER
    + "trace.set_tracer_provider(provider)\nwith tracer.start_as_current_span('mine'): ask()",
    "starts the instrumentation itself": OWN_PROVIDER
    + "trace.set_tracer_provider(provider)\n"
    + "from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor\n"
    + "OpenAIInstrumentor().instrument()\nask()",
    "starts the instrumentation with a provider that is not the global one": OWN_PROVIDER
    + "from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor\n"
    + "OpenAIInstrumentor().instrument(tracer_provider=provider)\nask()",
    "configures recording itself": "import otel_agentrec\n"
    + "with otel_agentrec.configure('elsewhere') as recorder: ask()\nassert not os.path.exists('elsewhere')",
    "adds our processor itself": OWN_PROVIDER
    + "from otel_agentrec import AgentRecSpanProcessor\n"
    + "provider.add_span_processor(AgentRecSpanProcessor('elsewhere'))\ntrace.set_tracer_provider(provider)\nask()\n"
    + "assert not os.path.exists('elsewhere')",
}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([Turn("Good day.", times=0)]) as server:
        yield server


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    """For programs that use no SDK."""
    shell = Shell(tmp_path, "")
    shell.env["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"] = "*"
    return shell


@pytest.fixture
def shell(tmp_path: Path, server: ScriptedServer) -> Shell:
    return Shell(tmp_path, server.base_url)


@pytest.mark.parametrize("program", PROGRAMS)
def test_run_records_each_call_once_and_the_programs_own_exporter_gets_every_span(
    shell: Shell, server: ScriptedServer, program: str
) -> None:
    shell.write("app.py", START + PROGRAMS[program])
    done = shell.run("python", "app.py")
    assert done.returncode == 0, done.stderr
    nodes = shell.nodes()
    assert len(nodes) == len(server.requests) == done.stdout.count("Good day.")
    for node in nodes:
        assert (node.model_id, node.output_text, node.status) == ("m", "Good day.", "ok")
        assert node.inputs["messages"][0]["parts"][0]["content"] == "Hello?"
    if "provider = " in PROGRAMS[program]:
        own = re.findall(r"^OWN (.*)$", done.stdout, re.MULTILINE)
        assert own.count("chat m") == 1
        assert own.count("mine") == PROGRAMS[program].count("'mine'")
    assert [e["type"] for e in events(shell.rec)][-1] == "STREAM_SEALED"
    assert "Traceback" not in done.stderr
    counted = "1 model or tool call" if len(nodes) == 1 else f"{len(nodes)} model and tool calls"
    assert f"{counted} recorded in {shell.rec}" in done.stderr.splitlines()[-1]


def test_opentelemetry_instrument_with_the_variable_records_the_same(shell: Shell, tmp_path: Path) -> None:
    shell.env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(as_installed(tmp_path / "site"))])
    shell.env.update(OTEL_TRACES_EXPORTER="console", OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none")
    shell.write("app.py", START + "ask()")
    off = shell.plain(*INSTRUMENT, "python", "app.py")
    assert (off.returncode, shell.rec.exists()) == (0, False), off.stderr
    on = shell.plain(*INSTRUMENT, "--agentrec_path", str(shell.rec), "python", "app.py")
    assert on.returncode == 0, on.stderr
    assert '"name": "chat m"' in on.stdout, "the other exporter gets the span"
    (node,) = shell.nodes()
    assert (node.output_text, node.inputs["messages"][0]["parts"][0]["content"]) == ("Good day.", "Hello?")


def commands(shell: Shell) -> dict[str, Sequence[str]]:
    text = BARE + "print(sys.argv[1:]); ask(); sys.exit(7)"
    python = sys.executable
    shell.write("app.py", text)
    (shell.path / "pkg").mkdir(exist_ok=True)
    shell.write("pkg/__init__.py", "")
    shell.write("pkg/__main__.py", text)
    shell.write("shebang", f"#!{python}\n{text}", 0o755)
    shell.write("env-shebang", f"#!/usr/bin/env -S python -W ignore\n{text}", 0o755)
    shell.write("long-path", f"#!/bin/sh\n'''exec' '{python}' \"$0\" \"$@\"\n' '''\n{text}", 0o755)
    shell.write("wrapper.sh", 'exec python app.py "$@"\n')
    return {
        "python file": ["python", "app.py"],
        "python with options": [python, "-W", "ignore", "-u", "app.py"],
        "module": ["python", "-m", "pkg"],
        "code": ["python", "-c", text],
        "a source file": ["app.py"],
        "a directory": ["pkg"],
        "a script with a shebang": ["./shebang"],
        "a script with env": ["./env-shebang"],
        "a console script with a long path": ["./long-path"],
        "a shell script": ["sh", "wrapper.sh"],
        "env": ["env", "X=1", "python", "app.py"],
    }


KINDS = [
    "python file", "python with options", "module", "code", "a source file", "a directory",
    pytest.param(
        "a script with a shebang",
        marks=pytest.mark.skipif(" " in sys.executable, reason="a shebang can't name a path with a space"),
    ),
    "a script with env", "a console script with a long path", "a shell script", "env",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_run_takes_any_way_to_start_python_and_passes_arguments_and_exit_code(bare: Shell, kind: str) -> None:
    done = bare.run(*commands(bare)[kind], "--flag", "a b")
    assert done.returncode == 7, done.stderr
    assert "['--flag', 'a b']" in done.stdout
    assert len(bare.nodes()) == 1


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_signals_reach_the_program_itself(bare: Shell, sent: signal.Signals, code: int) -> None:
    bare.write(
        "app.py",
        BARE
        + "import time\nask()\n"
        + "try:\n    print('ready', flush=True)\n    time.sleep(50)\nexcept KeyboardInterrupt:\n    sys.exit(130)\n",
    )
    with subprocess.Popen(
        bare.argv("python", "app.py"),
        cwd=bare.path, env=bare.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        while "ready" not in child.stdout.readline():
            pass
        child.send_signal(sent)
        assert child.wait(timeout=30) == code
    assert len(bare.nodes()) == 1


def test_a_child_process_of_the_program_records_into_a_stream_of_its_own(bare: Shell) -> None:
    bare.write("child.py", BARE + "ask()")
    bare.write("app.py", BARE + "import subprocess\nask()\nsubprocess.run([sys.executable, 'child.py'], check=True)")
    done = bare.run("python", "app.py")
    assert done.returncode == 0, done.stderr
    assert len(bare.nodes()) == 2
    assert len([e for e in events(bare.rec) if e["type"] == "STREAM_OPENED"]) == 2
    assert done.stderr.count("recorded in") == 1, "only the command itself says what was recorded"


def test_a_sitecustomize_of_the_user_still_runs(bare: Shell) -> None:
    (bare.path / "site").mkdir()
    bare.write("site/sitecustomize.py", "print('theirs')")
    bare.env["PYTHONPATH"] = os.pathsep.join([str(bare.path / "site"), str(ROOT)])
    bare.write("app.py", BARE + "ask()")
    done = bare.run("python", "app.py")
    assert done.stdout.split("\n")[0] == "theirs"
    assert len(bare.nodes()) == 1


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("OTEL_AGENTREC_ENABLED", "false", None),
        ("OTEL_SDK_DISABLED", "true", "OTEL_SDK_DISABLED=true: OpenTelemetry is off, nothing is recorded"),
        ("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "*", "no model or tool call was seen"),
    ],
)
def test_switched_off_the_program_runs_as_ever(shell: Shell, name: str, value: str, says: str | None) -> None:
    shell.env[name] = value
    shell.env["OTEL_AGENTREC_WIRE"] = "false"  # it sees a call without any instrumentation
    shell.write("app.py", START + "ask()")
    done = shell.run("python", "app.py")
    assert (done.returncode, done.stdout) == (0, "Good day.\n"), done.stderr
    assert not shell.rec.exists()
    lines = [line for line in done.stderr.splitlines() if "otel-agentrec" in line]
    assert [says in line for line in lines] == [True] if says else not lines


def test_a_provider_that_is_not_installed_is_left_out_and_the_program_is_recorded(shell: Shell) -> None:
    shell.env["OTEL_PYTHON_TRACER_PROVIDER"] = "nope"
    shell.write("app.py", START + "ask()")
    done = shell.run("python", "app.py")
    assert (done.returncode, done.stdout) == (0, "Good day.\n"), done.stderr
    assert "OTEL_PYTHON_TRACER_PROVIDER=nope names no provider that is installed" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(shell.nodes()) == 1


def test_content_is_not_asked_for_when_it_is_switched_off(shell: Shell) -> None:
    shell.env["OTEL_AGENTREC_CONTENT"] = "off"
    shell.write("app.py", START + "ask(); print(os.environ.get('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'))")
    done = shell.run("python", "app.py")
    assert done.stdout.split("\n")[1] == "None"
    assert "CAPTURE_MESSAGE_CONTENT" not in done.stderr, "nobody is told to switch on what he switched off"
    (node,) = shell.nodes()
    assert node.input_tokens


def test_retries_of_the_sdk_are_counted(shell: Shell, server: ScriptedServer) -> None:
    server.script.answer_next(Turn("slow down", status=429, headers={"retry-after": "0"}))
    shell.write("app.py", START + "ask()")
    assert shell.run("python", "app.py").returncode == 0
    (node,) = shell.nodes()
    assert (node.retry_count, node.retries) == (1, [{"statusCode": 429}])


def test_an_interpreter_without_the_package_is_told_so_in_one_line(bare: Shell) -> None:
    other = bare.path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(other)], check=True, timeout=60)
    bare.env["PYTHONPATH"] = ""
    bare.write("app.py", "print('it ran')")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{RUN}", str(bare.rec),
         str(other / "bin" / "python"), "app.py"],
        cwd=bare.path, env=bare.env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "lacks this package" in line
    assert "-m pip install 'otel-agentrec[run]'" in line


def test_an_environment_in_which_the_sdk_does_not_start_is_told_apart_from_a_missing_package(bare: Shell) -> None:
    bare.env["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"] = "-7"
    bare.write("app.py", "print('it ran')")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{RUN}", str(bare.rec), sys.executable, "app.py"],
        cwd=bare.path, env=bare.env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT must be" in line and "pip install" not in line


class TestWhatIsRefused:
    def refuse(self, tmp_path: Path, *cmd: str) -> UsageError:
        with pytest.raises(UsageError) as error:
            program_of(list(cmd), {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
        return error.value

    def test_a_command_that_is_not_there(self, tmp_path: Path) -> None:
        assert "no such program" in str(self.refuse(tmp_path, "no-such-program"))
        assert "no command" in str(self.refuse(tmp_path))

    @pytest.mark.parametrize("what", ["a file", "a link to /dev/null"])
    def test_a_recording_that_is_no_directory(self, tmp_path: Path, what: str) -> None:
        out = tmp_path / "out"
        if what == "a file":
            out.write_text("mine")
        else:
            out.symlink_to(os.devnull)
        with pytest.raises(UsageError, match="is no directory"):
            run_command([sys.executable, "-c", ""], out, dict(os.environ))

    @pytest.mark.parametrize("rules", ["emial", "default,x", "module:", ":callable"])
    def test_rules_of_redaction_that_there_are_not(self, tmp_path: Path, rules: str) -> None:
        environ = {**os.environ, "OTEL_AGENTREC_REDACT": rules}
        with pytest.raises(ConfigurationError, match="can't be used") as error:
            run_command([sys.executable, "-c", ""], tmp_path / "out", environ)
        assert error.value.exit_code == 2

    def test_a_program_that_is_not_python(self, tmp_path: Path) -> None:
        shutil.copy(shutil.which("true") or "/bin/true", tmp_path / "agent-in-rust")
        error = self.refuse(tmp_path, "agent-in-rust")
        assert "agent-in-rust is not a Python program" in str(error)
        assert "OTLP" in error.hint
        script = tmp_path / "agent.js"
        script.write_text("#!/usr/bin/env node\n")
        script.chmod(0o755)
        assert "not a Python program" in str(self.refuse(tmp_path, str(script)))

    @pytest.mark.parametrize("options", [["-I"], ["-E"], ["-S"], ["-W", "ignore", "-sI"], ["-X", "dev", "-BE"]])
    def test_an_interpreter_that_would_not_listen(self, tmp_path: Path, options: list[str]) -> None:
        error = self.refuse(tmp_path, sys.executable, *options, "app.py", "-I")
        assert "does not look at PYTHONPATH" in str(error)
        assert "configure(" in error.hint

    @pytest.mark.parametrize(
        "options", [["-s"], ["-W", "I"], ["-XI"], ["-m", "mod", "-I"], ["-c", "pass", "-E"], ["a.py", "-S"]]
    )
    def test_options_of_the_program_are_its_own(self, options: list[str]) -> None:
        assert program_of([sys.executable, *options], os.environ)[1:] == options
