"""Exit codes, and which error leads to which: one table for commands, documents and tests.

Decides how a command ends and how its error is told. It refuses to know what any verb does.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..protocol.errors import (
    AlreadyRunning,
    BusError,
    BusUnreachable,
    LimitExceeded,
    QueueFull,
    RequestRefused,
    RequestTimeout,
    RuntimeDirError,
    SchemaError,
    SpoolFull,
    TopicError,
)
from .terminal import printable

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
REFUSED: Final = 4
TIMED_OUT: Final = 5
ASK_USER: Final = 6
"""Neither yes nor no: an ask of which the user is to decide."""

STALE: Final = 7
"""What was to be confirmed is not what would be done now."""

UNAVAILABLE: Final = 8
"""What the command is about is not there, or cannot be read."""

INTERRUPTED: Final = 130
"""128 + SIGINT, as shells count it."""


class Row(NamedTuple):
    """One exit code, with its meaning and the errors of the bus that lead to it."""

    code: int
    meaning: str
    errors: tuple[type[BusError], ...] = ()


TABLE: Final = (
    Row(DONE, "done"),
    Row(FAILED, "failed"),
    Row(USAGE, "wrong usage: the command line cannot be understood"),
    Row(UNREACHABLE, "no bus answers", (BusUnreachable,)),
    Row(
        REFUSED,
        "refused by a limit or a rule: topic, payload, size, runtime directory, or the broker says no; "
        "of `ask` and `fire`: denied, and nothing else",
        (
            TopicError,
            SchemaError,
            LimitExceeded,
            RequestRefused,
            QueueFull,
            SpoolFull,
            RuntimeDirError,
            AlreadyRunning,
        ),
    ),
    Row(TIMED_OUT, "timed out", (RequestTimeout,)),
    Row(ASK_USER, "of `ask`: the user is to be asked"),
    Row(
        STALE,
        "of `hooks`: stale; what was confirmed is not the plan any more: nothing was written, and the new "
        "plan is shown",
    ),
    Row(UNAVAILABLE, "of `hooks`: unavailable; there is no such source or import, or it cannot be read"),
    Row(INTERRUPTED, "interrupted from the keyboard"),
)


class CommandError(Exception):
    """A command cannot go on: ``code`` is stable and machine-readable, ``status`` is the exit code."""

    def __init__(self, message: str, code: str = "failed", status: int = FAILED) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class UsageError(CommandError):
    """A command line that cannot be understood."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "usage", USAGE)


def exit_code(error: CommandError | BusError) -> int:
    """The exit code that ``error`` leads to; 1 for an error of the bus that no row names."""
    if isinstance(error, CommandError):
        return error.status
    return next((row.code for row in TABLE if isinstance(error, row.errors)), FAILED)


def error_line(verb: str, error: CommandError | BusError, *, as_json: bool = False) -> str:
    """``error`` as one line for stderr: for people, or as a JSON object with ``code`` and ``message``."""
    if not as_json:
        return f"{command(verb)}: {printable(_worded(error))}"
    from json import dumps

    told = {"code": error.code, "message": _worded(error)}
    if isinstance(error, RequestRefused):
        told["remote_code"] = error.remote_code
    return dumps(told)


def _worded(error: CommandError | BusError) -> str:
    """The message, with an argument of the client's called by the name that it has on a command line."""
    if isinstance(error, BusUnreachable):
        return str(error).replace(" with runtime_dir or ", " with --runtime-dir or ")
    return str(error)


def command(verb: str) -> str:
    """What to call the command of ``verb`` in a message."""
    return f"prxbus {verb}" if verb else "prxbus"
