"""The ``[[hook_file]]`` tables of a configuration file: further hook files of the Codex family that run.

A table of the user's file names a file of the user's; one of a workspace's file is the workspace's own, and
runs only where those may. The files in which Codex and Claude Code keep their own hooks are refused: those
agents run them already. Decides what a table may say. Refuses to know what is in the files, and whether they
exist.

    [[hook_file]]
    path = "~/team/hooks.json"     # relative to the folder of this file; of a workspace, to the workspace
    profile = "claude"             # codex, bitfun or claude; left out: what the path says, else codex
    on_failure = "block"           # a command that fails blocks what it was asked about; else it goes on
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ..hooks.diagnostics import Diagnostic
from .tables import Kind, Tables

KEY: Final = "hook_file"

AGENTS_OWN: Final = (
    (".claude", "settings.json", "Claude Code"),
    (".claude", "settings.local.json", "Claude Code"),
    (".codex", "hooks.json", "Codex"),
    (".codex", "config.toml", "Codex"),
)
"""Folder and name of the files in which agents keep the hooks that they run themselves, and who does."""

FamilyProfile = Literal["codex", "bitfun", "claude"]
OnFailure = Literal["continue", "block"]


class Table(BaseModel):
    """What one table may say."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    path: Annotated[str, StringConstraints(min_length=1, max_length=4_096, pattern=r"^[^\x00]*$")] = Field(
        description="the file; `~` is the home directory"
    )
    profile: FamilyProfile | None = Field(
        None, description="whose rules hold for it; left out: what its path says, else codex"
    )
    on_failure: OnFailure = Field(
        "continue", description="what a command comes to that fails where it can block: `continue` or `block`"
    )


KIND: Final = Kind(KEY, Table, "hook files", "a hook file needs a path", 'path = "hooks.json"')


class HookFile(NamedTuple):
    """One table that holds: the absolute ``path`` of a hook file, and its ``profile`` where it names one.

    ``is_workspace``: a workspace's own file says so. ``on_failure`` holds for handlers that do not say.
    """

    path: str
    profile: FamilyProfile | None
    is_workspace: bool
    on_failure: OnFailure = "continue"


def owner(path: str) -> str | None:
    """The agent that runs the hooks of this file by itself, by the name of the file; None: no agent does."""
    folder, name = os.path.split(path)
    folder = os.path.basename(folder)
    return next((agent for place, file, agent in AGENTS_OWN if (folder, name) == (place, file)), None)


def read(
    document: Mapping[str, Any], path: str, folder: str, *, is_workspace: bool
) -> tuple[tuple[HookFile, ...], list[Diagnostic]]:
    """The tables of a parsed file in their order, and one diagnostic for everything that is wrong.

    A table with a fault is left out; the others hold. ``folder``: what a relative path is relative to.
    """
    tables = Tables(KIND, document, path)
    found: list[HookFile] = []
    for place, checked in tables.read():
        target = os.path.abspath(os.path.join(folder, os.path.expanduser(checked.path)))
        agent = owner(target) or owner(os.path.realpath(target))
        if agent is not None:
            message = f"{agent} runs the hooks of {target} itself: they would run twice"
            hint = "copy them with `prxbus hooks import`, or have the agent ask here with `prxbus attach`"
            tables.fault(f"{place}.path", "agents_own_file", message, hint)
        elif any(target == each.path for each in found):
            tables.fault(f"{place}.path", "duplicate_file", f"{target} is named before", "remove it")
        else:
            found.append(HookFile(target, checked.profile, is_workspace, checked.on_failure))
    return tuple(found), tables.faults
