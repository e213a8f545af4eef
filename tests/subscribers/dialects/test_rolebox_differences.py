"""The table of differences is whole: numbered, and nothing left open."""

from __future__ import annotations

from subscribers.dialects import rolebox_rules as rules
from subscribers.dialects.rolebox_differences import DIFFERENCES


def test_rows_are_numbered_and_say_something_in_each_cell() -> None:
    """In the order of their discovery, no topic twice."""
    assert [row.number for row in DIFFERENCES] == [f"R{number + 1}" for number in range(len(DIFFERENCES))]
    assert len({row.topic for row in DIFFERENCES}) == len(DIFFERENCES)
    assert all(cell for row in DIFFERENCES for cell in row)


def test_functions_of_rolebox_itself_are_named() -> None:
    """All of those whose instructions prxbus does not have."""
    (row,) = [row for row in DIFFERENCES if row.topic == "functions"]
    assert all(f"`{name}`" in row.here for name in rules.OWN_FUNCTIONS)
