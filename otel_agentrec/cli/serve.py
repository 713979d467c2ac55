"""``otel-agentrec serve``: an OTLP receiver that records what any program sends."""

from __future__ import annotations

import ipaddress
import signal
import sys
import threading
from pathlib import Path

import click

from otel_agentrec.cli.command import command as make_command

__all__ = ["command"]


@make_command(
    examples="""
    otel-agentrec serve --out agentrec
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 node agent.js
    otel-agentrec serve --host 0.0.0.0 --token-file token.txt --tls-cert cert.pem --tls-key key.pem --out agentrec
    """
)
@click.option("--out", required=True, metavar="DIR", type=click.Path(), help="The recording to write into.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=4318, show_default=True, type=click.IntRange(0, 65535), help="OTLP/HTTP; 0: any free.")
@click.option(
    "--grpc-port", default=4317, show_default=True, type=click.IntRange(0, 65535), help="OTLP/gRPC; 0: any free."
)
@click.option("--no-grpc", is_flag=True, help="Listen for HTTP only.")
@click.option("--token-file", metavar="FILE", type=click.Path(), help="Ask for this token (Authorization: Bearer).")
@click.option("--tls-cert", metavar="FILE", type=click.Path(), help="Certificate chain, PEM.")
@click.option("--tls-key", metavar="FILE", type=click.Path(), help="Private key, PEM.")
@click.option(
    "--max-body", default=64, show_default=True, metavar="MIB", type=click.IntRange(1, 1024), help="Largest request."
)
def command(
    out: str,
    host: str,
    port: int,
    grpc_port: int,
    no_grpc: bool,
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    max_body: int,
) -> None:
    """Record what programs in any language send over OTLP (traces and logs; HTTP and gRPC).

    Stop it with Ctrl-C or SIGTERM: requests under way are finished and the recording is closed.
    """
    from otel_agentrec.capture.received import Receiver
    from otel_agentrec.capture.serving import Access, Servers
    from otel_agentrec.errors import AgentRecError, UsageError
    from otel_agentrec.settings import Settings

    token = _token(token_file)
    if bool(tls_cert) != bool(tls_key):
        raise UsageError("TLS needs a certificate and its key", "give both --tls-cert and --tls-key")
    if token is None and not _is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines, and no token is asked for",
            "give --token-file FILE, or listen on 127.0.0.1",
        )
    try:
        receiver = Receiver(out, Settings.load())
    except OSError as e:
        raise AgentRecError(f"{out} can't be written: {e.strerror or e}", "give a directory with --out") from None
    access = Access(token, tls_cert, tls_key, max_body << 20)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    servers = Servers(receiver, host, port, None if no_grpc else grpc_port, access)
    scheme = "https" if tls_cert else "http"
    shown = f"[{host}]" if ":" in host else host
    also = "" if no_grpc else f" and gRPC on {shown}:{servers.grpc_port}"
    print(f"listening on {scheme}://{shown}:{servers.port}{also}; recording into {out}", file=sys.stderr, flush=True)
    while not stop.wait(3600):
        pass
    servers.stop()
    told = receiver.counters
    print(f"stopped: {told['spans']} spans and {told['logs']} log records received", file=sys.stderr)


def _token(path: str | None) -> str | None:
    from otel_agentrec.errors import UsageError

    if path is None:
        return None
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{path} can't be read: {e}", "give a text file that holds the token") from None
    if not token:
        raise UsageError(f"{path} holds no token", "write a long random word into it")
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
