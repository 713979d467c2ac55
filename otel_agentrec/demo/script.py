"""What a scripted model says: a list of turns, each with a condition and an answer. Plain data, also from JSON.

A request is answered by the first turn that fits it and is not used up, so a list of turns without conditions is simply
the conversation in order::

    Script([
        Turn(tool_calls=[Call("weather", {"city": "Oslo"}), Call("trains", {"to": "Oslo"})]),
        Turn(status=429, headers={"retry-after": "0"}),
        Turn("Take an umbrella: {tool_results}"),
    ])

In ``text`` and in string arguments, ``{tool_results}`` stands for the results that the request brings (since the last
answer of the model), joined by ``"; "``, and ``{last}`` for the text of its last message.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from otel_agentrec.errors import UsageError

__all__ = ["Asked", "Call", "Script", "Turn", "Usage", "When", "fill"]

Json = Any


@dataclass(frozen=True)
class Asked:
    """What a request asks, the same for all APIs.

    ``messages``: (role, text) pairs; ``step``: 1 + answers of the model since the last user message; ``tool_results``:
    texts of the results that came after the last answer of the model, in the order of the request.
    """

    api: str
    model: str
    messages: tuple[tuple[str, str], ...]
    step: int
    tool_results: tuple[str, ...]

    @property
    def last(self) -> tuple[str, str]:
        return self.messages[-1] if self.messages else ("", "")


@dataclass(frozen=True)
class When:
    """Conditions on a request; all that are given must hold.

    Args:
        last: regular expression searched in the text of the last message.
        any: regular expression searched in the text of every message.
        role: role of the last message (``user``, ``tool`` ...).
        model: the model's name.
        step: 1 for the first answer after a user message, 2 for the next one ...
        api: ``chat``, ``responses``, ``anthropic``, ``gemini``, ``bedrock`` or ``embeddings``. Embeddings are answered without
            a turn; only one that names them is used up by them.
    """

    last: str | None = None
    any: str | None = None
    role: str | None = None
    model: str | None = None
    step: int | None = None
    api: str | None = None

    def fits(self, asked: Asked) -> bool:
        role, text = asked.last
        return (
            (self.api == asked.api or (self.api is None and asked.api != "embeddings"))
            and (self.model is None or self.model == asked.model)
            and (self.step is None or self.step == asked.step)
            and (self.role is None or self.role == role)
            and (self.last is None or re.search(self.last, text) is not None)
            and (self.any is None or any(re.search(self.any, t) for _, t in asked.messages))
        )


@dataclass(frozen=True)
class Call:
    """A tool call that the model asks for. ``arguments``: a dict, or the JSON text itself. ``id`` None: one is made."""

    name: str
    arguments: dict[str, Json] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens as OpenAI counts them: ``input`` includes ``cached``, ``output`` includes ``reasoning``."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Turn:
    """One answer of the scripted model.

    Args:
        text: what the model says.
        tool_calls: what it asks for, all at once (parallel calls).
        reasoning: reasoning text (chat: ``reasoning_content``; responses: a reasoning summary; others: their own blocks).
        usage: None makes a plausible count from the lengths.
        finish_reason: None gives ``stop`` or ``tool_calls``.
        status: an HTTP status other than 200 answers with an error body and ``text`` as its message.
        headers: sent along, for example ``{"retry-after": "0"}``.
        chunks: the exact pieces of a streamed text; None splits ``text`` at words.
        delay: seconds before the first byte.
        chunk_delay: seconds between two streamed events.
        end: ``done``; ``cut`` closes the connection, ``garbage`` sends what is no JSON, ``hang`` sends nothing more
            until the server stops.
        after: number of streamed events before a ``cut``, ``garbage`` or ``hang``; a shorter stream has it at its end.
        when: which requests it fits.
        times: how many requests it answers; 0 = any number.
    """

    text: str = ""
    tool_calls: Sequence[Call] = ()
    reasoning: str = ""
    usage: Usage | None = None
    finish_reason: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Sequence[str] | None = None
    delay: float = 0.0
    chunk_delay: float = 0.0
    end: str = "done"
    after: int = 0
    when: When = When()
    times: int = 1

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Turn:
        """A turn from JSON with the same names (``tool_calls``, ``when`` ... are nested objects).

        Raises:
            UsageError: a name is unknown or a value has the wrong shape.
        """
        try:
            values = dict(data)
            values["tool_calls"] = tuple(Call(**call) for call in values.get("tool_calls") or ())
            values["when"] = When(**values.get("when") or {})
            if values.get("usage") is not None:
                values["usage"] = Usage(**values["usage"])
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise UsageError(f"not a turn of a script: {error}", "see otel_agentrec.demo.script.Turn") from None


class Script:
    """Turns, and how often each was used. Safe for parallel requests."""

    def __init__(self, turns: Iterable[Turn | str]) -> None:
        self._turns: list[tuple[Turn, int]] = [(_turn(turn), 0) for turn in turns]
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: str | Path) -> Script:
        """A script from a JSON file: an array of turns.

        Raises:
            UsageError: the file can't be read or holds something else.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"can't read the script {path}: {error}", "give a JSON file: an array of turns") from None
        if not isinstance(data, list) or not all(isinstance(turn, dict) for turn in data):
            raise UsageError(f"{path} is not a script", "give a JSON file: an array of turns")
        return cls(Turn.from_json(turn) for turn in data)

    def add(self, turn: Turn | str) -> None:
        """Append a turn."""
        with self._lock:
            self._turns.append((_turn(turn), 0))

    def answer_next(self, turn: Turn | str) -> None:
        """Put a turn first: it answers the next request that it fits."""
        with self._lock:
            self._turns.insert(0, (_turn(turn), 0))

    def take(self, asked: Asked) -> Turn | None:
        """The first turn that fits and is not used up; None when there is none."""
        with self._lock:
            for at, (turn, used) in enumerate(self._turns):
                if (turn.times == 0 or used < turn.times) and turn.when.fits(asked):
                    self._turns[at] = (turn, used + 1)
                    return turn
        return None

    @property
    def unused(self) -> list[Turn]:
        """Turns that answered nothing yet, so that a test can assert that the whole script was played."""
        with self._lock:
            return [turn for turn, used in self._turns if used == 0]


def _turn(turn: Turn | str) -> Turn:
    return Turn(turn) if isinstance(turn, str) else turn


def fill(text: str, asked: Asked) -> str:
    """``text`` with its placeholders replaced."""
    return text.replace("{tool_results}", "; ".join(asked.tool_results)).replace("{last}", asked.last[1])
