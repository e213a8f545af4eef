"""A decision as lines for people.

    denied by guards.py:guard: not here
    context   lint.py:hints: use the Makefile
    input     command, changed by safe.py:dry

    ASKED             FAILS   TOOK     SAID
    python:guards.py  closed  0.44 ms  deny

Decides words, order and what is cut. It refuses to know how the decision came about, and how wide the
terminal is: that is an argument. All that deciders say is foreign text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..protocol.decision_document import value_text
from ..protocol.decisions import NOTHING, Answer, Decision, Heard
from .quantities import milliseconds, plural, size
from .tables import Cell, table
from .terminal import cut, paint, printable, width

LABEL: Final = 10
"""Columns of the labels."""

HEAD_CHARACTERS: Final = 4_000
"""Of a value that is shown, at most."""

SHOWN_CHARACTERS: Final = 2_000
"""First characters of a text of somebody's that a terminal gets."""

NAME_COLUMNS: Final = 32
SAID_COLUMNS: Final = 40
"""Columns of a decider's name, and of what it said where the terminal does not tell how much fits."""

STYLES: Final = {"deny": "red", "ask": "yellow", "allow": "green", "none": ""}

MISSING: Final = {
    "timeout": "no answer in time",
    "died": "its process ended",
    "left": "it has left",
    "unreachable": "it could not be reached",
    "failed": "it failed",
}
"""What the reasons for a decider's silence are called."""


def decision_lines(decision: Decision, columns: int | None, *, colour: bool = False) -> list[str]:
    """The decision; ``columns`` is the width of the terminal, None for lines that are not broken.

    A terminal gets the first :data:`SHOWN_CHARACTERS` of a text, and how much was left out; else it is whole.
    """
    lines = [_verdict(decision, columns, colour=colour)]
    for label, text in _parts(decision):
        lines += _labelled(label, text, columns)
    if decision.heard:
        lines += ["", *_asked(decision.heard, columns, colour=colour)]
    return lines


def beginning(text: str, columns: int | None) -> str:
    """Somebody's text as far as a terminal of ``columns`` gets it; None: it is no terminal, and gets all."""
    if columns is None or len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}… ({plural(len(text) - SHOWN_CHARACTERS, 'more character')})"


def _verdict(decision: Decision, columns: int | None, *, colour: bool) -> str:
    by = "" if decision.by is None else printable(decision.by)
    told = {
        "deny": f"denied by {by}",
        "ask": f"the user is to be asked, says {by}",
        "allow": f"allowed by {by}",
        "none": "no opinion",
    }[decision.verdict]
    if decision.reason:
        reason = beginning(decision.reason, columns)
        told += f": {' '.join(printable(line) for line in reason.splitlines())}"
    if decision.verdict == "none" and not decision.heard:
        told += ": nobody was asked"
    elif decision.missing:
        told += f" ({len(decision.missing):,} of {plural(len(decision.heard), 'decider')} without an answer)"
    lines = _wrapped(told, columns, "")
    style = "yellow" if decision.partial and not decision.denied else STYLES[decision.verdict]
    return "\n".join(paint(line, "bold", style) if colour and style else line for line in lines)


def _parts(decision: Decision) -> Iterator[tuple[str, str]]:
    """What the decision says beside its verdict, each with its label."""
    if decision.stop:
        reason = f": {decision.stop_reason}" if decision.stop_reason else ""
        yield "stop", f"{decision.stop_by} ends the turn{reason}"
    for said in decision.system_messages:
        yield "message", f"{said.by}: {said.text}"
    for said in decision.contexts:
        yield "context", f"{said.by}: {said.text}"
    yield from _rewrite(decision)
    if decision.replaced:
        text = _text(decision.output)
        yield "output", f"replaced by {decision.output_by}, {size(len(text.encode()))}: {_one_line(text)}"


def _rewrite(decision: Decision) -> Iterator[tuple[str, str]]:
    updated = decision.updated_input
    if updated is not None:
        conflicts = {conflict.key: conflict.by for conflict in decision.conflicts}
        for key, by in decision.changed_by.items():
            before = _value(decision.input, key)
            yield "input", f"{key}: {before} → {_value(updated, key)}, by {by}"
            if key in conflicts:
                yield "conflict", f"{key} was changed by {', '.join(conflicts[key])}; the last one holds"
    for refusal in decision.refused:
        yield "refused", f"the rewrite by {refusal.by}: {refusal.reason}"


def _asked(heard: tuple[Heard, ...], columns: int | None, *, colour: bool) -> list[str]:
    names = [cut(printable(each.decider), NAME_COLUMNS) for each in heard]
    times = [milliseconds(each.elapsed_s * 1e3) for each in heard]
    used = max(map(width, (*names, "ASKED"))) + max(map(width, (*times, "TOOK"))) + len("closed") + 3 * 2
    room = SAID_COLUMNS if columns is None else max(len("SAID"), columns - used)
    rows = [
        (name, each.failure, took, _said(each, room))
        for name, each, took in zip(names, heard, times, strict=True)
    ]
    return table(("ASKED", "FAILS", "TOOK", "SAID"), rows, right=(2,), colour=colour)


def _said(heard: Heard, room: int) -> Cell:
    if heard.silence is not None:
        meaning = ", which is a denial" if heard.failure == "closed" else ""
        style = "red" if heard.failure == "closed" else "yellow"
        return Cell(cut(f"{MISSING[heard.silence]}{meaning}", room), style)
    if not heard.answers:
        return Cell(cut("nothing", room), "dim")
    said = ", ".join(printable(_summary(answer, heard.decider)) for answer in heard.answers)
    return Cell(cut(said, room), "")


def _summary(answer: Answer, decider: str) -> str:
    """What one handler said, in a few words; its name only where the decider's does not tell it."""
    words = [] if answer.verdict == "none" else [str(answer.verdict)]
    words += ["context"] * bool(answer.contexts)
    words += ["new input"] * (answer.updated_input is not None)
    words += ["new output"] * (answer.output is not NOTHING)
    words += ["stop"] * answer.stop
    words += ["message"] * (answer.system_message is not None)
    named = "" if answer.handler == decider else f" ({answer.handler})"
    return f"{' + '.join(words) or 'nothing'}{named}"


def _labelled(label: str, text: str, columns: int | None) -> list[str]:
    """``text`` behind its label; its own lines, and those that the width makes, stand below one another."""
    found: list[str] = []
    for line in beginning(text, columns).splitlines() or [""]:
        found += _wrapped(printable(line), columns, " " * LABEL)
    found[0] = f"{label:<{LABEL}}{found[0][LABEL:]}"
    return found


def _wrapped(line: str, columns: int | None, indent: str) -> list[str]:
    if columns is None or len(indent) + len(line) <= columns:
        return [indent + line]
    from textwrap import wrap

    wide = max(columns, len(indent) + 20)
    return wrap(line, wide, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _value(values: Mapping[str, Any], key: str) -> str:
    return _one_line(value_text(values[key])) if key in values else "(missing)"


def _one_line(text: str) -> str:
    """The head of a value as it is shown among words."""
    head = text[:HEAD_CHARACTERS]
    return cut(printable(head), 60) if len(text) == len(head) else cut(printable(head) + "…", 60)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value_text(value)
