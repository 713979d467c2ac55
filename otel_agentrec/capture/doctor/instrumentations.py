"""The instrumentations that are installed: do they fit their libraries, and do they let messages through?

What is known of them was measured with the versions that are named here (OTel SDK 1.45, Python 3.11, 2026).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution

from otel_agentrec.capture.content import ask_for_content
from otel_agentrec.capture.doctor.finding import Finding, note, ok, problem
from otel_agentrec.capture.doctor.interpreter import Interpreter, name_of, numbers

__all__ = [
    "LIBRARIES",
    "Instrumentation",
    "check_content",
    "check_instrumentations",
    "covered",
    "installed",
    "recorded",
]

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
HOOK = "OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK"
OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"

Environ = Mapping[str, str]

LIBRARIES: dict[str, str] = {
    "agno": "opentelemetry-instrumentation-genai-agno",
    "anthropic": "opentelemetry-instrumentation-genai-anthropic",
    "crewai": "openinference-instrumentation-crewai",
    "dspy": "opentelemetry-instrumentation-genai-dspy",
    "google-genai": "openinference-instrumentation-google-genai",
    "groq": "openinference-instrumentation-groq",
    "langchain": "opentelemetry-instrumentation-genai-langchain",
    "litellm": "openinference-instrumentation-litellm",
    "llama-index-core": "opentelemetry-instrumentation-genai-llama-index",
    "mistralai": "openinference-instrumentation-mistralai",
    "openai": "opentelemetry-instrumentation-genai-openai",
    "openai-agents": "opentelemetry-instrumentation-genai-openai-agents",
    "smolagents": "openinference-instrumentation-smolagents",
}
"""Libraries that call models or tools -> an instrumentation for each that can be recommended."""


@dataclass(frozen=True)
class Instrumentation:
    """One that is installed.

    Args:
        maker: ``official``, ``old`` (official before its renaming), ``traceloop`` or ``openinference``.
        library: the library that it is for, normalised; empty when it does not say.
        wants: the versions of it that it knows, as its metadata has them.
    """

    package: str
    version: str
    maker: str
    name: str
    library: str
    wants: str

    @property
    def title(self) -> str:
        return f"{self.package} {self.version}"


def installed(python: Interpreter) -> list[Instrumentation]:
    """The instrumentations of models, tools and agents in an environment."""
    found: dict[str, Instrumentation] = {}
    for package, point in python.entry_points("opentelemetry_instrumentor"):
        name = name_of(package.metadata["Name"])
        maker = _maker(name, package)
        if maker is not None and name not in found:
            library, wants = _instrumented(package)
            found[name] = Instrumentation(name, package.version, maker, point.name, library, wants)
    return sorted(found.values(), key=lambda one: one.package)


def _maker(name: str, package: Distribution) -> str | None:
    if name.startswith("openinference-instrumentation-"):
        return "openinference"
    if name.startswith("opentelemetry-instrumentation-genai-"):
        return "official"
    if not name.startswith("opentelemetry-instrumentation-"):
        return None
    keys = ("Author", "Author-email", "Home-page", "Project-URL")
    told = " ".join(value for key in keys for value in package.metadata.get_all(key) or ())
    if "traceloop" in told.lower():
        return "traceloop"
    return "old" if name.endswith(("-v2", "-google-genai", "-vertexai")) else None


def _instrumented(package: Distribution) -> tuple[str, str]:
    """-> the library that a package instruments, and the versions of it that it knows."""
    for line in package.requires or ():
        need, _, marker = line.partition(";")
        if "instruments" in marker:
            name = need.strip()
            for sign in "<>=!~ ([":
                name = name.partition(sign)[0]
            return name_of(name), need.strip()[len(name) :].strip(" ()")
    return "", ""


def check_instrumentations(python: Interpreter) -> Iterator[Finding]:
    """Whether each works with what else is installed, and what none is for."""
    listed = installed(python)
    usable = 0
    idle: list[Instrumentation] = []
    for one in listed:
        found = _misfit(one, python)
        if found is None and one.library and python.version_of(one.library) is None:
            idle.append(one)  # nothing there for it to do
            continue
        usable += found is None
        yield found or ok(
            f"instrumentation.{one.package}",
            f"{one.title} makes spans of {one.library or one.name} {python.version_of(one.library) or ''}".rstrip(),
        )
    if _speaks_itself(python):
        usable += 1
        yield ok("instrumentation.anthropic", f"anthropic {python.version_of('anthropic')} makes spans of its own")
    yield from _doubles(listed, python)
    yield from _missing(listed, python)
    if not usable and idle:
        yield problem(
            "instrumentations",
            f"{idle[0].title} is installed, but not {idle[0].library}, which it is for",
            "calls make no spans, so nothing is recorded",
            python.pip(f"install {idle[0].library}"),
        )
    elif not usable:
        yield problem(
            "instrumentations",
            "no instrumentation of a model library is installed that works here",
            "calls make no spans, so nothing is recorded",
            "for the OpenAI SDK: " + python.pip("install opentelemetry-instrumentation-genai-openai"),
        )
    openai = numbers(python.version_of("openai"))
    if openai and not python.has("opentelemetry-instrumentation-httpx"):
        yield note(
            "instrumentation.http",
            "opentelemetry-instrumentation-httpx is not installed",
            "attempts that an SDK repeats by itself are not seen",
            python.pip("install opentelemetry-instrumentation-httpx"),
        )


def _speaks_itself(python: Interpreter) -> bool:
    """Whether the Anthropic SDK makes spans without an instrumentation."""
    return numbers(python.version_of("anthropic")) >= (2, 14)


def _misfit(one: Instrumentation, python: Interpreter) -> Finding | None:
    """What is known to keep an instrumentation from working."""
    sdk, genai = numbers(python.version_of("opentelemetry-sdk")), numbers(python.version_of("opentelemetry-util-genai"))
    version = numbers(one.version)
    successor = "install opentelemetry-instrumentation-genai-openai"
    if one.package == "opentelemetry-instrumentation-openai-v2" and version >= (2, 2) and genai >= (1,):
        return problem(
            f"instrumentation.{one.package}",
            f"{one.title} can't be imported beside opentelemetry-util-genai {python.version_of('opentelemetry-util-genai')}",
            "it makes no spans",
            python.pip(f"uninstall {one.package}; ") + python.pip(successor),
        )
    is_old = (one.package == "opentelemetry-instrumentation-openai-v2" and version < (2, 2)) or (
        one.maker == "traceloop" and version < (0, 48)
    )
    if is_old and sdk > (1, 36):
        return problem(
            f"instrumentation.{one.package}",
            f"{one.title} needs an OpenTelemetry SDK of at most 1.36, {python.version_of('opentelemetry-sdk')} is installed",
            "it logs a warning and makes no spans of model calls",
            python.pip(f"install --upgrade {one.package}")
            if one.maker == "traceloop"
            else python.pip(f"uninstall {one.package}; ") + python.pip(successor),
        )
    has = python.version_of(one.library) if one.library else None
    if has is not None and not _fits(has, one.wants):
        return problem(
            f"instrumentation.{one.package}",
            f"{one.title} knows {one.library} {one.wants}, {has} is installed",
            "it does not start and makes no spans",
            python.pip(f"install --upgrade {one.package}") + f", or another version of {one.library}",
        )
    return None


def _fits(version: str, wants: str) -> bool:
    try:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet
    except ImportError:
        return True  # can't be told
    try:
        return SpecifierSet(wants).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True


def _doubles(listed: list[Instrumentation], python: Interpreter) -> Iterator[Finding]:
    """Several instrumentations of the same library."""
    by_library: dict[str, list[Instrumentation]] = {}
    for one in listed:
        if one.library and python.has(one.library):
            by_library.setdefault(one.library, []).append(one)
    for library, ones in by_library.items():
        if len(ones) < 2:
            continue
        titles = " and ".join(one.title for one in ones)
        clash = len({one.name for one in ones}) < len(ones)
        yield note(
            f"instrumentation.twice.{library}",
            f"{titles} both make spans of {library}",
            "each call has two spans, which are merged into one record"
            + ("; both go by one name, so that switching one off by name switches off both" if clash else ""),
            "keep one: " + python.pip(f"uninstall {ones[-1].package}"),
        )


def _missing(listed: list[Instrumentation], python: Interpreter) -> Iterator[Finding]:
    """Libraries that nothing makes spans of."""
    covered = {one.library for one in listed} | {one.name for one in listed}
    for library, instrumentation in LIBRARIES.items():
        version = python.version_of(library)
        if version is None or library in covered or (library == "anthropic" and _speaks_itself(python)):
            continue
        yield note(
            f"instrumentation.missing.{library}",
            f"{library} {version} is installed, and nothing that makes spans of it",
            "its calls are not recorded",
            python.pip(f"install {instrumentation}"),
        )


def covered(python: Interpreter) -> dict[str, list[Instrumentation]]:
    """Libraries that are installed and whose calls make spans -> the instrumentations that make them; a library that makes
    them itself has none."""
    found: dict[str, list[Instrumentation]] = {"anthropic": []} if _speaks_itself(python) else {}
    for one in installed(python):
        if one.library and python.has(one.library) and _misfit(one, python) is None:
            found.setdefault(one.library, []).append(one)
    return found


# --- content ----------------------------------------------------------------------------------------------------------


def check_content(python: Interpreter, environ: Environ, asks: bool) -> Iterator[Finding]:
    """What the content switches in force mean for each instrumentation.

    Args:
        asks: recording is switched on in a way that asks for content where the environment says nothing.
    """
    in_force = dict(environ)
    if asks:
        ask_for_content(in_force)
    for one in installed(python):
        if one.library and not python.has(one.library):
            continue
        verdict = _CONTENT[one.maker](one, in_force)
        yield verdict or ok(f"content.{one.package}", f"{one.package} lets messages through")
    if _speaks_itself(python):
        name = "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE"
        if in_force.get(name, "").strip().lower() == "content":
            yield ok("content.anthropic", "anthropic's own spans hold messages")
        else:
            yield _left_out("content.anthropic", "anthropic", f"{name}={in_force.get(name, '')}", f"{name}=content")


def recorded(python: Interpreter, environ: Environ, asks: bool) -> Iterator[Finding]:
    """In one line what a program that is recorded here leaves."""
    mute = {f.id for f in check_content(python, environ, asks) if f.level == "problem"}
    whole: list[str] = []
    bare: list[str] = []
    for library, ones in sorted(covered(python).items()):
        speaks = [one.package for one in ones] or [library]
        (bare if all(f"content.{name}" in mute for name in speaks) else whole).append(library)
    told = [
        f"{', '.join(libraries)} {how}"
        for libraries, how in ((whole, "with messages"), (bare, "without messages"))
        if libraries
    ]
    if told:
        yield ok("recorded", f"calls that would be recorded: {'; '.join(told)}")


def _left_out(id: str, who: str, because: str, mend: str) -> Finding:
    return problem(id, f"{who} leaves messages out: {because}", "calls are recorded without what was said", mend)


def _official(one: Instrumentation, environ: Environ) -> Finding | None:
    said = environ.get(CAPTURE, "").strip()
    mode = said.upper()
    if mode in ("SPAN_ONLY", "SPAN_AND_EVENT"):
        return None
    if mode == "EVENT_ONLY":
        return note(
            f"content.{one.package}",
            f"{one.package} puts messages into log records only: {CAPTURE}={said}",
            "arguments and results of tools are in no log record, so they are not recorded",
            f"{CAPTURE}=SPAN_ONLY",
        )
    because = f"{CAPTURE}={said}" if said else f"{CAPTURE} is not set"
    if environ.get(HOOK, "").strip() == "agentrec":
        return note(
            f"content.{one.package}",
            f"{one.package} tells messages to the completion hook only: {because}",
            "arguments and results of tools are not told to it, so they are not recorded",
            f"{CAPTURE}=SPAN_ONLY",
        )
    if mode not in ("", "NO_CONTENT"):
        because += " means nothing to it"
    return _left_out(f"content.{one.package}", one.package, because, f"{CAPTURE}=SPAN_ONLY")


def _old(one: Instrumentation, environ: Environ) -> Finding | None:
    """Official ones of before the renaming: true or false; the later ones of them, opted in, as their successors."""
    opted_in = "gen_ai_latest_experimental" in environ.get(OPT_IN, "")
    if opted_in and not (one.package == "opentelemetry-instrumentation-openai-v2" and numbers(one.version) < (2, 2)):
        return _official(one, environ)
    said = environ.get(CAPTURE, "").strip()
    if said.lower() == "true":
        return None
    because = f"{CAPTURE}={said}, and it knows true and false only" if said else f"{CAPTURE} is not set"
    return _left_out(f"content.{one.package}", one.package, because, f"{CAPTURE}=true")


def _traceloop(one: Instrumentation, environ: Environ) -> Finding | None:
    said = environ.get("TRACELOOP_TRACE_CONTENT", "").strip()
    if said.lower() in ("", "true"):
        return None
    return _left_out(
        f"content.{one.package}", one.package, f"TRACELOOP_TRACE_CONTENT={said}", "unset TRACELOOP_TRACE_CONTENT"
    )


def _openinference(one: Instrumentation, environ: Environ) -> Finding | None:
    hidden = [name for name in _HIDES if environ.get(name, "").strip().lower() in ("true", "1", "yes")]
    if not hidden:
        return None
    return _left_out(
        f"content.{one.package}", one.package, ", ".join(f"{name}=true" for name in hidden), f"unset {' '.join(hidden)}"
    )


_HIDES = (
    "OPENINFERENCE_HIDE_INPUTS",
    "OPENINFERENCE_HIDE_OUTPUTS",
    "OPENINFERENCE_HIDE_INPUT_MESSAGES",
    "OPENINFERENCE_HIDE_OUTPUT_MESSAGES",
    "OPENINFERENCE_HIDE_INPUT_TEXT",
    "OPENINFERENCE_HIDE_OUTPUT_TEXT",
)
_CONTENT: dict[str, Callable[[Instrumentation, Environ], Finding | None]] = {
    "official": _official,
    "old": _old,
    "traceloop": _traceloop,
    "openinference": _openinference,
}
