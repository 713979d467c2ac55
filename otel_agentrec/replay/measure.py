"""What a live answer took: tokens as its provider counts them, and US dollars by list price."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from otel_agentrec.capture.dialects.tokens import settle, take_usage
from otel_agentrec.errors import ExtraMissing
from otel_agentrec.journal.facts import Facts
from otel_agentrec.nodes.prices import Prices
from otel_agentrec.prompts import AgentModelResult
from otel_agentrec.records import NodeIoRecord

__all__ = ["Measure", "Spent"]


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and US dollars of one call; None where nobody tells."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: Decimal | None = None


class Measure:
    """Measures calls. Without the extra ``prices`` nothing is priced."""

    def __init__(self) -> None:
        try:
            self._prices: Prices | None = Prices()
        except ExtraMissing:
            self._prices = None

    @property
    def has_prices(self) -> bool:
        return self._prices is not None

    def recorded(self, record: NodeIoRecord) -> Spent:
        """What the recorded call took."""
        return Spent(record.input_tokens, record.output_tokens, self._usd(record))

    def expected(self, record: NodeIoRecord, model: str, provider: str | None) -> Decimal | None:
        """What the same number of tokens costs of another model, now."""
        return self._usd(
            dataclasses.replace(
                record, model_id=model, response_model=None, provider=provider, started_at_epoch_ms=None
            )
        )

    def live(self, record: NodeIoRecord, result: AgentModelResult, model: str, provider: str | None) -> Spent:
        """What an answer to the prompt of ``record`` took."""
        facts = Facts()
        take_usage(result.usage, facts)
        settle(facts)
        raw = result.raw_response
        answered = raw.get("model") if isinstance(raw, Mapping) else None
        measured = dataclasses.replace(
            record,
            model_id=model,
            response_model=answered if isinstance(answered, str) else None,
            provider=provider,
            started_at_epoch_ms=None,
            input_tokens=facts.input_tokens,
            output_tokens=facts.output_tokens,
            cache_read_tokens=facts.cache_read_tokens,
            cache_write_tokens=facts.cache_write_tokens,
        )
        return Spent(facts.input_tokens, facts.output_tokens, self._usd(measured))

    def _usd(self, record: NodeIoRecord) -> Decimal | None:
        return self._prices.of(record) if self._prices is not None else None
