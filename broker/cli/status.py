"""``prxbus status``: ask the broker how it and its peers are."""

from __future__ import annotations

import argparse
import os
import sys

from ..client.tool import Tool
from .exits import DONE
from .options import add_json, add_timeout
from .printing import emit, emit_json
from .status_lines import limit_lines, status_lines
from .terminal import columns, in_colour, is_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``status``."""
    parser.add_argument("--limits", action="store_true", help="print the limits of the bus instead")
    add_timeout(parser, 5.0)
    add_json(parser, "the whole report")


def run(options: argparse.Namespace) -> int:
    """Print the status, or the limits."""
    with Tool("prxbus-status", runtime_dir=options.runtime_dir, timeout=options.timeout) as tool:
        status = tool.request("status").body["status"]
    if options.json:
        emit_json(status["broker"]["limits"] if options.limits else status)
    elif options.limits:
        emit("\n".join(limit_lines(status)))
    else:
        wide = columns(os.environ) if is_terminal(sys.stdout) else None
        emit("\n".join(status_lines(status, wide, colour=in_colour(sys.stdout, os.environ))))
    return DONE
