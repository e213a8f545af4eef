"""``prxbus check``: every handler of a hook file, whether it would fire, and why not. Starts none of them.

Decides the exit code and where the words go; what a file means is :mod:`subscribers.runner.inspection`'s.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from broker.cli.exits import DONE, FAILED
from broker.cli.options import add_json
from broker.cli.printing import emit, emit_json, note
from broker.cli.terminal import columns, in_colour, is_terminal

from ..sources.inspect_kinds import KINDS, supported
from ..sources.role_directories import roles_below

FILES: Final = {
    "bash": "_shtab_compgen_files",
    "zsh": "_files",
    "tcsh": "f",
    "fish": "(__fish_complete_path (commandline -ct))",
}
"""How each shell is told by shtab that files complete an argument."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``check``."""
    paths = parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help=f"a file, or a workspace's or hook's folder (default: the current directory and what is "
        f"the user's own); read are {supported()}",
    )
    completes_to_files(paths)
    add_dialect(parser)
    parser.add_argument(
        "--strict",
        action="store_true",
        default=None,
        help="let one bad handler refuse its whole file where Codex and Claude Code do (hooks.strict)",
    )
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of what --json prints, and check nothing"
    )
    add_json(parser, "the explanation")
    parser.epilog = (
        f"Exit codes: {DONE} everything that is written would run, or is turned off; {FAILED} something is "
        "dead or refused."
    )


def completes_to_files(action: argparse.Action) -> None:
    """Have completion offer files for an argument."""
    action.complete = FILES  # type: ignore[attr-defined]


def add_dialect(parser: argparse.ArgumentParser) -> None:
    """``--dialect``: what a file is taken for."""
    parser.add_argument(
        "--dialect",
        metavar="D",
        choices=[kind.name for kind in KINDS],
        help=f"take files for this whatever they look like: {', '.join(kind.name for kind in KINDS)}",
    )


def run(options: argparse.Namespace) -> int:
    """Explain; returns 1 when something that is written will not run."""
    from ..hooks.explanation import document
    from ..runner.inspection import explained, world
    from .explanation_lines import ExplanationLines

    if options.schema:
        from ..hooks.explanation_schema import SCHEMA

        emit_json(SCHEMA, indent=True)
        return DONE
    files = explained(options.paths, options.dialect, world(os.environ, strict=options.strict))
    if options.json:
        emit_json(document(files))
    elif files:
        wide = columns(os.environ) if is_terminal(sys.stdout) else None
        lines = ExplanationLines(wide, os.getcwd(), colour=in_colour(sys.stdout, os.environ))
        emit("\n".join(lines.report(files)))
    if not files:
        below = next(filter(None, map(roles_below, options.paths or (os.getcwd(),))), None)
        told = f"looked for {supported()}" if below is None else f"of roles, {below}"
        note("check", f"nothing to check here; {told}", as_json=options.json, code="nothing")
    return FAILED if any(file.is_broken for file in files) else DONE
