"""The gate for secrets: every value passes it before the first byte of it is written anywhere."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from otel_agentrec.errors import ConfigurationError
from otel_agentrec.redaction.credentials import Credentials
from otel_agentrec.redaction.gate import suspicious
from otel_agentrec.redaction.marker import Marker, is_marker, withheld
from otel_agentrec.redaction.paths import Paths
from otel_agentrec.redaction.patterns import OPTIONAL, TextPattern

__all__ = ["Redactor", "whole_record"]

Json = Any
Place = tuple[str, ...]
F = TypeVar("F", bound=Callable[..., Any])

_KEPT = frozenset(("type", "kind", "startedAt", "endedAt", "observedAt", "status", "reason", "operation", "provider"))
"""Texts of a payload that give it its meaning: they stay when a rule of the user failed on it."""


def whole_record(rule: F) -> F:
    """Mark a rule that must see the whole payload of an event, with all content: ``rule(type, payload) -> payload``.

    It costs the fast path of growing chat histories: every list is parsed in full for every event.
    """
    rule.whole_record = True  # type: ignore[attr-defined]
    return rule


class Redactor:
    """Redacts values by the default rules and those of the user, one after the other. Pure for equal rules and key.

    Never raises for a value: where a rule fails, the value is withheld (``REDACTED(withheld)``) and counted.

    Args:
        rules: in the order in which they are applied, after the default ones: a callable ``value -> value``, a callable marked
            by :func:`whole_record`, a compiled pattern, a JSON path (``$..ssn``), or ``email`` or ``card``.
        credentials: False leaves the default rules out.
        key: of the digests in markers; default: random. Equal keys give equal markers.

    Raises:
        ConfigurationError: a rule is none of these.
    """

    def __init__(self, rules: Iterable[Any] = (), *, credentials: bool = True, key: bytes | None = None) -> None:
        self.counts: dict[str, int] = {"withheld": 0}
        """How often each rule found something; ``withheld``: how often one failed."""
        self._marker = Marker(key)
        self._credentials = Credentials(self._marker, self._count) if credentials else None
        self._rules: list[Callable[..., Any]] = []
        self._whole: list[Callable[..., Any]] = []
        paths: list[str] = []
        for rule in rules:
            if isinstance(rule, str) and rule[:1] == "$":
                paths.append(rule)
            elif getattr(rule, "whole_record", False):
                self._whole.append(rule)
            else:
                self._rules.append(self._rule(rule))
        if paths:
            self._rules.append(Paths(paths, lambda text: self._made("path", text)))

    @classmethod
    def from_setting(cls, setting: Any = "default") -> Redactor:
        """The redactor of the setting ``redact``.

        Args:
            setting: ``default``, ``off`` (or False), ``module:callable``, ``email``, ``card``, a JSON path, several of these
                with commas between them; a rule or a list of rules as :class:`Redactor` takes them; or a Redactor. The default
                rules stay in force beside others unless ``off`` is among them.

        Raises:
            ConfigurationError: something else, or the callable can't be imported.
        """
        if isinstance(setting, Redactor):
            return setting
        if setting is None or setting is True:
            return cls()
        if setting is False:
            return cls(credentials=False)
        given = setting if isinstance(setting, (list, tuple)) else [setting]
        parts: list[Any] = []
        for one in given:
            parts += [part.strip() for part in one.split(",")] if isinstance(one, str) else [one]
        words = [part for part in parts if isinstance(part, str)]
        rules = [
            _named(part) if isinstance(part, str) else part for part in parts if part not in ("default", "off", "")
        ]
        return cls(rules, credentials="off" not in words)

    # --- what callers use ---

    @property
    def is_off(self) -> bool:
        """Nothing is ever changed."""
        return self._credentials is None and not self._rules and not self._whole

    @property
    def has_rules(self) -> bool:
        """Whether there are rules of the user, which know what is recorded by its place in the recording."""
        return bool(self._rules or self._whole)

    @property
    def per_element(self) -> bool:
        """Whether no rule must see a whole record: then each element of a list is redacted by itself, once."""
        return not self._whole

    def is_clean(self, data: bytes) -> bool:
        """Whether certainly nothing would change in a text, or in the value of a JSON text (UTF-8, ASCII not escaped).

        False as soon as there are rules of the user: what they look for can't be known.
        """
        return not self._rules and (self._credentials is None or not suspicious(data))

    def value(self, value: Json, at: Place = ()) -> Json:
        """A value without its secrets; the same object when nothing changed.

        Args:
            at: where it stands in the payload of its event, for JSON paths; ``*`` for an element of a list.
        """
        try:
            return self._apply(value, at)
        except Exception:
            return self.withhold()

    def withhold(self) -> str:
        """The marker of a value that can't be kept because a rule failed on it; counts it."""
        self._count("withheld")
        return withheld()

    def text(self, text: str) -> str:
        """A text without its secrets."""
        new = self.value(text)
        return new if isinstance(new, str) else withheld()

    def identifier(self, text: str) -> str:
        """An id without its secrets. One that a rule fails on still differs from others."""
        try:
            new = self._apply(text, ())
            if isinstance(new, str):
                return new
        except Exception:
            pass
        return self._made("withheld", text)

    def payload(self, payload: dict[str, Json], at: Place = ()) -> dict[str, Json]:
        """The part of a payload that is no content. Where a rule of the user fails on it, only numbers and what gives the event
        its meaning stay."""
        known: dict[str, Json] = {}
        try:
            known = payload if self._credentials is None else self._credentials.value(payload)
            new = self._by_rules(known, at)
            if isinstance(new, dict) and all(new.get(key) == payload.get(key) for key in ("type", "kind")):
                return new
        except Exception:
            pass
        self._count("withheld")
        kept = _bare(known)
        assert isinstance(kept, dict)
        return kept

    def record(self, type_: str, payload: dict[str, Json]) -> dict[str, Json]:
        """A whole payload by the rules that must see all of it."""
        for rule in self._whole:
            try:
                new = rule(type_, payload)
                if not isinstance(new, dict):
                    raise TypeError(f"{rule!r} gave no payload")
                if new != payload:
                    self._count(getattr(rule, "__name__", "rule"))
                payload = new
            except Exception:
                self._count("withheld")
                kept = _bare(payload)
                assert isinstance(kept, dict)
                return kept
        return payload

    # --- inside ---

    def _apply(self, value: Json, at: Place) -> Json:
        return self._by_rules(value if self._credentials is None else self._credentials.value(value), at)

    def _by_rules(self, value: Json, at: Place) -> Json:
        for rule in self._rules:
            value = rule(value, at) if isinstance(rule, (Paths, TextPattern)) else self._by_user(rule, value)
        return value

    def _by_user(self, rule: Callable[[Json], Json], value: Json) -> Json:
        new = rule(value)
        if new is not value:
            _check(new)
            if new != value:
                self._count(getattr(rule, "__name__", "rule"))
        return new

    def _rule(self, rule: Any) -> Callable[..., Any]:
        if isinstance(rule, str) and rule in OPTIONAL:
            pattern, judge = OPTIONAL[rule]
            return TextPattern(rule, pattern, self._made, judge)
        if isinstance(rule, re.Pattern):
            return TextPattern("pattern", rule, self._made)
        if callable(rule):
            return rule  # type: ignore[no-any-return]
        raise ConfigurationError(f"{rule!r} is no redaction rule", _HINT)

    def _made(self, rule: str, secret: str) -> str:
        if is_marker(secret):
            return secret
        self._count(rule)
        return self._marker.of(rule, secret)

    def _count(self, rule: str) -> None:
        if rule not in self.counts:
            self.counts.setdefault(rule, 0)
        self.counts[rule] += 1


