"""Whatever goes wrong inside us, what OTel calls returns: every callable that is handed to OTel, found by reflection."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter

import otel_agentrec
from otel_agentrec.capture.guard import Counters, Guard, Notices
from otel_agentrec.capture.processors import AgentRecLogProcessor, AgentRecSpanProcessor
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.otel.exporters import RecordingLogExporter, RecordingSpanExporter
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
    AgentRecSpanProcessor: lambda path: AgentRecSpanProcessor(path),
    AgentRecLogProcessor: lambda path: AgentRecLogProcessor(AgentRecSpanProcessor(path)),
    RecordingSpanExporter: lambda path: RecordingSpanExporter(path),
    RecordingLogExporter: lambda path: RecordingLogExporter(path),
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


def break_inside(recorder: Recorder, error: BaseException) -> None:
    for name, value in vars(recorder).items():
        if not isinstance(value, KEPT):
            setattr(recorder, name, Broken(error))


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
    recorder = made.recorder
    capsys.readouterr()
    working = dict(vars(recorder))
    break_inside(recorder, error)
    method = getattr(made, name)
    for _ in range(3):
        method(*arguments(method))
    said = capsys.readouterr().err
    if f"def {name}" in inspect.getsource(cls):
        assert recorder.counters.as_dict()["swallowed"] == 3
        assert said.count("injected") == 1, said
    vars(recorder).update(working)
    recorder.shutdown()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(("cls", "name"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_the_wish_to_stop_passes(tmp_path: Path, cls: type, name: str, stop: type[BaseException]) -> None:
    made = MAKERS[cls](tmp_path / "rec")
    recorder = made.recorder
    working = dict(vars(recorder))
    break_inside(recorder, stop())
    method = getattr(made, name)
    if f"def {name}" in inspect.getsource(cls):
        with pytest.raises(stop):
            method(*arguments(method))
    vars(recorder).update(working)
    recorder.shutdown()
