"""Runs one handler of the Codex family, whatever its kind, to an outcome.

Decides that an import whose snapshot was changed does not run, that a missing script is no block, and that a
command is enclosed where a sandbox is configured. Refuses to know events, rounds and what an outcome means.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..dialects.codex_spec import CodexHandler
from ..hooks.invocation import Invocation
from ..hooks.outcome import Outcome
from ..runtimes.child import run
from ..runtimes.deadlines import Deadlines
from ..runtimes.reaper import Reaper
from ..runtimes.spawn import StartFailed
from .codex_http import call
from .codex_invocation import (
    OUTPUT_BYTES,
    RUN_VARIABLE,
    NotRunnable,
    Scene,
    environment_of,
    invocation_of,
)
from .codex_selection import Chosen
from .codex_start_failure import DOUBTFUL, as_it_was
from .dispatch import Enclose, Release

if TYPE_CHECKING:
    from ..sources.trust_gate import TrustGate

READING_SECONDS: Final = 2.0
"""How long a shell may take to read a command without running it."""

_STARTUP: Final = frozenset({"BASH_ENV", "ENV"})
"""Variables that name files which a shell reads before its command."""


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
        text = _text_of(chosen.handler)
        return as_it_was(
            outcome, argv, text, scene.cwd, env, os.path.exists, lambda: self._reading(argv[0], text, env)
        )

    def _reading(self, shell: str, text: str, env: Mapping[str, str]) -> str | None:
        """What a shell writes of a text that it cannot read. It reads only, and runs nothing."""
        env = {name: value for name, value in env.items() if name not in _STARTUP}
        argv = (shell, "-n", "-c", text)
        reading = Invocation(argv, env, "/", None, READING_SECONDS, 0.0, OUTPUT_BYTES, RUN_VARIABLE)
        outcome = run(reading, self._reaper)
        return outcome.stderr.text() if outcome.exit_code == DOUBTFUL and not outcome.stdout.total else None


def _text_of(handler: CodexHandler) -> str:
    """What a shell was given; empty where the handler has arguments of its own."""
    return handler.command if handler.args is None else ""


def patterns_of(urls: str | None) -> tuple[str, ...]:
    """The patterns that a setting holds, with spaces between them."""
    return tuple((urls or "").split())
