"""Nothing that OTel calls may hurt the program: every callable handed to OTel is wrapped by :class:`Guard`.

The SDK calls processors without a guard of its own: an exception in ``on_end`` would reach the agent and skip the
processors behind ours. A guarded callable swallows Exception (RecursionError and MemoryError among them), counts it and
says so once per kind on stderr; KeyboardInterrupt and SystemExit pass.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from otel_agentrec.redaction import Redactor

__all__ = ["LOGGER_NAME", "PROCESS", "Counters", "Guard", "Notices", "guarded", "log"]

LOGGER_NAME = "otel_agentrec"
log = logging.getLogger(LOGGER_NAME)
log.addHandler(logging.NullHandler())

_REDACTOR = Redactor()
"""For what is told of trouble: exceptions of other people's code quote what they were given."""


def _without_secrets(record: logging.LogRecord) -> bool:
    record.msg, record.args = _REDACTOR.text(record.getMessage()), None
    if record.exc_info:
        record.exc_text = _REDACTOR.text(logging.Formatter().formatException(record.exc_info))
        record.exc_info = None
    return True


log.addFilter(_without_secrets)

F = TypeVar("F", bound=Callable[..., Any])


class Counters:
    """Named counts that callbacks add to. No lock: a finaliser may add while its own thread adds.

    Since Python 3.10 the interpreter changes threads and runs handlers only at calls and backward jumps, none of which lies
    inside ``counts[name] += 1`` on a dict with string keys, so no addition is lost.
    """

    __slots__ = ("_told", "counts")

    def __init__(self, *names: str) -> None:
        self.counts: dict[str, int] = dict.fromkeys(names, 0)
        self._told: dict[str, int] = {}

    def add(self, name: str, n: int = 1) -> None:
        if name not in self.counts:
            self.counts.setdefault(name, 0)
        self.counts[name] += n

    def as_dict(self) -> dict[str, int]:
        return dict(self.counts)

    def untold(self, *but: str) -> dict[str, int]:
        """What was added since this was asked last, without names where nothing was, and without those given."""
        told, self._told = self._told, dict(self.counts)
        new = {name: n - told.get(name, 0) for name, n in self._told.items() if name not in but}
        return {name: n for name, n in new.items() if n > 0}

    def reset(self) -> None:
        """Start from 0, as a forked child does."""
        self.counts.update(dict.fromkeys(self.counts, 0))
        self._told = {}


class Notices:
    """One line on stderr per kind of trouble, never more, and never an exception.

    Args:
        redact: takes the secrets out of a line; default: by the default rules.
    """

    __slots__ = ("_redact", "_said")

    def __init__(self, redact: Callable[[str], str] = _REDACTOR.text) -> None:
        self._said: set[str] = set()
        self._redact = redact

    def once(self, kind: str, text: str) -> None:
        """Print ``text`` unless something of this ``kind`` was printed before. A line that failed is tried again."""
        if kind in self._said:
            return
        self._said.add(kind)
        if not self.say(text):
            self._said.discard(kind)

    def say(self, text: str, hint: str = "") -> bool:
        """Print ``text``, however often, and below it ``hint``. False when it failed."""
        try:
            stderr = sys.stderr
            if stderr is not None:
                more = f"  {self._redact(hint)}\n" if hint else ""
                stderr.write(f"otel-agentrec: {self._redact(text)}\n{more}")
                stderr.flush()
        except Exception:
            return False
        return True


class Guard:
    """Wraps callables for OTel. Counts in ``counters`` under ``swallowed`` and under ``swallowed.<where>``."""

    __slots__ = ("counters", "notices")

    def __init__(self, counters: Counters, notices: Notices) -> None:
        self.counters = counters
        self.notices = notices

    def wrap(self, where: str, fn: F, fallback: Any = None) -> F:
        """``fn`` that returns ``fallback`` instead of raising an Exception. ``where`` names it in the notice."""

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return call.__wrapped__(*args, **kwargs)
            except Exception as error:
                try:
                    self.swallow(where, error)
                except Exception:
                    pass  # no stack left for even one more call
                return fallback

        return cast(F, call)

    def run(self, where: str, fn: Callable[..., Any], *args: Any) -> Any:
        """Call ``fn`` once, guarded."""
        try:
            return fn(*args)
        except Exception as error:
            self.swallow(where, error)
            return None

    def run_later(self, where: str, fn: Callable[..., Any], *args: Any) -> Any:
        """The same for what was put off: whoever asked for it has gone on, so no error of it is anybody's, whatever its class.
        Only what a signal handler raises passes, which runs on the main thread."""
        try:
            return fn(*args)
        except BaseException as error:
            is_signal = isinstance(error, (KeyboardInterrupt, SystemExit))
            if is_signal and threading.current_thread() is threading.main_thread():
                raise
            self.swallow(where, error)
            return None

    def swallow(self, where: str, error: BaseException) -> None:
        """Count an exception and tell of it. Never raises, not even at the recursion limit."""
        try:
            counts = self.counters.counts
            counts["swallowed"] = counts.get("swallowed", 0) + 1
            self.counters.add(f"swallowed.{where}")
            kind = type(error).__name__
            self.notices.once(
                f"swallowed {where} {kind}",
                f"{kind} in {where} was swallowed, the program is not affected: {_short(error)} (said once per kind)",
            )
            log.debug("swallowed in %s", where, exc_info=error)
        except Exception:
            pass


PROCESS = Guard(Counters(), Notices())
"""Of what belongs to no recorder: the start of recording, listeners."""


def guarded(where: str, fallback: Any = None) -> Callable[[F], F]:
    """Guard a method of an object whose ``guard`` attribute is a :class:`Guard`."""

    def decorate(fn: F) -> F:
        @functools.wraps(fn)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return call.__wrapped__(self, *args, **kwargs)
            except Exception as error:
                try:
                    self.guard.swallow(where, error)
                except Exception:
                    pass  # no stack left for even one more call
                return fallback

        return cast(F, call)

    return decorate


def _short(error: BaseException) -> str:
    """The message of an error on one line; a broken ``__str__`` gives nothing."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        return ""
    return text if len(text) <= 200 else text[:197] + "..."
