"""An Apache Kafka broker of its own (KRaft, one node), and what its topics hold, as a client of another make reads them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.servers import built
from tests.servers.program import Program, free_ports

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

CLIENT = Path(__file__).parent / "kafka_client.py"
REQUIREMENTS = Path(__file__).parent / "kafka_client.txt"
STARTED = "Kafka Server started"
LARGEST = 20 << 20
"""Bytes of a message that the broker takes, as collector-config/kafka.yaml sends them."""
PARTITIONS = 4


@dataclass(frozen=True)
class Message:
    """A record of a topic; ``key`` is None where it was sent without one."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes


class Kafka(Program):
    """Its data is made with the constructor; topics come into being once something is sent to them."""

    def __init__(self, directory: Path) -> None:
        self.port, controller = free_ports(2)
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(directory / "data"),
            "num.partitions": str(PARTITIONS),
            "message.max.bytes": str(LARGEST),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        directory.mkdir(parents=True, exist_ok=True)
        properties = directory / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        heap = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]  # it lives for seconds
        self._java = ["java", *heap, "-cp", f"{built.kafka()}/*"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
        super().__init__(directory, [*self._java, "kafka.Kafka", str(properties)], environment)
        cluster = base64.urlsafe_b64encode(b"otel-agentrec-te").decode().rstrip("=")
        words = [*self._java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._before = self.log.count(STARTED)
        super().start()

    def is_healthy(self) -> bool:
        return self.log.count(STARTED) > self._before

    def messages(self, topic: str, at_least: int, seconds: float = 60.0) -> list[Message]:
        """All that a topic holds, once there are so many or the time is over; by partition and offset."""
        words = [
            str(environments.python_with(REQUIREMENTS)),
            "-I",  # this folder has a module named kafka, too
            str(CLIENT),
            self.broker,
            topic,
            str(at_least),
            str(seconds),
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds + 60)
        assert done.returncode == 0, done.stderr
        found = [json.loads(line) for line in done.stdout.splitlines()]
        messages = [
            Message(
                one["partition"],
                one["offset"],
                None if one["key"] is None else base64.b64decode(one["key"]),
                base64.b64decode(one["value"]),
            )
            for one in found
        ]
        return sorted(messages, key=lambda message: (message.partition, message.offset))
