"""Deciders and agents on a real broker, for the tests of asking."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from broker.client import Answer, Decider, Publisher
from broker.client.decider import Ask
from broker.protocol.decisions import Failure
from broker.protocol.errors import ClosedError

TOPIC = "prx.lifecycle.tool_call_start"


CALL = {"tool": "Bash", "arguments": {"command": "rm -rf /"}}


RESULT = "prx.lifecycle.tool_result"


Says = Callable[[Ask], list[Answer] | None]
"""What a decider does with an ask: answers, or None to say nothing at all."""


@contextmanager
def decider(
    bus: str,
    says: Says,
    *,
    name: str = "guard",
    priority: int = 0,
    failure: Failure = "open",
    patterns: tuple[str, ...] = (TOPIC,),
    gather: bool = False,
) -> Iterator[Decider]:
    """A decider in a thread of this process."""
    with Decider(
        patterns, name=name, priority=priority, failure=failure, runtime_dir=bus, gather=gather
    ) as asks:

        def serve() -> None:
            while not asks.closed:
                try:
                    taken = asks.batch(timeout=0.2)
                except ClosedError:
                    return
                for ask in taken:
                    answers = says(ask)
                    if answers is not None:
                        ask.reply(answers)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield asks
        finally:
            asks.close()
            thread.join(30)


def gain(known: list[Any], more: list[Any]) -> int:
    """Add ``more`` to what is ``known``; how much there is now."""
    known.extend(more)
    return len(known)


def agent(bus: str) -> Publisher:
    """An agent that insists on a bus."""
    return Publisher("agent/1", runtime_dir=bus, on_absent="raise")


def denies(ask: Ask) -> list[Answer]:
    """A guard against recursive removal."""
    bad = "rm -rf" in ask.event.payload["arguments"]["command"]
    return [Answer("guard", "deny", "not here")] if bad else []


DECIDER = """
import sys, time
from broker.client import Answer, Decider
with Decider(sys.argv[2:3], name=sys.argv[3], failure=sys.argv[4], runtime_dir=sys.argv[1]) as asks:
    print("ready", flush=True)
    while True:
        for ask in asks.batch(timeout=1.0):
            print("asked", flush=True)
            if "answer" in sys.argv[5:]:
                ask.reply([Answer("other", "allow", "from another process")])
"""


@contextmanager
def other_process(
    bus: str, *options: str, name: str = "other", failure: str = "open"
) -> Iterator[subprocess.Popen[bytes]]:
    """A decider in a process of its own; it says when it is ready and when it is asked."""
    command = [sys.executable, "-P", "-c", DECIDER, bus, TOPIC, name, failure, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()
