"""A command handler of the Codex family and an event, as one run: program, environment, folder, input.

The environment is the agent's own where it forwarded one, else this process's, without what is no business of
a handler. Decides which shell reads a command and what a handler finds in its environment (contract 5, 6.3).
Refuses to start anything, and to know what the input says.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.client.context import CAUSE_VARIABLE, DEPTH_VARIABLE

from ..dialects.codex_profiles import Profile
from ..dialects.codex_spec import CodexHandler
from ..hooks.diagnostics import quote
from ..hooks.invocation import Invocation
from ..hooks.withheld import WITHHELD
from ..sources.codex_layers import is_within

OUTPUT_BYTES: Final = 1_048_576
"""Bytes that are kept of each output of a handler; of more, head and tail."""

ENV_FILE_VARIABLE: Final = "CLAUDE_ENV_FILE"
RUN_VARIABLE: Final = "PRXBUS_RUN"
"""Has another value in each run, so that what a run leaves behind is known by it."""

SHELL: Final = "/bin/sh"
SESSION_SHELL: Final = "$SHELL"
POWERSHELL: Final = "powershell"


class NotRunnable(Exception):
    """There is nothing that could be started; the text says why."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What all handlers of one event have in common.

    ``environ`` is the environment that they inherit: what the agent sent, if it ``is_agents``. ``cwd`` is the
    folder of the session, ``workspace`` the one that was named. ``event_id`` and ``depth`` are the event's.
    """

    environ: Mapping[str, str]
    cwd: str
    workspace: str | None
    runtime_dir: str
    event_id: str
    depth: int
    is_agents: bool = False


def folder_of(cwd: object, workspace: str | None, environ: Mapping[str, str]) -> str:
    """The folder that handlers start in: the session's, else the workspace's, else the home directory."""
    if isinstance(cwd, str) and os.path.isabs(cwd) and "\0" not in cwd:
        return cwd
    home = environ.get("HOME", "")
    return workspace or (home if os.path.isabs(home) else "/")


def project_of(scene: Scene) -> str:
    """The project's folder: what the agent says, else the workspace if it works there, else its folder."""
    if scene.workspace is not None and is_within(scene.cwd, scene.workspace):
        return scene.workspace
    return scene.cwd


def environment_of(scene: Scene, event: str, profile: Profile) -> dict[str, str]:
    """What a handler finds in its environment; never a token of ours.

    An agent that sent its own names the file for further variables exactly where it reads one; a file that
    this process has inherited is no session's.
    """
    scrubbed = {*WITHHELD, DEPTH_VARIABLE, CAUSE_VARIABLE, *(name.upper() for name in profile.scrubbed)}
    if not scene.is_agents and event not in profile.env_file_events:
        scrubbed.add(ENV_FILE_VARIABLE)
    env = {name: value for name, value in scene.environ.items() if name.upper() not in scrubbed}
    if profile.project_variable is not None:
        env.setdefault(profile.project_variable, project_of(scene))
    env["PRXBUS_RUNTIME_DIR"] = scene.runtime_dir
    env[DEPTH_VARIABLE] = str(scene.depth + 1)
    env[CAUSE_VARIABLE] = scene.event_id
    env[RUN_VARIABLE] = secrets.token_hex(8)
    return env


def argv_of(handler: CodexHandler, profile: Profile, env: Mapping[str, str], cwd: str) -> tuple[str, ...]:
    """The program and its arguments. Raises :class:`NotRunnable`.

    A session's own shell has logged in before: an environment that names one is that of a session. Where that
    is not there, another shell reads the command, as the profile says.
    """
    path = env.get("PATH", os.defpath)
    if handler.args is not None:
        return (_program(handler.command, path, cwd), *handler.args)
    if handler.shell == POWERSHELL:
        program = shutil.which("pwsh", path=path) or shutil.which("powershell", path=path)
        if program is None:
            raise NotRunnable("its shell is powershell, which is not installed here")
        return (program, "-NoProfile", "-NonInteractive", "-Command", handler.command)
    wanted, flag = (handler.shell, "-c") if handler.shell is not None else profile.shell
    shell = _shell(wanted, env.get("SHELL", ""), path)
    if shell is None:
        wanted, flag = profile.other_shell
        shell = _shell(wanted, "", path) or SHELL
    return (shell, flag, handler.command)


def _shell(wanted: str, own: str, path: str) -> str | None:
    """A shell's program; ``own`` is the session's, empty where it is not known. None: it is not there."""
    if wanted == SESSION_SHELL:
        return own if os.path.isabs(own) and os.access(own, os.X_OK) else None
    return SHELL if wanted == "sh" else shutil.which(wanted, path=path)


def _program(name: str, path: str, cwd: str) -> str:
    found = shutil.which(os.path.join(cwd, name) if os.sep in name else name, path=path)
    if found is None:
        raise NotRunnable(f"its program {quote(name)} is not there, or cannot be executed")
    return os.path.abspath(found)


def invocation_of(
    handler: CodexHandler, profile: Profile, scene: Scene, body: bytes, timeout_s: float
) -> Invocation:
    """The run of a command handler. Raises :class:`NotRunnable`."""
    if not os.path.isdir(scene.cwd):
        raise NotRunnable(f"the session's folder {quote(scene.cwd)} is not there")
    env = environment_of(scene, handler.event, profile)
    argv = argv_of(handler, profile, env, scene.cwd)
    return Invocation(
        argv=argv,
        env=env,
        cwd=scene.cwd,
        stdin=body,
        timeout_s=timeout_s,
        grace_s=0.0,
        output_limit=OUTPUT_BYTES,
        marker=RUN_VARIABLE,
    )
