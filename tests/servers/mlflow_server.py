"""An MLflow tracking server of its own, as pip installs it, and what it tells of the traces that it was sent."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from examples import environments
from tests.servers.program import Program, free_ports, get

REQUIREMENTS = Path(__file__).parent / "mlflow.txt"
CLIENT = Path(__file__).parent / "mlflow_client.py"
HEADER = "x-mlflow-experiment-id"
"""Says which experiment the spans are of; without it they are refused."""

Json = Any


class MLflow(Program):
    """Made but not started; the first one ever installs it, which takes minutes."""

    has_children = True
    start_wait = 600.0  # the first start has yet to compile what it imports

    def __init__(self, directory: Path) -> None:
        self.python = environments.python_with(REQUIREMENTS)
        (self.port,) = free_ports(1)
        server = ["server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        stores = ["--backend-store-uri", f"sqlite:///{directory / 'mlflow.db'}"]
        stores += ["--default-artifact-root", str(directory / "artifacts")]
        # its own programs start others by name
        path = f"{self.python.parent}:{environments.environment().get('PATH', '')}"
        own = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self._variables = environments.environment(PYTHONPATH="", PATH=path, **own)
        super().__init__(directory, [str(self.python), "-m", "mlflow", *server, *stores], self._variables)

    @property
    def url(self) -> str:
        """Of its pages, its API, and its OTLP receiver over HTTP."""
        return f"http://127.0.0.1:{self.port}"

    def is_healthy(self) -> bool:
        get(f"{self.url}/health")
        return True

    def start(self) -> None:
        """Returns once it takes spans: the first request makes it import so much that a sender gives up."""
        super().start()
        empty = Request(f"{self.url}/v1/traces", b"", {HEADER: "0", "Content-Type": "application/x-protobuf"})
        with contextlib.suppress(HTTPError):
            urlopen(empty, timeout=self.start_wait).close()

    def traces(self, experiment: str = "0") -> list[dict[str, Json]]:
        """All traces of an experiment, as MLflow's own client has them: ``info`` and ``data``."""
        words = [str(self.python), str(CLIENT), self.url, experiment]
        done = subprocess.run(words, env=self._variables, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def wait_for(self, count: int, experiment: str = "0", seconds: float = 120.0) -> list[dict[str, Json]]:
        """The traces of an experiment once they have ``count`` spans together.

        Raises:
            AssertionError: they had not within ``seconds``.
        """
        until = time.monotonic() + seconds
        while (found := sum(len(one["data"]["spans"]) for one in self.traces(experiment))) < count:
            assert time.monotonic() < until, f"MLflow has {found} spans, not {count}: {self.log[-2000:]}"
        return self.traces(experiment)
