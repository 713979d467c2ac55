"""A cache as a JSON file: what was asked and what was answered, in the clear. No keys: they are made anew on load.

::

    {"format": "agentrec-resume-cache/1", "match": "content", "inert": [],
     "modelResults": [{"form": "prompt", "request": …, "result": …, "type": "AgentModelResult"}],
     "toolOutputs": [{"request": {"name", "arguments"}, "callId", "output": …}]}
"""

from __future__ import annotations

import logging
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otel_agentrec.errors import UsageError
from otel_agentrec.journal.canonical import canonical, denormalise, from_canonical, normalise
from otel_agentrec.journal.sync import sync_directory
from otel_agentrec.prompts import AgentModelResult, AgentToolResult
from otel_agentrec.records import NodeType
from otel_agentrec.resume.entries import Entry
from otel_agentrec.resume.requests import Request

if TYPE_CHECKING:
    from otel_agentrec.resume.cache import Match, ResumeCache

__all__ = ["FORMAT", "load", "save"]

Json = Any
FORMAT = "agentrec-resume-cache/1"
_TYPES: dict[str, Any] = {"AgentModelResult": AgentModelResult, "AgentToolResult": AgentToolResult}
_DEPTH, _BYTES = 20_000, 1 << 30
_log = logging.getLogger("otel_agentrec")


def save(cache: ResumeCache, path: str | os.PathLike[str]) -> None:
    """Write a cache; the file is there whole or not at all. What would not come back as it was is left out, with a warning."""
    models = [entry for e in cache.entries(NodeType.MODEL) if (entry := _line(e, "result")) is not None]
    tools = [entry for e in cache.entries(NodeType.TOOL) if (entry := _line(e, "output")) is not None]
    data = {
        "format": FORMAT,
        "match": cache.match,
        "inert": list(cache.inert),
        "modelResults": models,
        "toolOutputs": tools,
    }
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(canonical(data))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def load(
    kind: type[ResumeCache], path: str | os.PathLike[str], match: Match | None, options: dict[str, Any]
) -> ResumeCache:
    """Read a cache."""
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        return kind(match or "content", **options)
    try:
        data = from_canonical(raw)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        options.setdefault("inert", data.get("inert") or ())
        cache = kind(match or data["match"], **options)
        for e in data["modelResults"]:
            cache.restore(*_entry(NodeType.MODEL, e, "result"))
        for e in data["toolOutputs"]:
            cache.restore(*_entry(NodeType.TOOL, e, "output"))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{os.fspath(path)!r} is no saved ResumeCache: {error}", "delete it to start with an empty one"
        ) from error
    return cache


def _line(entry: Entry, value_name: str) -> dict[str, Json] | None:
    if entry.held is None:
        return None
    typed = next((name for name, t in _TYPES.items() if type(entry.value) is t), None)
    plain = entry.value.to_json() if typed else entry.value
    form = normalise(plain, max_depth=_DEPTH, max_bytes=_BYTES)
    if not typed and not _comes_back(form, plain):
        _log.warning(
            "an answer of %s is not saved: a %s can't be written as JSON", entry.held.form, type(plain).__name__
        )
        return None
    line = {"form": entry.held.form, "request": entry.held.normal(), value_name: form}
    line.update({"type": typed} if typed else {})
    line.update({"callId": entry.call_id} if entry.call_id is not None else {})
    return line


def _entry(kind: NodeType, line: dict[str, Json], value_name: str) -> tuple[NodeType, Request, Any]:
    value = denormalise(line[value_name])
    typed = _TYPES.get(line.get("type", ""))
    request = Request(line["form"], denormalise(line["request"]), line.get("callId"))
    return kind, request, value if typed is None else typed.from_json(value)


def _comes_back(form: Json, value: Any) -> bool:
    try:
        back = denormalise(form)
        return type(back) is type(value) and bool(back == value or value != value)
    except Exception:
        return False
