"""What explaining a workspace's files says of the trust in it: as recorded, or which files changed since.

Decides only that. Whether a workspace is trusted is :mod:`.trust_standing`'s.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..hooks.diagnostics import Diagnostic, Severity
from ..hooks.explanation import ExplainedFile
from .trust_standing import Standing, standing
from .trust_store import TrustStore

AS_RECORDED: Final = "trusted: it is as `prxbus trust` recorded it"


def is_trusted(folder: str, environ: Mapping[str, str]) -> bool:
    """Whether a workspace, by its absolute path, was trusted and is unchanged."""
    return standing(folder, environ, TrustStore()).state == "unchanged"


def said(
    files: Sequence[ExplainedFile], folders: Iterable[str], environ: Mapping[str, str]
) -> list[ExplainedFile]:
    """The files, those of a workspace that was trusted once with what became of that."""
    found = list(files)
    for folder in dict.fromkeys(os.path.abspath(folder) for folder in folders):
        if os.path.isdir(folder):
            stands = standing(folder, environ, TrustStore())
            if stands.state != "never":
                found = _with(found, folder, stands)
    return found


def _with(files: list[ExplainedFile], folder: str, stands: Standing) -> list[ExplainedFile]:
    own = [i for i, file in enumerate(files) if file.path.startswith(os.path.join(folder, ""))]
    recorded = {} if stands.record is None else stands.record.files
    waiting = dict.fromkeys(stands.reasons)
    for index in own:
        name = os.path.relpath(files[index].path, folder)
        reasons = [reason for reason in waiting if reason in (name, f"{name} (added)")]
        for reason in reasons:
            del waiting[reason]
        if stands.state == "unchanged" and name in recorded:
            files[index] = _saying(files[index], "info", AS_RECORDED, None)
        for reason in reasons:
            files[index] = _changed(files[index], reason, folder)
    for reason in waiting if own else ():  # scripts, components and the like, which no file here is
        files[own[0]] = _changed(files[own[0]], reason, folder)
    return files


def _changed(file: ExplainedFile, reason: str, folder: str) -> ExplainedFile:
    hint = f"look at it, then: prxbus trust {shlex.quote(folder)}"
    return _saying(file, "warning", f"changed since prxbus trust: {reason}", hint)


def _saying(file: ExplainedFile, severity: Severity, message: str, hint: str | None) -> ExplainedFile:
    code = "trusted" if severity == "info" else "trust_changed"
    remark = Diagnostic(severity, code, file.path, None, None, None, message, hint)
    return replace(file, explained=replace(file.explained, diagnostics=(remark, *file.explained.diagnostics)))
