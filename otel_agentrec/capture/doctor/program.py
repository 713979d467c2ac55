"""A command line as ``doctor -- CMD`` is given it: who would run it, and would it be recorded? It is read, never run."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from otel_agentrec.capture.doctor.commandline import unwrapped
from otel_agentrec.capture.doctor.finding import Finding, note, ok, problem
from otel_agentrec.capture.doctor.instrumentations import LIBRARIES, covered
from otel_agentrec.capture.doctor.interpreter import Interpreter, interpreter_at, our_interpreter
from otel_agentrec.capture.doctor.outgoing import exporters_of
from otel_agentrec.capture.launch import is_python_source, program_of, started_by
from otel_agentrec.errors import UsageError

__all__ = ["Program", "check_program", "read_program"]

Environ = Mapping[str, str]

MODULES = {
    **{library.replace("-", "."): library for library in LIBRARIES},
    "agents": "openai-agents",
    "google.genai": "google-genai",
    "llama_index": "llama-index-core",
}
"""Module that a program imports -> library."""

MAX_SOURCE = 4 << 20


@dataclass(frozen=True)
class Program:
    """Args:
    words: the command, without what launches it.
    launcher: ``run`` or ``opentelemetry-instrument`` where the command says so, ``other`` for shells and the like.
    python: its interpreter's environment; None when that can't be told.
    environ: its environment.
    source: the text of the program; empty where it is not one file.
    refusal: why ``otel-agentrec run`` would not start it.
    """

    words: tuple[str, ...]
    launcher: str = ""
    python: Interpreter | None = None
    environ: Environ = field(default_factory=dict, repr=False)
    source: str = ""
    refusal: UsageError | None = None

    @property
    def line(self) -> str:
        return " ".join(self.words)

    def names(self, module: str) -> bool:
        """Whether the program imports a module, as far as its own file tells."""
        package, _, name = module.rpartition(".")
        forms = [rf"(?:import|from)\s+{re.escape(module)}\b"]
        if package:
            forms.append(rf"from\s+{re.escape(package)}\s+import\s+.*\b{re.escape(name)}\b")
        return bool(re.search(rf"^[ \t]*(?:{'|'.join(forms)})", self.source, re.MULTILINE))


def read_program(cmd: Sequence[str], environ: Environ) -> Program:
    """What can be told of a command without running it."""
    words, launcher, environ = unwrapped(list(cmd), environ)
    more = [place for place in environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    refusal = None
    try:
        program_of(words, environ)
    except UsageError as error:
        refusal = error
    found = shutil.which(words[0], path=environ.get("PATH")) if words else None
    if found is None or (started_by(Path(found), []).kind is None and is_python_source(Path(found))):
        is_source = bool(words) and is_python_source(Path(words[0]))
        python = our_interpreter(more) if is_source else None
        return Program(tuple(words), launcher, python, environ, _source(words[:1]) if is_source else "", refusal)
    started = started_by(Path(found), words[1:])
    if started.kind == "launcher":
        return Program(tuple(words), launcher or "other", None, environ, "", refusal)
    if started.interpreter is None:
        return Program(tuple(words), launcher, None, environ, "", refusal)
    interpreter = shutil.which(started.interpreter, path=environ.get("PATH"))
    python = interpreter_at(Path(interpreter), more) if interpreter is not None else None
    is_script = Path(found).name != Path(started.interpreter).name
    return Program(tuple(words), launcher, python, environ, _source([found] if is_script else started.options), refusal)


def _source(options: Sequence[str]) -> str:
    """The text of the program that Python is told to run: a file, or what follows ``-c``."""
    skip = False
    for at, option in enumerate(options):
        if skip:
            skip = False
        elif option == "-c":
            return options[at + 1] if at + 1 < len(options) else ""
        elif option == "-m":
            return ""
        elif option in ("-W", "-X"):
            skip = True
        elif not option.startswith("-"):
            return _text(Path(option))
    return ""


def _text(path: Path) -> str:
    path = path / "__main__.py" if path.is_dir() else path
    try:
        with path.open("rb") as file:
            return file.read(MAX_SOURCE).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def check_program(program: Program) -> Iterator[Finding]:
    """Whether the command is recorded as it stands, and what else would record it."""
    refusal = program.refusal
    if refusal is not None:
        yield problem("program", str(refusal), "it can't be recorded by otel-agentrec run", refusal.hint)
        if program.python is None:
            return
    if program.python is None:
        why = "its interpreter can't be told without running it"
        if program.launcher == "other":
            why = "what it starts can't be told without running it; all that is Python below it is recorded"
        yield note("program.python", f"{program.words[0]}: {why}", "the findings above are about this interpreter")
    else:
        yield from _imports(program, program.python)
    yield _as_it_stands(program, program.environ)


def _imports(program: Program, python: Interpreter) -> Iterator[Finding]:
    """Libraries that the program itself imports, and that nothing makes spans of."""
    there = covered(python)
    for module, library in MODULES.items():
        if program.names(module) and library not in there and python.has(library):
            yield problem(
                f"program.imports.{library}",
                f"{program.line} imports {module}, and nothing that works here makes spans of {library}",
                "its calls are not recorded",
                python.pip(f"install {LIBRARIES[library]}"),
            )


def _as_it_stands(program: Program, environ: Environ) -> Finding:
    id, run = "program.way", f"otel-agentrec run -- {program.line}"
    path = environ.get("OTEL_AGENTREC_PATH")
    if program.launcher == "run":
        return ok(id, f"{program.line} is recorded", "otel-agentrec run starts the instrumentations too")
    by_file = "agentrec" in _text(Path(environ.get("OTEL_CONFIG_FILE") or os.devnull))
    if program.launcher == "opentelemetry-instrument":
        if by_file:
            return ok(id, f"{program.line} is recorded", "the file that OTEL_CONFIG_FILE names asks for agentrec")
        if path:
            return ok(
                id, f"{program.line} is recorded", "opentelemetry-instrument finds otel-agentrec by its entry points"
            )
        return problem(
            id,
            "opentelemetry-instrument without OTEL_AGENTREC_PATH",
            "nothing is recorded",
            f"OTEL_AGENTREC_PATH=agentrec opentelemetry-instrument {program.line}",
        )
    if program.names("otel_agentrec"):
        return ok(
            id,
            f"{program.line} imports otel_agentrec",
            "it may switch recording on itself; what it does is not run here",
        )
    if path and environ.get("OTEL_PYTHON_TRACER_PROVIDER") == "agentrec":
        return note(
            id,
            f"{program.line} is recorded by OTEL_PYTHON_TRACER_PROVIDER",
            "only if it sets no provider of its own, and starts its instrumentations itself",
            run,
        )
    by_exporter = bool(path) and "agentrec" in exporters_of(environ)
    if program.names("opentelemetry") and (by_file or by_exporter):
        return note(
            id,
            f"{program.line} is recorded by {'OTEL_CONFIG_FILE' if by_file else 'OTEL_TRACES_EXPORTER'}",
            "only if it runs OpenTelemetry's configurator",
            run,
        )
    if path:
        return problem(
            id,
            "OTEL_AGENTREC_PATH is set, and nothing in this command looks at it",
            "nothing is recorded as it stands",
            run,
        )
    return note(id, f"as it stands, {program.line} is not recorded", "nothing in it switches recording on", run)
