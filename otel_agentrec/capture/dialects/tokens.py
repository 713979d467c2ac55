"""One table of how token counts are spelt, for every dialect.

A count is a non-negative integer, whether it came as an integer, an integral double or a string of digits. Null, -1, booleans,
fractions and everything else mean that the telemetry does not tell; a real 0 stays 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

from otel_agentrec.journal.facts import Facts

__all__ = ["SPELLINGS", "USAGE_KEYS", "count", "settle", "take", "take_usage"]

SPELLINGS: dict[str, tuple[str, ...]] = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
    ),
    "cache_read_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.cache_read_tokens",
        "gen_ai.usage.input_tokens.cached",
        "gen_ai.usage.cached_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "llm.token_count.prompt_details.cache_read",
        "llm.usage.cache_read_input_tokens",
        "ai.usage.cachedInputTokens",
        "ai.usage.inputTokenDetails.cacheReadTokens",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.cache_write_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "llm.token_count.prompt_details.cache_write",
        "llm.usage.cache_creation_input_tokens",
        "ai.usage.inputTokenDetails.cacheWriteTokens",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.output_tokens.reasoning",
        "gen_ai.usage.details.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "llm.usage.reasoning_tokens",
        "ai.usage.reasoningTokens",
        "ai.usage.outputTokenDetails.reasoningTokens",
    ),
}
"""Fact -> attribute keys, the current convention first. The first that holds a count wins."""

USAGE_KEYS: dict[str, tuple[str, ...]] = {
    "input_tokens": ("prompt_tokens", "promptTokens", "input", "input_tokens", "inputTokens"),
    "output_tokens": ("completion_tokens", "completionTokens", "output", "output_tokens", "outputTokens"),
}
"""Fact -> keys of a provider's own ``usage`` block; the earlier a key stands, the rather it is taken."""

_DETAILS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cache_read_tokens": (
        ("prompt_tokens_details", "input_tokens_details", "input_token_details"),
        ("cached_tokens", "cache_read"),
    ),
    "cache_write_tokens": (
        ("prompt_tokens_details", "input_tokens_details", "input_token_details"),
        ("cache_write_tokens", "cache_creation"),
    ),
    "reasoning_tokens": (
        ("completion_tokens_details", "output_tokens_details", "output_token_details"),
        ("reasoning_tokens", "reasoning"),
    ),
}
"""Fact -> (keys of the blocks with details in a ``usage`` block, keys in those)."""

_BESIDE: dict[str, tuple[str, ...]] = {
    "cache_read_tokens": ("cache_read_input_tokens", "input_cached_tokens", "cached_input_tokens"),
    "cache_write_tokens": ("cache_creation_input_tokens", "input_cache_creation"),
    "reasoning_tokens": ("reasoning_tokens", "output_reasoning_tokens", "output_reasoning"),
}
"""Fact -> keys beside the sums in a ``usage`` block."""

OTHER_PREFIXES = ("gen_ai.usage.", "llm.token_count.")

_DIGITS = re.compile(r"\d{1,18}(?:\.0+)?")


def count(value: Any) -> int | None:
    """The token count that a value states, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    if isinstance(value, float):
        return int(value) if value >= 0 and value.is_integer() else None
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    return None


def first(values: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    """The count under the first of ``keys`` that holds one."""
    for key in keys:
        if key in values:
            found = count(values[key])
            if found is not None:
                return found
    return None


def take(rest: MutableMapping[str, Any], facts: Facts) -> None:
    """Move all token counts from a span's attributes into the facts; what is no count stays in ``rest``.

    Counts that no fact is made for (``gen_ai.usage.audio.input_tokens``, totals …) go to ``other_tokens`` under their own
    names, without the prefix.
    """
    present = [key for key in rest if key in _FACT_OF or key.startswith(OTHER_PREFIXES)]
    if not present:
        return
    for name, keys in SPELLINGS.items():
        found = first(rest, keys)
        if found is not None:
            setattr(facts, name, found)
    other: dict[str, int] = {}
    for key in present:
        found = count(rest[key])
        if found is None:
            continue
        del rest[key]
        if key not in _FACT_OF:
            prefix = next(p for p in OTHER_PREFIXES if key.startswith(p))
            other[key[len(prefix) :]] = found
    if other:
        facts.other_tokens = other


def take_usage(usage: Any, facts: Facts) -> bool:
    """Read a provider's own ``usage`` block (OpenAI, Anthropic, LangChain, Langfuse). -> whether it is one that tells.

    Facts that are known already stay. Anthropic counts input that was cached beside the rest of it; it is summed.
    """
    if not isinstance(usage, Mapping):
        return False
    found = {name: first(usage, keys) for name, keys in USAGE_KEYS.items()}
    for name, (blocks, keys) in _DETAILS.items():
        inner = [usage[b] for b in blocks if isinstance(usage.get(b), Mapping)]
        found[name] = next((n for block in inner if (n := first(block, keys)) is not None), first(usage, _BESIDE[name]))
    if found["input_tokens"] is not None and "input_tokens" in usage and any(key in usage for key in _ANTHROPIC):
        found["input_tokens"] += sum(first(usage, (key,)) or 0 for key in _ANTHROPIC)
    for name, value in found.items():
        if value is not None and getattr(facts, name) is None:
            setattr(facts, name, value)
    return any(value is not None for value in found.values())


def settle(facts: Facts) -> None:
    """Bring input counts to the convention, in which they include what was cached.

    Where more was read from and written to the cache than the input counts, the input can't include it: it is summed, and
    the flag ``additive_cache`` says so.
    """
    cached = (facts.cache_read_tokens or 0) + (facts.cache_write_tokens or 0)
    if facts.input_tokens is not None and cached > facts.input_tokens:
        facts.input_tokens += cached
        facts.flags.append("additive_cache")


_ANTHROPIC = ("cache_read_input_tokens", "cache_creation_input_tokens")

_FACT_OF = {key: name for name, keys in SPELLINGS.items() for key in keys}
