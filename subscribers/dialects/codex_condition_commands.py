"""The single commands of a command line of a tool call, as a permission rule is compared with them.

    if true; then FOO=1 git  push >log; fi   ->   if true | git push >log, git push | fi

Decides where a command begins and what stands before it: operators, groups, the words of ``if`` and of loops,
assignments, redirections, programs that run another. A line whose commands the text does not tell is none.
Where more than one reading is possible there are all of them, for the rule may be a guard's. It refuses to
know the rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from ..hooks.import_words import NotWords, Part, Word, split_words
from .codex_condition_patterns import matches, may_begin

LONGEST: Final = 16_384
"""Characters of a command line that are taken apart; a longer one is as good as one that cannot be."""
MOST: Final = 512
"""Commands that a line may have; more are as good as too many to tell apart."""

_BRACED: Final = re.compile(r"\$\{[^'\"\\{}()]*\}")
"""A variable in braces in which every shell finds the same end."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=", re.ASCII)
_LEADING: Final = frozenset({"if", "then", "elif", "else", "do", "while", "until", "!", "{"})
_WRAPPERS: Final = frozenset(
    {
        *("timeout", "time", "nice", "nohup", "stdbuf"),  # Claude Code's own
        *("command", "builtin", "exec", "env", "sudo", "doas", "coproc", "busybox", "find", "chroot"),
        *("setsid", "ionice", "chrt", "taskset", "prlimit", "setarch", "unshare", "nsenter"),
        *("caffeinate", "unbuffer", "strace", "ltrace", "systemd-run", "noglob", "nocorrect"),
    }
)
"""Programs that run what stands somewhere after them."""
_READERS: Final = frozenset(
    {"eval", "xargs", "parallel", "trap", "alias", "function", "su", "runuser", "flock", "watch", "script"}
)
"""Programs that run something which their words alone do not tell."""
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
_HARMLESS: Final = "-+euxlvn"
"""What a shell's options are made of where it reads a file: no ``-c``, no ``-s``, none with an argument."""


class Command(NamedTuple):
    """One command: the texts that it may be read as, its words one blank apart.

    ``known`` is how it begins where a shell puts something in after that, None where it does not. ``runs``:
    what it runs may begin at any of its words.
    """

    texts: tuple[str, ...]
    known: str | None = None
    runs: bool = False

    def meets(self, pattern: str) -> bool:
        """Whether a pattern is about this command, or may be."""
        if self.runs:
            return any(matches(f"* {pattern}", f" {text}") for text in self.texts)
        if self.known is not None and may_begin(pattern, self.known):
            return True
        return any(matches(pattern, text) for text in self.texts)


def commands(line: str) -> tuple[Command, ...] | None:
    """The commands of a line, in order. None: it is too long, or what it runs is not in its text."""
    if len(line) > LONGEST or "`" in line or "$(" in line.replace("\\\n", ""):
        return None
    return _commands(line)


@lru_cache(maxsize=8)  # every handler of an event is asked about the same line
def _commands(line: str) -> tuple[Command, ...] | None:
    try:
        words, opaque = split_words(line)
    except NotWords:
        return None
    if opaque or "${" in _BRACED.sub("", line) or (words and words[-1].command >= MOST):
        return None
    found: list[Command] = []
    for _, each in groupby(words, key=lambda word: word.command):
        command = _command(line, list(each))
        if command is None:
            return None
        found.append(command)
    return tuple(found)


def collapsed(text: str) -> str:
    """A text with one blank wherever there is white space, and none around it."""
    return " ".join(text.split())


def _command(line: str, words: list[Word]) -> Command | None:
    own = [word for word in words if word.role in ("program", "argument") and not _is_descriptor(line, word)]
    count = sum(1 for _ in _before(line, own))
    whole = _text(line, words[0].start, words[-1].end)
    program, own = own[count : count + 1], own[count:]
    if not program:
        return Command((whole,))
    if _expands(program[0]) or _is_reader(own):
        return None
    plain = collapsed(" ".join(_plain(word.parts) for word in own))
    texts = dict.fromkeys((whole, _text(line, own[0].start, words[-1].end), plain))
    runs = _name(program[0]) in _WRAPPERS
    known = _known(own)
    if runs and known is not None:
        return None
    return Command(tuple(texts), known, runs)


def _before(line: str, words: list[Word]) -> Iterator[Word]:
    """The words of a command before its program."""
    for word in words:
        text = _text(line, word.start, word.end)
        if text not in _LEADING and _ASSIGNMENT.match(text) is None:
            return
        yield word


def _is_descriptor(line: str, word: Word) -> bool:
    """Whether a word is the number of a redirection, such as the 2 of ``2>&1``."""
    return line[word.end : word.end + 1] in ("<", ">") and line[word.start : word.end].isdigit()


def _is_reader(words: list[Word]) -> bool:
    """Whether a command runs text that is no word of it: what it reads, or what a word of it holds."""
    names = [_name(word) for word in (words if _name(words[0]) in _WRAPPERS else words[:1])]
    if not _READERS.isdisjoint(names):
        return True
    shell = next((place for place, name in enumerate(names) if name in _SHELLS), None)
    if shell is None:
        return False
    for word in words[shell + 1 :]:
        said = _plain(word.parts)
        if not said.startswith(("-", "+")):
            return False  # a file
        if said.strip(_HARMLESS):
            return True
    return True


def _known(words: list[Word]) -> str | None:
    """How a command begins, up to where a shell puts something in."""
    for place, word in enumerate(words):
        if _expands(word):
            said = [_plain(each.parts) for each in words[:place]]
            said.append(_plain(word.parts[: _first(word)]))
            text = " ".join(said)
            return collapsed(text) + " " * text[-1:].isspace()
    return None


def _expands(word: Word) -> bool:
    """Whether a shell makes something else of a word; ``[``, ``{}`` and the like are themselves."""
    return _first(word) < len(word.parts) and _plain(word.parts).strip("[]{}") != ""


def _first(word: Word) -> int:
    """Which part of a word is the first that does not stand for itself."""
    places = (place for place, part in enumerate(word.parts) if not _is_plain(part))
    return next(places, len(word.parts))


def _is_plain(part: Part) -> bool:
    return part.kind in ("text", "tilde") or (part.kind == "pattern" and part.text in ("]", "}"))


def _name(word: Word) -> str:
    """A program's name without its folder."""
    return _plain(word.parts).rpartition("/")[2]


def _plain(parts: tuple[Part, ...]) -> str:
    return "".join(part.text for part in parts)


def _text(line: str, start: int, end: int) -> str:
    return collapsed(line[start:end].replace("\\\n", ""))
