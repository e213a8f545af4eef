"""What a dialect has to say about a JSON file while it reads it, and the diagnostics that come of it.

Reading collects findings by place in the document; afterwards one pass over the text gives them lines and
columns. The number kept is bounded and what is left out is counted. It refuses to know what is right or
wrong: that is the dialect's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ..hooks.diagnostics import Diagnostic, Severity, quote
from .json_positions import Lines, Path, Spot

MAX_DIAGNOSTICS: Final = 1_000
"""Findings kept of one file: more than one for each action that a file may hold."""

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark and the place it is about."""

    severity: Severity
    code: str
    where: Path
    message: str
    hint: str | None
    at: Literal["key", "value"]


class Findings:
    """The findings of one file, in the order they were made, at most :data:`MAX_DIAGNOSTICS`.

    ``codes`` is the dialect's table of codes and their severities.
    """

    def __init__(self, codes: Mapping[str, Severity]) -> None:
        self._codes = codes
        self.kept: list[Finding] = []
        self.left_out = 0
        self.errors = 0

    def say(
        self,
        code: str,
        where: Path,
        message: str,
        hint: str | None = None,
        *,
        at: Literal["key", "value"] = "value",
    ) -> None:
        """Keep a finding, or count it when there are too many. ``at``: its key or its value is meant."""
        severity = self._codes[code]
        if severity == "error":
            self.errors += 1
        if len(self.kept) < MAX_DIAGNOSTICS:
            self.kept.append(Finding(severity, code, where, message, hint, at))
        else:
            self.left_out += 1

    @property
    def full(self) -> bool:
        """Further findings are only counted: no need to search for a good hint."""
        return len(self.kept) >= MAX_DIAGNOSTICS

    def places(self) -> set[Path]:
        """Every place that a kept finding is about."""
        return {finding.where for finding in self.kept}

    def diagnostics(self, path: str, lines: Lines, spots: Mapping[Path, Spot]) -> tuple[Diagnostic, ...]:
        """The findings as diagnostics of the file ``path``, in the order of the text."""
        found = [_diagnostic(path, finding, _offset(finding, spots), lines) for finding in self.kept]
        found.sort(key=lambda diagnostic: (diagnostic.line or 0, diagnostic.column or 0))
        if self.left_out:
            message = f"{self.left_out} more findings are not listed"
            hint = "correct the ones above and check the file again"
            found.append(Diagnostic("warning", "more_findings", path, None, None, None, message, hint))
        return tuple(found)


def field_name(where: Path) -> str:
    """A place as people write it: ``hooks.tool_call[0].timeout_ms``; odd keys in brackets and quotes."""
    return "".join(_steps(where)).removeprefix(".")


def _steps(where: Path) -> Iterable[str]:
    for step in where:
        if isinstance(step, int):
            yield f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            yield f".{step}"
        else:
            yield f"[{quote(step)}]"


def _offset(finding: Finding, spots: Mapping[Path, Spot]) -> int | None:
    spot = spots.get(finding.where)
    if spot is None:
        return None
    return spot.key if finding.at == "key" and spot.key is not None else spot.value


def _diagnostic(path: str, finding: Finding, offset: int | None, lines: Lines) -> Diagnostic:
    line, column = (None, None) if offset is None else lines.locate(offset)
    field = field_name(finding.where) or None
    return Diagnostic(
        finding.severity, finding.code, path, line, column, field, finding.message, finding.hint
    )
