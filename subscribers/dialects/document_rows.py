"""Rows of tables in the documents that several dialects have: keys of a file, and differences of a program.

It decides their columns, and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """One key of a file: its name, what it may be, what it is where nobody writes it, and what it means."""

    name: str
    type: str
    default: str
    meaning: str


class Difference(NamedTuple):
    """One row: what it is about, what the page says, what the program does, and what prxbus does."""

    number: str
    topic: str
    page: str
    program: str
    here: str
