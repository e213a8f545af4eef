"""The ``codex`` subscriber: a process that runs the hooks of the Codex family and answers for them.

    python -P -m subscribers.runner.codex_service [--workspace DIR] [--bitfun] [--watch PATH ...]

It prints one JSON line when it is ready. SIGTERM or SIGINT: it is asked no more, handlers under way get their
time, reports are flushed, exit 0. SIGHUP: all files are looked at again.

Most workspaces have no such hooks, and every file may come while the bus runs. As long as none of the files
``--watch`` names is there, this is a bare interpreter that looks for them twice a second; what it takes to
run a hook is loaded with the first of them. Decides when that is. Refuses to know what is in the files.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

NAME: Final = "codex"
LOOK_SECONDS: Final = 0.5

RECORD_NAME: Final = "codex-guards.json"
"""See :data:`subscribers.sources.codex_guards.NAME`, whose module costs what this is here to save."""

RUNS, RUNS_PER_HOOK, QUEUE, DRAIN_SECONDS = 32, 8, 1_024, 5.0


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 1: failed)."""
    options = _parser().parse_args(argv)
    is_ready = bool(options.watch) and not _was_guarding(options) and _wait_for_files(options)
    from . import codex_process, service  # half a second of imports

    def serve() -> None:
        codex_process.CodexProcess(options, is_ready=is_ready).run()

    options.lifeline = options.lifeline and not is_ready  # it is held already
    return service.run(options, serve, codex_process.log)


def _wait_for_files(options: argparse.Namespace) -> bool:
    """Wait until there is something to do; whether that took so long that we have said that we are ready."""
    before = [_look(path) for path in options.settings]
    if any(map(_look, options.watch)):
        return False
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if options.lifeline:
        from broker.lifeline import hold

        hold()
    print(json.dumps({"ready": True, "name": NAME, "pid": os.getpid(), "handlers": 0}), flush=True)
    while not any(map(_look, options.watch)) and [_look(path) for path in options.settings] == before:
        time.sleep(LOOK_SECONDS)
    return True


def _was_guarding(options: argparse.Namespace) -> bool:
    """Whether a process before may be missed, so that this one has to say that it is back."""
    from broker.places import runtime_directory

    return os.path.lexists(os.path.join(runtime_directory(options.runtime_dir), RECORD_NAME))


def _look(path: str) -> tuple[int, ...] | None:
    with suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return None


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -P -m subscribers.runner.codex_service")
    made.add_argument("--runtime-dir")
    made.add_argument("--log-level", default="info")
    made.add_argument("--lifeline", action="store_true", help="end when standard input is closed")
    made.add_argument("--workspace", help="run also the hooks of this directory (.prxbus/hooks.json)")
    made.add_argument("--trusted", action="store_true", help="only as 'prxbus trust' has recorded it")
    made.add_argument("--strict", action="store_true", default=None, help="one bad handler voids its file")
    made.add_argument("--bitfun", action="store_true", default=None, help="run also those at BitFun's places")
    made.add_argument(
        "--watch", action="append", default=[], help="a file without which there is nothing to do"
    )
    made.add_argument("--settings", action="append", default=[], help="a file that may say that there is")
    made.add_argument("--runs", type=int, default=RUNS, help="runs at once")
    made.add_argument("--runs-per-hook", type=int, default=RUNS_PER_HOOK, help="runs at once of one handler")
    made.add_argument("--queue", type=int, default=QUEUE, help="runs that may wait; beyond it they fail")
    made.add_argument("--drain-seconds", type=float, default=DRAIN_SECONDS)
    made.add_argument(
        "--sandbox", choices=("none", "bubblewrap"), default="none", help="what encloses a command"
    )
    made.add_argument("--sandbox-memory-bytes", type=int, default=2**32)
    made.add_argument("--sandbox-processes", type=int, default=256, help="of one run")
    made.add_argument("--sandbox-file-bytes", type=int, default=2**30, help="of each file")
    return made


def arguments_of(watch: Sequence[str], settings: Sequence[str]) -> tuple[str, ...]:
    """The arguments that say for which files the process waits."""
    found = [("--watch", path) for path in watch] + [("--settings", path) for path in settings]
    return tuple(text for pair in found for text in pair)


if __name__ == "__main__":
    sys.exit(main())
