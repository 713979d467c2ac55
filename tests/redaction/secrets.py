"""Planted secrets, made here so that no file of the repository holds anything that looks like a real one."""

from __future__ import annotations

__all__ = ["DIGITS", "KEPT", "SHAPED", "made"]


def made(*parts: str) -> str:
    """A text put together at run time."""
    return "".join(parts)


DIGITS = "0123456789abcdefABCDEF"
SHAPED: dict[str, str] = {
    "openai": made("sk", "-", DIGITS),
    "openai project": made("sk", "-proj-", DIGITS),
    "anthropic": made("sk", "-ant-api03-", DIGITS),
    "github": made("ghp", "_", DIGITS),
    "github fine-grained": made("github", "_pat_", DIGITS, DIGITS),
    "gitlab": made("glpat", "-", DIGITS),
    "slack": made("xoxb", "-", "123456789012-", DIGITS),
    "aws": made("AKIA", "ABCDEFGHIJ234567"),
    "google": made("AI", "za", DIGITS, "_-", DIGITS[:11]),
    "stripe": made("sk", "_live_", DIGITS),
    "hugging face": made("hf", "_", DIGITS),
    "npm": made("npm", "_", DIGITS),
    "groq": made("gsk", "_", DIGITS),
    "google oauth": made("ya", "29.", DIGITS),
    "sendgrid": made("SG", ".", DIGITS, ".", DIGITS),
    "jwt": made("ey", "J0eXAiOiJKV1Q.", "ey", "JzdWIiOiIxMjM0.", DIGITS),
    "private key": made("-----BEGIN ", "PRIVATE KEY-----\nMIIE", DIGITS, "\n", "-----END ", "PRIVATE KEY-----"),
    "bearer": made("Bearer ", "f00ba4", DIGITS),
    "lower bearer": made("bearer ", "f00ba4", DIGITS),
    "basic": made("Basic ", "dXNlcjpodW50ZXIyaHVudGVyMg=="),
    "userinfo": made("https://", "user:hunter2-hunter2", "@host.test/a"),
}
"""Secrets that are known by their shape alone."""
KEPT = {"bearer": "Bearer ", "lower bearer": "bearer ", "basic": "Basic ", "userinfo": "https://user:"}
"""What of them may stay."""
