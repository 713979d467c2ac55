"""The ways in which a process comes to be recorded, and what each of them gives. The table in docs/ways.md is made of it.

Every way records the same calls of the same program. They differ in what they see besides: a processor is told when a span
starts, an exporter only what has ended and was sampled, in batches.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CODE",
    "CONFIGURE",
    "EXPORTER",
    "FROM_OUTSIDE",
    "GAINS",
    "HOOK",
    "INSTRUMENT",
    "INSTRUMENTOR",
    "PROVIDER",
    "RUN",
    "WAYS",
    "WITH_WIRE",
    "Way",
]

RUN = "otel-agentrec run"
INSTRUMENT = "opentelemetry-instrument"
PROVIDER = "OTEL_PYTHON_TRACER_PROVIDER"
EXPORTER = "the exporter agentrec"
"""However it was named: it can't tell."""
INSTRUMENTOR = "the instrumentor agentrec"
CONFIGURE = "configure()"
CODE = "AgentRecSpanProcessor"
HOOK = "the completion hook"


@dataclass(frozen=True)
class Way:
    """One way.

    Args:
        name: how it is named to the user.
        does: what the user does, as Markdown.
        from_outside: it is switched on around the program, not in it. What the program asks for itself then joins in.
        starts: starts are journalled, so that a call that was open when the process died shows as interrupted.
        kept: a call that ended before a ``kill -9`` is in the recording.
        unsampled: calls that the sampler dropped are recorded.
        logs: messages that the instrumentation puts into log records, not on spans, are recorded.
        asks: the instrumentations are asked for content, unless the user said otherwise.
        begins: the installed instrumentations are started.
        alone: it records by itself; else only beside another way.
        note: what else there is to know, as Markdown.
    """

    name: str
    does: str
    from_outside: bool
    starts: bool
    kept: bool
    unsampled: bool
    logs: bool
    asks: bool
    begins: bool
    alone: bool = True
    note: str = ""


GAINS: dict[str, str] = {
    "starts": "starts, interrupted calls",
    "kept": "what ended survives `kill -9`",
    "unsampled": "unsampled calls",
    "logs": "messages in log records",
    "asks": "asks for messages",
    "begins": "starts the instrumentations",
}
"""Field of :class:`Way` -> heading of its column."""

WAYS: tuple[Way, ...] = (
    Way(
        RUN,
        "`otel-agentrec run -- python app.py`",
        from_outside=True,
        starts=True,
        kept=True,
        unsampled=False,
        logs=True,
        asks=True,
        begins=True,
        note="Works whether or not the program sets providers of its own; its exporters still get every span. Model calls are "
        "also recorded [as they stand on the wire](wire.md), unsampled ones too.",
    ),
    Way(
        INSTRUMENT,
        "`OTEL_AGENTREC_PATH=rec opentelemetry-instrument python app.py`",
        from_outside=True,
        starts=True,
        kept=True,
        unsampled=False,
        logs=True,
        asks=True,
        begins=True,
        note="Or `opentelemetry-instrument --agentrec_path rec python app.py`. Exporters are configured as ever. "
        "The wire is recorded too.",
    ),
    Way(
        PROVIDER,
        "`OTEL_AGENTREC_PATH=rec OTEL_PYTHON_TRACER_PROVIDER=agentrec OTEL_PYTHON_LOGGER_PROVIDER=agentrec python app.py`",
        from_outside=True,
        starts=True,
        kept=True,
        unsampled=False,
        logs=True,
        asks=True,
        begins=False,
        note="Only for a program that sets no provider itself, and starts its instrumentations itself. Log records need the "
        "second variable.",
    ),
    Way(
        "OTEL_TRACES_EXPORTER",
        "`OTEL_AGENTREC_PATH=rec OTEL_TRACES_EXPORTER=otlp,agentrec OTEL_LOGS_EXPORTER=agentrec python app.py`, or "
        "`BatchSpanProcessor(RecordingSpanExporter())` in the program",
        from_outside=True,
        starts=False,
        kept=False,
        unsampled=False,
        logs=True,
        asks=True,
        begins=False,
        note="For a program that runs OpenTelemetry's configurator itself. OpenTelemetry always puts these exporters behind a "
        "batch. Under `opentelemetry-instrument` the path alone gives more, and the exporters then add nothing.",
    ),
    Way(
        "OTEL_CONFIG_FILE, exporter",
        "`OTEL_CONFIG_FILE=otel.yaml`: `simple: {exporter: {agentrec: {path: rec}}}` under `tracer_provider` and "
        "`logger_provider`",
        from_outside=True,
        starts=False,
        kept=True,
        unsampled=False,
        logs=True,
        asks=True,
        begins=False,
        note="Needs `opentelemetry-configuration`. A *processor* by name is refused by OpenTelemetry.",
    ),
    Way(
        INSTRUMENTOR,
        "`OTEL_CONFIG_FILE=otel.yaml`: `instrumentation/development: {python: {agentrec: {path: rec}}}`",
        from_outside=True,
        starts=True,
        kept=True,
        unsampled=False,
        logs=True,
        asks=True,
        begins=False,
        note="Needs `opentelemetry-configuration`. The file is read by OpenTelemetry's configurator, as under "
        "`opentelemetry-instrument`; plain `python` ignores it.",
    ),
    Way(
        CONFIGURE,
        "`otel_agentrec.configure(path='rec')` in the program",
        from_outside=False,
        starts=True,
        kept=True,
        unsampled=False,
        logs=True,
        asks=True,
        begins=False,
        note="Again with the same path: the same recorder. With another path: an error.",
    ),
    Way(
        CODE,
        "`provider.add_span_processor(AgentRecSpanProcessor('rec'))` in the program",
        from_outside=False,
        starts=True,
        kept=True,
        unsampled=False,
        logs=True,
        asks=False,
        begins=False,
        note="Log records need `AgentRecLogProcessor(span_processor)` on the logger provider.",
    ),
    Way(
        HOOK,
        "beside one of these: `OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=agentrec`",
        from_outside=False,
        starts=False,
        kept=False,
        unsampled=True,
        logs=False,
        asks=False,
        begins=False,
        alone=False,
        note="For OpenTelemetry's own GenAI instrumentations: they tell it what models and agents were asked and answered, whatever "
        "the content switch and the sampler say; not what tools were given.",
    ),
)

FROM_OUTSIDE = frozenset(way.name for way in WAYS if way.from_outside)
"""Names of ways that are switched on around the program."""

WITH_WIRE = frozenset((RUN, INSTRUMENT, INSTRUMENTOR))
"""Ways that also record model calls as they stand on the wire, unless the setting ``wire`` says otherwise."""
