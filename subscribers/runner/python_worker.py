"""A worker of the ``python`` subscriber: one process for one file of handlers, with connections of its own.

    python -P -m subscribers.runner.python_worker --channel FD --board FD --name NAME --path PATH ...

It loads the file, says what it found, connects to the bus and handles events and asks until it is told to
retire or to end; ended in any other way it says no goodbye, and the broker takes it for dead. User code runs
here and nowhere else. A handler that does not end when its time is over condemns the worker: it says so, and
goes on until another one is in service, for a guard must not be away meanwhile.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final, NoReturn

from broker.client import Decider, Publisher, Subscriber
from broker.logs import configure, get_logger
from broker.protocol.decisions import Failure
from broker.protocol.errors import BusError, BusUnreachable, ClosedError, shown
from broker.protocol.events import Event
from broker.protocol.limits import NAME_BYTES

from ..handlers.decorators import RESULT_TOPIC
from ..handlers.registration import Registration
from ..hooks.diagnostics import Diagnostic
from ..runtimes.python_board import Board
from ..runtimes.python_caller import Caller
from ..runtimes.python_loader import Loaded, load, load_entry_point
from ..runtimes.python_threads import Threads
from ..runtimes.python_traceback import sayable
from .python_channel import Channel
from .python_claims import Claims
from .python_dispatch import HandlerDispatcher, Limits
from .python_lanes import Lane, Task
from .python_reports import Reporter
from .reporting import publish_report

GROUP: Final = "prxbus.handlers"
BUS_SECONDS: Final = 30.0
"""How long a worker waits for a bus at its start."""

TURN_SECONDS: Final = 0.25
"""Longest wait for events before the worker looks whether it is to stop."""

EMPTY_SECONDS: Final = 0.1
"""Nothing is under way any more when nothing came for so long."""

CATCH_UP_SECONDS: Final = 2.0
"""Longest that a worker looks for that."""

GOODBYE_SECONDS: Final = 1.0
"""How long the broker may take to cease asking."""

ABANDONED_SECONDS: Final = 1.0
"""How long calls under way may go on in a worker whose service is gone: the next one is on its way."""

LONGEST_SECONDS: Final = 60.0
"""Longest that calls under way may go on in a worker that retires."""

BATCH: Final = 64
"""Asks or events that are taken at a time."""

log = get_logger("subscribers.python")


class Worker:
    """One file's handlers as clients of the bus."""

    def __init__(self, options: argparse.Namespace, loaded: Loaded, channel: Channel) -> None:
        self._options = options
        self._channel = channel
        self._registrations = [each for each in loaded.registrations if each.kind != "transform"]
        self._name = sayable(f"python:{options.name}")
        self._caught_up_after: int | None = None
        self._caught_up = threading.Event()
        self._last_taken = 0.0
        self._condemned = False
        self._threads = Threads("handler")
        self._caller = Caller(self._stuck)
        self._publisher = Publisher(
            self._name[:NAME_BYTES],
            runtime_dir=options.runtime_dir,
            on_absent="block",
            block_seconds=BUS_SECONDS,
        )
        self._reporter = Reporter(partial(publish_report, self._publisher, log))
        self._dispatcher = HandlerDispatcher(
            self._registrations,
            name=options.name,
            publish=self._publish,
            caller=self._caller,
            threads=self._threads,
            reporter=self._reporter,
            limits=Limits(options.calls, options.calls_per_handler, options.queue),
            board=Board(options.board),
        )
        if options.share is not None:
            self._dispatcher.share(Claims(options.share))
        self._events = self._subscribe()
        self._deciders = self._open_deciders()
        self._lanes = [Lane(self._take_events, self._threads)]
        for failure, decider in self._deciders.items():
            self._lanes.append(Lane(self._taking(failure, decider), self._threads, decider.flush))

    def run(self) -> None:
        """Serve until told to end."""
        for lane in self._lanes:
            lane.start()
        self._channel.send({"is": "ready", "at_ns": time.time_ns()})
        for message in self._channel.messages():
            if message.get("do") == "share":
                self._dispatcher.share(Claims(message["directory"]))
                self._channel.send({"is": "sharing"})
            elif message.get("do") == "alone":
                self._catch_up(time.time_ns())  # what the other one has claimed may still be under way to us
                self._dispatcher.alone()
                self._channel.send({"is": "alone"})
            elif message.get("do") == "retire":
                self._retire(message["after_ns"])
                return
            elif message.get("do") == "end":
                self._finish(self._options.drain_seconds)
                return
        self._abandoned()

    # -- the bus ------------------------------------------------------------------------------

    def _subscribe(self) -> Subscriber:
        patterns: dict[str, None] = {}
        for each in self._registrations:
            for pattern in each.patterns:
                if each.kind == "on" or pattern.text != RESULT_TOPIC:
                    patterns[pattern.text] = None
        return Subscriber(
            patterns or [f"{RESULT_TOPIC}.none"],  # nobody publishes that: it is there for its counters
            name=self._name[:NAME_BYTES],
            wait=BUS_SECONDS,
            report=self._counters,
            runtime_dir=self._options.runtime_dir,
        )

    def _open_deciders(self) -> dict[Failure, Decider]:
        """One for each failure policy: what silence means is told of a decider, not of a handler."""
        groups: dict[Failure, list[Registration]] = {}
        for each in self._registrations:
            if each.kind == "decide":
                groups.setdefault(each.failure, []).append(each)
        found: dict[Failure, Decider] = {}
        for failure, group in groups.items():
            name = self._name if failure == "closed" or len(groups) == 1 else f"{self._name} (open)"
            found[failure] = Decider(
                dict.fromkeys(pattern.text for each in group for pattern in each.patterns),
                name=name[:NAME_BYTES],
                priority=min(each.priority for each in group),
                failure=failure,
                wait=BUS_SECONDS,
                gather=True,
                runtime_dir=self._options.runtime_dir,
            )
        return found

    def _take_events(self) -> Iterable[Task]:
        try:
            events = self._events.batch(BATCH, TURN_SECONDS)
        except ClosedError:
            return ()
        after = self._caught_up_after
        if events:
            self._last_taken = time.monotonic()
            if after is not None and events[-1].time_ns > after:
                self._caught_up.set()
        tasks: list[Task] = []
        for event in events:
            tasks += self._dispatcher.event(event)
        return tasks

    def _taking(self, failure: Failure, decider: Decider) -> Any:
        def take() -> Iterable[Task]:
            try:
                asks = decider.batch(BATCH, TURN_SECONDS)
            except ClosedError:
                return ()
            tasks: list[Task] = []
            for ask in asks:
                tasks += self._dispatcher.ask(ask, failure)
            return tasks

        return take

    def _publish(
        self, event: Event, topic: str, payload: Mapping[str, Any], /, *, session_id: str | None
    ) -> bool:
        """What a handler publishes is one level deeper than what it handles, whatever thread it uses."""
        return self._publisher.publish(
            topic, payload, session_id=session_id, depth=event.depth + 1, caused_by=event.id
        )

    def _counters(self) -> dict[str, Any]:
        return {
            **self._dispatcher.counters(),
            "restarts": self._options.restarts,
            "condemned": int(self._condemned),
        }

    # -- ending -------------------------------------------------------------------------------

    def _stuck(self, registration: Registration) -> None:
        """A handler goes on although its time is over: only the end of this process ends it."""
        if not self._condemned:
            self._condemned = True
            self._channel.send({"is": "condemned", "handler": registration.name})

    def _abandoned(self) -> None:
        """Nobody has said that this is to end: the service is gone, or somebody else wants this to.

        Guards that fail closed must not be taken for ones that left: then asks would pass unasked until they
        are back. So asks are answered as long as this lives, and it ends without a goodbye, which is a death.
        """
        log.warning("a worker ends, and its service did not tell it to", file=self._options.name)
        last = threading.Timer(2 * ABANDONED_SECONDS, os._exit, (1,))  # the bus may be gone, too
        last.daemon = True
        last.start()
        deadline = time.monotonic() + ABANDONED_SECONDS
        self._lanes[0].stop(ABANDONED_SECONDS)  # what happens from now on is the next worker's
        pause = threading.Event()
        while self._dispatcher.busy and time.monotonic() < deadline:
            pause.wait(0.005)
        for decider in self._deciders.values():
            decider.flush()
        self._reporter.close()
        self._publisher.close()
        _exit(1)

    def _retire(self, after_ns: int) -> None:
        """Another worker gets everything published after ``after_ns``: take what came before, and no more."""
        self._catch_up(after_ns)
        longest = max(each.timeout_s for each in self._registrations)
        self._finish(max(self._options.drain_seconds, min(longest, LONGEST_SECONDS)))

    def _catch_up(self, after_ns: int) -> None:
        """Wait until all is taken that was published before ``after_ns``, as far as can be seen."""
        deadline = time.monotonic() + CATCH_UP_SECONDS
        self._last_taken, self._caught_up_after = time.monotonic(), after_ns
        self._caught_up.clear()
        while time.monotonic() < min(deadline, self._last_taken + EMPTY_SECONDS):
            if self._caught_up.wait(0.01):
                break
        self._caught_up_after = None

    def _finish(self, seconds: float) -> None:
        """Take nothing more, let what is under way end within ``seconds``, tell of it."""
        for decider in self._deciders.values():
            decider.hold()
        deadline = time.monotonic() + GOODBYE_SECONDS
        pause = threading.Event()
        while not all(decider.held for decider in self._deciders.values()) and time.monotonic() < deadline:
            pause.wait(0.005)
        deadline = time.monotonic() + seconds
        for lane in self._lanes:
            lane.stop(max(0.0, deadline - time.monotonic()))
        self._dispatcher.alone()
        self._channel.send({"is": "retired"})
        while self._dispatcher.busy and time.monotonic() < deadline:
            pause.wait(0.005)
        for decider in self._deciders.values():
            decider.close()
        self._events.close()
        self._reporter.close()
        self._publisher.close()


