"""Results of tools as JSON: by canonical JSON when that is exact, else by a codec that the outcome names.

| ``codec`` | ``value`` |
|---|---|
| none | the result itself: it is JSON, and canonical JSON loses nothing of it |
| ``python`` | JSON text of :mod:`~otel_agentrec.intercept.tools.values` |
| ``<framework>.<Type>`` | what the codec of an adapter wrote |
| ``driven`` | what a stream yielded whose consumer sent it something: half of it is the consumer's, so nobody hands it out again |
| ``not-kept`` | ``{"class": …, "reason": …}``: nothing can make this result again; whoever must is told when it is recorded |

Every value is read back before it counts as kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from otel_agentrec.capture.outcomes import is_unknown
from otel_agentrec.errors import RunStopped
from otel_agentrec.intercept.protocol import ToolOutcome
from otel_agentrec.intercept.tools.raised import error_again, error_kept
from otel_agentrec.intercept.tools.values import NotKept, from_text, same, to_text
from otel_agentrec.journal.canonical import canonical_any, from_canonical

__all__ = [
    "DRIVEN",
    "NOT_KEPT",
    "Codec",
    "NotKept",
    "ResultUnreadable",
    "from_json",
    "handed_out",
    "is_kept",
    "outcome_of",
    "outcome_of_error",
    "register",
    "result_again",
    "to_json",
]

Json = Any
NOT_KEPT = "not-kept"
PYTHON = "python"
DRIVEN = "driven"


class ResultUnreadable(RunStopped):
    """A recorded result of a tool can't be made again here, and the tool must not run in its place."""

    default_hint = "run the versions of the packages that the run was recorded with"


@dataclass(frozen=True, slots=True)
class Codec:
    """Results of one type of a framework.

    ``fits(value)``: it is of that type. ``encode(value)`` → JSON, raises :class:`NotKept` or any Exception when it can't;
    ``decode(json)`` → a new value, by public constructors. Values inside may be given to :func:`to_json` and
    :func:`from_json`. Counts as kept when encoding what was decoded gives the same JSON; where that can't be (``lossy``: it
    leaves out on purpose what nobody needs), when it can be decoded.
    """

    name: str
    fits: Callable[[Any], bool]
    encode: Callable[[Any], Json]
    decode: Callable[[Json], Any]
    lossy: bool = False


_CODECS: dict[str, Codec] = {}


def register(codec: Codec) -> Codec:
    """Make ``codec`` known to :func:`handed_out`; one of the same name is replaced."""
    _CODECS[codec.name] = codec
    return codec


def outcome_of(value: Any, codecs: Sequence[Codec] = ()) -> ToolOutcome:
    """The outcome of a tool that gave ``value``. Never raises an Exception; see :func:`is_kept`.

    Args:
        codecs: of the adapter, asked first.
    """
    try:
        for codec in codecs:
            if codec.fits(value):
                return ToolOutcome(_encoded(codec, value), codec.name)
        back = from_canonical(canonical_any(value))
        if same(value, back):
            return ToolOutcome(back)
        return ToolOutcome(to_text(value), PYTHON)
    except Exception as error:
        reason = str(error) if isinstance(error, NotKept) else f"{type(error).__name__}: {error}"
        named = f"{type(value).__module__}.{type(value).__qualname__}"
        return ToolOutcome({"class": named, "reason": reason}, NOT_KEPT)


def outcome_of_error(error: Exception, before: BaseException | None = None) -> ToolOutcome:
    """The outcome of a tool that raised.

    Args:
        before: the exception that was being handled when it was called.
    """
    kept = error_kept(error)
    return ToolOutcome(error={**kept, "cutOff": True} if is_unknown(error, before=before) else kept)


def is_kept(outcome: ToolOutcome) -> bool:
    """Whether :func:`handed_out` can make the result again; if not, ``outcome.value`` says why."""
    return outcome.codec != NOT_KEPT


def handed_out(outcome: ToolOutcome) -> Any:
    """What the tool gave: its result, or its exception, which is raised.

    Raises:
        ResultUnreadable: the result was not kept, or can't be made again in this process.
    """
    if outcome.error is not None:
        raise error_again(outcome.error)
    return result_again(outcome)


def result_again(outcome: ToolOutcome) -> Any:
    """The result, whatever ``outcome.error`` says.

    Raises:
        ResultUnreadable: as for :func:`handed_out`.
    """
    if outcome.codec is None:
        return _copied(outcome.value)
    if outcome.codec == DRIVEN:
        raise ResultUnreadable(
            "a recorded stream was driven by send() or throw(): what it yielded is not handed out again",
            "give the tool what it needs as arguments",
        )
    if outcome.codec == NOT_KEPT:
        raise ResultUnreadable(f"a tool's result was not kept: {(outcome.value or {}).get('reason')}")
    try:
        if outcome.codec == PYTHON:
            return from_text(outcome.value)
        return _CODECS[outcome.codec].decode(outcome.value)
    except KeyError as error:
        if outcome.codec not in _CODECS:
            raise ResultUnreadable(
                f"a tool's result was written by {outcome.codec!r}, which is not known here"
            ) from None
        raise ResultUnreadable(_why(outcome, error)) from error
    except Exception as error:
        raise ResultUnreadable(_why(outcome, error)) from error


def to_json(value: Any, codecs: Sequence[Codec] = ()) -> Json:
    """A value inside a result: ``{"value": …, "codec": …?}``.

    Raises:
        NotKept: it would not come back as it is.
    """
    outcome = outcome_of(value, codecs)
    if not is_kept(outcome):
        raise NotKept(outcome.value["reason"])
    return {"value": outcome.value} if outcome.codec is None else {"value": outcome.value, "codec": outcome.codec}


def from_json(kept: Json) -> Any:
    """The value that :func:`to_json` was given."""
    return result_again(ToolOutcome(kept["value"], kept.get("codec")))


def _encoded(codec: Codec, value: Any) -> Json:
    written = codec.encode(value)
    kept = from_canonical(canonical_any(written))
    if kept != written:
        raise NotKept(f"{codec.name}: it holds what JSON does not know")
    back = codec.decode(kept)
    if codec.lossy:
        return kept
    if type(back) is not type(value) or not same(from_canonical(canonical_any(codec.encode(back))), kept):
        raise NotKept(f"{codec.name}: what is read back differs")
    return kept


def _copied(value: Json) -> Json:
    """The program may change what it is given; the recording must not change with it."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _why(outcome: ToolOutcome, error: Exception) -> str:
    return f"a tool's result ({outcome.codec}) can't be made again here: {type(error).__name__}: {error}"
