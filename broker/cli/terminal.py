"""What may reach a terminal, and what fits on it.

Decides how foreign text is shown (no control character, cut by columns, not by characters) and when there
are colours. It refuses to know what the text means.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, TextIO

DEFAULT_COLUMNS: Final = 80

CODES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
"""Styles as parameters of the SGR control sequence (ECMA-48)."""


def printable(text: str) -> str:
    """``text`` with every character that is not printable (controls, marks of direction) as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def paint(text: str, *styles: str) -> str:
    """``text``, which must be printable already, between the control sequences of ``styles``."""
    return f"\x1b[{';'.join(CODES[style] for style in styles)}m{text}\x1b[0m"


def cut(text: str, columns: int) -> str:
    """``text`` (printable) in at most ``columns`` columns, with an ellipsis where something is missing."""
    if text.isascii():
        return text if len(text) <= columns else text[: max(0, columns - 1)] + "…" * (columns > 0)
    used = 0
    fits = 0  # characters that leave a column for the ellipsis
    for index, character in enumerate(text):
        used += character_columns(character)
        if used > columns:
            return text[:fits] + "…" * (columns > 0)
        if used < columns:
            fits = index + 1
    return text


def cut_front(text: str, columns: int) -> str:
    """``text`` (printable) in at most ``columns`` columns, cut at its beginning.

    For texts that end in what tells them apart, such as topics and paths.
    """
    return cut(text[::-1], columns)[::-1]


def width(text: str) -> int:
    """Columns that ``text`` (printable) takes."""
    return len(text) if text.isascii() else sum(map(character_columns, text))


def character_columns(character: str) -> int:
    """Columns of one character: 2 for wide ones, 0 for those that combine with the one before."""
    from unicodedata import combining, east_asian_width

    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def columns(environ: Mapping[str, str], descriptor: int = 1) -> int:
    """Width of the terminal: ``COLUMNS``, else what the terminal behind ``descriptor`` says, else 80."""
    told = environ.get("COLUMNS", "")
    if told.isascii() and told.isdigit() and 0 < len(told) < 6 and int(told):
        return int(told)
    try:
        return os.get_terminal_size(descriptor).columns or DEFAULT_COLUMNS
    except (OSError, ValueError):
        return DEFAULT_COLUMNS


def is_terminal(stream: TextIO | None) -> bool:
    """Whether ``stream`` is a terminal; false for a closed one."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def in_colour(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether to colour what goes to ``stream``: a terminal that can, and no ``NO_COLOR`` (no-color.org)."""
    return is_terminal(stream) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
