"""Events about a stream itself."""

from __future__ import annotations

from otel_agentrec.journal.events.base import Json, Payload, event


@event("STREAM_OPENED")
class StreamOpened(Payload):
    """The first line of every stream. ``nonce``: 32 hex; ``index_tip``: ``{size, hash}`` of the index, or absent;
    ``process``: ids of the commands and processes down to the one that writes (``r…/p…/p…``), or absent."""

    origin: str
    nonce: str
    host: str | None = None
    pid: int | None = None
    boot_id: str | None = None
    sdk: dict[str, Json] | None = None
    sinks: list[str] | None = None
    config_digest: str | None = None
    index_tip: dict[str, Json] | None = None
    prev_stream: dict[str, Json] | None = None
    parent_stream: str | None = None
    process: str | None = None
    fork_of: dict[str, Json] | None = None
    restored_from: dict[str, Json] | None = None
    late: bool | None = None


@event("PROVIDER_SEEN", ignorable=True)
class ProviderSeen(Payload):
    resource: dict[str, Json]
    sampler: str | None = None
    limits: dict[str, Json] | None = None


@event("DROPPED")
class Dropped(Payload):
    """``count`` things that should have been recorded were not."""

    count: int
    reason: str


@event("COVERAGE", ignorable=True)
class Coverage(Payload):
    points: list[dict[str, Json]]


@event("RECOVERED")
class Recovered(Payload):
    """A torn tail of a named stream was cut off under its lock."""

    bytes: int
    cells: int


@event("STREAM_SEALED")
class StreamSealed(Payload):
    """The last line of a stream that was closed; ``count`` = number of events before this one.

    ``counters``: what the process counted since it last told (``swallowed`` exceptions, ``late`` events …), zeros left out.
    """

    count: int
    counters: dict[str, int] | None = None
