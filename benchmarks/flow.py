"""One run of events from a publisher through a contender's server to its subscribers.

Decides the order in which the roles start, watch each other and end; refuses to know how a contender works
and what is done with the figures. Every role is a process started for this run alone.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .board import Board, Tally
from .contenders import Contender, Server
from .machine import cpu_seconds
from .pace import ClosedWindow, Metronome, read_stamp
from .roles import Role
from .traffic import Traffic

_ANSWER = 45.0  # seconds beyond the run itself until a role is given up


@dataclass
class Throughput:
    """What one flat-out run came to. Loss is counted over the watched subscribers; `cpu` is in seconds."""

    sent: int
    lost: int
    seconds: float
    watched: int
    cpu: dict[str, float] = field(default_factory=dict)
    publisher: dict[str, Any] = field(default_factory=dict)
    subscribers: list[dict[str, Any]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    @property
    def delivered_per_second(self) -> float:
        """Events received per second, summed over the watched subscribers."""
        return (self.sent * self.watched - self.lost) / self.seconds

    def figures(self) -> dict[str, float]:
        """The rate, the loss, and microseconds of processor time per published event, in all and by role."""
        return {
            "delivered_per_s": self.delivered_per_second,
            "lost": self.lost,
            "cpu_us": 1e6 * sum(self.cpu.values()) / max(1, self.sent),
            **{f"cpu_{role}_us": 1e6 * seconds / max(1, self.sent) for role, seconds in self.cpu.items()},
        }


@contextmanager
def scratch() -> Iterator[str]:
    """A directory with a path short enough for local sockets, removed at exit."""
    directory = tempfile.mkdtemp(prefix="pxbench", dir="/tmp")
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def subscribers(
    contender: Contender, server: Server, board: Board, patterns: Sequence[Sequence[str]], as_dict: bool
) -> Iterator[list[Role]]:
    """One counting subscriber per entry of `patterns`, ended at exit."""
    roles = [
        Role(
            f"{contender.name} subscriber {i}", contender.count, server.address, own, as_dict, board.tally(i)
        )
        for i, own in enumerate(patterns)
    ]
    try:
        yield roles
    finally:
        board.finish()
        for role in roles:
            role.end()


@dataclass(frozen=True)
class Load:
    """Flat out for `seconds`, to one subscriber per entry of `patterns`.

    With `stop_last` the last subscriber is stopped (SIGSTOP) for the length of the run and only the others
    are watched. It goes on `settle` seconds before the run is wound down, so that it can tell what it
    missed.
    """

    traffic: Traffic
    seconds: float
    patterns: Sequence[Sequence[str]]
    stop_last: bool = False
    settle: float = 0.0

    @property
    def watched(self) -> range:
        """The subscribers that must receive everything."""
        return range(len(self.patterns) - self.stop_last)


def fan_out(traffic: Traffic, seconds: float, number: int) -> Load:
    """The plain load: `number` subscribers that ask for the topic and nothing else."""
    return Load(traffic, seconds, [[traffic.topic]] * number)


def flat_out(contender: Contender, load: Load, server: Server | None = None) -> Throughput:
    """One run under `load`, on a server of its own or on one that is running already."""
    if server is None:
        with scratch() as directory, contender.serve(directory) as started:
            return flat_out(contender, load, started)
    board = Board(len(load.patterns))
    with subscribers(contender, server, board, load.patterns, load.traffic.as_dict) as roles:
        stopped = roles[-1].pid if load.stop_last else None
        pids = {"server": [server.pid] if server.pid else []}
        pids["subscribers"] = [roles[i].pid for i in load.watched]
        publisher = Role(
            f"{contender.name} publisher", _publish, contender, server, load, board, stopped, pids
        )
        try:
            result: Throughput = publisher.answer(load.seconds + _ANSWER)
            result.subscribers = [role.answer(_ANSWER) for role in roles]
            result.counts = [board.count(i) for i in range(len(roles))]
        finally:
            if stopped:
                os.kill(stopped, signal.SIGCONT)
            publisher.end()
    return result


def _publish(
    contender: Contender,
    server: Server,
    load: Load,
    board: Board,
    stopped: int | None,
    pids: dict[str, list[int]],
) -> Throughput:
    """The publisher's process. It holds the clocks too: it alone knows when the run proper begins."""
    everybody = {"publisher": [os.getpid()], **pids}
    used = dict.fromkeys(everybody, 0.0)

    def clocks(sign: int) -> None:
        for role, members in everybody.items():
            used[role] += sign * sum(cpu_seconds(pid) for pid in members)

    def on_start() -> None:
        if stopped:
            os.kill(stopped, signal.SIGSTOP)
        clocks(-1)

    def on_end() -> None:
        clocks(+1)
        if stopped:
            os.kill(stopped, signal.SIGCONT)

    pace = ClosedWindow(
        board,
        load.watched,
        load.traffic.window,
        load.seconds,
        warm=range(board.subscribers),
        on_start=on_start,
        on_end=on_end,
        settle=load.settle,
    )
    known = contender.send(server.address, load.traffic, pace)
    return Throughput(pace.sent, pace.lost, pace.elapsed, len(load.watched), used, known)


def one_way(
    contender: Contender, traffic: Traffic, rate: float, events: int, skip: int
) -> tuple[list[float], int]:
    """One-way latencies in microseconds of `events` events at `rate` per second, the first `skip` left out,
    and the loss.
    """
    board = Board(1)
    with scratch() as directory, contender.serve(directory) as server:
        receiver = Role(
            f"{contender.name} subscriber", _receive_stamps, contender, server, traffic, board.tally(0)
        )
        publisher = Role(
            f"{contender.name} publisher", _beat, contender, server, traffic, board, rate, events
        )
        try:
            base: int = publisher.answer(events / rate + _ANSWER)
            stamps: list[tuple[int, int]] = receiver.answer(_ANSWER)
        finally:
            board.finish()
            publisher.end()
            receiver.end()
    measured = stamps[base : base + events]
    return [(received - sent) / 1e3 for sent, received in measured[skip:]], events - len(measured)


def _beat(
    contender: Contender, server: Server, traffic: Traffic, board: Board, rate: float, events: int
) -> int:
    pace = Metronome(board, [0], rate, events)
    contender.send(server.address, traffic, pace)
    return pace.base


def _receive_stamps(
    contender: Contender, server: Server, traffic: Traffic, tally: Tally
) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []

    def take(payload: bytes) -> None:
        seen.append((read_stamp(payload), time.monotonic_ns()))

    contender.each(server.address, traffic.topic, take, tally)
    return seen
