"""What is said once per stream and pointed at from then on: request headers and providers."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from otel_agentrec.capture.spans import SpanView
from otel_agentrec.capture.steps import StepEvent, header_of
from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.journal.facts import Facts, RawList

__all__ = ["SaidOnce"]

MAX_HEADERS = 256
MAX_PROVIDERS = 64
MAX_RESOURCES = 10_000


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
        self._resources: OrderedDict[bytes, int] = OrderedDict()
        self._latest: tuple[Mapping[str, Any], int] | None = None

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

    def header_of(self, facts: Facts, scope: str) -> int | None:
        """The seq of the REQUEST_HEADER of these facts; None when there is nothing in it, or it could not be written."""
        held = header_of(facts)
        if held is None:
            return None
        return self.header(held, StepEvent("REQUEST_HEADER", held, session=facts.session_id, scope=scope or None))

    def resource(self, resource: Mapping[str, Any]) -> int | None:
        """The seq of the PROVIDER_SEEN of a resource that came without its provider; equal ones are one. None when it could
        not be written."""
        with self._lock:
            self._follow_stream()
            if self._latest is not None and self._latest[0] is resource:
                return self._latest[1]
            digest = hashlib.sha256(canonical_any(dict(resource))).digest()
            seq = self._resources.get(digest)
            if seq is None:
                done = self._write(StepEvent("PROVIDER_SEEN", {"resource": dict(resource)}))
                if done is None:
                    return None
                self._follow_stream()
                seq = self._resources[digest] = int(done.seq)
                if len(self._resources) > MAX_RESOURCES:
                    self._resources.popitem(last=False)
            self._latest = (resource, seq)
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
            self._forget()

    def _follow_stream(self) -> None:
        """A new stream stands alone: everything is said again in it."""
        stream = self.stream()
        if stream != self._at:
            self._at = stream
            self._forget()

    def _forget(self) -> None:
        self._headers.clear()
        self._providers.clear()
        self._resources.clear()
        self._latest = None


def _digest(parts: dict[str, Any]) -> bytes:
    """Equal parts give equal digests. Only kept in memory, so that JSON text need not be parsed to be compared."""
    digest = hashlib.sha256()
    for key, value in parts.items():
        data = value.text.encode("utf-8", "surrogatepass") if isinstance(value, RawList) else canonical_any(value)
        digest.update(f"{key}:{len(data)}:".encode())
        digest.update(data)
    return digest.digest()
