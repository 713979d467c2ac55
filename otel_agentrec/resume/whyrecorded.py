"""Why a request would not be answered from a recording: for the command ``why-miss``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from otel_agentrec.errors import UsageError
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.keys import KeyRing, NoKey
from otel_agentrec.nodes.whole import lost_in
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.resume.choosing import Resumable, resumables
from otel_agentrec.resume.entries import DEFAULT_INERT
from otel_agentrec.resume.recorded import recorded_calls
from otel_agentrec.resume.requests import Request, WireRequest, asked_model, asked_tool
from otel_agentrec.resume.tape import Outcome, Recorded
from otel_agentrec.resume.whymiss import Known, MissReport, explain

__all__ = ["read_request", "why_miss_in"]

Json = Any
_FORMS = (
    'a tool call {"name", "arguments"}, a request body {"model", "messages" …}, {"method", "path", "api", "body"}, '
    "an AgentPrompt, or a line of `nodes --json`"
)
_ENDED = {
    Outcome.FAILED: "it failed",
    Outcome.CUT: "its stream was cut off",
    Outcome.OPEN: "nothing tells how it ended",
}


def read_request(value: Json) -> list[Request]:
    """What a JSON file asks, in every form that it may be meant in, the likeliest first.

    Raises:
        UsageError: it is no request.
    """
    if isinstance(value, dict) and value.get("nodeType") in ("MODEL", "TOOL"):
        inputs = value.get("inputs")
        if value["nodeType"] == "TOOL" and isinstance(inputs, dict):
            return [asked_tool(inputs)]
        value = inputs
    if not isinstance(value, dict) or not value:
        raise UsageError("that is no request", f"give {_FORMS}")
    if isinstance(value.get("name"), str) and "arguments" in value:
        return [asked_tool(value)]
    told = [value.get(name) for name in ("method", "path", "api")]
    if "body" in value and all(isinstance(x, str) for x in told):
        method, path, api = (str(x) for x in told)
        return [asked_model(WireRequest(method, path, value["body"], api))]
    if "items" in value:
        return [Request("prompt", value)]
    return [Request("body", value), Request("inputs", value), Request("prompt", value)]


def why_miss_in(recording: Recording, asked: Json, *, run: str | None = None, inert: Iterable[str] = ()) -> MissReport:
    """Compare a request with all that a recording holds.

    Args:
        asked: a parsed JSON file, see :func:`read_request`.
        run: only calls of this run and its attempts (an id, or the beginning of one).

    Raises:
        UsageError: it is no request, or there is no such run.
    """
    requests, inert = read_request(asked), tuple(inert)
    view = fold(recording)
    root = None if run is None else _root(resumables(recording, view), run)
    ring = KeyRing.of(recording.directory, create=False)
    calls = recorded_calls(recording, root, ring, inert, view)
    reports = [report for request in requests if (report := _report(request, calls, ring, inert)) is not None]
    found = [report for report in reports if report.hit or report.nearest is not None]
    best = next((report for report in found if report.hit), None)
    return best or min(found, key=lambda report: len(report.differences), default=reports[0])


def _report(request: Request, calls: list[Recorded], ring: KeyRing, inert: tuple[str, ...]) -> MissReport | None:
    kind = NodeType.TOOL if request.form == "tool" else NodeType.MODEL
    of_kind = [call for call in calls if call.kind is kind]
    declared = inert_of(
        inert,
        DEFAULT_INERT["wire" if request.form in ("wire", "body") else "tool" if kind is NodeType.TOOL else "prompt"],
    )
    if request.form in ("prompt", "tool", "wire"):
        known_by_key = _by_key(request, of_kind, ring, inert)
        if known_by_key is not None:
            return known_by_key
    value = request.value if request.form in ("body", "inputs") else request.compared
    name = {"body": "body", "inputs": "inputs"}.get(request.form, request.kind)
    try:
        return explain(value, name, _known(request.form, of_kind), declared)
    except (NoKey, RecursionError):
        raise UsageError("the request is nested too deeply to be compared", f"give {_FORMS}") from None


def _by_key(request: Request, calls: list[Recorded], ring: KeyRing, inert: tuple[str, ...]) -> MissReport | None:
    """What the stored keys say: they were made before anything was redacted."""
    try:
        keys = [key for key in request.keys(ring, inert) if key is not None]
    except NoKey:
        return None
    same = [call for call in calls if set(keys) & {*call.keys, *call.aliases}]
    whole = next((call for call in same if _unfit(call) is None), None)
    if whole is not None:
        return MissReport(True, f"a recorded answer fits: {whole.label}", whole.label, whole.step, compared=len(calls))
    if same:
        reason = f"this very request was recorded as {same[0].label}, but {_unfit(same[0])}"
        return MissReport(False, reason, same[0].label, same[0].step, compared=len(calls))
    return None


def _known(form: str, calls: list[Recorded]) -> Iterator[Known]:
    for call in calls:
        unfit = _unfit(call)
        if form == "inputs":
            if isinstance(call.answer, NodeIoRecord) and lost_in(call.answer.inputs) is None:
                yield Known(call.label, "inputs", call.answer.inputs, call.step, unfit=unfit)
        elif call.request is not None:
            kind = "body" if form == "body" and call.request.form == "wire" else call.request.kind
            yield Known(call.label, kind, call.request.compared, call.step, unfit=unfit)


def _unfit(call: Recorded) -> str | None:
    why = _ENDED.get(call.outcome) or call.unfit
    if why is None and not call.keys:
        return "it has no key: only its span is known, which need not tell the whole request"
    return why


def _root(found: list[Resumable], run: str) -> str:
    meant = [one.root for one in found if any(attempt.id.startswith(run) for attempt in one.runs)]
    if len(meant) != 1:
        said = f"{len(meant)} runs begin with {run!r}" if meant else f"there is no run {run!r}"
        raise UsageError(said, "otel-agentrec runs lists them")
    return meant[0]
