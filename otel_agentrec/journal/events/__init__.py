"""The typed events of a recording (format ``agentrec/1``), and the one place where old lines are lifted.

Each type is a frozen dataclass whose fields are the keys of the event's ``payload`` (camelCase on disk), one module per
group of the format. A reader keeps a type it does not know as :class:`Generic`; ``ignorable`` says whether a projection
may pass over a type it can't use.
"""

# Importing a group registers its types.
from otel_agentrec.journal.events import effect, index, node, run, session, stream, wire  # noqa: F401
from otel_agentrec.journal.events.base import (
    FORMAT,
    TYPES,
    Generic,
    Payload,
    checked,
    content_of,
    keys_of,
    payload_of,
)
from otel_agentrec.journal.events.reading import UPCASTERS, Event, upcast

__all__ = [
    "FORMAT",
    "TYPES",
    "UPCASTERS",
    "Event",
    "Generic",
    "Payload",
    "checked",
    "content_of",
    "keys_of",
    "payload_of",
    "upcast",
]
