"""An Arize Phoenix of its own, as pip installs it, and what its REST API tells of the spans that it was sent."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from examples import environments
from tests.servers.program import Program, free_ports, get

REQUIREMENTS = Path(__file__).parent / "phoenix.txt"
PROJECT = "openinference.project.name"
"""Attribute of a resource: which of its projects the spans are shown in; ``default`` unless said."""

Json = Any


class Phoenix(Program):
    """Made but not started; the first one ever installs it, which takes minutes. What it is sent stays in ``directory``."""

    start_wait = 600.0  # the first start has yet to compile what it imports

    def __init__(self, directory: Path) -> None:
        python = environments.python_with(REQUIREMENTS)
        self.port, grpc_port = free_ports(2)
        own = {
            "PHOENIX_WORKING_DIR": str(directory),
            "PHOENIX_SQL_DATABASE_URL": f"sqlite:///{directory / 'phoenix.db'}",
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": str(grpc_port),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        command = [str(python), "-m", "phoenix.server.main", "serve"]
        super().__init__(directory, command, {**environments.environment(PYTHONPATH=""), **own})

    @property
    def url(self) -> str:
        """Of its pages, its API, and its OTLP receiver over HTTP."""
        return f"http://127.0.0.1:{self.port}"

    def is_healthy(self) -> bool:
        get(f"{self.url}/healthz")
        return True

    def spans(self, project: str = "default") -> list[dict[str, Json]]:
        """All spans of a project: ``name``, ``span_kind``, ``parent_id``, ``context``, ``attributes`` by dotted names ..."""
        try:
            return self._all(f"/v1/projects/{quote(project)}/spans")
        except HTTPError as error:
            if error.code != 404:
                raise
            return []

    def sessions(self, project: str = "default") -> list[dict[str, Json]]:
        return self._all(f"/v1/projects/{quote(project)}/sessions")

    def project_id(self, project: str = "default") -> str:
        """What the addresses of its pages call a project."""
        return str(json.loads(get(f"{self.url}/v1/projects/{quote(project)}"))["data"]["id"])

    def found(self, condition: str, project: str = "default") -> set[str]:
        """Ids of the spans that its pages show when this is typed into their field for filters."""
        query = (
            "query($id: ID!, $condition: String!) { node(id: $id) { ... on Project "
            "{ spans(first: 1000, filterCondition: $condition) { edges { node { spanId } } } } } }"
        )
        asked = {"query": query, "variables": {"id": self.project_id(project), "condition": condition}}
        request = Request(f"{self.url}/graphql", json.dumps(asked).encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=30) as answer:
            told = json.load(answer)
        assert not told.get("errors"), told
        return {edge["node"]["spanId"] for edge in told["data"]["node"]["spans"]["edges"]}

    def wait_for(self, count: int, project: str = "default", seconds: float = 60.0) -> list[dict[str, Json]]:
        """The spans of a project once there are at least ``count``.

        Raises:
            AssertionError: there were not within ``seconds``.
        """
        until = time.monotonic() + seconds
        while len(spans := self.spans(project)) < count:
            assert time.monotonic() < until, f"Phoenix has {len(spans)} spans, not {count}: {self.log[-2000:]}"
            time.sleep(0.3)
        return spans

    def _all(self, path: str) -> list[dict[str, Json]]:
        found: list[dict[str, Json]] = []
        cursor = ""
        while True:
            page: Mapping[str, Json] = json.loads(get(f"{self.url}{path}?limit=100{cursor}"))
            found += page["data"]
            if not page.get("next_cursor"):
                return found
            cursor = f"&cursor={quote(page['next_cursor'])}"
