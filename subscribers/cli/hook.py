"""``prxbus hook``: the hook command of an attached agent, as a verb; ``attach`` writes its fastest form.

Decides which bus, how much time, and where the file is that does the work. What it does is
:mod:`subscribers.shim.hook_command`'s.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Final

from broker.cli.exits import DONE
from broker.cli.options import duration
from broker.cli.printing import emit
from broker.places import runtime_directory

SECONDS: Final = 599.0
SHIM: Final = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shim", "prxbus_hook.py"
)
"""The file that an agent has run."""

SOCKET_NAME: Final = "hook.sock"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``hook``."""
    parser.add_argument(
        "--dialect", choices=("claude", "codex", "bitfun"), required=True, help="whose payload is on stdin"
    )
    parser.add_argument(
        "--timeout",
        type=duration(),
        default=SECONDS,
        metavar="S",
        help=f"seconds in all (default {SECONDS:g}: an agent's usual time, less one)",
    )
    parser.add_argument(
        "--absent",
        choices=("allow", "block"),
        default="allow",
        help="without an answer let the agent go on (default; without a bus the event is kept for the next "
        "one), or block",
    )
    parser.add_argument(
        "--print-command", action="store_true", help="print the fastest form of this command, and run nothing"
    )
    parser.epilog = (
        "Reads one payload from stdin, asks the bus, and ends as the agent's hook contract wants it: exit "
        "code 0 with what was decided on stdout, or 2 for no with the reason on stderr."
    )


def run(options: argparse.Namespace) -> int:
    """Print the command, or be it."""
    policy = "closed" if options.absent == "block" else "open"
    socket = os.path.join(runtime_directory(options.runtime_dir), SOCKET_NAME)
    arguments = [options.dialect, socket, f"{options.timeout:g}", policy]
    if options.print_command:
        command = shlex.join([python(), "-I", "-S", SHIM, *arguments])
        emit(command if policy == "open" else f"{command} || exit 2")
        return DONE
    from ..shim import hook_command

    return hook_command.guarded(arguments)


def python() -> str:
    """The interpreter itself: without the links and the environment through which this one was found."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    return os.path.realpath(base)