_HINT = "give default, off, email, card, a JSON path such as $..ssn, or module:callable of a function value -> value"


def check_setting(text: str) -> None:
    """Look at a setting ``redact`` that is text, without importing what it names: another program will.

    Raises:
        ConfigurationError: it holds a word that names no rule, and could name no callable.
    """
    for part in (part.strip() for part in text.split(",")):
        if part not in ("default", "off", "") and ":" in part and part[:1] != "$":
            _place_of(part)
        elif part not in ("default", "off", ""):
            Redactor([_named(part)])


def _place_of(name: str) -> tuple[str, str]:
    """Module and attribute of ``module:callable``."""
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ConfigurationError(f"redact={name!r} can't be used", _HINT)
    return module, attribute


def _named(name: str) -> Any:
    """The rule that a word of the setting names."""
    if name in OPTIONAL or name[:1] == "$":
        return name
    module, attribute = _place_of(name)
    try:
        rule: Any = importlib.import_module(module)
        for part in attribute.split("."):
            rule = getattr(rule, part)
    except (ImportError, AttributeError) as e:
        raise ConfigurationError(f"redact={name!r}: {e}", "the module must be importable where the program runs") from e
    if not callable(rule):
        raise ConfigurationError(f"redact={name!r} is not callable", _HINT)
    return rule


def _check(value: Json) -> None:
    """Raises TypeError for what is no JSON: what a rule made of a value must be as plain as the value was."""
    todo = [value]
    while todo:
        x = todo.pop()
        if isinstance(x, dict):
            if not all(isinstance(key, str) for key in x):
                raise TypeError("a key is no string")
            todo += x.values()
        elif isinstance(x, (list, tuple)):
            todo += x
        elif x is not None and not isinstance(x, (str, bool)) and not (type(x) in (int, float) and abs(x) < 1 << 53):
            raise TypeError(f"{x!r} is no JSON")


def _bare(value: Json, key: str | None = None) -> Json:
    if isinstance(value, dict):
        return {k: _bare(v, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_bare(v) for v in value]
    return withheld() if isinstance(value, str) and key not in _KEPT else value
