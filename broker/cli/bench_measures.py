"""What ``prxbus bench`` measures, one function for each question.

Every run is lossless by a window: the publisher is never more than a window ahead of the subscriber, so
that a rate is one of delivered events. What could not be measured is None, never a guess.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any, Final, NamedTuple

import orjson

from ..client.publisher import Publisher
from .bench_board import Board
from .exits import CommandError

PAYLOAD_BYTES: Final = 300
WINDOW: Final = 2_000
"""Events under way at most: half of what the broker keeps for a subscriber."""

CHUNK: Final = 100
RATE: Final = 1_000
"""Events a second of the latency run."""

WARM_UP_EVENTS: Final = 500
STALL_SECONDS: Final = 10.0
"""Without a receipt for so long, what is missing counts as lost."""

END_SECONDS: Final = 20.0
BURST: Final = 100
LEAST_BURSTS: Final = 5
TOPIC: Final = "prxbus.bench"
UNHEARD_TOPIC: Final = "prxbus.bench-unheard"


class Throughput(NamedTuple):
    """Delivered events a second, and what of them was lost."""

    per_second: float
    received: int
    lost: int


class Latency(NamedTuple):
    """From publish() to the subscriber's hands, at ``rate`` events a second (as it came out)."""

    p50_ms: float | None
    p99_ms: float | None
    rate: float
    received: int


class PublishCost(NamedTuple):
    """Microseconds of one publish() of a dict that nobody listens to: median of ``bursts``."""

    microseconds: float | None
    bursts: int


def payload(size: int = PAYLOAD_BYTES) -> dict[str, Any]:
    """A tool call whose JSON has ``size`` bytes."""
    fields = {"at": time.monotonic_ns(), "tool": "Bash", "success": True, "output": ""}
    fields["output"] = "x" * (size - len(orjson.dumps(fields)))
    return fields


def throughput(directory: str, scratch: str, seconds: float, form: str) -> Throughput:
    """One publisher to one subscriber, payloads as ``form``: dict or bytes, at both ends."""
    fields = payload()
    sent = fields if form == "dict" else orjson.dumps(fields)
    with (
        _subscriber(directory, scratch, form) as run,
        Publisher("prxbus-bench", runtime_dir=directory, on_full="block", on_absent="raise") as bus,
    ):

        def publish(number: int) -> int:
            return sum(bus.publish(TOPIC, sent) for _ in range(number))

        run.send(publish, WARM_UP_EVENTS)
        run.settle()
        before = run.board.received
        began = time.monotonic()
        while time.monotonic() - began < seconds and run.moving:
            run.send(publish, CHUNK)
        ended = run.settle()
        received = run.board.received - before
        return Throughput(received / max(ended - began, 1e-3), received, run.missing)


def latency(directory: str, scratch: str, seconds: float) -> Latency:
    """One way, from a publisher that keeps time to a subscriber that waits."""
    fields = payload()
    with (
        _subscriber(directory, scratch, "latency") as run,
        Publisher("prxbus-bench", runtime_dir=directory, on_full="block", on_absent="raise") as bus,
    ):
        began = due = time.monotonic()
        while due - began < seconds:
            due += 1.0 / RATE
            time.sleep(max(0.0, due - time.monotonic()))
            fields["at"] = time.monotonic_ns()
            run.sent += bus.publish(TOPIC, fields)
        took = time.monotonic() - began
        run.settle()
        account = run.end()
        return Latency(account["p50_ms"], account["p99_ms"], run.sent / took, account["received"])


def publish_cost(directory: str, seconds: float) -> PublishCost:
    """Bursts that the queue can hold, with pauses between; one that was not taken whole does not count."""
    fields = payload()
    costs = []
    with Publisher("prxbus-bench", runtime_dir=directory, on_absent="raise") as bus:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            began = time.perf_counter()
            taken = sum(bus.publish(UNHEARD_TOPIC, fields) for _ in range(BURST))
            took = time.perf_counter() - began
            if taken == BURST:
                costs.append(took / BURST * 1e6)
            time.sleep(0.002)
    return PublishCost(median(costs) if len(costs) >= LEAST_BURSTS else None, len(costs))


class _Run:
    """A subscriber process under way, and how far it is."""

    def __init__(self, board: Board, process: subprocess.Popen[bytes]) -> None:
        self.board = board
        self.sent = 0
        self._process = process
        self._seen = -1
        self._moved = time.monotonic()

    @property
    def missing(self) -> int:
        """Events sent and not received."""
        return max(0, self.sent - self.board.received)

    @property
    def moving(self) -> bool:
        """Whether something has arrived within the last seconds, or nothing is under way."""
        received, now = self.board.received, time.monotonic()
        if received != self._seen or received >= self.sent:
            self._seen, self._moved = received, now
        return now - self._moved < STALL_SECONDS

    def send(self, publish: Callable[[int], int], number: int) -> None:
        """Publish ``number`` events as soon as the window has room for them."""
        while self.sent + number - self.board.received > WINDOW and self.moving:
            time.sleep(0.0001)
        self.sent += publish(number)

    def settle(self) -> float:
        """Wait until all has arrived or nothing arrives any more; the moment of the last receipt."""
        while self.missing and self.moving:
            time.sleep(0.0002)
        return time.monotonic() if not self.missing else self._moved

    def end(self) -> dict[str, Any]:
        """Stop the subscriber; its account."""
        self.board.stop()
        output = self._process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], END_SECONDS)
        line = output.readline() if ready else b""
        if not line:
            raise CommandError("the subscriber of the measurement gave no account")
        account: dict[str, Any] = json.loads(line)
        return account


@contextmanager
def _subscriber(directory: str, scratch: str, take: str) -> Iterator[_Run]:
    """A subscriber in a process of its own, ready."""
    path = f"{scratch}/board-{take}"
    command = [sys.executable, "-P", "-m", "broker.cli.bench_subscriber", "--runtime-dir", directory]
    command += ["--topic", TOPIC, "--board", path, "--take", take]
    with (
        Board(path) as board,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        try:
            if process.stdout.readline() != b"ready\n":
                raise CommandError("the subscriber of the measurement did not start; its error is above")
            yield _Run(board, process)
        finally:
            board.stop()
            process.terminate()
