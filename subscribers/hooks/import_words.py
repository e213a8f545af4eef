"""The words of a shell command, with their places in its text: what each says, and what only a shell knows.

Follows the quoting and expansion rules of POSIX sh (XCU 2.2, 2.3, 2.6), as far as the text alone tells. A
word is a row of parts; a part that cannot be known without a shell keeps its text and says so. Nothing is
ever expanded here. It refuses to know which words are files.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final, Literal, NamedTuple, TypeAlias

PartKind: TypeAlias = Literal["text", "pattern", "tilde", "variable", "substitution", "expansion"]
"""``text`` stands for itself. ``pattern``: an unquoted ``* ? [ ] { }``. ``tilde``: ``~`` where it means a
home. ``variable``: a plain ``$NAME``, ``${NAME}`` or ``${NAME:-default}``. ``substitution``: a command whose
output it is. ``expansion``: anything else that begins with ``$``."""

Role: TypeAlias = Literal["program", "argument", "input", "target"]
"""``program``: the word that a command begins with. ``input``: what it reads by ``<``. ``target``: what any
other redirection names."""


class Part(NamedTuple):
    """A piece of a word: the characters that it stands for, a variable's name, a substitution's command."""

    kind: PartKind
    text: str


class Word(NamedTuple):
    """One word: where it begins and ends in the command, its parts, and what it is there for.

    ``command`` counts the simple commands before it.
    """

    start: int
    end: int
    parts: tuple[Part, ...]
    role: Role
    command: int


class Words(NamedTuple):
    """A command's words; ``opaque`` is text of it that was not read as words: here-documents."""

    words: tuple[Word, ...]
    opaque: str = ""


class NotWords(ValueError):
    """The text is no shell command: a quote or a bracket that it opens is not closed."""


_BLANK: Final = " \t"
_OPERATORS: Final = "\n;&|()<>"
_PATTERN: Final = "*?[]{}"
_KEEP_LEADING: Final = frozenset(
    {
        *("if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"),
        *("exec", "command", "builtin", "nohup", "env", "sudo"),
    }
)
"""After these the next word is the program, as after an assignment."""

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TELLING: Final = re.compile(r"[ \t\n;&|()<>*?\[\]{}'\"\\$`]")
"""What ends a run of characters that stand for themselves, within a word."""
_TELLING_QUOTED: Final = re.compile(r"[\"\\$`]")
"""The same within double quotes."""
_BRACED: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?::?[-=?].*)?\}", re.DOTALL)
_SPECIAL: Final = re.compile(r"[0-9@*#?$!-]")


