"""``prxbus adapter``: the file by which an agent in another language speaks with hooks.

Decides how an agent gets it: as a copy of its own that it may keep, or by its path in this installation. An
agent in Python imports ``subscribers.adapters.rolebox`` instead.
"""

from __future__ import annotations

import argparse
from importlib.resources import files

from broker.cli.exits import DONE, UsageError
from broker.cli.printing import emit, emit_bytes

FILES = {"node": "rolebox.mjs"}
"""The adapters by language."""

ELSE = (
    "in Python: from subscribers.adapters.rolebox import Rolebox; in any other language: "
    "POST /api/ask of the HTTP API"
)
"""What to do in a language that has no file here."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``adapter``."""
    parser.add_argument(
        "language", metavar="LANGUAGE", help=f"what the agent is written in: {', '.join(FILES)}"
    )
    parser.add_argument("--path", action="store_true", help="print where the file is, not what is in it")
    parser.epilog = f"Such as: prxbus adapter node > rolebox.mjs. {ELSE[0].upper()}{ELSE[1:]}."


def run(options: argparse.Namespace) -> int:
    """Print the file, or its path."""
    if options.language not in FILES:
        raise UsageError(f"there is one for {', '.join(FILES)} and none for {options.language!r}; {ELSE}")
    file = files("subscribers.adapters") / FILES[options.language]
    if options.path:
        emit(str(file))
    else:
        emit_bytes(file.read_bytes())
    return DONE
