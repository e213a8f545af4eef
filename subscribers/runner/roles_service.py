"""The ``roles`` subscriber: a process that runs the hooks of roles and answers for them.

    python -P -m subscribers.runner.roles_service --role DIR [--role DIR ...] [--scope session|all]

It prints one JSON line when every module has been loaded or refused. SIGTERM or SIGINT: it is asked no more,
hooks under way get their time, each is disposed once, exit 0. SIGHUP: all files are looked at again. It runs
no module itself: that is done by the two hosts below it.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from . import service
from .roles_process import RolesProcess, log

TIMEOUT_SECONDS: Final = 5.0
WORKERS: Final = 2
MEMORY_MB: Final = 256

SWITCH_SECONDS: Final = 0.0003
"""How long a thread that works may keep another one waiting that has just been woken. An ask goes through two
threads here, beside one that hears its copy: with Python's own 5 ms a round trip took a quarter longer."""


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 1: failed)."""
    options = _parser().parse_args(argv)
    sys.setswitchinterval(SWITCH_SECONDS)
    return service.run(options, lambda: RolesProcess(options).run(), log)


def _parser() -> argparse.ArgumentParser:
    made = service.parser("roles_service")
    made.add_argument(
        "--role", action="append", required=True, metavar="DIR", help="a directory with a role.yaml"
    )
    made.add_argument("--scope", choices=("session", "all"), default="session", help="whose events reach it")
    made.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS, help="seconds of one handler")
    made.add_argument("--workers", type=int, default=WORKERS, help="threads that run JavaScript")
    made.add_argument("--memory-mb", type=int, default=MEMORY_MB, help="memory of each of them")
    made.add_argument("--node", help="the node that runs JavaScript; default the one on the PATH")
    service.add_drain(made)
    return made


if __name__ == "__main__":
    sys.exit(main())
