"""What the request and the answer on the wire tell, in the words of spans: the facts of a model call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from otel_agentrec.capture.dialects import google, messages, openai, raw, tokens
from otel_agentrec.capture.dialects.exchange import Asked, Said, parameters
from otel_agentrec.capture.dialects.values import text
from otel_agentrec.journal.facts import Facts
from otel_agentrec.nodes.exchange import ModelRequest, RecordedResponse

__all__ = ["DIALECT", "GENERATING", "add_question", "answer_facts", "request_facts"]

Json = Any
DIALECT = "wire"
_LISTS = (list, tuple)

GENERATING = frozenset(
    [
        "openai.chat",
        "openai.completions",
        "openai.responses",
        "anthropic.messages",
        "google.generate",
        "vertex.predict",
        "bedrock.converse",
        "bedrock.invoke",
        "ollama.chat",
        "ollama.generate",
        "cohere.chat",
        "mistral.fim",
        "mistral.agents",
        "mistral.conversations",
        "custom",
    ]
)
"""APIs whose calls are model calls; the others (embeddings, counts of tokens …) are steps."""

_PROVIDERS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "cohere": "cohere",
    "ollama": "ollama",
}
_HOSTS = (("openai.azure.com", "azure.ai.openai"), ("api.mistral.ai", "mistral_ai"), ("api.groq.com", "groq"), ("api.x.ai", "x_ai"),
          ("api.deepseek.com", "deepseek"), ("aiplatform.googleapis.com", "gcp.vertex_ai"))  # fmt: skip
_MODEL_IN_PATH = re.compile(r"/(?:models?|deployments|engines)/([^/:]+)")


def request_facts(request: ModelRequest, body: Json) -> Facts:
    """What a request asks, without what is said in it."""
    facts = Facts(dialect=DIALECT, operation="chat", provider=_provider(request))
    in_path = _MODEL_IN_PATH.search(request.path)
    named = text(body.get("model")) if isinstance(body, Mapping) else None
    facts.model = named or (unquote(in_path[1]) if in_path else None)
    stream = body.get("stream") if isinstance(body, Mapping) else None
    facts.streamed = stream if isinstance(stream, bool) else None
    return facts


def add_question(facts: Facts, api: str, body: Json) -> None:
    """Add what is said in a request; lists are normalised to the message schema. Takes 20 ms for a megabyte."""
    asked = _asked(api, body) if isinstance(body, Mapping) else None
    if asked is not None:
        facts.messages = asked.messages or None
        facts.system_instructions = asked.instructions
        facts.tools = asked.tools
        facts.parameters = asked.parameters


def answer_facts(
    facts: Facts, response: RecordedResponse, payload: Json, complete: bool | None, streamed: bool
) -> None:
    """Add what the last attempt of a call brought."""
    facts.streamed = True if streamed else facts.streamed
    status = response.status
    if status is None or status >= 400:
        facts.status = "error"
        facts.error_type, facts.error_message = _error(response, payload)
        return
    told = payload if isinstance(payload, Mapping) else {}
    said = _said(told)
    if said is not None and said.messages:
        facts.output_messages = said.messages
        facts.calls = messages.calls_of(said.messages) or None
        facts.finish_reasons = said.finish_reasons
    if said is not None:
        facts.response_id, facts.response_model = said.response_id, said.model
    facts.response_id = facts.response_id or text(told.get("id"))
    facts.response_model = facts.response_model or text(told.get("model"))
    _usage(told, facts)
    if response.error is not None or (complete is False and response.end != "eof"):
        facts.status = "partial" if facts.output_messages else "interrupted"
        if response.error is not None:
            facts.status = "error"
            facts.error_type, facts.error_message = _error(response, payload)
    tokens.settle(facts)


def _asked(api: str, body: Mapping[str, Json]) -> Asked | None:
    if "contents" in body:
        held = body.get("generationConfig")
        config = {
            **(held if isinstance(held, Mapping) else {}),
            "system_instruction": body.get("systemInstruction", body.get("system_instruction")),
            "tools": body.get("tools"),
        }
        return google.asked({"contents": body["contents"], "config": config})
    found = body.get("messages")
    if api == "bedrock.converse" and isinstance(found, _LISTS):
        system, tools = body.get("system"), body.get("toolConfig")
        listed = tools.get("tools") if isinstance(tools, Mapping) else None
        return Asked(
            [messages.message(m) for m in found],
            instructions=[messages.part(p) for p in system] if isinstance(system, _LISTS) and system else None,
            tools=[_definition(t) for t in listed] if isinstance(listed, _LISTS) and listed else None,
            parameters=_inference(body),
        )
    return raw.asked(body)


def _definition(tool: Json) -> Json:
    held = tool.get("toolSpec") if isinstance(tool, Mapping) else None
    if not isinstance(held, Mapping):
        return messages.definition(tool)
    schema = held.get("inputSchema")
    told = {key: value for key, value in held.items() if key != "inputSchema"}
    return {"type": "function", **told, "parameters": schema.get("json") if isinstance(schema, Mapping) else schema}


def _inference(body: Mapping[str, Json]) -> dict[str, Json] | None:
    held = body.get("inferenceConfig")
    return parameters(held) if isinstance(held, Mapping) else None


def _said(told: Mapping[str, Json]) -> Said | None:
    output = told.get("output")
    held = output.get("message") if isinstance(output, Mapping) else None
    if isinstance(held, Mapping):  # Bedrock
        reason = text(told.get("stopReason"))
        return Said([messages.message(held)], [reason] if reason else None)
    if "candidates" in told:
        return google.said(told)
    message = told.get("message")
    if isinstance(message, Mapping) and "done" in told:  # Ollama
        reason = text(told.get("done_reason"))
        return Said([messages.message(message)], [reason] if reason else None, None, text(told.get("model")))
    if isinstance(told.get("response"), str) and "done" in told:
        made = {"role": "assistant", "parts": [{"type": "text", "content": told["response"]}]}
        return Said([made], None, None, text(told.get("model")))
    return openai.said(told) or raw.said(told)


def _usage(told: Mapping[str, Json], facts: Facts) -> None:
    usage = told.get("usage")
    if tokens.take_usage(usage, facts):
        held = usage if isinstance(usage, Mapping) else {}
        read, wrote = tokens.count(held.get("cacheReadInputTokens")), tokens.count(held.get("cacheWriteInputTokens"))
        facts.cache_read_tokens = facts.cache_read_tokens if read is None else read
        facts.cache_write_tokens = facts.cache_write_tokens if wrote is None else wrote
        return
    gemini = told.get("usageMetadata")
    if isinstance(gemini, Mapping):
        facts.input_tokens = tokens.count(gemini.get("promptTokenCount"))
        answered, thought = (tokens.count(gemini.get(key)) for key in ("candidatesTokenCount", "thoughtsTokenCount"))
        if answered is not None or thought is not None:
            facts.output_tokens = (answered or 0) + (thought or 0)
        facts.reasoning_tokens = thought
        facts.cache_read_tokens = tokens.count(gemini.get("cachedContentTokenCount"))
        return
    if "done" in told:
        facts.input_tokens = tokens.count(told.get("prompt_eval_count"))
        facts.output_tokens = tokens.count(told.get("eval_count"))


def _error(response: RecordedResponse, payload: Json) -> tuple[str, str | None]:
    if response.error is not None:
        return str(response.error.get("type") or "error"), response.error.get("message")
    held = payload.get("error", payload) if isinstance(payload, Mapping) else None
    message = held.get("message") if isinstance(held, Mapping) else held if isinstance(held, str) else None
    return str(response.status or "no response"), text(message)


def _provider(request: ModelRequest) -> str | None:
    host = request.host.partition(":")[0].lower()
    named = next((name for end, name in _HOSTS if host.endswith(end)), None)
    return named or _PROVIDERS.get(request.api.partition(".")[0])
