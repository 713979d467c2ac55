"""OTel's providers: making one, and giving it our processor, once."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import SpanProcessor

from otel_agentrec.capture.processors import AgentRecLogProcessor, AgentRecSpanProcessor
from otel_agentrec.capture.recorder import Recorder

__all__ = ["attach", "make_tracer_provider"]


def make_tracer_provider() -> Any:
    """An SDK provider as OTel's variables ask for it. Where they say nothing, a span may hold more attributes and events
    than the SDK's 128: beyond that number the SDK drops the oldest, which names the operation."""
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider

    def unless(said: str, limit: int) -> int | None:
        return None if os.environ.get(said) or os.environ.get("OTEL_ATTRIBUTE_COUNT_LIMIT") else limit

    limits = SpanLimits(
        max_span_attributes=unless("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", 4_096),
        max_events=unless("OTEL_SPAN_EVENT_COUNT_LIMIT", 4_096),
    )
    return TracerProvider(span_limits=limits)


_attached: weakref.WeakKeyDictionary[Any, list[tuple[weakref.ref[Recorder], str]]] = weakref.WeakKeyDictionary()
"""Provider -> the recorders that it tells, and by which way each came."""


def attach(recorder: Recorder, provider: Any, way: str | None = None, forward: Sequence[SpanProcessor] = ()) -> bool:
    """Add our processor to a provider, once per recorder. False when it can't take one, or has it already.

    Args:
        way: how the user asked for it; should he have done so in two ways, he is told which one counts.
        forward: processors that get the provider's spans from ours. They come in by one more of ours where one is there.
    """
    known = _attached.setdefault(provider, [])
    first = next((its_way for ref, its_way in known if ref() is recorder), None)
    takes_spans = hasattr(provider, "add_span_processor")
    if first is not None:
        if forward and takes_spans:
            provider.add_span_processor(AgentRecSpanProcessor(recorder=recorder, forward=forward))
            return True
        if way not in (None, first):
            recorder.notices.once("twice", f"already recording through {first}: {way} changes nothing")
        return False
    if takes_spans:
        provider.add_span_processor(AgentRecSpanProcessor(recorder=recorder, forward=forward))
    elif hasattr(provider, "add_log_record_processor"):
        provider.add_log_record_processor(AgentRecLogProcessor(recorder))
    else:
        kind = f"{type(provider).__module__}.{type(provider).__qualname__}"
        recorder.notices.once(f"provider {kind}", f"{kind} is no SDK provider and takes no processor: not recorded")
        return False
    known.append((weakref.ref(recorder), way or recorder.way))
    return True
