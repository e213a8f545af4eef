"""The contenders: one file each, all behind the same five methods, so that a question is asked of all of
them in one way.

Decides what a contender must be able to do and which there are; refuses to know how any of them does it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from ..board import Tally
from ..pace import Pace
from ..traffic import Traffic

NAMES = (
    "prxbus",
    "raw_proxy",
    "raw_pubsub",
    "bare_envelope",
    "nats",
    "redis_plain",
    "redis_pipeline",
    "mosquitto",
)


@dataclass(frozen=True)
class Server:
    """A started server: where clients connect, and its process (None where there is none in between)."""

    address: str
    pid: int | None


class Contender(Protocol):
    """A way to move events from a publisher to subscribers. Each method but `serve` runs in a process of
    its own.
    """

    name: str
    label: str

    def missing(self) -> str | None:
        """Why it cannot run here, and what to install; None if it can."""

    def serve(self, directory: str) -> AbstractContextManager[Server]:
        """Start the server, its files in `directory`, on the loopback or a local socket; ended at exit."""

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        """Publish as the pace grants. Answers what the client library says about drops, or an empty dict."""

    def count(self, address: str, patterns: Sequence[str], as_dict: bool, tally: Tally) -> dict[str, Any]:
        """Receive until the run is over, touch every payload (decode it if `as_dict`), keep the tally.

        Answers what the client library itself knows about loss, or an empty dict.
        """

    def each(self, address: str, topic: str, take: Callable[[bytes], None], tally: Tally) -> None:
        """Receive one event at a time and hand its payload to `take` at once, until the run is over."""


def load(name: str) -> tuple[Contender | None, str | None]:
    """The contender called `name`, or None and the reason why it cannot run on this machine."""
    try:
        contender: Contender = importlib.import_module(f".{name}", __name__).CONTENDER
    except ImportError as error:
        return None, f"{error}; the client libraries come with the extra: pip install 'prxbus[bench]'"
    reason = contender.missing()
    return (None, reason) if reason else (contender, None)


def line_up(names: Sequence[str], wanted: Sequence[str] = ()) -> tuple[dict[str, Contender], dict[str, str]]:
    """Those of `names` that can run here, and the reason for each that cannot. `wanted` narrows the choice
    unless empty.
    """
    ready: dict[str, Contender] = {}
    absent: dict[str, str] = {}
    for name in names:
        if wanted and name not in wanted:
            continue
        contender, reason = load(name)
        if contender is not None:
            ready[name] = contender
        else:
            absent[name] = reason or "cannot run here"
    return ready, absent
