"""Writes the parts of the pages that come from code: ``python docs/generate.py``. A test checks that they are in step."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from otel_agentrec.capture.content import IN_CODE, SWITCHES
from otel_agentrec.capture.dialects import DIALECTS
from otel_agentrec.capture.metrics import COUNTERS, WRITE_DESCRIPTION, WRITE_DURATION
from otel_agentrec.capture.ways import GAINS, WAYS
from otel_agentrec.intercept.covered import CLIENTS
from otel_agentrec.intercept.tools import adapters
from otel_agentrec.settings import TABLE

DOCS = Path(__file__).parent


def settings() -> str:
    """The table of :mod:`otel_agentrec.settings`."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for row in TABLE:
        default = {None: "", True: "`true`", False: "`false`"}.get(row.default, f"`{row.default}`")
        rows.append(f"| `{row.variable}` | {default} | {row.doc} |")
    return "\n".join(rows)


def metrics() -> str:
    """The table of :mod:`otel_agentrec.capture.metrics`."""
    rows = ["| metric | kind | unit | what |", "|---|---|---|---|"]
    for name, (unit, description) in COUNTERS.items():
        rows.append(f"| `agentrec.{name}` | counter | `{unit}` | {description} |")
    rows.append(f"| `{WRITE_DURATION}` | histogram | `s` | {WRITE_DESCRIPTION} |")
    return "\n".join(rows)


def ways() -> str:
    """The tables of :mod:`otel_agentrec.capture.ways`; ``tests/capture/test_every_way.py`` tries every cell."""
    rows = [f"| what you do | {' | '.join(GAINS.values())} |", "|---|" + ":-:|" * len(GAINS)]
    for at, way in enumerate(WAYS, start=1):
        marks = ["yes" if getattr(way, gain) else "–" for gain in GAINS]
        rows.append(f"| {at}. {way.does} | {' | '.join(marks)} |")
    return "\n".join([*rows, "", *(f"{at}. {way.note}" for at, way in enumerate(WAYS, start=1))])


def content() -> str:
    """The table of :mod:`otel_agentrec.capture.content`."""
    rows = ["| scopes of the instrumentation | what lets content out |", "|---|---|"]
    for prefix, switch in SWITCHES:
        scopes = f"`{prefix}*`" if prefix else "any other"
        rows.append(
            f"| {scopes} | {switch.replace(IN_CODE, 'in code: `') + '`' if switch.startswith(IN_CODE) else f'`{switch}`'} |"
        )
    return "\n".join(rows)


def dialects() -> str:
    """The table of :mod:`otel_agentrec.capture.dialects`."""
    rows = ["| `dialect` | checked against | scopes | what this telemetry does not tell |", "|---|---|---|---|"]
    for dialect in DIALECTS:
        scopes = ", ".join(f"`{scope}*`" if scope.endswith(".") else f"`{scope}`" for scope in dialect.scopes)
        rows.append(f"| `{dialect.name}` | {dialect.versions or '–'} | {scopes or 'any'} | {dialect.unknown or '–'} |")
    return "\n".join(rows)


def clients() -> str:
    """The table of :mod:`otel_agentrec.intercept.covered`; ``tests/frameworks/test_wire_matrix.py`` tries every row."""
    rows = ["| SDK | checked with | by | in these ways | to know |", "|---|---|---|---|---|"]
    for one in CLIENTS:
        rows.append(f"| `{one.package}` | {', '.join(one.checked)} | {one.by} | {one.ways} | {one.beside or '–'} |")
    return "\n".join(rows)


def tools() -> str:
    """The table of :mod:`otel_agentrec.intercept.tools`."""
    rows = ["| package | checked with | intercepted at | told of a call | to know |", "|---|---|---|---|---|"]
    for adapter in adapters():
        rows.append(
            f"| `{adapter.package}` | {adapter.checked} | {adapter.point} | {adapter.gives} | {adapter.beside or '–'} |"
        )
    return "\n".join(rows)


PARTS = {
    "clients": clients,
    "dialects": dialects,
    "content": content,
    "settings": settings,
    "metrics": metrics,
    "tools": tools,
    "ways": ways,
}


def in_step(text: str) -> str:
    """A page with each part between ``<!-- NAME -->`` and ``<!-- end -->`` made anew."""
    return re.sub(
        r"(<!-- (\w+) -->\n).*?(\n<!-- end -->)",
        lambda part: part[1] + PARTS[part[2]]() + part[3],
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    for page in sorted(DOCS.glob("*.md")):
        page.write_text(in_step(page.read_text()))
