"""The process of ``prxbus up`` that owns the transform chain: whether there is one, and what it is told.

It runs where the configuration has a ``[[transform]]``, and wherever there are, or may come to be, files of
handlers. Refuses to know what is in those files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..runner.supervisor import Program
from .python_program import handler_paths, has_handlers

if TYPE_CHECKING:
    from ..config.schema import Settings
    from ..config.transforms import Transform


def transform_program(
    settings: Settings,
    directory: str,
    workspace: str | None,
    transforms: Sequence[Transform],
    sandbox: Sequence[str],
) -> Program | None:
    """The process, or None where none is needed. ``sandbox``: the arguments that say what encloses runs."""
    with_functions = has_handlers(settings, workspace)
    if not transforms and not with_functions:
        return None
    hooks = settings.hooks
    argv = [sys.executable, "-P", "-m", "subscribers.runner.transform_service", "--lifeline"]
    argv += ["--runtime-dir", directory, "--runs", str(hooks.runs), "--queue", str(hooks.queue)]
    argv += ["--runs-per-hook", str(hooks.runs_per_hook), "--drain-seconds", str(hooks.drain_seconds)]
    argv += [*sandbox, "--log-level", settings.log.level]
    argv += [] if workspace is None else ["--workspace", workspace]
    if not with_functions:
        argv.append("--tables-only")
    else:
        argv += ["--installed"] if settings.handlers.installed else []
        for path in handler_paths(settings):
            argv += ["--handlers", path]
    return Program("transform", tuple(argv), rank=1)


def of_transforms(transforms: int) -> str:
    """What the ready line says of them."""
    return f", {transforms} transform{'' if transforms == 1 else 's'}"
