"""Which names say that their value is a credential.

A name is compared by its last words: ``X-Api-Key``, ``apiKey``, ``OPENAI_API_KEY`` and ``http.request.header.x_api_key`` all end
in the words *api key*. Numbers at its end do not count (``password2``).
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["ENDINGS", "QUERY_ENDINGS", "credential", "is_counted", "query_credential"]

ENDINGS: dict[str, tuple[str, ...]] = {
    "authorization": ("authorization",),
    "cookie": ("cookie", "cookies"),
    "api-key": (
        *(
            "api-key",
            "api-keys",
            "access-key",
            "access-keys",
            "account-key",
            "auth-key",
            "consumer-key",
            "function-key",
        ),
        *("functions-key", "license-key", "service-key", "shared-key", "storage-key", "subscription-key", "app-key"),
    ),
    "password": (
        *("password", "passwords", "passwd", "passphrase", "passcode", "password-hash", "password-confirmation", "otp"),
        *("password-confirm", "mnemonic", "seed-phrase", "recovery-phrase", "db-pass", "smtp-pass", "mysql-pass"),
        *("user-pass", "mail-pass", "redis-pass", "ftp-pass", "admin-pass", "root-pass", "proxy-pass", "pg-pass"),
    ),
    "pwd": ("pwd",),
    "secret": ("secret", "secrets", "secret-string", "secret-binary", "secret-value"),
    "private-key": (
        *("private-key", "private-keys", "secret-key", "secret-keys", "signing-key", "encryption-key", "master-key"),
        *("hmac-key", "ssh-key", "deploy-key", "symmetric-key"),
    ),
    "connection-string": ("connection-string", "conn-str", "conn-string"),
    "credential": ("credential", "credentials", "client-assertion"),
    "token": (
        *(
            "token",
            "jwt",
            "bearer",
            "access-token",
            "refresh-token",
            "id-token",
            "auth-token",
            "api-token",
            "session-token",
        ),
        *(
            "csrf-token",
            "xsrf-token",
            "bearer-token",
            "oauth-token",
            "security-token",
            "access-tokens",
            "refresh-tokens",
        ),
        *("api-tokens", "auth-tokens", "bearer-tokens", "session-tokens", "authorization-code", "auth-code"),
        *("code-verifier", "phpsessid", "jsessionid"),
    ),
}
"""Rule -> the last words of the names it is for. ``pwd`` is apart: it may also be the working directory."""

QUERY_ENDINGS: dict[str, tuple[str, ...]] = {
    "api-key": ("key",),
    "signature": ("sig", "signature", "hmac"),
    "token": ("auth", "ticket", "session-id", "sessionid", "sid"),
    "credential": ("amz-credential", "goog-credential"),
}
"""As ENDINGS, but only for the parameters of a URL or a form."""

_WHOLE_WORD = frozenset(("token", "pwd", "otp", "jwt", "bearer", "sig", "key", "auth", "sid", "hmac", "ticket"))
"""Endings that are also the end of other words (*compass*, *monkey*): they count only as words of their own."""
_NO_CREDENTIAL = re.compile(
    r"(?:^|-)(?:next|page|nextpage|continuation|sync|cursor|change|eos|bos|pad|stop|unk|sep|cls|mask|special|start|end|begin|"
    r"first|last|per|max|min|total|num|input|output|prompt|completion|cancel|cancellation|word|text|image|sub|top|"
    r"forced|decoder|added|new|time-to-first)-token$"
)
"""Places in a text or a listing, not secrets: ``next_page_token``, ``eos_token``."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_WORD = re.compile(r"[^a-z0-9]+")
_NUMBER = re.compile(r"-?[0-9]{1,4}$")
_LONGEST = 200


def _ending(endings: dict[str, tuple[str, ...]]) -> re.Pattern[str]:
    groups = []
    for rule, names in endings.items():
        spelled = "|".join(
            rf"(?:^|-){name}" if name in _WHOLE_WORD else name.replace("-", "-?") for name in sorted(names, key=len)
        )
        groups.append(f"(?P<{rule.replace('-', '_')}>{spelled})")
    return re.compile(f"(?:{'|'.join(groups)})$")


_CREDENTIAL = _ending(ENDINGS)
_QUERY = _ending(QUERY_ENDINGS)


@lru_cache(maxsize=4096)
def credential(name: str) -> str | None:
    """The rule for the value of this name; None when the name says nothing of a credential."""
    return _rule(_CREDENTIAL, _words(name))


@lru_cache(maxsize=1024)
def query_credential(name: str) -> str | None:
    """As :func:`credential`, for a parameter of a URL or a form."""
    words = _words(name)
    return _rule(_CREDENTIAL, words) or _rule(_QUERY, words)


def is_counted(rule: str) -> bool:
    """Whether a number under a name of this rule counts something (tokens, cookies) instead of being the secret."""
    return rule not in ("password", "pwd", "secret", "private-key", "api-key")


def _words(name: str) -> str:
    name = name[-_LONGEST:]
    if not name.islower():
        name = _CAMEL.sub("-", name).lower()
    return _NUMBER.sub("", _NO_WORD.sub("-", name).strip("-"))


def _rule(pattern: re.Pattern[str], words: str) -> str | None:
    found = pattern.search(words)
    if found is None or _NO_CREDENTIAL.search(words):
        return None
    return (found.lastgroup or "").replace("_", "-")
