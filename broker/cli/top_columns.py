"""Which columns of a table fit a terminal, and how wide they are.

Names are shortened first, then whole columns give way; a number is shown with all its digits or not at all.
Pure: texts and a width go in, widths come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from .terminal import width

NAME: Final = "name"
NUMBER: Final = "number"

GAP: Final = "  "

LEAST_NAME: Final = 12
"""Columns that a name keeps, if it has so many, before a whole column gives way."""

BARE_NAME: Final = 4
"""What it keeps when only columns are left that should not give way."""


class Column(NamedTuple):
    """A column: of names, which may be shortened, or of numbers.

    Those with the greatest ``drop`` give way first, those with 0 only when nothing else is left; the first
    column always stays. A column that may not be ``blank`` is left out when it has nothing below its heading.
    Names that end in what tells them apart are cut in ``front``.
    """

    heading: str
    kind: str = NUMBER
    drop: int = 0
    blank: bool = True
    front: bool = False


def fitted(columns: Sequence[Column], texts: Sequence[Sequence[str]], room: int) -> dict[int, int]:
    """The indexes of the ``columns`` that fit into ``room``, in order, with their widths.

    ``texts`` are those of each column, its heading first. What is left of the room is spread evenly.
    """
    wanted = {
        at: max(map(width, texts[at]))
        for at, column in enumerate(columns)
        if column.blank or any(texts[at][1:])
    }
    while True:
        widths = _shortened(columns, wanted, room)
        if _taken(widths) <= room:
            return _spread(widths, room)
        rest = [at for at in widths if at]
        if not rest:
            return {0: max(1, room)}
        del wanted[max(rest, key=lambda at: (columns[at].drop, at))]


def _shortened(columns: Sequence[Column], wanted: dict[int, int], room: int) -> dict[int, int]:
    """The widths with names cut as far as it takes and may be, the longest one first."""
    least = LEAST_NAME if any(columns[at].drop for at in wanted if at) else BARE_NAME
    widths = dict(wanted)
    names = [at for at in widths if columns[at].kind == NAME]
    while names and (over := _taken(widths) - room) > 0:
        longest = max(names, key=widths.__getitem__)
        if widths[longest] <= least:
            break
        second = max((widths[at] for at in names if at != longest), default=0)
        aim = max(least, min(second, widths[longest] - 1), widths[longest] - over)
        widths[longest] = aim
    return widths


def _spread(widths: dict[int, int], room: int) -> dict[int, int]:
    each, more = divmod(room - _taken(widths), len(widths))
    return {at: wide + each + (more if at == 0 else 0) for at, wide in widths.items()}


def _taken(widths: dict[int, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)
