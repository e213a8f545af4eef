"""What explanations of hook files have in common: which remark belongs to which handler.

A dialect's reader names a place for each of its remarks; here each is given to the handler whose place that
is. It refuses to know what a place means, and which remark keeps a handler from running.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..hooks.diagnostics import Diagnostic

_ENDS = frozenset(".[")


def by_place(
    diagnostics: Iterable[Diagnostic], places: Iterable[str]
) -> tuple[dict[str, list[Diagnostic]], tuple[Diagnostic, ...]]:
    """The diagnostics of each place, and those that belong to none.

    A diagnostic belongs to the longest place that its field is or lies within: ``hooks.error[0].args`` to
    ``hooks.error[0]`` rather than to ``hooks.error``.
    """
    found: dict[str, list[Diagnostic]] = {place: [] for place in places}
    others: list[Diagnostic] = []
    for diagnostic in diagnostics:
        place = _innermost(diagnostic.field or "", found)
        (others if place is None else found[place]).append(diagnostic)
    return found, tuple(others)


def _innermost(field: str, places: dict[str, list[Diagnostic]]) -> str | None:
    if field in places:
        return field
    ends = (index for index in range(len(field) - 1, 0, -1) if field[index] in _ENDS)
    return next((field[:end] for end in ends if field[:end] in places), None)
