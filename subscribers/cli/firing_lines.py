"""A firing as lines for people: every handler, whether the event is its business, and what came of it.

Decides words, order and colours; where lines break is :mod:`.explanation_lines`'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from broker.cli.decision_lines import STYLES, beginning, decision_lines
from broker.cli.quantities import milliseconds
from broker.cli.terminal import printable
from broker.protocol.decisions import NOTHING, Answer

from ..dialects.rolebox_rules import NAME as ROLEBOX
from ..hooks.firing import Fired, FiredFile, Firing
from ..hooks.outcome import Outcome
from .explanation_lines import LABEL, MARGIN, ExplanationLines, Part, title

OUTPUT_LINES: Final = 8
"""Last lines of an output stream that are shown; ``--json`` has more."""

OUTPUT_CHARACTERS: Final = 1_000
VALUE_CHARACTERS: Final = 200

GOOD: Final = ("green",)
BAD: Final = ("red", "bold")
DIM: Final = ("dim",)


class FiringLines:
    """Formats a firing with the widths and colours of ``lines``."""

    def __init__(self, lines: ExplanationLines) -> None:
        self._lines = lines
        self._indent = len(MARGIN) + LABEL

    def report(self, firing: Firing) -> Iterator[str]:
        """The event, the files with their handlers, and the decision."""
        lines = self._lines
        kind = "a sample" if firing.is_sample else "the payload"
        session = "" if firing.session_id is None else f", session {firing.session_id}"
        yield from lines.paragraph(printable(f"{firing.topic}{session}"), 0, "bold")
        yield from lines.paragraph(f"{kind}: {_shown(firing.payload)}", len(MARGIN), hanging=2)
        yield ""
        for file in firing.files:
            yield from self._file(file, firing)
        if firing.decision.heard:
            yield from decision_lines(firing.decision, lines.columns, colour=lines.colour)
            yield ""
        yield from self._summary(firing)

    def _file(self, file: FiredFile, firing: Firing) -> Iterator[str]:
        lines = self._lines
        yield from lines.heading(file.file)
        yield ""
        for fired in file.fired:
            yield from self.handler(fired, is_dry=firing.is_dry, is_role=file.file.dialect == ROLEBOX)
        for line in tail(file.printed):
            yield from lines.paragraph(f"log| {printable(line)}", len(MARGIN), *DIM, hanging=5)
        yield from lines.of_file(file.file)
        if not file.fired and not file.file.explained.diagnostics:
            yield f"{MARGIN}no handlers"
        yield ""

    def handler(self, fired: Fired, *, is_dry: bool, is_role: bool = False) -> Iterator[str]:
        """One handler: its label, and what came of it or why nothing did. ``is_role``: of a role."""
        lines, indent = self._lines, self._indent
        label, styles = _label(fired, is_dry=is_dry)
        yield from lines.title(label, styles, title(fired.handler))
        if fired.reason is not None:
            style = BAD[:1] if fired.is_broken else DIM
            yield from lines.paragraph(printable(fired.reason), indent, *style)
        elif is_dry and fired.handler.executable is not None:
            program = lines.shown_path(fired.handler.executable)
            yield from lines.paragraph(printable(f"would run {program}"), indent)
        if fired.outcome is not None and fired.reason is None:
            yield from self._outcome(fired.outcome, "injects" if is_role else "out")
        if fired.answer is not None:
            yield from self._answer(fired.answer)
        for published in fired.published:
            told = f"published {published.topic} {_shown(published.payload)}"
            yield from lines.paragraph(printable(told), indent, hanging=2)

    def _outcome(self, outcome: Outcome, of_output: str) -> Iterator[str]:
        lines, indent = self._lines, self._indent
        style = () if outcome.status == "ok" else BAD[:1]
        yield from lines.paragraph(ending(outcome), indent, *style)
        if outcome.reason is not None:
            yield from lines.paragraph(printable(outcome.reason), indent, *style)
        for name, stream in ((of_output, outcome.stdout), ("err", outcome.stderr)):
            for line in tail(stream.text()):
                yield from lines.paragraph(f"{name}| {printable(line)}", indent, *DIM, hanging=len(name) + 2)

    def _answer(self, answer: Answer) -> Iterator[str]:
        verdict = answer.verdict if answer.reason is None else f"{answer.verdict}: {answer.reason}"
        said = [] if answer.verdict == "none" else [verdict]
        said += [f"context: {text}" for text in answer.contexts]
        if answer.updated_input is not None:
            said.append(f"input becomes {_shown(answer.updated_input)}")
        if answer.output is not NOTHING:
            said.append(f"output becomes {_shown(answer.output)}")
        if answer.stop:
            said.append(f"stop: {answer.stop_reason}")
        if answer.system_message is not None:
            said.append(f"to the user: {answer.system_message}")
        for each in said:
            style = STYLES[answer.verdict] if each is verdict else ""
            styles = (style,) if style else ()
            told = printable(beginning(each, self._lines.columns))
            yield from self._lines.paragraph(told, self._indent, *styles, hanging=2)

    def _summary(self, firing: Firing) -> Iterator[str]:
        fired = [each for file in firing.files for each in file.fired]
        matched = [each for each in fired if each.matched]
        ran = [each for each in fired if each.outcome is not None and each.outcome.status != "not_started"]
        bad = [each for each in fired if each.has_failed or each.is_broken]
        came = "a dry run: nothing was started" if firing.is_dry else f"{len(ran)} ran"
        parts: list[Part] = [(f"handlers: {len(matched)} matched of {len(fired)}, {came}", ())]
        if bad:
            parts += [(", ", ()), (f"{len(bad)} {'cannot run' if firing.is_dry else 'failed'}", BAD)]
        yield from self._lines.sentence(parts)


def _label(fired: Fired, *, is_dry: bool) -> tuple[str, Sequence[str]]:
    """The word in front of a handler."""
    if fired.outcome is not None and fired.reason is None:
        return ("ok", GOOD) if fired.outcome.status == "ok" else ("failed", BAD)
    if fired.is_broken:
        return fired.handler.status, BAD
    if fired.matched and fired.reason is None:
        return ("would", GOOD) if is_dry else ("matched", GOOD)
    return ("skipped" if fired.matched else "-"), DIM


def ending(outcome: Outcome) -> str:
    """How a run ended, in a few words."""
    words = [outcome.status.replace("_", " ")]
    if outcome.exit_code:
        words.append(f"exit {outcome.exit_code}")
    if outcome.signal is not None:
        words.append(f"signal {outcome.signal}")
    if outcome.status != "not_started":
        words.append(milliseconds(outcome.duration_s * 1e3))
    return ", ".join(words)


def tail(output: str) -> list[str]:
    """The last lines of an output stream, with a word about what was left out."""
    lines = output[-OUTPUT_CHARACTERS:].splitlines()
    if len(output) <= OUTPUT_CHARACTERS and len(lines) <= OUTPUT_LINES:
        return lines
    return ["…", *lines[-OUTPUT_LINES:]]


def _shown(value: Any) -> str:
    """A value as JSON on one line, cut."""
    told = printable(json.dumps(value, ensure_ascii=False, default=str))
    return told if len(told) <= VALUE_CHARACTERS else f"{told[: VALUE_CHARACTERS - 1]}…"
