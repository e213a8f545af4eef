"""The table of differences says what the code does, wherever code can be asked."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from broker.protocol.projections import project
from subscribers.dialects import librefang
from subscribers.dialects import librefang_rules as rules
from subscribers.dialects.base import EventView, Place
from subscribers.dialects.librefang_differences import DIFFERENCES
from subscribers.hooks.withheld import WITHHELD

HERE = {difference.number: difference.here for difference in DIFFERENCES}
GOOD = "name: n\nevents: [agent:end]\ncommand: x\n"
SPEC = librefang.parse(GOOD.encode(), "/h/HOOK.yaml").specs[0]
VIEW = EventView("agent_end", b"{}", None, 0, 0, "id")
WHERE = Place("/h", "/r", "", "/b", "/bin/true", "/h")


def in_code(cell: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_time_is_that_of_a_run() -> None:
    """Seconds, and that no grace is given."""
    run = librefang.render(SPEC, VIEW, WHERE)
    assert HERE["L1"].startswith(f"{run.timeout_s:g} s, then the whole process group is killed")
    assert run.grace_s == 0


def test_the_patterns_are_those_that_are_read() -> None:
    """Each one that the table lists fires, and others do not."""
    for pattern in in_code(HERE["L3"]):
        parsed = librefang.parse(GOOD.replace("agent:end", f"'{pattern}'").encode(), "HOOK.yaml")
        assert len(parsed.specs) > 1
    assert set(in_code(HERE["L3"])) == set(rules.PATTERNS)


def test_the_previews_are_as_long_as_it_says() -> None:
    """Counted in code points."""
    preview = project("librefang", "agent_start", {"prompt": "é" * 1_000})["message_preview"]
    assert HERE["L4"] == f"{len(preview)} code points"


def test_the_programs_names_are_there() -> None:
    """Every name that the program sends instead is in one of the views, beside the page's."""
    program = next(difference.program for difference in DIFFERENCES if difference.number == "L5")
    seen = {name for event in rules.EVENTS.values() for name in project("librefang", event, {})}
    assert set(in_code(program)) <= seen


def test_the_keys_are_those_that_are_read() -> None:
    """None of them is unknown, and any other is."""
    text = "name: n\ndescription: d\nevents: [agent:end]\ncommand: x\nargs: []\n"
    assert librefang.parse(text.encode(), "HOOK.yaml").diagnostics == ()
    assert in_code(HERE["L11"]) == re.findall(r"^(\w+):", text, re.MULTILINE)


def test_the_file_begins_where_it_says() -> None:
    """One byte more than the table's number."""
    (number,) = re.findall(r"[\d,]+ bytes", next(d.topic for d in DIFFERENCES if d.number == "L17"))
    size = int(number.removesuffix(" bytes").replace(",", ""))
    assert not librefang.needs_file(b"x" * size)
    assert librefang.needs_file(b"x" * (size + 1))
    run = librefang.render(SPEC, VIEW, replace(WHERE, payload_file="/f"), b"x" * (size + 1))
    assert in_code(HERE["L17"]) == [name for name, value in run.env.items() if value == "/f"]


def test_output_and_input_are_bounded_as_it_says() -> None:
    """Bytes of each stream, and nothing to read."""
    run = librefang.render(SPEC, VIEW, WHERE)
    assert HERE["L20"].startswith(f"at most {run.output_limit:,} bytes of each stream")
    assert (run.stdin, HERE["L19"]) == (None, "empty")


def test_what_is_withheld_is_what_it_says() -> None:
    """Of an environment nothing else is missing."""
    environ = {"A": "1", "HOME": "/u", **dict.fromkeys(WITHHELD, "secret")}
    run = librefang.render(SPEC, VIEW, replace(WHERE, environ=environ))
    missing = environ.keys() - run.env.keys()
    assert {"prxbus up", *missing} == set(in_code(HERE["L22"]))


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.number)
def test_every_row_says_something_in_each_cell(difference: tuple[str, ...]) -> None:
    """Nothing is left open."""
    assert all(difference)
