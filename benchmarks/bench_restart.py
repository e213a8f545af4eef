"""How soon are clients back when the broker is killed (-9) and started again under load, and is every loss
counted?

A publisher at 2,000 events a second and a subscriber, neither of which is told anything. `resume_ms` counts
from the moment the new broker is ready to the first event received through it, `outage_ms` from the kill.
At the end every event that the publisher handed over was either received or counted as missed by the
subscriber.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import traffic
from .board import Board, Tally
from .contenders import line_up
from .flow import scratch
from .measure import Cell, Figures, Goal, Plan, interleave
from .roles import Role, wait_until
from .servers import stop

NAME = "restart"
_RATE = 2000.0
_BEFORE = 0.5  # seconds of traffic before the kill
_AFTER = 1.5  # seconds of traffic after the new broker is ready
_BEACONS = 1.5  # seconds after the publisher's last beacon within which the accounts must be closed


@dataclass
class Received:
    """What the subscriber saw: when each event came (monotonic ns), and its own counters at the end."""

    times: list[int]
    stats: dict[str, Any]


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell; each run is one kill."""
    units = {
        "resume_ms": "ms",
        "outage_ms": "ms",
        "sent": "events",
        "missed": "events",
        "unaccounted": "events",
    }
    cell = Cell(NAME, "broker killed and started again at 2,000 events/s", {"rate": _RATE}, units)
    ready, cell.skipped = line_up(("prxbus",), plan.contenders)
    if "prxbus" in ready:
        cell.goals = [
            Goal("resume_ms", "prxbus", "200 ms", 1.0, best="low", yardstick=200.0),
            Goal("unaccounted", "prxbus", "1 event", 0.0, best="low", yardstick=1.0),
        ]
    rounds = plan.rounds if plan.tiny else plan.rounds * 2
    yield interleave(cell, rounds, {name: partial(_run, plan.tiny) for name in ready})


def _run(tiny: bool) -> Figures:
    board = Board(1)
    with scratch() as directory:
        broker = _start(directory)
        subscriber = Role("subscriber", _receive, directory, board.tally(0))
        publisher = Role("publisher", _publish, directory, board)
        try:
            wait_until(lambda: board.count(0) > 0, "events arrive")
            time.sleep(0.1 if tiny else _BEFORE)
            killed = time.monotonic_ns()
            broker.kill()
            broker.wait()
            began = time.monotonic_ns()
            broker = _start(directory)
            started = time.monotonic_ns()
            time.sleep(0.5 if tiny else _AFTER)
            board.finish()
            sent: int = publisher.answer(10.0)
            received: Received = subscriber.answer(10.0 + _BEACONS)
        finally:
            board.finish()
            publisher.end()
            subscriber.end()
            stop(broker)
    return _figures(sent, received, killed, began, started)


def _figures(sent: int, received: Received, killed: int, began: int, started: int) -> Figures:
    after = [moment for moment in received.times if moment > began]
    if not after:
        raise RuntimeError("no event arrived after the restart")
    missed = received.stats["missed"]
    return {
        "resume_ms": max(0.0, (after[0] - started) / 1e6),
        "outage_ms": (after[0] - killed) / 1e6,
        "sent": sent,
        "missed": missed,
        "unaccounted": abs(sent - len(received.times) - missed),
    }


def _publish(directory: str, board: Board) -> int:
    """Events at a steady rate until told to end; the number that the bus took."""
    from broker.client import Publisher

    payload = traffic.dict_small().fields
    with Publisher("benchmark", runtime_dir=directory, on_absent="block") as bus:
        due = time.monotonic()
        while not board.done:
            bus.publish(traffic.TOPIC, payload)
            due += 1.0 / _RATE
            time.sleep(max(0.0, due - time.monotonic()))
    return int(bus.stats["published"])


def _receive(directory: str, tally: Tally) -> Received:
    """Events until the end of the run, and then until the publisher's last beacon has closed the accounts."""
    from broker.client import Subscriber

    times: list[int] = []
    with Subscriber([traffic.TOPIC], name="benchmark", runtime_dir=directory) as events:
        quiet = time.monotonic() + _BEACONS
        while not tally.done or time.monotonic() < quiet:
            batch = events.batch(timeout=0.05)
            now = time.monotonic_ns()
            times += [now] * len(batch)
            if batch:
                tally.add(len(batch))
            if not tally.done:
                quiet = time.monotonic() + _BEACONS
        return Received(times, dict(events.stats))


def _start(directory: str) -> subprocess.Popen[bytes]:
    """A broker that is ready."""
    from .contenders.prxbus import start_broker

    return start_broker(directory)
