"""``prxbus adapter``: the file by which an agent in another language speaks with hooks.

Decides how an agent gets it: as a copy of its own that it may keep, or by its path in this installation. An
agent in Python imports ``subscribers.adapters.rolebox`` instead.
"""

from __future__ import annotations

import argparse
from importlib.resources import files

from broker.cli.exits import DONE
from broker.cli.printing import emit, emit_bytes

FILES = {"node": "rolebox.mjs"}
"""The adapters by language."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``adapter``."""
    parser.add_argument("language", choices=tuple(FILES), help="what the agent is written in")
    parser.add_argument("--path", action="store_true", help="print where the file is, not what is in it")
    parser.epilog = (
        "Such as: prxbus adapter node > rolebox.mjs. In Python: from subscribers.adapters.rolebox "
    )
    parser.epilog += "import Rolebox."


def run(options: argparse.Namespace) -> int:
    """Print the file, or its path."""
    file = files("subscribers.adapters") / FILES[options.language]
    if options.path:
        emit(str(file))
    else:
        emit_bytes(file.read_bytes())
    return DONE