def _load(options: argparse.Namespace) -> Loaded:
    if options.entry_point is None:
        return load(options.path)
    for point in entry_points(group=GROUP):
        if point.name == options.entry_point:
            return load_entry_point(point)
    gone = Diagnostic(
        "error", "not_installed", options.path, None, None, None, "it is not installed any more", None
    )
    return Loaded(options.path, (), gone)


def _told(loaded: Loaded) -> dict[str, Any]:
    """What the service has to know of a loaded file."""
    kinds = [each.kind for each in loaded.registrations]
    counts = {kind: kinds.count(kind) for kind in ("on", "decide", "transform")}
    guards = [sayable(each.name) for each in loaded.registrations if each.kind == "decide"]
    return {"files": loaded.files, "counts": counts, "guards": guards}


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 1: failed or refused)."""
    parser = argparse.ArgumentParser(prog="python -P -m subscribers.runner.python_worker")
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--board", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--entry-point")
    parser.add_argument("--runtime-dir")
    parser.add_argument("--calls", type=int, default=Limits().total)
    parser.add_argument("--calls-per-handler", type=int, default=Limits().per_handler)
    parser.add_argument("--queue", type=int, default=Limits().queue)
    parser.add_argument("--drain-seconds", type=float, default=5.0)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--share", help="directory of claims, while another version is in service too")
    parser.add_argument("--log-level", default="info")
    options = parser.parse_args(argv)
    configure(options.log_level)
    os.dup2(2, 1)  # what handlers print is for people
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # at once: one may end the process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for descriptor in (options.channel, options.board):
        os.set_inheritable(descriptor, False)  # what handlers start is not to hold them open
    channel = Channel(socket.socket(fileno=options.channel))
    signal.signal(signal.SIGTERM, lambda *_: channel.end_reading())
    loaded = _load(options)
    told = _told(loaded)
    if loaded.error is not None:
        error = loaded.error
        facts = {name: getattr(error, name) for name in Diagnostic.__slots__}
        channel.send({"is": "refused", "diagnostic": facts, "traceback": loaded.traceback, **told})
        return 1
    if not told["counts"]["on"] + told["counts"]["decide"]:
        channel.send({"is": "idle", **told})
        return 0
    channel.send({"is": "loaded", **told})
    try:
        Worker(options, loaded, channel).run()
    except BusUnreachable as error:
        log.error(str(error), file=options.name)
        return 3
    except (BusError, OSError) as error:
        log.error(str(error), file=options.name)
        return 1
    except Exception as error:  # an end in order would take guards away that fail closed
        log.error("a worker has failed", file=options.name, error=shown(error, 300))
        _exit(1)
    return 0


def _exit(code: int) -> NoReturn:
    """End the process here: a thread may be in a handler that does not end, and code of the user's refuse."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _exit(main())
