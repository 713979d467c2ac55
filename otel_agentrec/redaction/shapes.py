"""Secrets that are known by their shape wherever they stand in a text: keys of well-known services, JWTs, private keys, URLs
with a password. Each pattern starts with the letters that a plain search finds, and is bounded: no text makes it slow."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import NamedTuple

from otel_agentrec.redaction.marker import is_marker

__all__ = ["redact_shapes"]

Make = Callable[[str, str], str]
"""(rule, secret) -> what stands in its place."""


class Shape(NamedTuple):
    """``pattern`` is tried only where one of ``leads`` is in the text; its last group, or all of it, is the secret."""

    rule: str
    leads: tuple[str, ...]
    pattern: re.Pattern[str]


_MIXED = r"(?=[A-Za-z_-]{0,64}[0-9]|[a-z0-9_-]{0,64}[A-Z])"
"""Followed by something with a digit or a capital letter: no words joined by hyphens."""


_ESCAPES = (
    r"\\[abefnrtv0]",  # of a string: \n
    r"\\x[0-9A-Fa-f]{2}",
    r"\\[0-7]{3}",
    r"\\u[0-9A-Fa-f]{4}",
    r"%[0-9A-Fa-f]{2}",  # of a URL
    r"=[0-9A-F]{2}",  # of quoted-printable mail
    r"\x1b\[[mK]",  # of a terminal: colours, as they are and as escapes themselves (\u001b, \x1b, \033)
    r"(?:1[bB]|33)\[[mK]",
    *(rf"\[[0-9;]{{{n}}}[mK]" for n in range(1, 20)),
)
"""What may end in a letter or digit right before a secret, each of a fixed length."""


def _begins(lead: str) -> str:
    after = "|".join(rf"(?<={escape}{lead})" for escape in _ESCAPES)
    return rf"(?:(?<![A-Za-z0-9]{lead})|{after})"


def _word(lead: str) -> str:
    """A lead (of fixed length) that begins a word, also right after an escape."""
    return lead + _begins(lead)


_BEGINS = _begins("")
"""As in :func:`_word`, for leads of several lengths."""


def _shape(rule: str, leads: str, pattern: str) -> Shape:
    return Shape(rule, tuple(leads.split()), re.compile(pattern))


SHAPES = (
    _shape(
        "private-key",
        "-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,50}-----|\Z)",
    ),
    _shape("api-key", "sk-", rf"{_word('sk-')}(?!ssh-|ecdsa-){_MIXED}[A-Za-z0-9_-]{{10,}}"),
    _shape("api-key", "sk_ rk_", rf"{_word('[rs]k_')}(?:live|test|prod)_[A-Za-z0-9_]{{8,}}"),
    _shape("api-key", "AIza", rf"{_word('AIza')}[A-Za-z0-9_-]{{20,}}"),
    _shape("api-key", "AKIA ASIA", rf"{_word('A[KS]IA')}[A-Z0-9]{{12,}}(?![a-z])"),
    _shape(
        "api-key",
        "whsec_ gsk_ r8_ hf_ npm_ shpat_ shpss_ shpca_ lin_api_ dop_v1_ pat_ lsv2_",
        rf"(?=[wgrhnsldp]){_BEGINS}(?:whsec|gsk|r8|hf|npm|shpat|shpss|shpca|lin_api|dop_v1|github_pat|lsv2_[ps][kt])_[A-Za-z0-9_]{{16,}}",
    ),
    _shape(
        "api-key",
        "pypi- xai- pplx- tvly- nvapi- glpat- SECRET-KEY-",
        rf"(?=[gpxtnA]){_BEGINS}(?:glpat-{_MIXED}[A-Za-z0-9_-]{{16,}}|(?:pypi|xai|pplx|tvly|nvapi|AGE-SECRET-KEY)-{_MIXED}[A-Za-z0-9_-]{{24,}})",
    ),
    _shape("token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_word('gh[opusr]_')}[A-Za-z0-9_]{{16,}}"),
    _shape(
        "token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xapp-",
        rf"(?:xox[abcdeoprs]|xapp)-{_MIXED}[A-Za-z0-9-]{{8,}}",
    ),
    _shape("token", "eyJ", rf"{_word('eyJ')}[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}}(?:\.[A-Za-z0-9_-]+){{0,3}}"),
    _shape("token", "ya29.", rf"{_word('ya29[.]')}[A-Za-z0-9_-]{{16,}}"),
    _shape("token", "SG.", rf"{_word('SG[.]')}[A-Za-z0-9_-]{{16,}}\.[A-Za-z0-9_-]{{16,}}"),
    _shape(
        "authorization",
        "bearer Bearer BEARER",
        r"[Bb](?:earer|EARER)[ \t+]{1,4}((?!REDACTED\()(?=[^\s\"'<>,;]{0,64}[0-9]|[A-Za-z]{0,64}[a-z][A-Z]|[A-Za-z-]{0,16}[A-Z]{3}|[^\s\"'<>,;]{24})[A-Za-z0-9._~+/-]{8,}=*)",
    ),
    _shape("authorization", "basic Basic BASIC", r"[Bb](?:asic|ASIC)[ \t+]{1,4}([A-Za-z0-9+/_-]{6,}={0,2})"),
    _shape("url", "://", r"://([^\s/?#\"'<>\\]{1,1024})@"),
)


def redact_shapes(text: str, make: Make) -> str:
    """The text with every secret of a known shape replaced."""
    for rule, leads, pattern in SHAPES:
        if any(lead in text for lead in leads):
            judge = _JUDGES.get(leads[0], _whole)
            text = pattern.sub(lambda found, rule=rule, judge=judge: judge(found, rule, make), text)  # type: ignore[misc]
    return text


def _whole(found: re.Match[str], rule: str, make: Make) -> str:
    if not found.lastindex:
        return make(rule, found[0])
    start = found.start(1) - found.start()
    return found[0][:start] + make(rule, found[1])


def _basic(found: re.Match[str], rule: str, make: Make) -> str:
    """*Basic* is a word of every day: what follows must be ``user:password`` in base64, or at least no word."""
    try:
        is_pair = b":" in base64.b64decode(found[1] + "=" * (-len(found[1]) % 4))
    except ValueError:
        is_pair = False
    if is_pair or (len(found[1]) >= 12 and re.search(r"[0-9]", found[1])):
        return _whole(found, rule, make)
    return found[0]


def _userinfo(found: re.Match[str], rule: str, make: Make) -> str:
    """``user:password@``: the password. ``secret@``: what is no plain name."""
    user, _, password = found[1].partition(":")
    if password:
        return f"://{user}:{password if is_marker(password) else make('password', password)}@"
    if is_marker(user) or len(user) < 16 or not re.search(r"[0-9]", user):
        return found[0]
    return f"://{make('token', user)}@"


_JUDGES: dict[str, Callable[[re.Match[str], str, Make], str]] = {"basic": _basic, "://": _userinfo}
