"""The known name that somebody probably meant: fewest slips of the typing hand between the two.

A slip is a letter too many, too few or wrong, or two neighbours changed over (the optimal string alignment
distance). A beginning of a name counts as one slip. It refuses to know what the names are of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CHARACTERS: Final = 64
"""Longer names are not compared: the work grows with the square of the length."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` nearest to ``name``, the first in order of equals; None when none is near.

    Case does not count. Near is one slip, and one more for every three letters beyond two.
    """
    typed = name.lower()
    if not typed or len(typed) > CHARACTERS:
        return None
    found = min(((_slips(typed, each.lower()), each) for each in known), default=None)
    return found[1] if found is not None and found[0] <= max(1, (len(typed) + 1) // 3) else None


def _slips(typed: str, meant: str) -> int:
    slips = distance(typed, meant)
    return min(slips, 1) if len(typed) > 1 and meant.startswith(typed) else slips


def distance(one: str, other: str) -> int:
    """How many slips lead from ``one`` to ``other``."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, right in enumerate(other, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and right == one[i - 2]:
                least = min(least, earlier[j - 2] + 1)
            row.append(least)
    return row[-1]
