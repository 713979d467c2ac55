"""An OpenTelemetry Collector of its own, with a configuration file as users copy it: only its variables are set."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.servers import built
from tests.servers.program import Program, free_ports, get

LIMIT = "512MiB"  # for Go's runtime: the memory limiter's percentage is one of the whole machine


class Collector(Program):
    """Made but not started. Paths that the file names relatively are in ``directory``.

    Args:
        directory: where it works.
        config: the file, for example ``built.CONFIGS / "jaeger.yaml"``.
        variables: those of the file that the test sets, besides the addresses it listens on.
    """

    def __init__(self, directory: Path, config: Path, **variables: str) -> None:
        self.grpc_port, self.http_port, self.health_port, self.metrics_port = free_ports(4)
        own = {
            "COLLECTOR_GRPC": f"127.0.0.1:{self.grpc_port}",
            "COLLECTOR_HTTP": f"127.0.0.1:{self.http_port}",
            "COLLECTOR_HEALTH": f"127.0.0.1:{self.health_port}",
            "COLLECTOR_METRICS_PORT": str(self.metrics_port),
            "GOMEMLIMIT": LIMIT,
        }
        command = [str(built.collector()), "--config", str(config)]
        super().__init__(directory, command, {**environment(), **own, **variables})

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def grpc_url(self) -> str:
        return f"grpc://127.0.0.1:{self.grpc_port}"

    def is_healthy(self) -> bool:
        return b"Server available" in get(f"http://127.0.0.1:{self.health_port}/")

    def metric(self, name: str, **labels: str) -> float:
        """The sum of one of its own counters, for example ``otelcol_exporter_sent_spans``, over all its label sets that
        have these labels. Nothing counted yet: 0."""
        total = 0.0
        for line in get(f"http://127.0.0.1:{self.metrics_port}/metrics").decode().splitlines():
            found = re.fullmatch(r"(\w+?)(?:_total)?(?:\{(.*)\})? ([-+.\deE]+)", line)
            if (
                found
                and found[1] == name
                and all(f'{key}="{value}"' in (found[2] or "") for key, value in labels.items())
            ):
                total += float(found[3])
        return total


def environment() -> dict[str, str]:
    """The variables of this process but those that the files read."""
    foreign = ("COLLECTOR_", "OTEL_", "JAEGER_", "LANGFUSE_", "KAFKA_", "GATEWAYS", "EVIDENCE_", "SAMPLING_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def validate(config: Path) -> str:
    """What ``validate`` says against a file; empty when it is valid."""
    words = [str(built.collector()), "validate", "--config", str(config)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr or f"it ended with {done.returncode}"


def components() -> dict[str, set[str]]:
    """Kind, for example ``exporters`` -> names of what was built in; kinds that a file need not name are left out."""
    done = subprocess.run(
        [str(built.collector()), "components"], capture_output=True, text=True, timeout=60, check=True
    )
    found: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        if kind := re.fullmatch(r"(receivers|processors|exporters|connectors|extensions):.*", line):
            names = found.setdefault(kind[1], set())
        elif (name := re.fullmatch(r"    - name: (\w+)", line)) and found:
            names.add(name[1])
    return {kind: names for kind, names in found.items() if names}
