"""Options that verbs share, and the types of their values.

Decides what a number on a command line may be. It refuses to know what is done with it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

from .exits import UsageError, command
from .printing import emit
from .terminal import columns

MOST_SECONDS: Final = 1_000_000.0
"""Longest time that can be given (11 days): it fits every timer below, in milliseconds."""

MOST: Final = 1_000_000_000

# Argparse looks for translations of its words, of which there are none. That alone is 2 % of `prxbus pub`.
argparse._ = str  # type: ignore[attr-defined]


class Formatter(argparse.HelpFormatter):
    """Help as wide as the terminal. Argparse's own imports ``shutil`` for that, at every option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(100, columns(os.environ)) - 2)


class Parser(argparse.ArgumentParser):
    """A parser for which a wrong command line is a :class:`UsageError`, not an exit; also below a verb."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": Formatter, "allow_abbrev": False, **settings})

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options in ``arguments``; they may stand between the positional ones.

        Raises :class:`UsageError`, and SystemExit after ``--help``.
        """
        options, rest = self.parse_known_args(arguments)
        self._check_options(rest)
        if rest:  # argparse takes positional arguments in one go unless told to look again
            with suppress(TypeError):  # verbs with verbs of their own cannot
                return self.parse_intermixed_args(arguments)
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return options

    def _check_options(self, rest: Sequence[str]) -> None:
        """An option among what is left over is unknown: name the nearest one."""
        unknown = next((text for text in rest if text.startswith("--") and text != "--"), None)
        if unknown is None:
            return
        from .spelling import nearest

        known = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        near = nearest(unknown[2:].partition("=")[0], known)
        meant = "" if near is None else f"; did you mean --{near}?"
        self.error(f"unrecognized arguments: {' '.join(rest)}{meant}")

    def print_help(self, file: Any = None) -> None:  # noqa: ARG002 - argparse's signature
        """Print the help as the data of every command: an error of standard output is told as one."""
        emit(self.format_help().rstrip("\n"))

    def error(self, message: str) -> NoReturn:
        """See the class."""
        raise UsageError(f"{message}; see '{self.prog} --help'")


def verb_parser(verb: str, summary: str, *, bus: bool = True) -> Parser:
    """The parser of one verb, which may have nothing to do with a ``bus``; the verb adds its arguments."""
    parser = Parser(prog=command(verb), description=f"{summary[:1].upper()}{summary[1:]}.")
    add_runtime_dir(parser, shown=bus)
    return parser


def add_runtime_dir(parser: argparse.ArgumentParser, *, shown: bool = True) -> None:
    """``--runtime-dir``: which bus. Every verb takes it, and its help shows it where there is a bus."""
    parser.add_argument(
        "--runtime-dir",
        metavar="DIR",
        help="directory of the bus (default: $PRXBUS_RUNTIME_DIR, else $XDG_RUNTIME_DIR/prxbus, else "
        "prxbus-UID in $TMPDIR or /tmp)"
        if shown
        else argparse.SUPPRESS,
    )


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """``--json``: print ``what`` as JSON, and errors too."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON, and errors too")


def add_timeout(parser: argparse.ArgumentParser, seconds: float) -> None:
    """``--timeout``: how long the broker may take to answer."""
    parser.add_argument(
        "--timeout",
        type=duration(),
        default=seconds,
        metavar="S",
        help=f"seconds the broker may take to answer (default {seconds:g})",
    )


def whole(least: int) -> Callable[[str], int]:
    """The type of a whole number from ``least`` up."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} up")
        if number > MOST:
            raise argparse.ArgumentTypeError(f"{text} is more than {MOST:,}")
        return number

    return parse


def duration(least: float = 0.001) -> Callable[[str], float]:
    """The type of a time in seconds from ``least`` up."""

    def parse(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not least <= seconds <= MOST_SECONDS:  # NaN fails too
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number of seconds from {least:g} to {MOST_SECONDS:,.0f}"
            )
        return seconds

    return parse
