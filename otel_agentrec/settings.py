"""Every setting in one table: its name, default, the form it takes as an environment variable, and what it means.

Arguments beat the environment, the environment beats the defaults. ``Settings.load`` reads the environment once; an unknown
``OTEL_AGENTREC_*`` name gives a warning that names the nearest known one. OTel's own variables keep their meaning and are
not listed here.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from otel_agentrec.errors import ConfigurationError

__all__ = ["PREFIX", "TABLE", "Setting", "Settings", "name_of_host", "unknown_names"]

PREFIX = "OTEL_AGENTREC_"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: ``parse`` brings text or an argument into its final form and raises ValueError with what is allowed."""

    name: str
    default: Any
    parse: Callable[[Any], Any]
    doc: str

    @property
    def variable(self) -> str:
        """The environment variable of this setting."""
        return PREFIX + self.name.upper()


def _text(value: Any) -> str | None:
    return (os.fspath(value) if isinstance(value, os.PathLike) else str(value)) or None


def _path(value: Any) -> str | None:
    text = _text(value)
    if text is not None and "\0" in text:
        raise ValueError("a path without NUL characters")
    return text


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise ValueError("true or false")


def _one_of(*words: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        text = str(value).strip().lower()
        if text not in words:
            raise ValueError(" or ".join(words))
        return text

    return parse


_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def _size(value: Any) -> int:
    """A positive number of bytes: ``33554432``, ``32M``, ``32 MiB``."""
    text = str(value).strip().lower().removesuffix("ib").removesuffix("b").strip()
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "")
    if not number.strip().isdecimal() or unit not in _UNITS or int(number) == 0:
        raise ValueError("a number of bytes such as 33554432 or 32M")
    return int(number) * _UNITS[unit]


def _value_size(value: Any) -> int:
    size = _size(value)
    if size > 32 * 2**20:
        raise ValueError("at most 32M")
    return size


def _count(value: Any) -> int:
    text = str(value).strip()
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("a number above 0")
    return int(text)


def _names(value: Any) -> tuple[str, ...]:
    """``a,b`` or a sequence."""
    parts = value.split(",") if isinstance(value, str) else [str(one) for one in value]
    return tuple(part.strip() for part in parts if part.strip())


def _redact(value: Any) -> Any:
    """Rules are not looked at here: the redaction room knows them."""
    return "off" if value is False else value.strip() or "default" if isinstance(value, str) else value


def _events(value: Any) -> Any:
    """A word, or an exporter of log records."""
    return value if hasattr(value, "export") else "off" if value is False else _one_of("off", "otlp")(value)


