"""Exit codes and error lines."""

from __future__ import annotations

import json

import pytest

from broker.cli import exits
from broker.cli.exits import CommandError, UsageError, error_line, exit_code
from broker.protocol import errors
from broker.protocol.errors import BusError, RequestRefused, VersionMismatch


@pytest.mark.parametrize(
    "error,code",
    [
        (errors.BusUnreachable("x"), 3),
        (errors.RequestTimeout("x"), 5),
        (errors.TopicError("x"), 4),
        (errors.SchemaError("x"), 4),
        (errors.LimitExceeded("x"), 4),
        (errors.RequestRefused("draining", "x"), 4),
        (errors.QueueFull("x"), 4),
        (errors.SpoolFull("x"), 4),
        (errors.RuntimeDirError("x"), 4),
        (errors.AlreadyRunning("x"), 4),
        (errors.ClaimCorrupt("x"), 1),
        (errors.ClosedError("x"), 1),
        (VersionMismatch(2, 1), 1),
        (UsageError("x"), 2),
        (CommandError("x"), 1),
        (CommandError("x", "slow", exits.TIMED_OUT), 5),
    ],
)
def test_an_error_leads_to_its_exit_code(error: BusError | CommandError, code: int) -> None:
    """Unreachable is 3, every refusal 4, a deadline 5, wrong usage 2, anything else 1."""
    assert exit_code(error) == code


def test_the_table_has_each_code_once() -> None:
    """The documented codes are 0 to 8 and 130, each with a meaning, and no error stands in two rows."""
    assert [row.code for row in exits.TABLE] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 130]
    assert all(row.meaning for row in exits.TABLE)
    named = [error for row in exits.TABLE for error in row.errors]
    assert len(named) == len(set(named))


def test_an_error_is_one_line_whatever_is_in_it() -> None:
    """A line end or a control sequence in a message does not reach the terminal."""
    line = error_line("pub", CommandError("first\nsecond\x1b[31m"))
    assert line == "prxbus pub: first\\nsecond\\x1b[31m"


def test_an_error_before_any_verb_names_the_command() -> None:
    """Without a verb the line begins with the command alone."""
    assert error_line("", UsageError("what?")) == "prxbus: what?"


def test_an_error_as_json_has_code_and_message() -> None:
    """With --json the error is an object, and ASCII only."""
    line = error_line("pub", errors.TopicError("bad \x9b"), as_json=True)
    assert line.isascii()
    assert json.loads(line) == {"code": "bad_topic", "message": "bad \x9b"}


@pytest.mark.parametrize("as_json", [False, True])
def test_an_absent_bus_is_told_with_the_option(*, as_json: bool) -> None:
    """The client's words name an argument of its own; on a command line that is an option."""
    error = errors.BusUnreachable("no bus answers; name its directory with runtime_dir or PRXBUS_RUNTIME_DIR")
    line = error_line("tap", error, as_json=as_json)
    assert "with --runtime-dir or PRXBUS_RUNTIME_DIR" in line


def test_a_refusal_as_json_names_the_brokers_code() -> None:
    """What the broker called its refusal stands beside ours."""
    told = json.loads(error_line("pub", RequestRefused("draining", "no"), as_json=True))
    assert told == {"code": "refused", "message": "no", "remote_code": "draining"}