def split_words(command: str) -> Words:
    """The words of a command. Raises :class:`NotWords`."""
    return _Reader(command).words()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.command = 0
        self.role: Role = "program"
        self.after_redirection: Role | None = None

    def words(self) -> Words:
        found: list[Word] = []
        text = self.text
        while self.at < len(text):
            character = text[self.at]
            if character in _BLANK:
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif text.startswith("<<", self.at) and not text.startswith("<<<", self.at):
                return Words(tuple(found), text[self.at :])
            elif character in _OPERATORS:
                self._operator(character)
            elif character == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                found.append(self._word())
        return Words(tuple(found))

    def _operator(self, character: str) -> None:
        """A separator begins a command anew; a redirection takes one word and changes nothing else."""
        if character in "<>":
            start = self.at
            while self.at < len(self.text) and self.text[self.at] in "<>&|":
                self.at += 1
            if self.after_redirection is None:
                self.after_redirection = self.role
            self.role = "input" if self.text[start : self.at] == "<" else "target"
            return
        self.at += 1
        if character == "&" and self.text.startswith(">", self.at):  # bash: both outputs
            return
        self.command += 1
        self.role, self.after_redirection = "program", None

    def _word(self) -> Word:
        start, role = self.at, self.role
        parts: list[Part] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in _BLANK or character in _OPERATORS:
                break
            self._part(character, parts, is_first=self.at == start)
        self._move_on(role, parts)
        return Word(start, self.at, _joined(parts), role, self.command)

    def _move_on(self, role: Role, parts: list[Part]) -> None:
        """What the next word is there for."""
        if role in ("input", "target"):
            self.role, self.after_redirection = self.after_redirection or "argument", None
            return
        said = "".join(part.text for part in parts if part.kind in ("text", "pattern"))
        leads = role == "program" and (said in _KEEP_LEADING or _ASSIGNMENT.match(said) is not None)
        self.role = "program" if leads else "argument"

    def _part(self, character: str, parts: list[Part], *, is_first: bool) -> None:
        text = self.text
        if character == "'":
            end = text.find("'", self.at + 1)
            if end < 0:
                raise NotWords("a single quote is not closed")
            parts.append(Part("text", text[self.at + 1 : end]))
            self.at = end + 1
        elif character == '"':
            self._double(parts)
        elif character == "\\":
            escaped = text[self.at + 1 : self.at + 2]
            if escaped != "\n":
                parts.append(Part("text", escaped or "\\"))
            self.at += 1 + len(escaped)
        elif character in "$`":
            parts.append(self._dollar(in_quotes=False))
        elif character in _PATTERN:
            parts.append(Part("pattern", character))
            self.at += 1
        elif (
            character == "~"
            and is_first
            and text[self.at + 1 : self.at + 2] in ("", "/", " ", "\t", "\n", ";")
        ):
            parts.append(Part("tilde", "~"))
            self.at += 1
        else:
            parts.append(self._run(_TELLING))

    def _run(self, telling: re.Pattern[str]) -> Part:
        """The characters up to one that tells something, at least one."""
        found, start = telling.search(self.text, self.at + 1), self.at
        self.at = len(self.text) if found is None else found.start()
        return Part("text", self.text[start : self.at])

    def _double(self, parts: list[Part]) -> None:
        text = self.text
        self.at += 1
        parts.append(Part("text", ""))
        while True:
            if self.at >= len(text):
                raise NotWords("a double quote is not closed")
            character = text[self.at]
            if character == '"':
                self.at += 1
                return
            if character == "\\":
                escaped = text[self.at + 1 : self.at + 2]
                if escaped != "\n":
                    parts.append(Part("text", escaped if escaped in '$`"\\' else f"\\{escaped}"))
                self.at += 2
            elif character in "$`":
                parts.append(self._dollar(in_quotes=True))
            else:
                parts.append(self._run(_TELLING_QUOTED))

    def _dollar(self, *, in_quotes: bool) -> Part:
        """What stands at a ``$`` or a backtick."""
        text, start = self.text, self.at
        if text[start] == "`":
            self.at = _after_backtick(text, start + 1)
            return Part("substitution", text[start + 1 : self.at - 1])
        following = text[start + 1 : start + 2]
        if following == "(":
            self.at = _after_bracket(text, start + 1, "(", ")")
            return Part("substitution", text[start + 2 : self.at - 1])
        if following == "{":
            self.at = _after_bracket(text, start + 1, "{", "}")
            found = _BRACED.fullmatch(text, start + 1, self.at)
            return Part("expansion", text[start : self.at]) if found is None else Part("variable", found[1])
        name = _NAME.match(text, start + 1)
        if name is not None:
            self.at = name.end()
            return Part("variable", name[0])
        if following == "'" and not in_quotes:  # bash: escapes that sh has not
            self.at = _after_quoted(text, start + 2)
            return Part("expansion", text[start : self.at])
        if _SPECIAL.match(text, start + 1):
            self.at = start + 2
            return Part("expansion", text[start : self.at])
        self.at += 1
        return Part("text", "" if following == '"' and not in_quotes else "$")  # bash: a text to translate


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    """Neighbouring texts as one; empty ones go, unless nothing else is there."""
    found: list[Part] = []
    for kind, run in groupby(parts, key=lambda part: part.kind):
        row = list(run)
        found += [Part("text", "".join(part.text for part in row))] if kind == "text" else row
    return tuple(part for part in found if part.text) or tuple(found[:1])


def _after_backtick(text: str, at: int) -> int:
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == "`":
            return at + 1
        else:
            at += 1
    raise NotWords("a backtick is not closed")


def _after_quoted(text: str, at: int) -> int:
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == "'":
            return at + 1
        else:
            at += 1
    raise NotWords("a single quote is not closed")


def _after_bracket(text: str, at: int, opening: str, closing: str) -> int:
    """The place after the bracket that closes the one at ``at``; quotes hide brackets."""
    depth = 0
    quote = ""
    while at < len(text):
        character = text[at]
        if character == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == opening:
            depth += 1
        elif character == closing:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise NotWords(f"{opening!r} is not closed")