TABLE: tuple[Setting, ...] = (
    Setting("path", None, _path, "directory of the recording; recording takes place only when it is set"),
    Setting("enabled", True, _flag, "false switches recording off wherever it was switched on"),
    Setting(
        "durability",
        "written",
        _one_of("deferred", "written", "fsync"),
        "written: in the kernel before the span's end returns, survives the process; fsync: on disk, survives the machine; "
        "deferred: written within 20 ms by a thread, survives a normal exit",
    ),
    Setting("queue", 4096, _count, "deferred: spans that may wait; beyond it they are dropped and counted"),
    Setting(
        "content",
        "detached",
        _one_of("detached", "inline", "off"),
        "detached: in erasable cells beside the events; inline: in the events, not erasable; off: not recorded",
    ),
    Setting(
        "value_bytes",
        32 * 2**20,
        _value_size,
        "of a single value (a message, an argument, a result) that is larger, the large parts are cut: their size and digest "
        "stand in their place",
    ),
    Setting(
        "sinks",
        (),
        _names,
        "what also receives node records: files (one JSON record a line), or module:callable that makes a sink, with commas "
        "between them",
    ),
    Setting(
        "segment_bytes", 256 * 2**20, _size, "a stream that has grown to this size is sealed and a new one goes on"
    ),
    Setting("origin", None, _text, "name of the writing host in the recording; default: the host name"),
    Setting(
        "session_attribute", None, _text, "span attribute that holds the session id, beside gen_ai.conversation.id"
    ),
    Setting(
        "sessions",
        True,
        _flag,
        "model calls that name their conversation also become the events of a session; false: they do not",
    ),
    Setting(
        "redact",
        "default",
        _redact,
        "which secrets are taken out of what is recorded: default (credentials), off, module:callable, email, card, or a JSON "
        "path; several with commas between them",
    ),
    Setting(
        "wire",
        None,
        _flag,
        "true: model calls are also recorded as they stand on the wire, with the provider's own request and response bytes; "
        "default: true under otel-agentrec run, opentelemetry-instrument and the instrumentor, else false",
    ),
    Setting(
        "wire_paths",
        None,
        _text,
        "more URL paths that are model calls: globs with commas between them; API=GLOB names the form of their bodies, such as "
        "openai.chat=/gateway/*",
    ),
    Setting(
        "events",
        "off",
        _events,
        "otlp: every event of the recording also goes out as an OTLP log record, references only, as OTEL_EXPORTER_OTLP_* say",
    ),
    Setting("run_id", None, _text, "run id of every event of this process"),
    Setting("resume", None, _path, "recording whose unfinished run this process goes on with"),
    Setting(
        "resume_run", None, _text, "the run in it that is meant; default: the only one that did not come to its end"
    ),
    Setting(
        "on_divergence",
        "stop",
        _one_of("stop", "live"),
        "stop: a resumed program that asks for something else than the recorded run did is stopped; live: it goes on for real "
        "from there, and says so on every call",
    ),
    Setting(
        "rerun_tools",
        (),
        _names,
        "tools that a resumed program may run again though nobody intercepts them: names with commas between them, or all",
    ),
    Setting(
        "rerun_processes",
        False,
        _flag,
        "true: other processes that belonged to a resumed program may do again what they did",
    ),
    Setting(
        "inert",
        (),
        _names,
        "JSON paths of model requests that can't change the answer, with commas between them, such as $.metadata.request_id",
    ),
    Setting(
        "retries",
        "replay",
        _one_of("replay", "collapse"),
        "what a resumed program gets where its client asked again: replay, every answer as it was, errors and waiting included; "
        "collapse, only the last one",
    ),
    Setting(
        "log_level",
        None,
        _one_of("debug", "info", "warning", "error"),
        "show the log of otel-agentrec itself on stderr from this level on",
    ),
)
_ROWS = {row.name: row for row in TABLE}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one recorder. The meaning of each field stands in :data:`TABLE`."""

    path: str | None = None
    enabled: bool = True
    durability: str = "written"
    queue: int = 4096
    content: str = "detached"
    value_bytes: int = 32 * 2**20
    sinks: tuple[str, ...] = ()
    segment_bytes: int = 256 * 2**20
    origin: str | None = None
    session_attribute: str | None = None
    sessions: bool = True
    redact: Any = "default"
    wire: bool | None = None
    wire_paths: str | None = None
    events: Any = "off"
    run_id: str | None = None
    resume: str | None = None
    resume_run: str | None = None
    on_divergence: str = "stop"
    rerun_tools: tuple[str, ...] = ()
    rerun_processes: bool = False
    inert: tuple[str, ...] = ()
    retries: str = "replay"
    log_level: str | None = None

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **arguments: Any) -> Settings:
        """The settings in force: ``arguments`` that are not None, else ``OTEL_AGENTREC_*`` of ``environ``, else defaults.

        An empty environment variable counts as absent, as in OTel.

        Raises:
            ConfigurationError: a value can't be used, or an argument is not a setting.
        """
        environ = os.environ if environ is None else environ
        unknown = sorted(set(arguments) - set(_ROWS))
        if unknown:
            raise ConfigurationError(f"unknown setting {unknown[0]!r}", _nearest(unknown[0], list(_ROWS)))
        values: dict[str, Any] = {}
        for row in TABLE:
            value, said_by = arguments.get(row.name), row.name
            if value is None:
                value, said_by = environ.get(row.variable) or None, row.variable
            if value is None:
                continue
            try:
                values[row.name] = row.parse(value)
            except ValueError as allowed:
                raise ConfigurationError(f"{said_by}={value!r} can't be used", f"give {allowed}") from None
        return cls(**values)

    def digest(self) -> str:
        """sha256 (hex) of the settings, so that recordings made under other settings are told apart."""
        said = "\n".join(f"{row.name}={_spelled(getattr(self, row.name))}" for row in TABLE)
        return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def host(self) -> str:
        """``origin`` without its secrets, else the host name.

        Raises:
            ConfigurationError: ``redact`` can't be used.
        """
        if self.origin:
            from otel_agentrec.redaction import Redactor

            return Redactor.from_setting(self.redact).text(self.origin)
        return socket.gethostname() or "localhost"


def name_of_host() -> str:
    """What this host is called in a recording, whatever else the environment says: see :attr:`Settings.host`."""
    try:
        return Settings.load().host
    except ConfigurationError:
        return Settings().host


def _spelled(value: Any) -> str:
    """A setting as text that is the same in every process."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(_spelled, value))
    if hasattr(value, "export"):
        value = type(value)
    return f"{value.__module__}:{value.__qualname__}" if hasattr(value, "__qualname__") else str(value)


def unknown_names(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """``OTEL_AGENTREC_*`` variables that mean nothing -> one line that names the nearest known one."""
    environ = os.environ if environ is None else environ
    known = [row.variable for row in TABLE]
    return {
        name: _nearest(name, known)
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in known and not name.startswith(PREFIX + "_")
    }


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
