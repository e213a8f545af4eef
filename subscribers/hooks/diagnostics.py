"""What is said about a hook file: one diagnostic for everything that will not run as it was written.

This module decides the shape and the one-line form of a diagnostic. It refuses to know any file format:
codes and wording belong to the dialect or the source that found something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "info"]
"""``error``: something written in the file will not run. ``warning``: it runs, perhaps not as meant.
``info``: nothing is wrong."""

QUOTE_CHARACTERS: Final = 60
"""Characters of somebody's text that a message repeats."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One remark about a hook file: what, where, and what to write instead.

    ``code`` is stable snake_case. ``line`` and ``column`` count from 1, columns in characters; None where the
    remark is about the whole file. ``field`` is the place in the document, such as
    ``hooks.tool_call[0].timeout_ms``. ``hint`` says what to do.
    """

    severity: Severity
    code: str
    path: str
    line: int | None
    column: int | None
    field: str | None
    message: str
    hint: str | None

    def render(self) -> str:
        """One readable line: ``path:line:column: severity: field: message; hint [code]``.

        Characters that a terminal would act on are escaped, so the text of a file cannot move a cursor.
        """
        place = ":".join(
            [self.path, *(str(number) for number in (self.line, self.column) if number is not None)]
        )
        where = "" if self.field is None else f"{self.field}: "
        hint = "" if self.hint is None else f"; {self.hint}"
        return printable(f"{place}: {self.severity}: {where}{self.message}{hint} [{self.code}]")


def printable(text: str) -> str:
    """The text with every character that is not printable written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def quote(text: str) -> str:
    """Somebody's text inside a message: in double quotes, escaped, cut at :data:`QUOTE_CHARACTERS`."""
    cut = text if len(text) <= QUOTE_CHARACTERS else text[: QUOTE_CHARACTERS - 3] + "..."
    return '"' + printable(cut.replace("\\", "\\\\").replace('"', '\\"')) + '"'
