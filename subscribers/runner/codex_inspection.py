"""What would keep a handler of the Codex family from doing on this machine what it is meant to do.

A shell reads its command, so that only running tells for certain. Decides what can be told without: a script
that is not there, a block that will not block, plain text that no model will read, a URL that is not called.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from ..dialects.codex_events import EVENTS
from ..dialects.codex_profiles import PROFILES, Profile
from ..hooks.diagnostics import Diagnostic, Severity
from ..hooks.explanation import Explained, ExplainedFile, Handler, faulted
from ..sources.codex_layers import REMOTE
from .codex_http import refusal_of
from .codex_start_failure import missing_program, missing_script

_EXIT: Final = re.compile(r"(?:^|[\s;&|({])exit\s+(\d+)")
_TO_STDERR: Final = re.compile(r">\s*&\s*2|/dev/stderr|2>")
_PRINTS: Final = re.compile(r"\s*(?:echo|printf|cat)\b")
_AWAY: Final = re.compile(r">\s*[^&\s]|\|")


def remote(path: str) -> ExplainedFile:
    """What is said of a path on another machine."""
    said = Diagnostic("error", "remote_workspace", path, None, None, None, REMOTE, None)
    return ExplainedFile(
        path, None, "it is on another machine", "/", True, Explained((), (said,), refused=True)
    )


def on_this_machine(
    file: ExplainedFile, environ: Mapping[str, str], refusal: str | None, urls: tuple[str, ...] = ()
) -> ExplainedFile:
    """The file with what there is to say of its handlers. ``refusal``: why no command runs; None: they do.

    ``urls``: patterns of what may be called beyond this machine.
    """
    profile = PROFILES[file.dialect or ""]
    handlers = (_callable(handler, file, urls) for handler in file.explained.handlers)
    handlers = (_told(handler, file, profile, environ, refusal) for handler in handlers)
    return replace(file, explained=replace(file.explained, handlers=tuple(handlers)))


def _callable(handler: Handler, file: ExplainedFile, urls: tuple[str, ...]) -> Handler:
    """A handler at a URL, with why that is not called."""
    if handler.runtime != "http" or handler.status != "ok" or handler.command is None:
        return handler
    why = refusal_of(handler.command, urls)
    if why is None:
        return handler
    hint = (
        "allow it in your configuration: http_urls under [hooks], a pattern such as https://hooks.example/*"
    )
    said = replace(_said("error", "url_not_allowed", handler, file, why, hint), field=f"{handler.name}.url")
    return faulted(handler, "refused", said)


def _told(
    handler: Handler, file: ExplainedFile, profile: Profile, environ: Mapping[str, str], refusal: str | None
) -> Handler:
    if handler.runtime != "shell" or handler.status != "ok" or handler.command is None:
        return handler
    missing = _missing_program(handler, file, profile, environ)
    remarks = tuple(_remarks(handler, file, profile, environ))
    handler = replace(handler, diagnostics=(*handler.diagnostics, *remarks))
    if missing is not None:
        hint = "install it, or correct the command: until then each run is told as failed"
        handler = faulted(handler, "dead", _said("error", "no_such_program", handler, file, missing, hint))
    if refusal is None:
        return handler
    hint = "no hook runs until it can be used"
    return faulted(handler, "refused", _said("error", "sandbox_unavailable", handler, file, refusal, hint))


def _environment(file: ExplainedFile, profile: Profile, environ: Mapping[str, str]) -> dict[str, str]:
    env = dict(environ)
    if profile.project_variable is not None:
        env.setdefault(profile.project_variable, file.workspace)
    return env


def _missing_program(
    handler: Handler, file: ExplainedFile, profile: Profile, environ: Mapping[str, str]
) -> str | None:
    command = handler.command or ""
    env = _environment(file, profile, environ)
    text = command if not handler.args else ""
    return missing_program(text, (command, *handler.args), env, _is_program)


def _is_program(name: str, path: str | None) -> bool:
    return shutil.which(name, path=path) is not None


def _remarks(
    handler: Handler, file: ExplainedFile, profile: Profile, environ: Mapping[str, str]
) -> Iterator[Diagnostic]:
    command = handler.command or ""
    env = _environment(file, profile, environ)
    text = command if not handler.args else ""
    script = missing_script(text, (command, *handler.args), file.workspace, env, os.path.exists)
    if script is not None:
        hint = (
            "put it there, or correct its path: until then the run is told as failed, and nothing is blocked"
        )
        yield _said("warning", "missing_script", handler, file, script, hint)
    if handler.args or handler.event not in EVENTS:
        return
    yield from _about_blocking(handler, file, profile, command)
    yield from _about_text(handler, file, profile, command)


def _about_blocking(
    handler: Handler, file: ExplainedFile, profile: Profile, command: str
) -> Iterator[Diagnostic]:
    """An exit code that looks as if it was meant to block."""
    if profile.exit_two.get(handler.event, "error") == "error":
        return
    for code in _EXIT.findall(command):
        hint = "block with exit code 2 and a reason on stderr, or exit code 0 and a JSON decision on stdout"
        if code not in ("0", "2"):
            message = f"exit code {code} does not block: it is an error, and the agent goes on"
            yield _said("warning", "does_not_block", handler, file, message, hint)
            return
        if code == "2" and not _TO_STDERR.search(command) and not profile.blank_exit_two_blocks:
            message = "exit code 2 blocks only with a reason on stderr, and nothing is written there"
            yield _said("warning", "does_not_block", handler, file, message, hint)
            return


def _about_text(
    handler: Handler, file: ExplainedFile, profile: Profile, command: str
) -> Iterator[Diagnostic]:
    """Plain output of an event whose plain output nobody reads."""
    if handler.event in profile.plain_context or not _PRINTS.match(command):
        return
    if "{" in command or _AWAY.search(command) or _TO_STDERR.search(command):
        return
    events = ", ".join(name for name in EVENTS if name in profile.plain_context)
    message = f"the model does not see plain output of {handler.event}: only that of {events} is context"
    hint = "print hookSpecificOutput.additionalContext as JSON, where the event has it"
    severity: Severity = "warning"
    yield _said(severity, "unseen_output", handler, file, message, hint)


def _said(
    severity: Severity, code: str, handler: Handler, file: ExplainedFile, message: str, hint: str | None
) -> Diagnostic:
    return Diagnostic(severity, code, file.path, handler.line, None, f"{handler.name}.command", message, hint)
