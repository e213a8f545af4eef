"""The report of a hook's run as one line for people.

    tool_call#0  failed, exit 3, 12.3 ms  hooks/audit.sh  …audit.jsonl: Permission denied

Decides which parts of a report are shown and which give way on a narrow terminal: first the command, then
the beginning of what the hook said on its standard error. Anyone may publish on the topics of runs, so each
part of a report may be missing or be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .quantities import milliseconds
from .terminal import cut, cut_front, printable, width

TOPICS: Final = frozenset({"prx.hooks.run", "prx.hooks.dead_letter"})
"""Topics whose events are reports of runs."""

RESULTS: Final = ("blocked", "stopped")
"""Results of a run that ended well which say more than that."""

GAP: Final = "  "

LEAST: Final = 8
"""Columns below which a command or an error is not worth showing."""


def run_text(report: Mapping[str, Any], columns: int | None) -> str | None:
    """``report`` in at most ``columns`` columns (None: in full); None for a payload that is no report."""
    hook, status = report.get("hook"), report.get("status")
    if not isinstance(hook, str) or not isinstance(status, str):
        return None
    ending = printable(", ".join((_ending(status, report.get("result")), *_numbers(report))))
    command = printable(_text(report, "command"))
    said = printable(_said(report))
    if columns is None:
        return GAP.join(part for part in (printable(hook), ending, command, said) if part)
    name = cut_front(printable(hook), max(LEAST, columns - width(ending) - len(GAP)))
    line = cut(GAP.join((name, ending)), columns)
    room = columns - width(line) - len(GAP)
    most = room if not said else max(room - width(said) - len(GAP), room // 2 - len(GAP))
    if command and most >= LEAST:
        line += GAP + _shortened(command, most)
        room = columns - width(line) - len(GAP)
    return line + GAP + cut_front(said, room) if said and room >= LEAST else line


def _shortened(command: str, columns: int) -> str:
    """``command`` without the directories of its program where it is too long, then cut at its end."""
    if width(command) > columns:
        program, space, arguments = command.partition(" ")
        command = program.rpartition("/")[2] + space + arguments
    return cut(command, columns)


def _ending(status: str, result: object) -> str:
    """How it ended. Of a run that did what it should, what it decided: its exit code may be a block."""
    return str(result) if status == "ok" and result in RESULTS else status.replace("_", " ")


def _numbers(report: Mapping[str, Any]) -> list[str]:
    """Exit code or signal, and duration, those that there are."""
    numbers = [
        f"{word} {report[name]}"
        for word, name in (("exit", "exit_code"), ("signal", "signal"))
        if isinstance(report.get(name), int)
    ]
    duration = report.get("duration_ms")
    if isinstance(duration, int | float) and report.get("status") != "not_started":
        numbers.append(milliseconds(duration))
    return numbers


def _said(report: Mapping[str, Any]) -> str:
    """Why it did not start, or its standard error with the lines behind one another."""
    said = _text(report, "reason") or _text(report, "stderr")
    return " / ".join(line.strip() for line in said.splitlines() if line.strip())


def _text(report: Mapping[str, Any], name: str) -> str:
    found = report.get(name)
    return found if isinstance(found, str) else ""
