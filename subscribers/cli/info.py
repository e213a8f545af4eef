"""``prxbus info``: a role, its hooks with their modules, its functions, and whether it is as it was accepted.

Decides the words, the JSON and the exit code, which is the same for both. What is true of a role is
:mod:`subscribers.runner.role_info`'s.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime

from broker.cli.exits import DONE, FAILED, CommandError
from broker.cli.options import add_json
from broker.cli.printing import emit, emit_json, note
from broker.cli.terminal import is_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``info``."""
    parser.add_argument("role", metavar="ROLE", help="a role's directory, or a configured role by its name")
    parser.add_argument(
        "--check",
        action="store_true",
        help="also load its modules, in processes of their own (this executes them and their onLoad), and "
        "fail unless each exports a handler",
    )
    parser.add_argument(
        "--accept",
        action="store_true",
        help="record the role's files as they are now, to be compared with from then on",
    )
    add_json(parser, "everything")
    parser.epilog = (
        f"Exit codes, with --json too: {DONE} the role is in order, as far as it was looked at; {FAILED} "
        "there is no such role, something of it will not run, or its files are not those that were "
        "accepted, or that rolebox installed."
    )


def run(options: argparse.Namespace) -> int:
    """Look, record if asked to, and tell."""
    from ..config import files
    from ..runner.role_info import LOAD_S, UnknownRole, accept, find_role, look
    from ..sources.record_files import RecordUnusable
    from .info_lines import document, lines

    settings = files.load(os.environ, {}, None).settings.roles
    try:
        directory = find_role(options.role, settings)
    except UnknownRole as error:
        raise CommandError(str(error), "unknown_role") from None
    if options.check and is_terminal(sys.stderr):
        note("info", f"loading the modules, for {LOAD_S:g} s at most", as_json=options.json, code="loading")
    info = look(directory, settings, os.environ, loads=options.check)
    before = info.integrity
    if options.accept:
        try:
            info = accept(info, datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))
        except RecordUnusable as error:
            raise CommandError(str(error), "not_recorded") from None
    if options.json:
        emit_json(document(info, accepted=options.accept))
    else:
        emit("\n".join(lines(info, before if options.accept else None)))
    return DONE if info.passed else FAILED
