"""What tests of viewers share: being asked for, and the demo's agent forwarding what it does while it does it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from otel_agentrec.demo import stage
from otel_agentrec.demo.child import run_agent
from otel_agentrec.demo.server import ScriptedServer
from tests.capture.shell import as_installed

ROOT = Path(__file__).parents[2]
ASKED = frozenset(filter(None, os.environ.get("AGENTREC_VIEWERS", "").split(",")))


def asked_for(viewer: str) -> pytest.MarkDecorator:
    """A mark: run only when ``AGENTREC_VIEWERS`` names this viewer, as its installation takes minutes."""
    reason = f"installs {viewer}, which takes minutes: AGENTREC_VIEWERS={viewer} runs it"
    return pytest.mark.skipif(viewer not in ASKED, reason=reason)


def run_live(recording: Path, url: str, **more: str) -> None:
    """The demo's agent under ``otel-agentrec run``, its spans forwarded with stamps to an OTLP receiver.

    Args:
        url: where ``/v1/traces`` is.
        more: further variables for its environment.
    """
    with tempfile.TemporaryDirectory() as site, ScriptedServer(stage.script(stage.ANSWER)) as server:
        variables = {
            "PYTHONPATH": f"{ROOT}{os.pathsep}{as_installed(Path(site))}",
            "OTEL_TRACES_EXPORTER": "agentrec_otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            **more,
        }
        ended = run_agent(["run", "--out", str(recording)], stage.QUESTION, server.base_url, **variables)
    assert ended.code == 0, ended.told
    assert "swallowed" not in ended.told and "lost" not in ended.told, ended.told
