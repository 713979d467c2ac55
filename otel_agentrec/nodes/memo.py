"""Work done once per message: a chat history is resent on every call, and its messages are the same objects each time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Memo"]

Json = Any


class Memo:
    """Maps a function over lists; an element that stood in one of the last few lists is not worked on again.

    Args:
        prepare: a pure function of one element.
        lists: how many lists are remembered; as many histories may take turns.
    """

    def __init__(self, prepare: Callable[[Json], Json], lists: int = 4) -> None:
        self._prepare = prepare
        self._seen: deque[dict[int, tuple[Json, Json]]] = deque(maxlen=lists)

    def map(self, elements: list[Json]) -> list[Json]:
        done: dict[int, tuple[Json, Json]] = {}
        for element in elements:
            key = id(element)
            for seen in self._seen:
                pair = seen.get(key)
                if pair is not None and pair[0] is element:
                    break
            else:
                pair = (element, self._prepare(element))
            done[key] = pair
        self._seen.appendleft(done)
        return [done[id(element)][1] for element in elements]
