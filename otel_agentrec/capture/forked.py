"""The end of a child that ``multiprocessing`` has forked. It leaves by ``os._exit``, so nothing that is registered for the end of
the interpreter is called; its own finalisers are, and they are forgotten at its start. So ours is put in after that.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otel_agentrec.capture.recorder import Recorder

__all__ = ["end_with_child"]

_LAST = -1_000_000
"""Priority of a finaliser: after all others, those of queues and of further children among them."""


def end_with_child(recorder: Recorder) -> None:
    """In a forked child: its recording is closed when it ends, if it is one of ``multiprocessing``."""
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(recorder, _put_in)


def _put_in(recorder: Recorder) -> None:
    util: Any = sys.modules["multiprocessing.util"]
    util.Finalize(None, _end, args=(weakref.ref(recorder),), exitpriority=_LAST)


def _end(of: weakref.ref[Recorder]) -> None:
    recorder = of()
    if recorder is None:
        return
    error = sys.exc_info()[1]  # it is called while what the child's function raised is on its way
    is_good = error is None or (isinstance(error, SystemExit) and error.code in (None, 0))
    if not is_good and recorder.edge.program is not None:
        recorder.edge.program.failed(type(error).__name__)
    recorder.shutdown()
