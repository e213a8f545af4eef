"""Watches the bus for the metrics: beacons of publishers, the broker's status, reports of hook runs.

Beacons alone are subscribed, not the events: a count by topic costs a frame a second for each publisher,
however fast it is. Two threads, both ended by :meth:`BusWatch.close`; a bus that is away is asked again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import zmq

from broker.client import Subscriber
from broker.client.sockets import subscriber_socket
from broker.client.tool import Tool
from broker.logs import get_logger
from broker.places import endpoints
from broker.protocol.beacons import decode_beacon
from broker.protocol.errors import BusError, DecodeError
from broker.protocol.topics import BEACON_PREFIX

from .metrics import Metrics

STATUS_SECONDS: Final = 2.0
"""How often the broker is asked."""

SWEEP_SECONDS: Final = 60.0

RUN_TOPIC: Final = "prx.hooks.run"
_TURN_SECONDS: Final = 0.25

log = get_logger("subscribers.http")


class BusWatch:
    """Feeds ``metrics`` from the bus in ``runtime_dir`` until closed. Raises BusError without a bus."""

    def __init__(self, runtime_dir: str, metrics: Metrics, wait: float) -> None:
        self._runtime_dir = runtime_dir
        self._metrics = metrics
        self._stop = threading.Event()
        self._runs = Subscriber([RUN_TOPIC], name="http", wait=wait, runtime_dir=runtime_dir)
        self._beacons = subscriber_socket(endpoints(runtime_dir).egress)
        self._beacons.subscribe(b"0" + BEACON_PREFIX)
        self._threads = [
            threading.Thread(target=self._watch, name="http-bus-watch", daemon=True),
            threading.Thread(target=self._follow_runs, name="http-runs", daemon=True),
        ]
        self._ask()  # so that health is told from the first request on
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop watching; waits for the threads."""
        self._stop.set()
        self._runs.close()
        for thread in self._threads:
            thread.join()
        self._beacons.close(0)

    def _watch(self) -> None:
        next_status = next_sweep = 0.0

        def turn() -> None:
            nonlocal next_status, next_sweep
            if self._beacons.poll(int(_TURN_SECONDS * 1_000)):
                self._read_beacons()
            now = time.monotonic()
            if now >= next_status:
                next_status = now + STATUS_SECONDS
                self._ask()
            if now >= next_sweep:
                next_sweep = now + SWEEP_SECONDS
                with self._metrics.lock:
                    self._metrics.tallies.forget(now)

        self._repeat(turn)

    def _repeat(self, turn: Callable[[], None]) -> None:
        """Take turns until closed. One that fails is logged, and taken again."""
        while not self._stop.is_set():
            try:
                turn()
            except Exception as error:
                if not self._stop.is_set():
                    log.error("watching the bus failed", error=repr(error))
                self._stop.wait(STATUS_SECONDS)

    def _read_beacons(self) -> None:
        with suppress(zmq.Again):
            while not self._stop.is_set():
                frame = self._beacons.recv(zmq.NOBLOCK)
                with suppress(DecodeError), self._metrics.lock:
                    self._metrics.tallies.beacon(decode_beacon(frame), time.monotonic())

    def _ask(self) -> None:
        try:
            status = ask_status(self._runtime_dir)
        except Exception as error:
            with self._metrics.lock:
                self._metrics.tallies.no_status()
            if not isinstance(error, BusError):
                raise
            log.debug("the broker did not answer", error=str(error))
            return
        with self._metrics.lock:
            self._metrics.tallies.take_status(status, time.monotonic())

    def _follow_runs(self) -> None:
        def turn() -> None:
            for event in self._runs.batch(timeout=_TURN_SECONDS):
                with suppress(BusError):
                    self._metrics.run(event.payload)
            self._metrics.monitor_missed = self._runs.stats["missed"]

        self._repeat(turn)


def ask_status(runtime_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """The broker's status, asked now. Raises BusError."""
    with Tool("prxbus-http", runtime_dir=runtime_dir) as tool:
        status: dict[str, Any] = tool.request("status").body["status"]
        return status
