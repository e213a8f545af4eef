"""Numbers with their units, for people."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

_SPANS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_SIZES: Final = ("KiB", "MiB", "GiB", "TiB")


def count(number: float) -> str:
    """A number of things, with thousands separated: 12,345; fractions below 10 are kept: 0.5."""
    return f"{number:.1f}" if 0 < number < 10 and number != int(number) else f"{round(number):,}"


def size(number: float) -> str:
    """A number of bytes: 512 B, 1.5 KiB, 64 KiB."""
    if number < 1024:
        return f"{round(number)} B"
    for unit in _SIZES:
        number /= 1024
        if number < 1024 or unit == _SIZES[-1]:
            break
    return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"


def span(seconds: float) -> str:
    """A length of time: 250 ms, 4.2 s, 7 min 4 s, 3 h 2 min, 2 d 5 h."""
    if seconds < 1:
        return milliseconds(seconds * 1e3)
    if seconds < 60:
        return f"{seconds:.1f} s"
    (unit, length), (lesser, part) = next(pair for pair in pairwise(_SPANS) if seconds >= pair[0][1])
    return f"{int(seconds // length)} {unit} {int(seconds % length // part)} {lesser}"


def milliseconds(number: float) -> str:
    """A time in ms with three significant digits, in seconds from 10,000 ms on: 0.44 ms, 12.3 ms, 12 s."""
    if number >= 10_000:
        return f"{number / 1e3:,.0f} s"
    digits = 2 if number < 1 else 1 if number < 100 else 0
    return f"{number:,.{digits}f} ms"


def plural(number: int, noun: str) -> str:
    """``number`` with ``noun`` in the right form: 1 event, 12 events."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
