"""Options that verbs share."""

from __future__ import annotations

import argparse
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.exits import UsageError
from broker.cli.options import MOST, MOST_SECONDS, Parser, add_json, add_timeout, duration, verb_parser, whole


def parser() -> Parser:
    """A parser with one required and one optional positional argument."""
    made = verb_parser("pub", "publish")
    made.add_argument("topic")
    made.add_argument("payload", nargs="?", default="{}")
    made.add_argument("--depth", type=whole(0), default=0)
    add_timeout(made, 5.0)
    add_json(made, "it")
    return made


@pytest.mark.parametrize(
    "text", ["-1", "x", "", "1.0", "1e3", " 1", "+1", "0x1", "٣", "9" * 25, str(MOST + 1)]
)
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    """Negative, fractional, too large or not a number: refused with a reason."""
    with pytest.raises(argparse.ArgumentTypeError):
        whole(0)(text)


def test_a_whole_number_has_a_least_value() -> None:
    """The bounds themselves are allowed."""
    assert whole(1)("1") == 1
    assert whole(0)(str(MOST)) == MOST
    with pytest.raises(argparse.ArgumentTypeError, match=r"'0' is not a whole number from 1 up"):
        whole(1)("0")


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "x", "", "0", "1000001"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """A time is a finite number of seconds within bounds."""
    with pytest.raises(argparse.ArgumentTypeError, match="is not a number of seconds"):
        duration()(text)


@given(st.floats(0.001, MOST_SECONDS))
def test_a_duration_is_read_as_written(seconds: float) -> None:
    """Every number of seconds within bounds is taken."""
    assert math.isclose(duration()(repr(seconds)), seconds)


@pytest.mark.parametrize(
    "arguments",
    [
        ["t", "{}", "--depth", "3"],
        ["t", "--depth", "3", "{}"],
        ["--depth", "3", "t", "{}"],
        ["--depth=3", "t", "{}"],
    ],
)
def test_options_may_stand_anywhere(arguments: list[str]) -> None:
    """An option between two positional arguments does not hide the second one."""
    options = parser().parse(arguments)
    assert (options.topic, options.payload, options.depth) == ("t", "{}", 3)


@pytest.mark.parametrize(
    "arguments,message",
    [
        ([], "the following arguments are required: topic"),
        (["t", "{}", "more"], "unrecognized arguments: more"),
        (["t", "--nope"], "unrecognized arguments: --nope"),
        (["t", "--nope"], "unrecognized arguments: --nope; see"),
        (["t", "--detph", "1"], "unrecognized arguments: --detph 1; did you mean --depth?"),
        (["t", "--jsno=1"], "unrecognized arguments: --jsno=1; did you mean --json?"),
        (["t", "--dep", "1"], "unrecognized arguments: --dep"),
        (["t", "--depth", "-1"], "argument --depth: '-1' is not a whole number from 0 up"),
        (["t", "--depth"], "argument --depth: expected one argument"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str], message: str) -> None:
    """It says what is wrong and where to read on; an abbreviation is no option."""
    with pytest.raises(UsageError, match="see 'prxbus pub --help'") as caught:
        parser().parse(arguments)
    assert message in str(caught.value)


def test_a_verb_with_verbs_of_its_own_says_what_it_does_not_know() -> None:
    """Argparse cannot look twice at those; the error is the same."""
    made = verb_parser("config", "")
    made.add_subparsers().add_parser("show").add_argument("--depth", type=whole(0))
    with pytest.raises(UsageError, match="unrecognized arguments: more"):
        made.parse(["show", "more"])
    with pytest.raises(
        UsageError, match="'-1' is not a whole number from 0 up; see 'prxbus config show --help'"
    ):
        made.parse(["show", "--depth", "-1"])


def test_every_verb_takes_the_runtime_directory() -> None:
    """The parser has --runtime-dir before a verb adds anything."""
    assert verb_parser("x", "").parse(["--runtime-dir", "/tmp/bus"]).runtime_dir == "/tmp/bus"
    assert verb_parser("x", "").parse([]).runtime_dir is None


def test_the_help_of_the_runtime_directory_tells_every_default() -> None:
    """All three places; a verb without a bus takes the option and keeps quiet about it."""
    told = " ".join(verb_parser("x", "").format_help().split())
    assert "$PRXBUS_RUNTIME_DIR, else $XDG_RUNTIME_DIR/prxbus, else prxbus-UID in $TMPDIR or /tmp" in told
    without = verb_parser("x", "", bus=False)
    assert "--runtime-dir" not in without.format_help()
    assert without.parse(["--runtime-dir", "/tmp/bus"]).runtime_dir == "/tmp/bus"
