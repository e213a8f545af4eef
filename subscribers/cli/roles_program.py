"""The process of ``prxbus up`` that runs the hooks of roles: whether there is one, and for which.

It runs where a role is named, on the command line or in the user's configuration; a workspace names none.
Refuses to know what is in a role.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from broker.cli.exits import UsageError

from ..runner.supervisor import Program

if TYPE_CHECKING:
    from ..config.schema import Settings


def add_role(parser: argparse.ArgumentParser) -> None:
    """``--role``: the setting ``roles.dirs``."""
    parser.add_argument(
        "--role",
        action="append",
        metavar="DIR",
        help="run the hooks of the role in this directory (role.yaml; repeatable)",
    )


def named_roles(directories: Sequence[str] | None) -> str | None:
    """What ``--role`` names, as the setting ``roles.dirs``; raises :class:`UsageError`."""
    if not directories:
        return None
    for directory in directories:
        if os.pathsep in directory:
            raise UsageError(f"--role {directory!r}: a path with {os.pathsep!r} in it cannot be named here")
        if not os.path.exists(directory):
            raise UsageError(f"--role {directory!r}: there is no such directory")
    return os.pathsep.join(map(os.path.abspath, directories))


def role_directories(settings: Settings) -> tuple[str, ...]:
    """The directories that the configuration or the command line names."""
    return settings.roles.directories if settings.roles.enabled else ()


def roles_program(settings: Settings, directory: str) -> Program | None:
    """The process, or None where none is needed."""
    roles = role_directories(settings)
    if not roles:
        return None
    section = settings.roles
    argv = [sys.executable, "-P", "-m", "subscribers.runner.roles_service", "--lifeline"]
    argv += ["--runtime-dir", directory, "--scope", section.scope, "--timeout", str(section.timeout)]
    argv += ["--workers", str(section.workers), "--memory-mb", str(section.memory_mb)]
    argv += ["--drain-seconds", str(settings.hooks.drain_seconds), "--log-level", settings.log.level]
    argv += [] if section.node is None else ["--node", section.node]
    for role in roles:
        argv += ["--role", role]
    return Program("roles", tuple(argv), rank=1)


def of_roles(said: Mapping[str, Any]) -> str:
    """What the ready line says of them."""
    if "roles" not in said:
        return ""
    roles, hooks, refused = said["roles"], said["role_hooks"], said["role_hooks_refused"]
    told = f", {_count(hooks, 'hook')} of {_count(roles, 'role')}"
    notes = [f"{_count(refused, 'hook')} refused"] if refused else []
    if said["roles_refused"]:
        notes.append(f"{_count(said['roles_refused'], 'role')} refused")
    return told if not notes else f"{told} ({', '.join(notes)}, see above)"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
