"""What ``otel-agentrec replay`` tells the processes below it, and what they tell it: one variable, and one directory.

=====================  =================================================================================================
``started-<pid>``      a Python process that is guarded: it reaches no network, and answers from the recording
``claim``              the process whose calls are answered: the first that asked; its pid
``conflict``           why no process may be answered: another one asked too
``report.json``        its report, written when it is stopped, and again at its end
=====================  =================================================================================================
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from otel_agentrec.errors import AnswerUnavailable
from otel_agentrec.journal.wholefile import replace_file
from otel_agentrec.replay.report import ReplayReport

__all__ = ["VARIABLE", "Order"]

VARIABLE = "OTEL_AGENTREC__REPLAY"


@dataclass(frozen=True)
class Order:
    """Args:
    recording: absolute path; ``runs``: ids of those that are meant.
    desk: the directory in which the processes leave what they have to say.
    keep: the replay itself is recorded for good.
    allow_hosts, rerun_tools, inert, retries, as_http_error: see :func:`~otel_agentrec.replay.whole.replaying`.
    """

    recording: str
    desk: str
    runs: tuple[str, ...] = ()
    keep: bool = False
    allow_hosts: tuple[str, ...] = ()
    rerun_tools: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    retries: str = "replay"
    as_http_error: bool = False

    @classmethod
    def given(cls, environ: Mapping[str, str]) -> Order | None:
        """The order under which this process stands. Raises ValueError, TypeError: it is damaged."""
        text = environ.get(VARIABLE)
        if not text:
            return None
        told: dict[str, Any] = json.loads(text)
        given: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in told.items()}
        return cls(**given)

    def text(self) -> str:
        """For the variable."""
        return json.dumps(asdict(self))

    # --- what a process below says ------------------------------------------------------------------------------------

    def sign(self) -> None:
        """This process is guarded."""
        Path(self.desk, f"started-{os.getpid()}").touch()

    def claim(self) -> None:
        """The calls of this process are the ones that are answered.

        Raises:
            AnswerUnavailable: they are those of another process.
        """
        pid = str(os.getpid()).encode()
        try:
            fd = os.open(Path(self.desk, "claim"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            other = Path(self.desk, "claim").read_bytes()
            if other not in (pid, b""):
                what = f"processes {other.decode()} and {os.getpid()} both ask, and only the calls of one are replayed"
                Path(self.desk, "conflict").write_text(what)
                raise AnswerUnavailable(what, "record and replay each program by itself") from None
            return
        with os.fdopen(fd, "wb") as f:
            f.write(pid)

    def deliver(self, report: ReplayReport, *, is_done: bool) -> None:
        """Leave the report. ``is_done``: the program has come to its end."""
        text = json.dumps({**report.to_json(), "isDone": is_done}, ensure_ascii=True, default=str)
        replace_file(Path(self.desk, "report.json"), text.encode())

    def is_claimed(self) -> bool:
        """Whether a process is answered."""
        return Path(self.desk, "claim").exists()

    # --- what is found afterwards -------------------------------------------------------------------------------------

    def was_guarded(self) -> bool:
        """Whether any process signed."""
        return any(name.startswith("started-") for name in os.listdir(self.desk))  # noqa: PTH208

    def conflict(self) -> str | None:
        """Why no process may be answered."""
        try:
            return Path(self.desk, "conflict").read_text()
        except OSError:
            return None

    def delivered(self) -> tuple[ReplayReport, bool] | None:
        """(the report, whether the program came to its end); None where nothing was left."""
        try:
            told = json.loads(Path(self.desk, "report.json").read_bytes())
            return ReplayReport.from_json(told), bool(told["isDone"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
