"""A Jaeger 2 of its own, with its file of collector-config/, which keeps spans in memory, and what its query API answers."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

from tests.servers import built
from tests.servers.collector import environment
from tests.servers.program import Program, free_ports, get

EARLY, LATE = "2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"

Json = Any


class Jaeger(Program):
    """Made but not started; once killed or stopped it has forgotten all."""

    def __init__(self, directory: Path) -> None:
        self.grpc_port, self.http_port, self.query_port, query_grpc, self.health_port = free_ports(5)
        own = {
            "JAEGER_GRPC": f"127.0.0.1:{self.grpc_port}",
            "JAEGER_HTTP": f"127.0.0.1:{self.http_port}",
            "JAEGER_UI": f"127.0.0.1:{self.query_port}",
            "JAEGER_QUERY_GRPC": f"127.0.0.1:{query_grpc}",
            "JAEGER_HEALTH": f"127.0.0.1:{self.health_port}",
        }
        super().__init__(
            directory,
            [str(built.jaeger()), "--config", str(built.CONFIGS / "jaeger-server.yaml")],
            {**environment(), **own},
        )

    @property
    def otlp_url(self) -> str:
        """Of its own OTLP receiver over HTTP."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def grpc_url(self) -> str:
        return f"grpc://127.0.0.1:{self.grpc_port}"

    @property
    def query_url(self) -> str:
        return f"http://127.0.0.1:{self.query_port}"

    def is_healthy(self) -> bool:
        get(f"http://127.0.0.1:{self.health_port}/status")
        return bool(get(f"{self.query_url}/api/v3/services"))

    def stop(self) -> None:
        """At once: it has nothing to deliver, and in good order it takes ten seconds."""
        self.kill()

    def services(self) -> list[str]:
        found = json.loads(get(f"{self.query_url}/api/v3/services")).get("services", ())
        return [str(name) for name in found]

    def answer(self, service: str) -> bytes:
        """What ``/api/v3/traces`` answers for all traces of a service, as it came.

        Raises:
            urllib.error.HTTPError: there are none.
        """
        asked = {
            "query.service_name": service,
            "query.start_time_min": EARLY,
            "query.start_time_max": LATE,
            "query.num_traces": "1000",
            "query.search_depth": "1000",
        }
        return get(f"{self.query_url}/api/v3/traces?{urlencode(asked)}")

    def spans(self, service: str) -> list[dict[str, Json]]:
        """All spans of a service as OTLP JSON has them, with ``attributes`` as a dict of plain values."""
        try:
            found = json.loads(self.answer(service))["result"]
        except HTTPError as error:
            if error.code != 404:
                raise
            return []
        return spans_of(found)

    def wait_for(self, service: str, count: int, seconds: float = 30.0) -> list[dict[str, Json]]:
        """Its spans once there are at least ``count``.

        Raises:
            AssertionError: there were not within ``seconds``.
        """
        until = time.monotonic() + seconds
        while len(spans := self.spans(service)) < count:
            assert time.monotonic() < until, (
                f"Jaeger has {len(spans)} spans of {service}, not {count}: {self.log[-2000:]}"
            )
            time.sleep(0.1)
        return spans


def spans_of(data: Mapping[str, Json]) -> list[dict[str, Json]]:
    """Spans of one OTLP JSON object, with ``attributes`` and ``resource`` as dicts of plain values."""
    return [
        {
            **span,
            "attributes": plain(span.get("attributes", ())),
            "resource": plain(resource.get("resource", {}).get("attributes", ())),
        }
        for resource in data.get("resourceSpans", ())
        for scope in resource.get("scopeSpans", ())
        for span in scope.get("spans", ())
    ]


def plain(attributes: Json) -> dict[str, Json]:
    """``[{"key", "value": {"stringValue": ...}}]`` as a dict."""
    return {one["key"]: _value(one["value"]) for one in attributes}


def _value(value: Mapping[str, Json]) -> Json:
    ((kind, held),) = value.items()
    if kind == "intValue":
        return int(held)
    if kind == "arrayValue":
        return [_value(item) for item in held.get("values", ())]
    if kind == "kvlistValue":
        return plain(held.get("values", ()))
    return held
