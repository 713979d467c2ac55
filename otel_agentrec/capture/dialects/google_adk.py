"""Google's Agent Development Kit: the GenAI conventions, with what was said in ``gcp.vertex.agent.*`` as Google's API has it.

In its first schema ``call_llm`` stands around ``generate_content`` and tells the same call. After parallel calls of tools a
span ``execute_tool (merged)`` only gathers their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import genai, google, messages
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.values import loaded, text, was_cut
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Facts, Kind, RawList

__all__ = ["DIALECT"]

Json = Any

NAME = "google-adk"
SCOPE = "gcp.vertex.agent"

_OWN = "gcp.vertex.agent."
_CALL, _MERGED = "call_llm", "execute_tool (merged)"
_LISTS = (list, tuple)
_NOTHING = (None, "", "{}", "<not serializable>", "<not specified>", "N/A")
_NOT_GIVEN = ("<not specified>", '{"result": "<not specified>"}')
"""Call id and result of a tool that raised."""


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span of ADK is, and its facts; None for a span of another scope."""
    if span.scope != SCOPE:
        return None
    rest = {key: value for key, value in span.attributes.items() if value not in _NOT_GIVEN}
    asked, said, arguments, result = (
        rest.pop(_OWN + name, None) for name in ("llm_request", "llm_response", "tool_call_args", "tool_response")
    )
    if span.name == _CALL:
        rest["gen_ai.operation.name"] = "generate_content"
    session = text(rest.pop(f"{_OWN}session_id", None))
    reading = genai.read(span._replace(attributes=rest), logs)
    if reading is None:
        return None
    kind, facts = reading
    facts.dialect = NAME
    if facts.provider == SCOPE:
        facts.provider = None  # it names itself
    facts.session_id = facts.session_id or session
    left = facts.attributes or {}
    if span.name == _MERGED:
        kind, facts.operation = Kind.STEP, "gather_results"
        left.update((_OWN + name, v) for name, v in (("tool_response", result),) if v not in _NOTHING)
    elif kind == Kind.MODEL:
        _take_request(asked, left, facts)
        _take_answer(said, left, facts)
        said_once = _without_pieces(facts.output_messages)
        if said_once is not facts.output_messages:
            facts.output_messages, facts.calls = said_once, messages.calls_of(said_once)
    elif kind == Kind.TOOL:
        facts.arguments = facts.arguments if facts.arguments is not None or arguments in _NOTHING[:2] else arguments
        facts.result = facts.result if facts.result is not None or result in _NOTHING[:2] else result
    facts.attributes = left or None
    return kind, facts


def _without_pieces(said: Json) -> Json:
    """A streamed answer is told piece by piece, each a message, and then as a whole: only the whole is kept.

    A call whose arguments have not come yet may have no id, or one of its own.
    """
    if not isinstance(said, _LISTS) or len(said) < 2:
        return said
    whole = _told(said[-1])
    names = _names(said[-1])
    pieces = [_told(_without_begun(message, names)) for message in said[:-1]]
    if whole is None or None in pieces:
        return said
    texts, calls = [piece[0] for piece in pieces if piece], [piece[1] for piece in pieces if piece]
    is_told_again = whole[1] if not whole[0] else len(said) > 2
    return [said[-1]] if is_told_again and "".join(texts) == whole[0] and set().union(*calls) <= whole[1] else said


def _names(message: Json) -> set[Json]:
    return {call["name"] for call in messages.calls_of([message])}


def _without_begun(message: Json, names: set[Json]) -> Json:
    """A piece without the calls that have no arguments yet; these are among the whole's, by their names."""
    parts = message.get("parts") if isinstance(message, Mapping) else None
    if not isinstance(parts, _LISTS):
        return message
    return {**message, "parts": [p for p in parts if not (_is_begun(p) and p.get("name") in names)]}


def _is_begun(part: Json) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "tool_call" and part.get("arguments") is None


def _told(message: Json) -> tuple[str, set[Json]] | None:
    """The text of a message and the ids of its calls; None where there is more in it."""
    parts = message.get("parts") if isinstance(message, Mapping) else None
    if not isinstance(parts, _LISTS):
        return None
    texts = [p.get("content") for p in parts if p.get("type") == "text"]
    calls = [p.get("id") for p in parts if p.get("type") == "tool_call"]
    known = len(texts) + len(calls) == len(parts) and all(isinstance(told, str) for told in (*texts, *calls))
    return ("".join(map(str, texts)), set(calls)) if known else None


def _take_request(value: Json, left: dict[str, Any], facts: Facts) -> None:
    if value in _NOTHING or facts.messages is not None:
        return
    asked = google.asked(loaded(value))
    if asked is not None:
        facts.messages = asked.messages
        facts.system_instructions = facts.system_instructions or asked.instructions
        facts.tools = facts.tools or asked.tools
        facts.model = facts.model or asked.model
        facts.parameters = {**(asked.parameters or {}), **(facts.parameters or {})} or None
    elif was_cut(value):
        facts.messages = RawList(value, messages.message)
        facts.flags.append("input_truncated")
    else:
        left[f"{_OWN}llm_request"] = value


def _take_answer(value: Json, left: dict[str, Any], facts: Facts) -> None:
    if value in _NOTHING or facts.output_messages is not None:
        return
    said = google.said(loaded(value))
    if said is not None:
        facts.output_messages, facts.calls = said.messages, messages.calls_of(said.messages)
        facts.finish_reasons = facts.finish_reasons or said.finish_reasons
        facts.response_id = facts.response_id or said.response_id
        facts.response_model = facts.response_model or said.model
    elif was_cut(value):
        facts.output_messages = RawList(value, messages.message)
        facts.flags.append("output_truncated")
    else:
        left[f"{_OWN}llm_response"] = value


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=(SCOPE,),
    span_names=(_CALL,),
    joined_logs=genai.DIALECT.joined_logs,
    takes=genai.DIALECT.takes,
    versions="google-adk 2.13, schema 2; the documented attributes of schema 1",
    unknown="response ids and models; which text is reasoning, in schema 2; retries",
)
