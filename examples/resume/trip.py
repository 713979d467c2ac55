"""What the agents of this folder are asked, and their tools. Each tool does something that must happen only once: a line in the
file that ``EXAMPLE_EFFECTS`` names. The agents know nothing of crashes; ``play.py`` kills and resumes them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

MODEL = "gpt-5-mini"
QUESTION = "Book me a bed at Finse and the train there, and pay for both."


def book_bed(place: str) -> str:
    """Book a bed in a mountain hut."""
    return _happens(f"bed at {place}", "booked: bed 7")


def book_train(start: str, to: str) -> str:
    """Book a seat on a train."""
    return _happens(f"train {start} to {to}", "booked: seat 42")


def pay(euros: int) -> str:
    """Pay what was booked."""
    result = _happens(f"{euros} euros paid", "paid")
    if os.environ.get("EXAMPLE_DIES_IN") == "pay":
        os.kill(os.getpid(), signal.SIGKILL)  # paid, and nobody was told
    return result


def _happens(what: str, result: str) -> str:
    effects = os.open(os.environ["EXAMPLE_EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(effects, f"{what}\n".encode())
    os.close(effects)
    return result


TOOLS: dict[str, Callable[..., str]] = {"book_bed": book_bed, "book_train": book_train, "pay": pay}
OFFERED = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": TOOLS[name].__doc__,
            "parameters": {
                "type": "object",
                "properties": {field: {"type": kind} for field, kind in fields.items()},
                "required": list(fields),
            },
        },
    }
    for name, fields in {
        "book_bed": {"place": "string"},
        "book_train": {"start": "string", "to": "string"},
        "pay": {"euros": "integer"},
    }.items()
]
