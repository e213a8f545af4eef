"""Patterns that RE2 would read otherwise than the agent's own engine: they are refused, never misread.

Codex and BitFun compile patterns with Rust's ``regex``, Claude Code with JavaScript's. Most patterns mean the
same to RE2. Of the others some are unknown to RE2, some mean something else to it, some the agent itself
would refuse; it decides which of that is so, from the text alone. What remains stands in
:mod:`.codex_differences`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from .codex_profiles import MatcherRule


class Misread(NamedTuple):
    """Why a pattern may not be handed to RE2. ``is_upstreams``: the agent's engine takes it."""

    reason: str
    is_upstreams: bool


_PLAIN: Final = re.compile(
    r"(?:[A-Za-z0-9_|^$.,:;/ =<>@%'\"!#~`&)-]|\((?!\?)|[*+?](?![*+])|\\[dDwWsSbB.\-/|()\[\]{}*+?^$\\]"
    r"|\[\^?(?:[A-Za-z0-9_ .](?:-[A-Za-z0-9_ .])?)+\])*+"
)
"""What nearly every pattern is made of, and every engine reads alike."""

_TOKEN: Final = re.compile(
    r"\\[pPuUxbB]\{[^}]*\}|\\.|\[:\^?[a-z]+:\]|\[\^?\]?|\]|&&|--|~~"
    r"|\(\?<?[=!]|\(\?P?<|\(\?:|\(\?[^:)]*|\{\d+(?:,\d*)?\}|\{|[*+?][*+]",
    re.DOTALL,
)
"""Pieces of a pattern, as far as they are looked at."""

_LARGEST_REPETITION: Final = 1_000
"""What RE2 repeats a piece at most."""

_RUST: Final[Mapping[str, Misread]] = {
    **dict.fromkeys(("\\Q", "\\C"), Misread("Rust has no such escape", False)),
    **{f"\\{digit}": Misread("Rust has no back-references and octal codes", False) for digit in range(10)},
    **dict.fromkeys(("\\<", "\\>", "\\b{"), Misread("RE2 knows only \\b of words' ends", True)),
    **dict.fromkeys(("\\u", "\\U"), Misread("RE2 writes a code point as \\x{41}", True)),
    **dict.fromkeys(("&&", "--", "~~", "[["), Misread("RE2 has no sets of classes", True)),
    "{": Misread("Rust takes { for a repetition: write \\{", False),
    "repeated": Misread("RE2 repeats no repetition", True),
    "many": Misread(f"RE2 repeats at most {_LARGEST_REPETITION:,} times", True),
    "flags": Misread("RE2 has only the flags i, m, s and U", True),
    "(?": Misread("there is no such flag", False),
    "\\p=": Misread("RE2 has only general categories and scripts", True),
}
_ORDINARY: Final = "aACeEgGhHiIjJKlLmMNoOpPqQRTUVXyYzZ"
"""Letters that are no escape in JavaScript, where a backslash before them means nothing."""

_JAVASCRIPT: Final[Mapping[str, Misread]] = {
    **{f"\\{letter}": Misread("to JavaScript it is an ordinary letter", True) for letter in _ORDINARY},
    **dict.fromkeys(("[:", "[]"), Misread("JavaScript reads brackets in its own way", True)),
    **{f"\\{digit}": Misread("RE2 has no back-references", True) for digit in range(10)},
    "\\k": Misread("RE2 has no back-references", True),
    **dict.fromkeys(("\\u", "\\c"), Misread("RE2 writes a code point as \\x{41}", True)),
    **dict.fromkeys(("(?=", "(?!", "(?<=", "(?<!"), Misread("RE2 has no look-around", True)),
    "(?P<": Misread("JavaScript writes (?<name>", False),
    "repeated": Misread("JavaScript repeats no repetition", False),
    "many": Misread(f"RE2 repeats at most {_LARGEST_REPETITION:,} times", True),
    **dict.fromkeys(("own flags", "flags", "(?"), Misread("JavaScript has no flags within a pattern", False)),
}
_TABLES: Final[Mapping[MatcherRule, Mapping[str, Misread]]] = {
    "search": _RUST,
    "anchored": _RUST,
    "list": _JAVASCRIPT,
}


def misread(text: str, rule: MatcherRule) -> Misread | None:
    """The first thing in a pattern that RE2 may not be handed; None where it may. Linear in the text."""
    if _PLAIN.fullmatch(text) is not None:
        return None
    table = _TABLES[rule]
    for token in _telling(text):
        found = table.get(token)
        if found is not None:
            return found
    return None


def _telling(text: str) -> Iterator[str]:
    """The pieces of a pattern by the names that the tables have for them."""
    in_class = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token[0] == "\\":
            yield _escape(token)
        elif in_class:
            in_class = token != "]"
            yield "[:" if token.startswith("[:") else "[[" if token[0] == "[" else token
        elif token[0] == "[":
            in_class = not token.startswith("[:")
            yield "[:" if token.startswith("[:") else "[]" if token[-1] == "]" else "["
        else:
            yield _outside(token)


def _escape(token: str) -> str:
    """The name of an escape, of one with braces by what stands in them."""
    if token[1:3] == "b{":
        return token[:3]
    return "\\p=" if token[1:2] in ("p", "P") and ("=" in token or ":" in token) else token[:2]


def _outside(token: str) -> str:
    """The name of a piece that stands in no class; empty where it is nothing but characters."""
    if token in ("&&", "--", "~~"):
        return ""
    if token[0] == "(" and len(token) > 1:
        if token[2:3] in ("=", "!", "<", "P", ":"):
            return token
        flags = token[2:]
        if flags.strip("imsU-") == "" and flags:
            return "own flags"
        return "flags" if flags and flags.strip("imsUuxR-") == "" else "(?"
    if token[0] == "{" and len(token) > 1:
        largest = max(int(number[:9]) for number in re.findall(r"\d+", token))
        return "many" if largest > _LARGEST_REPETITION else token
    return "repeated" if len(token) > 1 and token[0] in "*+?" else token
