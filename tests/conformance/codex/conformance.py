"""What a case of the Codex contract is, and how the generated page lists all of them.

The tests that Codex has for its hooks were written down as one row each: an id such as ``C1.2`` and what is
asserted. A table of cases (``cases_<part>.py``) holds every id of its part, in order, with words of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = Path(__file__).parent / "CONFORMANCE.md"

COUNTS: Final[Mapping[str, int]] = {
    "A1": 10,
    "A2": 16,
    "A3": 5,
    "A4": 32,
    "A5": 12,
    "B1": 11,
    "B2": 11,
    "C1": 15,
    "C2": 10,
    "C3": 8,
    "C4": 4,
    "C5": 5,
    "C6": 7,
    "C7": 8,
    "C8": 5,
    "C9": 5,
    "C10": 3,
    "E1": 9,
    "E2": 3,
    "E3": 4,
    "F1": 53,
    "F2": 11,
    "F3": 13,
    "G": 13,
}
"""How many rows each section has. ``G`` has no dot in its ids: ``G1`` to ``G13``."""


class Case(NamedTuple):
    """One row: its id, what it is about, and what shows it, or why nothing does.

    ``check`` raises AssertionError where prxbus does something else. ``shown_by`` are tests elsewhere in this
    project, ``tests/...py::name``, that show it, or the rest of it. ``not_applicable`` is why prxbus has
    nothing of the kind. ``but`` is what of the row is not shown, and why.
    """

    id: str
    about: str
    check: Callable[[], None] | None = None
    shown_by: tuple[str, ...] = ()
    not_applicable: str | None = None
    but: str | None = None


def ids(counts: Mapping[str, int] = COUNTS) -> list[str]:
    """Every id, in order."""
    return [
        f"{section}{number}" if section == "G" else f"{section}.{number}"
        for section, count in counts.items()
        for number in range(1, count + 1)
    ]


def page(cases: Iterable[Case]) -> str:
    """The text of the page that lists every case and its status."""
    found = list(cases)
    passed = sum(case.not_applicable is None for case in found)
    lines = [
        "# Conformance to the Codex hook contract",
        "",
        f"{len(found)} cases by id: {passed} pass, {len(found) - passed} are not applicable.",
        "They are Codex's own tests in words of ours; `G` is Claude Code's reference on HTTP hooks.",
        "The checks run strict, as with `hooks.strict`. This page is generated:",
        "`python -m tests.conformance.codex.write` writes it anew.",
        "",
        "| id | case | status |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *(f"| {case.id} | {case.about} | {_status(case)} |" for case in found), ""])


def _status(case: Case) -> str:
    if case.not_applicable is not None:
        return f"not applicable: {case.not_applicable}"
    shown = [f"`{shown.rpartition('/')[2]}`" for shown in case.shown_by]
    passed = f"pass: {', '.join(shown)}" if shown else "pass"
    return passed if case.but is None else f"{passed}; but {case.but}"
