"""The process of ``prxbus up`` that keeps the workers of Python handlers: whether there is one, and for what.

It runs where the workspace has a folder ``.prxbus/handlers``, where files or folders were named, or where an
installed package offers handlers. Refuses to know what is in those files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.cli.exits import UsageError

from ..runner.supervisor import Program
from ..sources import handlers

if TYPE_CHECKING:
    from ..config.schema import Settings


def named_path(paths: Sequence[str] | None) -> str | None:
    """What ``--handlers`` names, as the setting ``handlers.path``; raises :class:`UsageError`."""
    if not paths:
        return None
    for path in paths:
        if os.pathsep in path:
            raise UsageError(f"--handlers {path!r}: a path with {os.pathsep!r} in it cannot be named here")
        if not os.path.exists(path):
            raise UsageError(f"--handlers {path!r}: there is no such file or folder")
    return os.pathsep.join(os.path.abspath(path) for path in paths)


def handler_paths(settings: Settings) -> tuple[str, ...]:
    """The files and folders that the configuration or the command line names."""
    path = settings.handlers.path
    return () if path is None else tuple(part for part in path.split(os.pathsep) if part)


def has_handlers(settings: Settings, workspace: str | None) -> bool:
    """Whether there is, or may come to be, something to load."""
    if not settings.handlers.enabled:
        return False
    if workspace is not None and os.path.isdir(handlers.folder_of(workspace)):
        return True
    return bool(handler_paths(settings)) or (settings.handlers.installed and bool(handlers.entry_points()))


def python_program(settings: Settings, directory: str, workspace: str | None) -> Program | None:
    """The process, or None where none is needed."""
    if not has_handlers(settings, workspace):
        return None
    section = settings.handlers
    argv = [sys.executable, "-P", "-m", "subscribers.runner.python_service", "--lifeline"]
    argv += ["--runtime-dir", directory, "--calls", str(section.calls)]
    argv += ["--calls-per-handler", str(section.calls_per_handler), "--queue", str(section.queue)]
    argv += ["--drain-seconds", str(section.drain_seconds), "--log-level", settings.log.level]
    argv += [] if workspace is None else ["--workspace", workspace]
    argv += ["--installed"] if section.installed else []
    for path in handler_paths(settings):
        argv += ["--handlers", path]
    return Program("python", tuple(argv), rank=1)


def of_handlers(handlers: int, refused: int) -> str:
    """What the ready line says of them."""
    told = f", {handlers} Python handler{'' if handlers == 1 else 's'}"
    return told if not refused else f"{told} ({refused} file{'' if refused == 1 else 's'} refused, see above)"
