"""Tables in plain text: aligned columns with a heading.

Decides widths and where spaces go. Cells are printable text; numbers stand to the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from .terminal import cut, paint, width

GAP: Final = "  "


class Cell(NamedTuple):
    """A cell with a style of :data:`.terminal.CODES`."""

    text: str
    style: str


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    *,
    right: Sequence[int] = (),
    colour: bool = False,
    flexible: Sequence[int] = (),
    columns: int | None = None,
) -> list[str]:
    """The lines of a table with ``titles``; the columns with the indexes ``right`` stand to the right.

    Where the terminal has fewer ``columns`` than the table needs, those with the indexes ``flexible`` are
    cut, in this order, to what their titles need at least.
    """
    cells: list[list[Cell]] = [[Cell(title, "bold") for title in titles]]
    cells += [[cell if isinstance(cell, Cell) else Cell(cell, "") for cell in row] for row in rows]
    widths = [max(width(row[index].text) for row in cells) for index in range(len(titles))]
    for index in flexible if columns is not None else ():
        over = sum(widths) + len(GAP) * (len(widths) - 1) - (columns or 0)
        widths[index] = min(widths[index], max(width(titles[index]), widths[index] - over))
        for row in cells:
            row[index] = row[index]._replace(text=cut(row[index].text, widths[index]))
    return [
        GAP.join(
            _placed(cell, widths[index], right=index in right, colour=colour)
            for index, cell in enumerate(row)
        ).rstrip()
        for row in cells
    ]


def _placed(cell: Cell, columns: int, *, right: bool, colour: bool) -> str:
    space = " " * (columns - width(cell.text))
    text = paint(cell.text, cell.style) if colour and cell.style and cell.text else cell.text
    return space + text if right else text + space
