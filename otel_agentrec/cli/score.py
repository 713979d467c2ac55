"""``otel-agentrec score``: attach evaluations to a call."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option, recording_argument

if TYPE_CHECKING:
    from otel_agentrec.records import NodeIoRecord

__all__ = ["command", "judgements"]

Json = Any
Judgement = dict[str, Json]
"""``{recordId, name, score?, label?, explanation?}``: the payload of an EVALUATED event"""


@make_command(
    examples="""
    otel-agentrec score agentrec 6f1c2a quality=0.8 tone=friendly
    otel-agentrec score agentrec 6f1c2a correct=false --explanation 'the city is in Norway'
    otel-agentrec nodes agentrec --json | jq '{recordId, evaluations}'
    """
)
@recording_argument
@click.argument("record", metavar="ID")
@click.argument("values", metavar="NAME=VALUE...", nargs=-1, required=True)
@click.option("--label", metavar="TEXT", help="A word for the scores, such as pass.")
@click.option("--explanation", metavar="TEXT", help="Why; kept as content, beside the events.")
@json_option
def command(
    recording: str, record: str, values: tuple[str, ...], label: str | None, explanation: str | None, as_json: bool
) -> None:
    """Attach evaluations to a model or tool call of a recording.

    ID is a recordId or nodeId as `nodes --json` prints them, or the beginning of one. A VALUE that is a number, true or
    false is a score, any other text a label. Nothing that is recorded changes: the evaluations go into a stream of their
    own, and `nodes --json`, `show` and `stats` tell of them.
    """
    from otel_agentrec.cli.opened import open_view
    from otel_agentrec.errors import UsageError
    from otel_agentrec.journal.append import append_events
    from otel_agentrec.journal.draft import NewEvent
    from otel_agentrec.journal.reader import Recording
    from otel_agentrec.nodes.find import find_record
    from otel_agentrec.redaction import Redactor
    from otel_agentrec.settings import Settings

    made = judgements(values, label, explanation)
    opened = Recording(recording)
    if opened.single is not None:
        raise UsageError(
            f"{recording} is one stream of a recording",
            f"give the directory: evaluations go beside it: {opened.directory}",
        )
    found = find_record(open_view(recording), record)
    payloads = [{"recordId": found.record_id, **judgement} for judgement in made]
    events = [NewEvent("EVALUATED", payload, _place_of(found)) for payload in payloads]
    settings = Settings.load()
    redactor = Redactor.from_setting(settings.redact)
    done = append_events(opened.directory, events, origin=settings.host, by="score", redactor=redactor)
    if as_json:
        from otel_agentrec.cli.terminal import print_json

        for payload, at in zip(payloads, done, strict=True):
            print_json({**payload, "journal": {"stream": at.stream, "seq": at.seq, "hash": at.hash}})
    else:
        from otel_agentrec.cli.terminal import plain
        from otel_agentrec.cli.wording import judgement as worded

        name = plain(found.tool_name or found.model_id or "?", 60)
        for judgement in made:
            click.echo(f"{plain(worded(judgement))}  on {found.node_type.value} {name} {found.record_id}")


def judgements(values: tuple[str, ...], label: str | None = None, explanation: str | None = None) -> list[Judgement]:
    """``NAME=VALUE`` words as payloads without the record they are about.

    Raises:
        UsageError: a word is not of that form, a name comes twice, or a label is given twice.
    """
    from otel_agentrec.errors import UsageError

    made: list[Judgement] = []
    for word in values:
        name, equals, text = (part.strip() for part in word.partition("="))
        if not equals or not name or not text:
            raise UsageError(f"{word!r} is no evaluation", "give NAME=VALUE, such as quality=0.8 or tone=friendly")
        if any(name == other["name"] for other in made):
            raise UsageError(f"{name!r} is given twice", "give each name once; call score again for a second judgement")
        score = _score(word, text)
        if score is None and label is not None:
            raise UsageError(f"{word!r} is a label, and --label is another", "give the label once")
        judgement = {"name": name, "score": score, "label": text if score is None else label}
        made.append({k: v for k, v in {**judgement, "explanation": explanation}.items() if v is not None})
    return made


def _score(word: str, text: str) -> int | float | bool | None:
    """The score that a value says; None when it is a label."""
    from otel_agentrec.errors import UsageError

    if text in ("true", "false"):
        return text == "true"
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        raise UsageError(f"{word!r} is no number that can be kept", "give a finite number, or leave it out")
    return int(text) if re.fullmatch(r"[+-]?\d+", text) and abs(number) < 2**53 else number


def _place_of(record: NodeIoRecord) -> Any:
    """Where the record belongs, so that what is done with a run or session is done with its evaluations too."""
    from otel_agentrec.journal.draft import Envelope

    trace = {k: v for k, v in (("traceId", record.trace_id), ("spanId", record.span_id)) if v}
    return Envelope(record.run_id, record.session_id, record.turn_id, record.step, trace or None)
