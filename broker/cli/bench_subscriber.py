"""The receiving process of ``prxbus bench``: ``python -m broker.cli.bench_subscriber``.

Prints a line when it is ready, counts on the board while it runs, and ends with its account as one line
of JSON. It takes each payload in the form that is measured, as a handler would.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from ..client.subscriber import Subscriber
from ..lifeline import hold
from ..protocol.events import Event
from .bench_board import Board
from .top_view import percentile

PATIENCE_SECONDS: Final = 0.05
"""How long it waits for events before it looks at the board again."""

Take = Callable[[list[Event]], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Receive until the board says stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime-dir", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--board", required=True)
    parser.add_argument("--take", choices=("dict", "bytes", "latency"), required=True)
    options = parser.parse_args(arguments)
    hold()
    delays: list[int] = []
    takes: dict[str, Take] = {
        "dict": _dicts,
        "bytes": _bytes,
        "latency": lambda events: _delays(events, delays),
    }
    take = takes[options.take]
    received = 0
    with (
        Board(options.board) as board,
        Subscriber([options.topic], name="prxbus-bench", runtime_dir=options.runtime_dir) as subscriber,
    ):
        print("ready", flush=True)
        while not board.stopped:
            events = subscriber.batch(timeout=PATIENCE_SECONDS)
            take(events)
            received += len(events)
            board.received = received
        missed = subscriber.stats["missed"]
    ordered = sorted(delay / 1e6 for delay in delays)
    account = {
        "received": received,
        "missed": missed,
        "p50_ms": percentile(ordered, 0.50),
        "p99_ms": percentile(ordered, 0.99),
    }
    print(json.dumps(account), flush=True)
    return 0


def _dicts(events: list[Event]) -> None:
    for event in events:
        event.payload  # noqa: B018 - decoded at this moment, as a handler would have it


def _bytes(events: list[Event]) -> None:
    for event in events:
        event.payload_bytes  # noqa: B018 - the payload is there, as a handler would take it


def _delays(events: list[Event], delays: list[int]) -> None:
    """The age of each event by the monotonic clock, which all processes of a machine share."""
    now = time.monotonic_ns()
    delays.extend(now - event.payload["at"] for event in events)


if __name__ == "__main__":
    sys.exit(main())
