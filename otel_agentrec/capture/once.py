"""What is said once per stream and pointed at from then on: request headers and providers."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from otel_agentrec.capture.spans import SpanView
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.journal.facts import RawList

__all__ = ["SaidOnce"]

MAX_HEADERS = 256
MAX_PROVIDERS = 64


class SaidOnce:
    """Args:
    write: puts an event into the journal; returns where it went (``stream``, ``seq``), or None when it was lost.
    stream: name of the stream that is being written, or None before the first event.
    """

    def __init__(self, write: Callable[[StepEvent], Any], stream: Callable[[], str | None]) -> None:
        self._write = write
        self.stream = stream
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._at: str | None = None
        self._headers: OrderedDict[bytes, int] = OrderedDict()
        self._providers: OrderedDict[int, tuple[Any, int]] = OrderedDict()

    after_fork = _reset

    def header(self, held: dict[str, Any], event: StepEvent) -> int | None:
        """The seq of the REQUEST_HEADER that holds ``held``; ``event`` is written when there is none yet. None when it could
        not be written."""
        digest = _digest(held)
        with self._lock:
            self._follow_stream()
            seq = self._headers.get(digest)
            if seq is None:
                done = self._write(event)
                if done is None:
                    return None
                seq = int(done.seq)
                self._follow_stream()  # this event may have opened the stream
                self._headers[digest] = seq
                if len(self._headers) > MAX_HEADERS:
                    self._headers.popitem(last=False)
            else:
                self._headers.move_to_end(digest)
            return seq

    def provider(self, span: Any) -> None:
        """Say PROVIDER_SEEN before the first event of a provider. A processor is not told its provider: the resource that
        its spans share stands for it; sampler and limits are private in the SDK and null when they can't be read."""
        resource = span.resource
        with self._lock:
            self._follow_stream()
            if id(resource.attributes) in self._providers:
                return
            payload: dict[str, Any] = {"resource": dict(resource.attributes)}
            sampler = getattr(span, "_sampler", None)
            if sampler is not None:
                payload["sampler"] = str(sampler.get_description())
            limits = getattr(span, "_limits", None)
            if limits is not None:
                payload["limits"] = {key: value for key, value in vars(limits).items() if isinstance(value, int)}
            done = self._write(StepEvent("PROVIDER_SEEN", payload))
            if done is not None:
                self._follow_stream()
                self._providers[id(resource.attributes)] = (resource, int(done.seq))
                if len(self._providers) > MAX_PROVIDERS:
                    self._providers.popitem(last=False)

    def provider_seq(self, view: SpanView) -> int | None:
        """The seq of the PROVIDER_SEEN of a span."""
        known = self._providers.get(id(view.resource))
        return known[1] if known is not None and self._at == self.stream() else None

    def say_again(self) -> None:
        """The stream is not the one it seemed to be (its file was deleted): nothing counts as said."""
        with self._lock:
            self._headers.clear()
            self._providers.clear()

    def _follow_stream(self) -> None:
        """A new stream stands alone: everything is said again in it."""
        stream = self.stream()
        if stream != self._at:
            self._at = stream
            self._headers.clear()
            self._providers.clear()


def _digest(parts: dict[str, Any]) -> bytes:
    """Equal parts give equal digests. Only kept in memory, so that JSON text need not be parsed to be compared."""
    digest = hashlib.sha256()
    for key, value in parts.items():
        data = value.text.encode("utf-8", "surrogatepass") if isinstance(value, RawList) else canonical_any(value)
        digest.update(f"{key}:{len(data)}:".encode())
        digest.update(data)
    return digest.digest()
