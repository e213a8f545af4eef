"""What every subscriber process has in common: common options, its log, its lifeline and its exit code.

    parser = service.parser(__name__)          python -P -m subscribers.runner.shell_service
    return service.run(options, lambda: ShellService(options).run(), log)

Refuses to know what a process serves.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from broker.lifeline import hold
from broker.logs import configure
from broker.protocol.errors import BusUnreachable, RuntimeDirError

from .enclosure import NONE

if TYPE_CHECKING:
    from ..sources.trust_gate import TrustGate

BUS_SECONDS: Final = 30.0
"""How long a process waits for a bus at its start."""

DRAIN_SECONDS: Final = 5.0
"""How long what is under way may go on after SIGTERM."""

TURN_SECONDS: Final = 0.25
"""Longest wait for the bus before signals are looked at."""

DONE: Final = 0
FAILED: Final = 1
NO_BUS: Final = 3


def parser(module: str) -> argparse.ArgumentParser:
    """A parser for ``python -P -m subscribers.runner.<module>`` with the options of every process."""
    made = argparse.ArgumentParser(prog=f"python -P -m subscribers.runner.{module}")
    made.add_argument("--runtime-dir")
    made.add_argument("--log-level", default="info")
    made.add_argument("--lifeline", action="store_true", help="end when standard input is closed")
    return made


def add_drain(to: argparse.ArgumentParser) -> None:
    """The option of a process that lets work end."""
    to.add_argument("--drain-seconds", type=float, default=DRAIN_SECONDS)


def add_trusted(to: argparse.ArgumentParser) -> None:
    """The option of a process that runs code of a workspace."""
    to.add_argument("--trusted", action="store_true", help="only as 'prxbus trust' has recorded it")


def gate_of(options: argparse.Namespace) -> TrustGate | None:
    """What is asked before code of the workspace is loaded or run; None where the user has named it."""
    if not options.trusted or options.workspace is None:
        return None
    from ..sources.trust_gate import TrustGate

    return TrustGate(options.workspace)


def add_sandbox(to: argparse.ArgumentParser) -> None:
    """The options of a process that may enclose what it runs."""
    to.add_argument("--sandbox", choices=(NONE, "bubblewrap"), default=NONE, help="what encloses a run")
    to.add_argument("--sandbox-memory-bytes", type=int, default=2**32)
    to.add_argument("--sandbox-processes", type=int, default=256, help="of one run")
    to.add_argument("--sandbox-file-bytes", type=int, default=2**30, help="of each file")


def heed_signals(stop: threading.Event, rescan: threading.Event) -> None:
    """Have ``stop`` set by SIGTERM and SIGINT, and ``rescan`` by SIGHUP. Only in the main thread."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: rescan.set())


def say_ready(name: str, **facts: Any) -> None:
    """Tell whoever has started this process that it serves, and what."""
    print(json.dumps({"ready": True, "name": name, "pid": os.getpid(), **facts}), flush=True)


def run(
    options: argparse.Namespace,
    serve: Callable[[], Any],
    log: Any,
    refusals: Mapping[type[Exception], int] | None = None,
) -> int:
    """Serve; the exit code: 0, 3 without a bus, 1 failed, and what ``refusals`` say of further errors.

    The first kind that an error is of counts, those of ``refusals`` before the others. ``log`` is told why.
    """
    configure(options.log_level)
    if options.lifeline:
        hold()
    known: dict[type[Exception], int] = {**(refusals or {})}
    known |= {BusUnreachable: NO_BUS, RuntimeDirError: FAILED, OSError: FAILED}
    expected = tuple(known)
    try:
        serve()
    except expected as error:
        log.error(str(error))
        return next(code for kind, code in known.items() if isinstance(error, kind))
    return DONE
