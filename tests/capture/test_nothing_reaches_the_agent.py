"""Whatever goes wrong inside us, what OTel calls returns: every callable that is handed to OTel, found by reflection."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import otel_agentrec
from otel_agentrec.capture.forward.spanexporter import StampingExporter
from otel_agentrec.capture.guard import PROCESS, Counters, Guard, Notices
from otel_agentrec.capture.processors import AgentRecLogProcessor, AgentRecSpanProcessor
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.otel.exporters import AgentRecSpanExporter, RecordingLogExporter, RecordingSpanExporter
from otel_agentrec.settings import Settings

BASES = (SpanProcessor, LogRecordProcessor, SpanExporter, LogRecordExporter)
INJECTED = [ValueError("injected"), RecursionError("injected"), OSError(28, "injected"), MemoryError("injected")]


def handed_to_otel() -> list[type]:
    """Our classes below OTel's, in every module that can be imported here."""
    for module in pkgutil.walk_packages(otel_agentrec.__path__, "otel_agentrec."):
        if not module.name.endswith(("__main__", "sitecustomize", "bootstrap")):
            importlib.import_module(module.name)

    def below(cls: type) -> Iterator[type]:
        for sub in cls.__subclasses__():
            yield sub
            yield from below(sub)

    found = {sub for base in BASES for sub in below(base) if sub.__module__.startswith("otel_agentrec.")}
    return sorted(found, key=lambda cls: cls.__qualname__)


MAKERS: dict[type, Callable[[Path], Any]] = {
    AgentRecSpanProcessor: lambda path: AgentRecSpanProcessor(path, forward=[SpanProcessor()]),
    AgentRecLogProcessor: lambda path: AgentRecLogProcessor(AgentRecSpanProcessor(path)),
    AgentRecSpanExporter: lambda _: AgentRecSpanExporter(InMemorySpanExporter()),
    RecordingSpanExporter: lambda path: RecordingSpanExporter(path),
    RecordingLogExporter: lambda path: RecordingLogExporter(path),
    StampingExporter: lambda _: StampingExporter(InMemorySpanExporter()),
}
KEPT = (bool, str, int, type(None), Guard, Counters, Notices, Settings)
"""What the recorder needs to know that it is on, and to tell what went wrong."""


def callbacks(cls: type) -> list[str]:
    """What OTel may call: the methods of its base class."""
    names = {n for base in BASES if issubclass(cls, base) for n in dir(base)}
    return sorted(n for n in names if callable(getattr(cls, n)) and (not n.startswith("_") or n == "_on_ending"))


class Broken:
    """Anything that is asked of it fails."""

    def __init__(self, error: BaseException) -> None:
        object.__setattr__(self, "_error", error)

    def __getattr__(self, name: str) -> Any:
        raise object.__getattribute__(self, "_error")

    def __call__(self, *args: Any) -> Any:
        raise object.__getattribute__(self, "_error")


@contextmanager
def broken_inside(made: Any, error: BaseException) -> Iterator[Counters]:
    """Whatever it calls raises; -> where that is counted."""
    recorder = getattr(made, "recorder", None)
    broken = [one for one in (recorder, made) if one is not None]
    working = [dict(vars(one)) for one in broken]
    for one in broken:
        for name, value in list(vars(one).items()):
            if not isinstance(value, (*KEPT, Recorder)):
                setattr(one, name, Broken(error))
    try:
        yield PROCESS.counters if recorder is None else recorder.counters
    finally:
        for one, whole in zip(broken, working, strict=True):
            vars(one).update(whole)
        (recorder or made).shutdown()


def arguments(method: Callable[..., Any]) -> list[Any]:
    span = TracerProvider(shutdown_on_exit=False).get_tracer("t").start_span("chat")
    required = [p for p in inspect.signature(method).parameters.values() if p.default is p.empty]
    many = method.__name__ == "export"
    return [[span] if many else span for p in required if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


CASES = [(cls, name) for cls in handed_to_otel() for name in callbacks(cls)]


def test_each_class_can_be_made_here() -> None:
    assert set(handed_to_otel()) == set(MAKERS), "tell MAKERS how to make it"
    assert len(CASES) >= 8


@pytest.mark.parametrize("error", INJECTED, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(("cls", "name"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_an_error_inside_is_swallowed_counted_and_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cls: type, name: str, error: Exception
) -> None:
    made = MAKERS[cls](tmp_path / "rec")
    capsys.readouterr()
    with broken_inside(made, error) as counters:
        method = getattr(made, name)
        for _ in range(3):
            method(*arguments(method))
        said = capsys.readouterr().err
        if f"def {name}" in inspect.getsource(cls):
            counts = counters.as_dict()
            places = [place for place in counts if place.startswith("swallowed.")]
            assert places and counts["swallowed"] in (3, 6), "what stands behind ours is called all the same"
            assert said.count("injected") == len(places), said


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(("cls", "name"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_the_wish_to_stop_passes(tmp_path: Path, cls: type, name: str, stop: type[BaseException]) -> None:
    made = MAKERS[cls](tmp_path / "rec")
    with broken_inside(made, stop()):
        method = getattr(made, name)
        if f"def {name}" in inspect.getsource(cls):
            with pytest.raises(stop):
                method(*arguments(method))
