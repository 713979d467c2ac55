"""What a model call cost, by the public price lists of genai-prices (extra ``prices``). Nothing is guessed."""

from __future__ import annotations

import importlib
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from otel_agentrec.errors import ExtraMissing
from otel_agentrec.records import NodeIoRecord

__all__ = ["Prices"]

MOST_UNKNOWN = 1_000


class Prices:
    """Prices model calls.

    The price is looked up under the model that answered, else under the one that was asked for, with the provider that
    the telemetry names, at the time of the call.

    Raises:
        ExtraMissing: the extra ``prices`` is not installed.
    """

    def __init__(self) -> None:
        try:
            lists: Any = importlib.import_module("genai_prices")
        except ImportError:
            raise ExtraMissing("pricing", "prices") from None
        self._usage = lists.Usage
        self._price = lists.calc_price
        self._unknown: set[tuple[str | None, str]] = set()

    def of(self, record: NodeIoRecord) -> Decimal | None:
        """US dollars; None where no price is known, or the tokens are not told or contradict one another."""
        if record.input_tokens is None or record.output_tokens is None:
            return None
        try:
            usage = self._usage(
                input_tokens=record.input_tokens,
                output_tokens=record.output_tokens,
                cache_read_tokens=record.cache_read_tokens,
                cache_write_tokens=record.cache_write_tokens,
            )
            at = record.started_at_epoch_ms
            when = None if at is None else datetime.fromtimestamp(at / 1000, timezone.utc)
        except (ValueError, TypeError, OverflowError, OSError):
            return None
        for model in (record.response_model, record.model_id):
            if model and (price := self._look_up(model, record.provider, usage, when)) is not None:
                return price
        return None

    def _look_up(self, model: str, provider: str | None, usage: Any, when: datetime | None) -> Decimal | None:
        key = (provider, model)
        if key in self._unknown:
            return None
        for name in dict.fromkeys((provider, provider and provider.replace("_", "-"))):
            try:
                return Decimal(self._price(usage, model, provider_id=name, genai_request_timestamp=when).total_price)
            except LookupError:
                continue
            except (ValueError, TypeError, ArithmeticError):
                return None
        if len(self._unknown) < MOST_UNKNOWN:
            self._unknown.add(key)
        return None
