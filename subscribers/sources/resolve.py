"""Where a hook's command and folder are on this machine, now.

The answer holds for one run and is asked again for each, because programs appear and disappear and links
change. Asked when a file is loaded, it only makes diagnostics. It refuses to start anything, and to judge
what the dialect has judged already.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from ..dialects.environment import search_path
from ..hooks.diagnostics import Diagnostic, Severity, quote
from ..hooks.spec import HookSpec

SEVERITIES: Final[dict[str, Severity]] = {
    "missing_command": "warning",
    "not_executable": "warning",
    "missing_cwd": "warning",
    "cwd_escapes": "error",
    "trust_changed": "error",
}
"""Every reason why a hook cannot run here. A warning may be over when its event comes."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The program and the working directory of a run, both absolute paths.

    ``args`` are arguments that stood in the command itself; ``notice`` says how it was found, where the file
    says something else than what it probably means.
    """

    executable: str
    cwd: str
    args: tuple[str, ...] = ()
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Why this hook cannot run here and now; ``code`` is a key of :data:`SEVERITIES`."""

    code: str
    field: Literal["command", "cwd"]
    message: str
    hint: str | None


def resolve(spec: HookSpec, workspace: str, prxbus_folder: str) -> Resolved | Unresolved:
    """Find a spec's program and folder. ``workspace`` and ``prxbus_folder`` are absolute; raises nothing."""
    cwd = _cwd(spec.cwd, workspace)
    if isinstance(cwd, Unresolved):
        return cwd
    executable = _executable(spec.command, workspace, search_path(prxbus_folder))
    if isinstance(executable, Unresolved):
        return executable
    return Resolved(executable, cwd)


def check(specs: Iterable[HookSpec], workspace: str, prxbus_folder: str) -> tuple[Diagnostic, ...]:
    """A diagnostic for each spec that could not run if its event came now."""
    found = []
    for spec in specs:
        answer = resolve(spec, workspace, prxbus_folder)
        if isinstance(answer, Unresolved):
            severity = SEVERITIES[answer.code]
            field = f"{spec.id}.{answer.field}"
            place = (spec.path, spec.line, None, field)
            found.append(Diagnostic(severity, answer.code, *place, answer.message, answer.hint))
    return tuple(found)


def _cwd(written: str | None, workspace: str) -> str | Unresolved:
    folder = workspace
    if written is not None:
        folder = os.path.join(workspace, written)  # an absolute one stands for itself
        if not written.startswith("/"):
            folder = os.path.realpath(folder)
            if not _inside(folder, os.path.realpath(workspace)):
                message = f"cwd leaves the workspace: {quote(written)} is {quote(folder)}"
                return Unresolved(
                    "cwd_escapes", "cwd", message, "write the absolute path of a folder outside"
                )
    if not os.path.isdir(folder):
        what = "is not a folder" if os.path.exists(folder) else "does not exist"
        return Unresolved(
            "missing_cwd", "cwd", f"the folder {quote(folder)} {what}", "create it, or change cwd"
        )
    return folder


def _inside(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder


def _executable(command: str, workspace: str, path: tuple[str, ...]) -> str | Unresolved:
    if "/" in command:
        candidate = os.path.join(workspace, command.removeprefix("./"))
        return _fault(candidate, command) or candidate
    for folder in path:
        candidate = os.path.join(folder, command)
        if _fault(candidate, command) is None:
            return candidate
    in_workspace = os.path.exists(os.path.join(workspace, command))
    hint = f"write ./{command} for the file in the workspace" if in_workspace else _missing_hint(command)
    return Unresolved("missing_command", "command", f"no {quote(command)} in {':'.join(path)}", hint)


def _fault(candidate: str, command: str) -> Unresolved | None:
    shown = quote(candidate)
    try:
        mode = os.stat(candidate).st_mode
    except (OSError, ValueError) as error:  # ValueError: a name that this file system cannot spell
        reason = error.strerror if isinstance(error, OSError) else error
        message = f"{shown} cannot be found: {reason}"
        return Unresolved("missing_command", "command", message, _missing_hint(command))
    if not stat.S_ISREG(mode):
        return Unresolved("not_executable", "command", f"{shown} is not a file", "name an executable file")
    if not os.access(candidate, os.X_OK):
        hint = "run chmod +x on it, or make its interpreter the command and the file its first argument"
        return Unresolved("not_executable", "command", f"{shown} is not executable", hint)
    return None


def _missing_hint(command: str) -> str:
    if len(command.split()) > 1:
        return "a command is one executable: put its arguments into args"
    return "create it, or correct the path" if "/" in command else "install it, or write its absolute path"
