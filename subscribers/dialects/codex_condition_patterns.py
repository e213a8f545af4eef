"""What the wildcards of a permission rule match: ``*`` in a text, those of ``.gitignore`` in a path.

Decides a match in time linear in the text (a path: its steps times the rule's), because the text is a model's
and may have been written to keep a matcher busy. It refuses to know what the text is.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

ANY_FOLDERS: Final = "**"
"""A step of a rule that stands for any number of folders, at its end for anything in the folder."""


def matches(pattern: str, text: str) -> bool:
    """Whether a text is what a pattern says: ``*`` is any text, all else itself.

    The first place of each piece between two ``*`` is as good as any, so nothing is tried twice.
    """
    first, *pieces = pattern.split("*")
    if not pieces:
        return text == pattern
    last = pieces.pop()
    at, end = len(first), len(text) - len(last)
    if end < at or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in pieces:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def may_begin(pattern: str, known: str) -> bool:
    """Whether a text that begins with ``known`` may match, whatever follows; what follows may be nothing."""
    head, star, _ = pattern.partition("*")
    if not star:
        return pattern.startswith(known) or pattern == known.rstrip(" ")
    return head.startswith(known) or known.startswith(head)


def path_matches(pattern: str, path: str) -> bool:
    """Whether a path, relative and without ``.`` and ``..``, is what a pattern means, or lies below it.

    The pattern is relative to the same folder. In a step ``*`` is any text and ``?`` one character.
    """
    steps = [step for step in pattern.split("/") if step]
    if steps and steps[-1] == ANY_FOLDERS:
        steps[-1] = "*"
    names = path.split("/")
    at = place = again = 0
    folders = -1
    while place < len(steps):
        if steps[place] == ANY_FOLDERS:
            folders, again, place = place, at, place + 1
        elif at == len(names):
            return False
        elif _is_step(steps[place], names[at]):
            at, place = at + 1, place + 1
        elif folders < 0:
            return False
        else:  # the steps since the last ** begin one folder later
            again += 1
            at, place = again, folders + 1
    return True


def _is_step(pattern: str, name: str) -> bool:
    if "?" in pattern:
        return fnmatchcase(name, pattern.replace("[", "[[]"))
    return matches(pattern, name)
