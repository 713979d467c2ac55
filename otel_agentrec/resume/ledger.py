"""The effects of a run's earlier attempts, and which of them a call of the present attempt is."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from otel_agentrec.nodes.effects import NOT_BEGUN, Effect
from otel_agentrec.nodes.keys import KeyRing, NoKey, split_key, tool_key

__all__ = ["Ledger"]


class Ledger:
    """What was begun before this attempt. Any thread may ask.

    Every effect answers one call: equal calls of one lane are matched by their call id first, else in the order in which
    they began. Keys that were made under another secret or with other inert paths are made anew from the recorded arguments.

    Args:
        effects: of all earlier attempts, in the order in which they began.
        ring: the recording's secret.
    """

    def __init__(self, effects: Iterable[Effect], ring: KeyRing) -> None:
        self.effects = list(effects)
        self._ring = ring
        self._left = list(self.effects)
        self._lock = threading.Lock()
        self._keys: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def take(
        self, name: str, lane: str, key: str | None, call_id: str | None, inert: tuple[str, ...] = ()
    ) -> Effect | None:
        """The effect that this call is, which then answers no other one; None when it was not begun before.

        An effect of this name whose arguments nobody can compare (redacted, cut, erased) comes back as ``unknown``, for it
        may be this call; so does any when the call itself has no key.
        """
        with self._lock:
            near = [e for e in self._left if e.name == name and (e.lane == lane or e.effect is None)]
            same = [e for e in near if key is not None and self._key(e, key, inert) == key]
            found = next((e for e in same if call_id and e.call_id == call_id), same[0] if same else None)
            if found is None:
                dim = [e for e in near if key is None or self._key(e, key, inert) is None]
                found = next((e for e in dim if e.effect not in (False, "container") and e.state != NOT_BEGUN), None)
                if found is not None and found.lost is None:
                    found.lost = f"arguments {found.arguments_lost or 'that have no key'}"
            if found is not None:
                self._left = [e for e in self._left if e is not found]
            return found

    def give_back(self, effect: Effect) -> None:
        """The call did not come about: the effect may answer another one."""
        with self._lock:
            used = {id(one) for one in self.effects} - {id(one) for one in self._left} - {id(effect)}
            self._left = [one for one in self.effects if id(one) not in used]

    def left(self, name: str | None = None, lane: str | None = None) -> list[Effect]:
        """Effects that have answered no call yet."""
        with self._lock:
            return [
                e
                for e in self._left
                if (name is None or e.name == name) and (lane is None or e.lane == lane or e.effect is None)
            ]

    def elsewhere(self, name: str, lane: str, key: str | None, inert: tuple[str, ...] = ()) -> list[str]:
        """The other lanes in which this very call is recorded, answered or not; none where it is recorded in this one."""
        with self._lock:
            same = [e for e in self.effects if key is not None and e.name == name and self._key(e, key, inert) == key]
        found = list(dict.fromkeys(e.lane for e in same))
        return [] if lane in found else found

    def knows(self, name: str, lane: str, key: str | None, inert: tuple[str, ...] = ()) -> bool:
        """Whether this very call is recorded in this lane."""
        with self._lock:
            near = [e for e in self.effects if e.name == name and (e.lane == lane or e.effect is None)]
            return key is not None and any(self._key(e, key, inert) == key for e in near)

    def alike(self, name: str, key: str | None, inert: tuple[str, ...] = ()) -> list[Effect]:
        """All effects, of any lane, that are this very call, or may be: nobody can compare their arguments, or those of the call."""
        with self._lock:
            named = [e for e in self.effects if e.name == name]
            return [e for e in named if key is None or self._key(e, key, inert) in (None, key)]

    def unsettled(self) -> list[Effect]:
        """Effects that a run must not go past: nobody knows their outcome, or their result can't be handed out."""
        return [effect for effect in self.effects if effect.needs_settling]

    def _key(self, effect: Effect, like: str, inert: tuple[str, ...]) -> str | None:
        """The key of a recorded call, made as the key ``like`` is."""
        stored = effect.key
        if stored is not None:
            ours, theirs = split_key(like), split_key(stored)
            if (ours.scheme, ours.key_id) == (theirs.scheme, theirs.key_id):
                return stored
        made = (effect.id, inert)
        if made not in self._keys:
            try:
                known = effect.arguments_lost is None
                self._keys[made] = tool_key(self._ring, effect.name, effect.arguments, inert) if known else None
            except NoKey:
                self._keys[made] = None
        return self._keys[made]
