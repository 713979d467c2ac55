"""A program of several processes, each of which charges orders.

    python family_app.py EFFECTS KILL_AT HOW ORDERS

HOW its children are started: ``subprocess``, ``spawn``, ``fork``, ``forkserver``, ``none``; ``inside``: by fork, while a tool
of the program runs; ``late``: they charge when there is a file EFFECTS.go, and nobody waits for them. ORDERS: names with commas between them, ``p…`` charged by the program itself, ``c…`` by a child each.
KILL_AT: the program is killed before it comes to this order, or ``end`` (which may stand among them too), or ``never``;
``after:ORDER``: whoever charges it is, before anybody knows.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from otel_agentrec.resume.tools import resumable_tool

EFFECTS, KILL_AT, HOW, ORDERS = sys.argv[1:5]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()


@resumable_tool
def charge(order: str) -> str:
    fd = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, order.encode() + b"\n")
    os.close(fd)
    if f"after:{order}" == KILL_AT:
        die()
    return f"r-{order}"


@resumable_tool
def have_charged(order: str) -> str:
    child = multiprocessing.get_context("fork").Process(target=charge, args=(order,))
    child.start()
    child.join()
    return f"exit {child.exitcode}"


def in_child(order: str) -> None:
    if HOW == "inside":
        have_charged(order)
    elif HOW == "late":
        with open(f"{EFFECTS}.late", "w") as said:
            command = [sys.executable, __file__, EFFECTS, "never", "wait", f"p{order}"]
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    elif HOW == "subprocess":
        subprocess.run([sys.executable, __file__, EFFECTS, KILL_AT, "none", f"p{order}"], check=False)
    else:
        child = multiprocessing.get_context(HOW).Process(target=charge, args=(order,))
        child.start()
        child.join()


if __name__ == "__main__":
    while HOW == "wait" and not Path(f"{EFFECTS}.go").exists():
        time.sleep(0.05)
    for one in ORDERS.split(","):
        if one in (KILL_AT, "end"):
            die()
        if one.startswith("c"):
            in_child(one)
        else:
            charge(one.removeprefix("p") if one.startswith("pc") else one)
    if KILL_AT == "end":
        die()
    print("all charged")
