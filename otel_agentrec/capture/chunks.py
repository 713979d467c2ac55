"""The chunks of a streamed chat completion -> the completion, as the API would have given it whole.

Source of the shapes: the OpenAI API reference, "Chat", streaming: ``{id, model, choices: [{index, delta, finish_reason}],
usage}``. Text is joined, calls of tools are put together by their ``index``, and usage is that of the last chunk that has it:
often one without choices. Many servers speak it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["ChatChunks"]

Json = Any
_JOINED = ("content", "refusal", "reasoning_content", "reasoning")


class ChatChunks:
    """The chunks of one answer so far."""

    def __init__(self) -> None:
        self._whole: dict[str, Json] = {}
        self._choices: dict[int, _Choice] = {}

    @staticmethod
    def fits(chunk: Json) -> bool:
        """Is this a chunk of a chat completion?"""
        if not isinstance(chunk, Mapping) or not isinstance(chunk.get("choices"), list):
            return False
        if chunk.get("object") == "chat.completion.chunk":
            return True
        return any(isinstance(choice, Mapping) and "delta" in choice for choice in chunk["choices"])

    def add(self, chunk: Mapping[str, Json]) -> str:
        """Take the next chunk. Returns the text that it adds to the first choice."""
        self._whole.update({k: v for k, v in chunk.items() if k not in ("choices", "object") and v is not None})
        added = ""
        for choice in chunk["choices"]:
            if isinstance(choice, Mapping):
                told = choice.get("index")
                index = told if type(told) is int else 0
                text = self._choices.setdefault(index, _Choice()).add(choice)
                added += text if index == min(self._choices) else ""
        return added

    @property
    def complete(self) -> bool:
        """Did every choice that began come to its end? Without one there is no answer yet."""
        return bool(self._choices) and all(choice.reason is not None for choice in self._choices.values())

    def merged(self) -> dict[str, Json] | None:
        """The completion so far; ``usage`` only where a chunk told it. None before the first chunk."""
        if not self._whole and not self._choices:
            return None
        choices = [{"index": i, **choice.merged()} for i, choice in sorted(self._choices.items())]
        return {**self._whole, "object": "chat.completion", "choices": choices}


class _Choice:
    def __init__(self) -> None:
        self.reason: Json = None
        self._pieces: dict[str, list[str]] = {}
        self._rest: dict[str, Json] = {}
        self._calls: dict[int, dict[str, Json]] = {}
        self._arguments: dict[int, list[str]] = {}

    def add(self, choice: Mapping[str, Json]) -> str:
        if choice.get("finish_reason") is not None:
            self.reason = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            return ""
        for key, value in delta.items():
            if key in _JOINED and isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
            elif key == "tool_calls" and isinstance(value, list):
                for call in value:
                    self._call(call)
            elif value is not None:
                self._rest[key] = value
        return delta["content"] if isinstance(delta.get("content"), str) else ""

    def _call(self, piece: Json) -> None:
        """A piece of a call: its id and name come once, its arguments in pieces. Some servers give no index."""
        if not isinstance(piece, Mapping):
            return
        index = piece.get("index")
        if type(index) is not int:
            index = max(self._calls, default=-1)
            if piece.get("id") and (index < 0 or piece["id"] != self._calls[index].get("id")):
                index += 1
        call = self._calls.setdefault(max(0, index), {"type": "function", "function": {}})
        function = piece.get("function")
        for key, value in function.items() if isinstance(function, Mapping) else ():
            if key == "arguments" and isinstance(value, str):
                self._arguments.setdefault(max(0, index), []).append(value)
            elif value:
                call["function"][key] = value
        call.update({k: v for k, v in piece.items() if k not in ("index", "function") and v})

    def merged(self) -> dict[str, Json]:
        message: dict[str, Json] = {"role": "assistant", "content": None, **self._rest}
        message.update({key: "".join(pieces) for key, pieces in self._pieces.items()})
        if self._calls:
            message["content"] = message["content"] or None
            message["tool_calls"] = [
                {**call, "function": {**call["function"], "arguments": "".join(self._arguments.get(i, ()))}}
                for i, call in sorted(self._calls.items())
            ]
        return {"message": message, "finish_reason": self.reason}
