"""``otel-agentrec export``: a recording into any OTLP backend."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from otel_agentrec.cli.command import command as make_command
from otel_agentrec.cli.command import json_option, recording_argument

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["command"]


def _headers(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", ctx, param)
        headers[key.strip()] = value.strip()
    return headers


@make_command(
    examples="""
    otel-agentrec export agentrec --otlp http://127.0.0.1:4318
    otel-agentrec export agentrec --otlp grpc://127.0.0.1:4317
    otel-agentrec export agentrec --otlp http://127.0.0.1:4318 --events
    otel-agentrec export agentrec --otlp https://langfuse.example.com/api/public/otel --header "Authorization=Basic ..."
    """
)
@recording_argument
@click.option("--otlp", "url", required=True, metavar="URL", help="The receiver: http(s)://, or grpc(s):// for gRPC.")
@click.option("--header", "headers", multiple=True, metavar="K=V", callback=_headers, help="Send this header along.")
@click.option(
    "--protocol", type=click.Choice(["http/protobuf", "grpc"]), help="Default: as the URL says (port 4317: grpc)."
)
@click.option("--gzip/--no-gzip", default=True, show_default=True, help="Compress.")
@click.option("--again", is_flag=True, help="Send all of it, also what this receiver has taken before.")
@click.option(
    "--events",
    is_flag=True,
    help="Send the events of the journal, as log records, instead of spans. For receivers of logs: a Collector, not Jaeger.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    recording: str,
    url: str,
    headers: Mapping[str, str],
    protocol: str | None,
    gzip: bool,
    again: bool,
    events: bool,
    as_json: bool,
) -> None:
    """Send a recording to an OTLP backend: Jaeger, Langfuse, Phoenix, a Collector.

    Ids and times are those of the recording, so that a backend that knows spans by their ids shows each once, however
    often it is sent. After an interruption the same command goes on where it stopped. Exit code 1: some were refused.

    With --events, each event of the journal becomes a log record: its text and hashes as they stand in the journal,
    without content. A Collector that keeps them keeps the chain.
    """
    from otel_agentrec.capture.forward.exporters import log_exporter, protocol_of, span_exporter
    from otel_agentrec.capture.forward.sending import BATCH_BYTES, GRPC_LIMIT
    from otel_agentrec.cli.terminal import console, plain, print_json
    from otel_agentrec.cli.wording import count
    from otel_agentrec.export.events import ExportedEvents
    from otel_agentrec.export.otlp import Sent, send_events, send_spans
    from otel_agentrec.export.progress import Progress
    from otel_agentrec.export.spans import Exported
    from otel_agentrec.journal.reader import Recording

    chosen = protocol_of(url)
    if protocol is not None:
        chosen = "grpc" if protocol == "grpc" else "http/protobuf"
    what = "events" if events else "spans"
    opened = Recording(recording)
    kept = Progress(opened, url, events=events)
    before = {} if again else kept.load()

    def told(sent: Sent) -> None:
        with contextlib.suppress(OSError):  # a recording on a read-only disk can be exported, too
            kept.save({**before, **sent.upto})
        bar.update(task, completed=sent.count + sent.rejected + len(sent.refused))

    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        if events:
            records, logs = ExportedEvents(opened), log_exporter(url, chosen, headers, gzip)
            task = bar.add_task(what, total=len(records))
            try:
                sent = send_events(records.records(before), logs, BATCH_BYTES[chosen], told)
            finally:
                logs.shutdown()  # type: ignore[no-untyped-call]
        else:
            exported, exporter = Exported(opened), span_exporter(url, chosen, headers, gzip)
            task = bar.add_task(what, total=len(exported))
            try:
                limit = GRPC_LIMIT if chosen == "grpc" else None
                sent = send_spans(exported.spans(before), exporter, BATCH_BYTES[chosen], told, limit=limit)
            finally:
                exporter.shutdown()
    if as_json:
        refused, reduced = (
            [{"stream": stream, "seq": seq} for stream, seq in places] for places in (sent.refused, sent.reduced)
        )
        counted = {what: sent.count, "batches": sent.batches, "rejected": sent.rejected}
        print_json({**counted, "refused": refused, "reduced": reduced, "protocol": chosen})
    else:
        sent_of = f"{count(sent.count, what[:-1])} sent in {count(sent.batches, 'batch', 'batches')}"
        click.echo(sent_of if sent.count else "nothing new to send")
    if sent.reduced:
        stream, seq = sent.reduced[0]
        told_of = f"{len(sent.reduced)} too large for the receiver, sent without large values; the first is event {seq} of {stream}"
        click.echo(plain(told_of), err=True)
    if sent.refused:
        stream, seq = sent.refused[0]
        click.echo(plain(f"{len(sent.refused)} refused, the first is event {seq} of {stream}: {sent.why}"), err=True)
    elif sent.rejected:
        click.echo(plain(f"{sent.rejected} of them not taken: {sent.why}"), err=True)
    if sent.refused or sent.rejected:
        ctx.exit(1)
