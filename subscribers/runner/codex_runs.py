"""Runs one handler of the Codex family, whatever its kind, to an outcome.

Decides that an import whose snapshot was changed does not run, that a missing script is no block, and that a
command is enclosed where a sandbox is configured. Refuses to know events, rounds and what an outcome means.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..dialects.codex_spec import CodexHandler
from ..hooks.outcome import Outcome
from ..runtimes.child import run
from ..runtimes.deadlines import Deadlines
from ..runtimes.reaper import Reaper
from ..runtimes.spawn import StartFailed
from .codex_http import call
from .codex_invocation import NotRunnable, Scene, environment_of, invocation_of
from .codex_selection import Chosen
from .codex_start_failure import as_it_was
from .dispatch import Enclose, Release

if TYPE_CHECKING:
    from ..sources.trust_gate import TrustGate


class Runs:
    """Runs handlers. Thread-safe. ``http_urls``: patterns of URLs beyond this machine that may be called.

    ``gate`` is asked before a handler of the workspace runs. ``enclose``: the sandbox of every command, None
    for none. ``refusal`` set: no command runs, and why.
    """

    def __init__(self, reaper: Reaper, deadlines: Deadlines, http_urls: tuple[str, ...] = ()) -> None:
        self.refusal: str | None = None
        self.gate: TrustGate | None = None
        self.enclose: Enclose | None = None
        self._reaper = reaper
        self._deadlines = deadlines
        self.http_urls = http_urls

    def run(self, chosen: Chosen, scene: Scene, timeout_s: float, unwanted: int | None = None) -> Outcome:
        """Run a handler now; blocks until there is an outcome, for little more than ``timeout_s`` at most.

        ``unwanted``: a descriptor that becomes readable when nobody wants a command's result any more.
        """
        verify = chosen.layer.verify
        if verify is not None and (wrong := verify()) is not None:
            return Outcome.not_started(f"its import was changed since it was confirmed: {wrong}")
        handler = chosen.handler
        if self.gate is not None and chosen.layer.scope == "project" and verify is None:
            words = (handler.command, handler.args or (), scene.cwd)
            if (changed := self.gate.of_command(*words, file=chosen.layer.path)) is not None:
                return Outcome.not_started(changed)
        if handler.kind == "http":
            env = environment_of(scene, handler.event, chosen.profile)
            return call(handler, env, chosen.body, timeout_s, self.http_urls, self._deadlines)
        if handler.kind != "command":
            return Outcome.not_started(f"handlers of type {handler.kind} are not run here")
        if self.refusal is not None:
            return Outcome.not_started(self.refusal)
        return self._command(chosen, scene, timeout_s, unwanted)

    def _command(self, chosen: Chosen, scene: Scene, timeout_s: float, unwanted: int | None) -> Outcome:
        try:
            invocation = invocation_of(chosen.handler, chosen.profile, scene, chosen.body, timeout_s)
        except (NotRunnable, ValueError) as error:
            return Outcome.not_started(str(error))
        argv, env = invocation.argv, invocation.env
        release: Release | None = None
        if self.enclose is not None:
            readable = (scene.runtime_dir, os.path.dirname(chosen.handler.path))
            try:
                invocation, release = self.enclose(invocation, readable)
            except (StartFailed, OSError) as error:
                return Outcome.not_started(str(error))
        outcome = run(invocation, self._reaper, on_end=release, unwanted=unwanted)
        return as_it_was(outcome, argv, _text_of(chosen.handler), scene.cwd, env, os.path.exists)


def _text_of(handler: CodexHandler) -> str:
    """What a shell was given; empty where the handler has arguments of its own."""
    return handler.command if handler.args is None else ""


def patterns_of(urls: str | None) -> tuple[str, ...]:
    """The patterns that a setting holds, with spaces between them."""
    return tuple((urls or "").split())
