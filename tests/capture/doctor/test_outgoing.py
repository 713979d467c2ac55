"""What is told of the way out: where things go, and what would keep them from going there."""

from __future__ import annotations

import pytest

from otel_agentrec.capture.doctor.outgoing import check_outgoing

TO = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, {}),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, {}),
        ({"OTEL_TRACES_EXPORTER": "console,agentrec_otlp", **TO}, {"out": "ok"}),
        ({"OTEL_TRACES_EXPORTER": "agentrec_otlp"}, {"out": "note"}),
        ({"OTEL_TRACES_EXPORTER": "otlp, agentrec_otlp", **TO}, {"out.twice": "problem", "out": "ok"}),
        ({"OTEL_AGENTREC_EVENTS": "otlp", **TO}, {"out": "ok"}),
        ({"OTEL_AGENTREC_EVENTS": "off", **TO}, {}),
        (
            {"OTEL_AGENTREC_EVENTS": "otlp", "OTEL_AGENTREC_CONTENT": "inline", **TO},
            {"out.events": "problem", "out": "ok"},
        ),
        (
            {"OTEL_AGENTREC_EVENTS": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", **TO},
            {"out.OTEL_EXPORTER_OTLP_PROTOCOL": "problem", "out": "ok"},
        ),
    ],
)
def test_the_way_out(environ: dict[str, str], told: dict[str, str]) -> None:
    found = list(check_outgoing(environ))
    assert {one.id: one.level for one in found} == told
    assert all(one.mend for one in found if one.level != "ok")
    assert all("collector:4318" in one.what for one in found if one.id == "out" and one.level == "ok")
