"""``@resumable_tool``: a function whose effect happens once, however often the program is started again.

    @resumable_tool
    def charge(customer: str, cents: int) -> Receipt: ...

Every call is journalled as an effect before its first instruction, and asked about first: when a run is resumed (by
``otel-agentrec run --resume``, or with ``cache=ResumeCache.from_recording(path)``), a call that was done gives its recorded
result, one that failed raises again, and one whose outcome nobody knows raises UnknownOutcomeError.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from otel_agentrec.errors import ConfigurationError, UsageError
from otel_agentrec.intercept.declared import DAY, Declared, declare
from otel_agentrec.intercept.recording_tools import RUNNING, mint
from otel_agentrec.intercept.tools.point import Point, Seen
from otel_agentrec.resume.asking import Asking
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.cached_tools import cached
from otel_agentrec.resume.signatures import Signature

__all__ = ["Asking", "resumable_tool"]

F = TypeVar("F", bound=Callable[..., Any])
HOOK = "resumable_tool"


@overload
def resumable_tool(tool: F, /) -> F: ...


@overload
def resumable_tool(
    *,
    name: str | None = None,
    cache: ResumeCache | None = None,
    effect: bool | Literal["container"] = True,
    idempotency_key: str | None = None,
    idempotency_ttl: float = DAY,
    reconcile: Callable[[Any], Any] | None = None,
    inert: tuple[str, ...] | list[str] = (),
    leave_out: tuple[str, ...] | list[str] = (),
) -> Callable[[F], F]: ...


def resumable_tool(
    tool: F | None = None,
    /,
    *,
    name: str | None = None,
    cache: ResumeCache | None = None,
    effect: bool | Literal["container"] = True,
    idempotency_key: str | None = None,
    idempotency_ttl: float = DAY,
    reconcile: Callable[[Any], Any] | None = None,
    inert: tuple[str, ...] | list[str] = (),
    leave_out: tuple[str, ...] | list[str] = (),
) -> Any:
    """Make a function a tool whose effect is not repeated. Plain and async functions, and generators of both kinds.

    What tells two calls apart is the tool's name and its arguments, defaults applied. Left out are ``self`` and ``cls``, a
    parameter named ``ctx``, one whose annotation is a class with ``Context`` or ``Runtime`` in its name, and those that
    ``leave_out`` names: what a framework injects is another object in every process.

    Args:
        name: what the model calls it; default: the function's name.
        cache: a ResumeCache that is asked first and told what came of a call. One made by ``from_recording`` resumes that
            recording's run.
        effect: True; False: it only reads, and may be called again when nobody knows what came of it; ``"container"``: an
            agent as a tool, which is entered again unless it has a recorded result.
        idempotency_key: the parameter that gets a key which is made once per call and the same in every later attempt, so
            that a call whose outcome is unknown may be made again.
        idempotency_ttl: seconds that the service keeps such a key.
        reconcile: called with an :class:`UnknownEffect`, gives ``Outcome.done(result)``, ``Outcome.not_done()``, or None.
        inert: paths of arguments that can't change the result (``$.trace_id``).
        leave_out: further parameters that are no arguments of the call.

    Raises (the tool, when it is called):
        UnknownOutcomeError: it was begun before, and nobody knows whether it happened.
        LedgerUnavailable: nothing records, or its intent can't be made durable; it was not called. Only where it has an
            effect; OTEL_AGENTREC_ENABLED=false lets all calls pass.

    Raises:
        ConfigurationError: the function has no such parameter, or a declaration contradicts another.
    """
    if tool is None:
        return functools.partial(
            resumable_tool,
            name=name,
            cache=cache,
            effect=effect,
            idempotency_key=idempotency_key,
            idempotency_ttl=idempotency_ttl,
            reconcile=reconcile,
            inert=inert,
            leave_out=leave_out,
        )
    if not callable(tool):
        raise UsageError(f"{tool!r} is no function", "@resumable_tool, or @resumable_tool(effect=False, …)")
    if effect not in (True, False, "container"):
        raise ConfigurationError(f"effect={effect!r} is no effect", 'one of: True, False, "container"')
    if reconcile is not None and inspect.iscoroutinefunction(reconcile):
        raise ConfigurationError(
            f"reconcile of {tool!r} is async", "give a plain function: it is asked before the tool"
        )
    called = str(name or getattr(tool, "__name__", type(tool).__name__))
    signature = Signature(tool, leave_out, idempotency_key)
    said = Declared(effect, idempotency_key, idempotency_ttl, reconcile, tuple(inert), is_kept=True)
    declare(called, said)
    kind: Any = {True: "effect", False: "read"}.get(effect, "container")  # type: ignore[arg-type]
    asking = Asking(cache)

    def identify(*args: Any, **kwargs: Any) -> Seen:
        return Seen(called, signature.arguments(args, kwargs), None, kind)

    point = Point(HOOK, identify, answerer=asking)
    wrapped = _form(point, tool, signature)

    if cache is not None and cache.recording is None:
        wrapped = cached(cache, called, signature, wrapped)
    if inspect.iscoroutinefunction(wrapped):

        @functools.wraps(tool)
        async def calls(*args: Any, **kwargs: Any) -> Any:
            return signature.result(await wrapped(*args, **kwargs))

        return calls
    if inspect.isasyncgenfunction(wrapped) or inspect.isgeneratorfunction(wrapped):
        return wrapped

    @functools.wraps(tool)
    def call(*args: Any, **kwargs: Any) -> Any:
        return signature.result(wrapped(*args, **kwargs))

    return call


def _form(point: Point, tool: Callable[..., Any], signature: Signature) -> Callable[..., Any]:
    """The tool behind the point, in the form that it has; the idempotency key is put in behind it."""

    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if signature.key is None:
            return args, kwargs
        around = RUNNING.get()
        key = around[-1].idempotency_key if around and around[-1].running else None
        return signature.with_key(args, kwargs, key or mint())

    if inspect.isasyncgenfunction(tool) or inspect.isgeneratorfunction(tool):

        @functools.wraps(tool)
        def stream(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = given(args, kwargs)
            return tool(*args, **kwargs)

        return point.generator(stream) if inspect.isasyncgenfunction(tool) else point.iterator(stream)
    if inspect.iscoroutinefunction(tool):

        @functools.wraps(tool)
        async def task(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = given(args, kwargs)
            return await tool(*args, **kwargs)

        return point.coroutine(task)

    @functools.wraps(tool)
    def plain(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = given(args, kwargs)
        return tool(*args, **kwargs)

    return point.sync(plain)
