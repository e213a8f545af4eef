"""The process of ``prxbus up`` that calls WASM plugins: whether there is one, and what is said when not.

It runs where the workspace has a folder ``plugins`` and the extra ``wasm`` is installed. Refuses to know what
is in that folder, beside whether there is something.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING

from ..runner.supervisor import Program
from ..sources import plugins

if TYPE_CHECKING:
    from ..config.schema import Settings

PACKAGE = "wasmtime"


def is_installed() -> bool:
    """Whether the extra ``wasm`` is there."""
    return importlib.util.find_spec(PACKAGE) is not None


def missing_extra(settings: Settings, workspace: str) -> str | None:
    """What to tell somebody whose plugins cannot run for want of the extra; None where nothing is to tell."""
    if not settings.wasm.enabled or is_installed():
        return None
    found = plugins.look(workspace)
    if found.fault is None and not found.names:
        return None
    count = len(found.names) + found.left_out
    what = "plugins" if found.fault is not None else f"{count} plugin{'' if count == 1 else 's'}"
    return (
        f"{what} in {plugins.folder_of(workspace)} will not run: the package {PACKAGE} is missing; "
        "install it with: pip install 'prxbus[run,wasm]'"
    )


def wasm_program(settings: Settings, directory: str, workspace: str) -> Program | None:
    """The process, or None where none is needed or none can run."""
    wasm = settings.wasm
    if not wasm.enabled or not os.path.isdir(plugins.folder_of(workspace)) or not is_installed():
        return None
    argv = [sys.executable, "-P", "-m", "subscribers.runner.wasm_service", "--lifeline"]
    argv += ["--runtime-dir", directory, "--workspace", workspace, "--queue", str(wasm.queue)]
    argv += ["--drain-seconds", str(wasm.drain_seconds), "--memory-mb", str(wasm.memory_mb)]
    argv += ["--kv-storage-mb", str(wasm.kv_storage_mb)]
    argv += ["--allow", wasm.allow, "--log-level", settings.log.level]
    for flag, value in (("--cache-dir", wasm.cache_dir), ("--state-dir", wasm.state_dir)):
        argv += [] if value is None else [flag, value]
    return Program("wasm", tuple(argv), rank=1)
