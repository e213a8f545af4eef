"""``prxbus completion``: a completion script for a shell, from the parsers of all verbs.

The script is written by shtab, which the extra ``run`` brings. Decides what completes to a directory.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

from .exits import DONE, CommandError
from .options import Parser, add_runtime_dir
from .printing import emit
from .verbs import OWN, Verb, joined

SHELLS: Final = ("bash", "zsh", "fish", "tcsh")

DIRECTORIES: Final = frozenset({"runtime_dir", "workspace"})
"""Options, as argparse names them, whose value is a directory."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``completion``."""
    parser.add_argument(
        "shell",
        metavar="SHELL",
        choices=SHELLS,
        help=f"{', '.join(SHELLS)}; to try it in bash: source <(prxbus completion bash)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    if options.shell not in shtab.SUPPORTED_SHELLS:
        known = ", ".join(shtab.SUPPORTED_SHELLS)
        raise CommandError(
            f"this shtab ({shtab.__version__}) cannot write for {options.shell}, only for {known}"
        )
    emit(shtab.complete(command_tree({**joined().verbs, **OWN}), options.shell))
    return DONE


def command_tree(verbs: Mapping[str, Verb]) -> argparse.ArgumentParser:
    """One parser with every verb below it, in the way of argparse's subcommands."""
    import shtab

    root = Parser(prog="prxbus")
    root.add_argument("--version", action="version", version="")
    branches = root.add_subparsers(dest="verb")
    for name in sorted(verbs):
        branch = branches.add_parser(name, help=verbs[name].summary)
        add_runtime_dir(branch, shown=verbs[name].bus)
        verbs[name].add_arguments(branch)
        for action in branch._actions:
            if action.dest in DIRECTORIES:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return root
