"""The product: `Publisher` and `Subscriber` as an agent and a plugin use them, with a broker process of its
own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broker.client import Publisher, Subscriber

from ..board import Tally
from ..pace import Pace, drive
from ..servers import stop
from ..traffic import Traffic
from . import Server

_PATIENCE = 0.1  # seconds of one wait for events, after which the end of the run is looked for


class Prxbus:
    """Publisher: `bus.publish(topic, payload)`. Subscriber: `for event in events.batch()`."""

    name = "prxbus"
    label = "prxbus"

    def missing(self) -> str | None:
        """Never: it is what this repository is for."""
        return None

    @contextmanager
    def serve(self, directory: str) -> Iterator[Server]:
        """A broker alone, without subscribers of its own; the address is its runtime directory."""
        broker = start_broker(directory)
        try:
            yield Server(directory, broker.pid)
        finally:
            stop(broker)

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        """Blocking when the queue is full, because the window must lose nothing."""
        fields = traffic.fields if traffic.as_dict else {}
        with Publisher("benchmark", runtime_dir=address, on_full="block", on_absent="block") as bus:
            topic, publish = traffic.topic, bus.publish

            def send_bytes(payload: bytes, times: int) -> None:
                for _ in range(times):
                    publish(topic, payload)

            def send_dict(_payload: bytes, times: int) -> None:
                for _ in range(times):
                    publish(topic, fields)

            drive(pace, send_dict if traffic.as_dict else send_bytes, traffic.payload)
            return dict(bus.stats)

    def count(self, address: str, patterns: Sequence[str], as_dict: bool, tally: Tally) -> dict[str, Any]:
        """See `Contender.count`; the answer is the subscriber's own account of what it missed."""
        with Subscriber(patterns, name="benchmark", runtime_dir=address) as events:
            batch = events.batch
            while not tally.done:
                received = batch(timeout=_PATIENCE)
                if as_dict:
                    for event in received:
                        event.payload  # noqa: B018 - decoded at this moment, as a handler would have it
                else:
                    for event in received:
                        event.payload_bytes  # noqa: B018 - the payload is there, as a handler would take it
                if received:
                    tally.add(len(received))
            return dict(events.stats)

    def each(self, address: str, topic: str, take: Callable[[bytes], None], tally: Tally) -> None:
        """See `Contender.each`."""
        with Subscriber([topic], name="benchmark", runtime_dir=address) as events:
            while not tally.done:
                for event in events.batch(timeout=_PATIENCE):
                    take(event.payload_bytes)
                    tally.add(1)


def broker_command(directory: str) -> list[str]:
    """How to start a broker in `directory`; it prints one line when it is ready."""
    return [sys.executable, "-P", "-m", "broker", "--runtime-dir", directory]


def start_broker(directory: str) -> subprocess.Popen[bytes]:
    """A broker that has said that it is ready. Raises RuntimeError with its last words if it ends instead."""
    log = Path(directory, "broker.log")
    with log.open("ab") as errors:
        argv = broker_command(directory)
        broker = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
    assert broker.stdout is not None
    with broker.stdout as output:
        line = output.readline()
    if not line:
        stop(broker)
        words = log.read_text(encoding="utf-8", errors="replace")[-500:].strip()
        raise RuntimeError(f"the broker ended with {broker.returncode}: {words}")
    return broker


CONTENDER = Prxbus()
