"""Runs at the start of every Python process below ``otel-agentrec run``: its directory stands first on PYTHONPATH.

It may meet any interpreter, also one without this package or one too old for it, so it keeps to the oldest Python syntax.
"""

import gc
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


def _run_the_one_we_stand_before() -> None:
    """A process has only one ``sitecustomize``; the one that ours hides is run first."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100
    mine = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) not in (None, "sitecustomize"):
            raise
    finally:
        if mine is not None:
            sys.modules.setdefault("sitecustomize", mine)


def _start_recording() -> None:
    # execve keeps the process id: the process that `run` itself became is told from those that it starts. The variable stays,
    # for this process may be a launcher that becomes the program in its turn.
    is_the_command = os.environ.get("OTEL_AGENTREC__PID", "") == str(os.getpid())
    try:
        from otel_agentrec.otel.launched import start
    except Exception as error:
        if os.environ.get("OTEL_AGENTREC__REPLAY"):  # nothing of it may happen for real
            sys.stderr.write("otel-agentrec: %s can't replay: %s\n" % (sys.executable, error))  # noqa: UP031
            sys.stderr.flush()
            os._exit(125)
        if is_the_command:
            if isinstance(error, (ImportError, SyntaxError)):
                why = "it lacks this package (%s): %s -m pip install 'otel-agentrec[run]'" % (error, sys.executable)  # noqa: UP031
            else:  # OpenTelemetry reads variables when it is imported
                why = "OpenTelemetry does not start here (%s); otel-agentrec doctor says more" % error  # noqa: UP031
            sys.stderr.write("otel-agentrec: %s can't record, %s\n" % (sys.executable, why))  # noqa: UP031
            sys.stderr.flush()
            os._exit(2)
        return
    start(is_the_command)


def _start_quickly() -> None:
    # what is imported here stays: looking for garbage among it takes a tenth of the time
    collects = gc.isenabled()
    gc.disable()
    try:
        _start_recording()
    finally:
        if collects:
            gc.enable()


try:
    _run_the_one_we_stand_before()
finally:
    _start_quickly()
