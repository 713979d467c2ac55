"""``python -m otel_agentrec.schemas``: write the schemas anew from the dataclasses."""

from __future__ import annotations

from pathlib import Path

from otel_agentrec.schemas import FORMAT_DIRECTORY
from otel_agentrec.schemas.build import as_text, build

if __name__ == "__main__":
    place = Path(__file__).parent / FORMAT_DIRECTORY
    place.mkdir(exist_ok=True)
    for name, schema in build().items():
        (place / f"{name}.json").write_text(as_text(schema), encoding="utf-8")
