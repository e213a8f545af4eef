"""The process of ``prxbus up`` that runs the hooks of the Codex family: for which files it waits.

There always is one, since every hook file may come while the bus runs; without any it costs next to nothing.
Refuses to know what is in those files.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..runner.codex_service import arguments_of
from ..runner.supervisor import Program

if TYPE_CHECKING:
    from ..config.hook_files import HookFile
    from ..config.schema import Settings

PACKAGE: Final = "re2"
"""Without it no matcher can be read."""


def add_strict(parser: argparse.ArgumentParser) -> None:
    """``--strict``: the setting ``hooks.strict``."""
    parser.add_argument(
        "--strict",
        action="store_true",
        default=None,
        help="of the Codex family, one bad handler voids its whole file, as it does in the agent itself",
    )


def codex_program(
    settings: Settings,
    directory: str,
    workspace: str | None,
    hook_files: Sequence[HookFile],
    sandbox: Sequence[str],
    environ: Mapping[str, str],
) -> Program:
    """The process. ``sandbox``: the arguments that say what encloses runs."""
    hooks = settings.hooks
    argv = [sys.executable, "-P", "-m", "subscribers.runner.codex_service", "--lifeline"]
    argv += ["--runtime-dir", directory, "--runs", str(hooks.runs), "--queue", str(hooks.queue)]
    argv += ["--runs-per-hook", str(hooks.runs_per_hook), "--drain-seconds", str(hooks.drain_seconds)]
    argv += [*sandbox, "--log-level", settings.log.level]
    argv += [] if workspace is None else ["--workspace", workspace]
    argv += ["--bitfun"] if hooks.bitfun else []
    argv += ["--strict"] if hooks.strict else []
    argv += arguments_of(
        hook_paths(settings, workspace, hook_files, environ), setting_paths(workspace, environ)
    )
    return Program("codex", tuple(argv), rank=1)


def missing_package() -> str | None:
    """What to tell somebody whose hooks cannot run for want of the package of matchers; None: it is there."""
    if importlib.util.find_spec(PACKAGE) is not None:
        return None
    return (
        "hooks of the Codex family will not run, and none of them denies anything: the package google-re2 "
        "is missing; install it with: pip install 'prxbus[run]'"
    )


def hook_paths(
    settings: Settings,
    workspace: str | None,
    hook_files: Sequence[HookFile],
    environ: Mapping[str, str],
) -> list[str]:
    """Every file without which there is nothing to run: hook files and the indexes of imports."""
    from ..sources.codex_layers import Switches, config_folder, layers
    from ..sources.codex_switches import BitFunSwitches
    from ..sources.import_places import INDEX_NAME, SCOPES, ImportPlaces, import_root

    switches = Switches(bitfun=settings.hooks.bitfun)
    found = layers(config_folder(environ), workspace, switches, BitFunSwitches(), hook_files, environ=environ)
    places = ImportPlaces(import_root(None, environ), workspace)
    stores = (folder for scope in SCOPES if (folder := places.folder(scope)) is not None)
    return [*(layer.path for layer in found), *(os.path.join(folder, INDEX_NAME) for folder in stores)]


def setting_paths(workspace: str | None, environ: Mapping[str, str]) -> list[str]:
    """Every file that may say that there is something to run."""
    from ..config.files import user_file, workspace_file

    own = [os.path.abspath(user_file(environ))]
    return own if workspace is None else [*own, workspace_file(workspace)]


def has_hooks(
    settings: Settings,
    workspace: str | None,
    hook_files: Sequence[HookFile],
    environ: Mapping[str, str],
) -> bool:
    """Whether one of those files is there now."""
    return any(map(os.path.exists, hook_paths(settings, workspace, hook_files, environ)))


def of_family(said: Mapping[str, Any]) -> str:
    """What the ready line says of them."""
    count = said.get("handlers", 0)
    return "" if not count else f", {count} hook{'' if count == 1 else 's'} of the Codex family"
