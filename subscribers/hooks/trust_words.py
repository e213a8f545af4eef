"""Which words of a command may name files: what trusting a workspace has to look at.

Decides what is tried as a path. It errs on the side of too many: a word that names no file costs nothing.
Refuses to know which files there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .import_words import NotWords, Part, split_words

DEPTH: Final = 3
"""How often a word is read as a command of its own, as for ``sh -c '...'``."""

WORDS: Final = 1_000
"""Words of one command that are tried."""


def file_words(command: str | None, args: Sequence[str]) -> tuple[str, ...]:
    """What ``command``, a program or a shell's command line, and its arguments may name, each once.

    A variable that a word begins with stands for the folder that it is relative to.
    """
    found: dict[str, None] = {}
    for text in (*(() if command is None else (command,)), *args):
        for word in _of(text, 0):
            if len(found) == WORDS:
                return tuple(found)
            found.setdefault(word)
    return tuple(found)


def _of(text: str, depth: int) -> Iterator[str]:
    yield from _spellings(text)
    if depth == DEPTH or not any(character in text for character in " \t\n;&|$\"'=<>`("):
        return
    try:
        words = split_words(text)
    except NotWords:
        return
    for word in words.words:
        for part in word.parts:
            if part.kind == "substitution":
                yield from _of(part.text, depth + 1)
        said = _known(word.parts)
        if said and said != text:
            yield from _of(said, depth + 1)


def _known(parts: Sequence[Part]) -> str:
    """A word's text, from behind a variable that it begins with; up to what only a shell knows."""
    leading = bool(parts) and parts[0].kind in ("variable", "expansion")
    text = ""
    for part in parts[1:] if leading else parts:
        if part.kind not in ("text", "pattern"):
            break
        text += part.text
    return text.lstrip("/") if leading else text


def _spellings(word: str) -> Iterator[str]:
    """The word, and what stands behind an equals sign: ``--config=FILE``, ``FILE=...``."""
    if word and "\0" not in word:
        yield word
        _, equals, value = word.partition("=")
        if equals and value:
            yield value
