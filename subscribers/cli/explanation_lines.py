"""An explanation as lines for people: one paragraph for each handler, with what keeps it from running.

    hooks.json  (prx: its name is hooks.json)

      ok       tool_call#0  ./audit.sh --all
               line 4; on tool_call; timeout 5 s, its own
               runs audit.sh
      dead     agent_strat#0  ./start.sh
               line 9; timeout 30 s, default
               error: line 9:3: there is no event "agent_strat": its actions never run
                      [unknown_event]
                      → did you mean agent_start?

Decides words, order and colours. Knows no terminal: width and colours are arguments. Text of a file is shown
with its control characters escaped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from broker.cli.terminal import paint, printable, width
from broker.protocol.topics import LIFECYCLE

from ..dialects.rolebox_explanation import OTHER_TOPICS
from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import ExplainedFile, Handler, Status, counts, position

STYLES: Final[dict[Status, tuple[str, ...]]] = {
    "ok": ("green",),
    "dead": ("red", "bold"),
    "skipped": ("dim",),
    "refused": ("red", "bold"),
}
SEVERITY_STYLES: Final = {"error": "red", "warning": "yellow", "info": "dim"}

MARGIN: Final = "  "
LABEL: Final = max(map(len, STYLES)) + len(MARGIN)
"""Columns of a status with the space behind it."""

ORIGINS: Final = {
    "default": "default",
    "file": "the file's",
    "own": "its own",
    "settings": "as configured",
    None: "?",
}

Part: TypeAlias = tuple[str, Sequence[str]]
"""Printable text and its styles."""

NARROWEST: Final = 40
"""A terminal narrower than this is written to as if it had so many columns."""


class ExplanationLines:
    """Formats explanations. ``columns`` None: lines are not wrapped. Paths are shown relative to ``cwd``."""

    def __init__(self, columns: int | None, cwd: str, *, colour: bool) -> None:
        self.columns = None if columns is None else max(columns, NARROWEST)
        self.colour = colour
        self._cwd = cwd
        self._said: set[Diagnostic] = set()

    def report(self, files: Sequence[ExplainedFile]) -> Iterator[str]:
        """All files, and the sum of it."""
        for file in files:
            yield from self.heading(file)
            yield ""
            for handler in file.explained.handlers:
                yield from self.handler(handler, file)
            yield from self.of_file(file)
            if not file.explained.handlers and not file.explained.diagnostics:
                yield f"{MARGIN}no handlers"
            yield ""
        yield from self.summary(files)

    def heading(self, file: ExplainedFile) -> Iterator[str]:
        """The file and what it is taken for: on one line, or on more where there is no room."""
        name = printable(self.shown_path(file.path))
        taken = "" if file.dialect is None else f"({file.dialect}: {printable(file.because)})"
        is_short = self.columns is None or width(name) + len(MARGIN) + width(taken) <= self.columns
        if is_short:
            yield self.painted(name, "bold") + (f"{MARGIN}{taken}" if taken else "")
        else:
            yield from self.paragraph(name, 0, "bold")
            yield from self.paragraph(taken, len(MARGIN))
        if not file.trusted:
            named = f"--workspace {self.shown_path(file.workspace)}, or after prxbus trust"
            if file.dialect == "librefang":
                named = f"--librefang-home {self.shown_path(os.path.dirname(file.workspace))}"
            elif file.dialect == "rolebox":
                named = f"--role {self.shown_path(file.workspace)}"
            told = printable(f"not trusted: it runs only under prxbus up {named}")
            yield from self.paragraph(told, len(MARGIN), "yellow")

    def handler(self, handler: Handler, file: ExplainedFile) -> Iterator[str]:
        """One handler: what it is, when it fires, what is wrong."""
        yield from self.title(handler.status, STYLES[handler.status], title(handler))
        indent = len(MARGIN) + LABEL
        if told := "; ".join(facts(handler)):
            yield from self.paragraph(told, indent)
        if handler.status == "ok" and handler.executable not in (None, file.path):
            yield from self.paragraph(f"runs {printable(self.shown_path(handler.executable))}", indent)
        for diagnostic in handler.diagnostics:
            yield from self.diagnostic(diagnostic, file, indent)

    def of_file(self, file: ExplainedFile) -> Iterator[str]:
        """What is said of the file as a whole."""
        for diagnostic in file.explained.diagnostics:
            yield from self.diagnostic(diagnostic, file, len(MARGIN), with_place=True)

    def diagnostic(
        self, diagnostic: Diagnostic, file: ExplainedFile, indent: int, *, with_place: bool = False
    ) -> Iterator[str]:
        """A remark, and below it what to do; a remark on several handlers is written out once."""
        label = f"{diagnostic.severity}: "
        if diagnostic in self._said:
            style = SEVERITY_STYLES[diagnostic.severity]
            yield from self.paragraph(f"{label}as above [{diagnostic.code}]", indent, style)
            return
        self._said.add(diagnostic)
        place = ""
        if with_place or (diagnostic.column is not None and diagnostic.severity != "info"):
            place = f"{position(diagnostic).removeprefix(file.path).removeprefix(':')}: "
            place = "" if place == ": " else f"line {place}" if place[:1].isdigit() else place
        field = "" if diagnostic.field is None or not with_place else f"{diagnostic.field}: "
        told = printable(f"{label}{place}{field}{diagnostic.message} [{diagnostic.code}]")
        style = SEVERITY_STYLES[diagnostic.severity]
        yield from self.paragraph(told, indent, style, hanging=len(label))
        if diagnostic.hint is not None:
            yield from self.paragraph(printable(f"→ {diagnostic.hint}"), indent + len(label), hanging=2)

    def summary(self, files: Sequence[ExplainedFile]) -> Iterator[str]:
        """How much there is of everything."""
        refused = sum(file.explained.refused for file in files)
        parts: list[Part] = [(f"{len(files)} {'file' if len(files) == 1 else 'files'}", ())]
        parts += [(" (", ()), (f"{refused} refused", STYLES["refused"]), (")", ())] if refused else []
        parts.append(("; handlers: ", ()))
        found = [(status, number) for status, number in counts(files).items() if number or status == "ok"]
        for status, number in found:
            parts += [] if status == found[0][0] else [(", ", ())]
            parts.append((f"{number} {status}", STYLES[status] if number else ()))
        yield from self.sentence(parts)

    # -- pieces -------------------------------------------------------------------------------

    def title(self, label: str, styles: Sequence[str], text: str) -> Iterator[str]:
        """A label in its column, and a text beside it."""
        first, *rest = self._filled(text, len(MARGIN) + LABEL, 2)
        yield f"{MARGIN}{self.painted(label, *styles)}{' ' * (LABEL - len(label))}{first}"
        for line in rest:
            yield f"{' ' * (len(MARGIN) + LABEL)}{line}"

    def paragraph(self, text: str, indent: int, *styles: str, hanging: int = 0) -> Iterator[str]:
        """A text with a margin, wrapped; further lines stand ``hanging`` columns deeper."""
        for line in self._filled(text, indent, hanging):
            yield " " * indent + self.painted(line, *styles)

    def sentence(self, parts: Sequence[Part]) -> Iterator[str]:
        """Parts in their own styles, on one line; on several there are no styles."""
        plain = "".join(text for text, _ in parts)
        if self.columns is None or width(plain) <= self.columns:
            yield "".join(self.painted(text, *styles) for text, styles in parts)
        else:
            yield from self.paragraph(plain, 0, hanging=len(MARGIN))

    def painted(self, text: str, *styles: str) -> str:
        """The text in a style, where there are colours."""
        return paint(text, *styles) if self.colour and styles and text else text

    def shown_path(self, path: str) -> str:
        """A path relative to the current directory where it lies below it."""
        if path == self._cwd:
            return "."
        below = os.path.join(self._cwd, "")
        return path.removeprefix(below) if path.startswith(below) else path

    def _filled(self, text: str, indent: int, hanging: int) -> list[str]:
        if self.columns is None:
            return [text]
        return list(wrap(text, self.columns - indent, hanging))


def title(handler: Handler) -> str:
    """What a handler is called and what it runs."""
    command = " ".join([handler.command or "", *handler.args]).strip()
    event = handler.event or "(no event)"
    says_event = handler.name.startswith(f"{event}#")
    matcher = None if handler.matcher == event else handler.matcher
    parts = (handler.name, None if says_event else event, matcher, command)
    return printable("  ".join(part for part in parts if part))


def when(topics: Sequence[str]) -> str:
    """Which events start a handler, by their bare names where they are lifecycle events."""
    if tuple(topics) == OTHER_TOPICS:
        return "every lifecycle event without a handler of its own"
    every = f"{LIFECYCLE}*"
    return ", ".join("every lifecycle event" if t == every else t.removeprefix(LIFECYCLE) for t in topics)


def facts(handler: Handler) -> Iterator[str]:
    """Where a handler stands, when it fires and how long it may run."""
    if handler.line is not None:
        yield f"line {handler.line}"
    if handler.topics:
        yield f"{'on' if handler.status == 'ok' else 'would fire on'} {when(handler.topics)}"
    if handler.timeout_s is not None:
        yield f"timeout {handler.timeout_s:g} s, {ORIGINS[handler.timeout_from]}"


def wrap(text: str, columns: int, hanging: int) -> Iterator[str]:
    """Printable text in lines of at most ``columns``, all but the first ``hanging`` deeper.

    Broken between words; a word that fits on no line is broken where it has to be.
    """
    line, used, margin = "", 0, 0
    for word in _words(text, columns - hanging):
        gap = 1 if used > margin else 0
        if used + gap + width(word) > columns and used > margin:
            yield line
            line, used, gap, margin = " " * hanging, hanging, 0, hanging
        line += " " * gap + word
        used += gap + width(word)
    yield line


def _words(text: str, columns: int) -> Iterable[str]:
    for word in text.split(" "):
        while width(word) > columns:
            fits = _fitting(word, columns)
            yield word[:fits]
            word = word[fits:]
        yield word


def _fitting(word: str, columns: int) -> int:
    """How many characters of a word go into so many columns; at least one."""
    used = 0
    for index, character in enumerate(word):
        used += width(character)
        if used > columns:
            return max(1, index)
    return len(word)
