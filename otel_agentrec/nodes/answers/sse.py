"""Server-sent events: the bytes of a stream -> its events. Reads a whole body; where it was cut into chunks does not matter."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["ServerEvent", "read_events"]

_LINE = re.compile(r"\r\n|\n|\r")


class ServerEvent(NamedTuple):
    """``name`` is what the ``event`` field says, "" without one; ``data``: its lines joined with a newline."""

    name: str
    data: str


def read_events(body: bytes) -> list[ServerEvent]:
    """The events of a body. Comments and other fields are passed over; what no empty line ended counts as well, since many
    servers leave the last one out."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    events: list[ServerEvent] = []
    name, data = "", list[str]()
    for line in [*_LINE.split(text), ""]:
        if not line:
            if data:
                events.append(ServerEvent(name, "\n".join(data)))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    return events
