"""A role on this machine explained: its hooks with their modules, and when its sessions reach them.

Decides what is said of a role beyond its file: what is missing around it, whether anybody has named it, and
which sessions are its own when several roles are. It refuses to load a module.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..config.schema import Roles
from ..dialects import rolebox_rules as rules
from ..dialects.rolebox_explanation import Located, Timeout, explain
from ..dialects.rolebox_file import read_role
from ..hooks.diagnostics import Diagnostic, quote
from ..hooks.explanation import Explained, ExplainedFile, faulted
from ..hooks.withheld import without_secrets
from .inspect_world import World
from .role_directories import directories_of, with_files

_DEFAULT: Final = Roles()


def configured_directories(settings: Roles) -> tuple[str, ...]:
    """The directories of the roles that the settings name."""
    return directories_of(settings.directories)


def place_of(directory: str) -> str:
    """What to look at for a role that was named: its file, which is missed where there is none."""
    return os.path.join(directory, rules.FILE_NAME)


def explain_role(text: bytes, path: str, directory: str, world: World) -> Explained:
    """A role, each module looked up as it would be loaded."""
    environ = without_secrets(world.environ)
    settings = world.configured(directory).settings.roles
    role = read_role(text, path, environ)
    loaded = with_files(directory, role, world.languages(), environ)
    modules = {
        found.hook.index: Located(None if found.module is None else found.module.path, found.diagnostics)
        for found in loaded.hooks
    }
    is_default = settings.timeout == _DEFAULT.timeout
    explained = explain(
        text, role, modules, Timeout(settings.timeout, "default" if is_default else "settings")
    )
    of_modules = {said for located in modules.values() for said in located.diagnostics}
    around = tuple(
        said for said in loaded.diagnostics if said not in role.diagnostics and said not in of_modules
    )
    explained = replace(explained, diagnostics=(*explained.diagnostics, *around))
    return explained if settings.enabled or not explained.handlers else _switched_off(explained, path)


def _switched_off(explained: Explained, path: str) -> Explained:
    off = _remark(path, "disabled", "the setting roles.enabled is false", None)
    return replace(explained, handlers=tuple(faulted(h, "skipped", off) for h in explained.handlers))


def said(files: Sequence[ExplainedFile], settings: Roles) -> list[ExplainedFile]:
    """The files, those of roles with whose sessions reach them."""
    configured = configured_directories(settings)
    real = {os.path.realpath(directory) for directory in configured}
    roles = [file for file in files if file.dialect == rules.NAME and file.explained.handlers]
    together = real | {os.path.realpath(file.workspace) for file in roles}
    return [_with_sessions(file, settings, real, len(together)) if file in roles else file for file in files]


def _with_sessions(file: ExplainedFile, settings: Roles, configured: set[str], number: int) -> ExplainedFile:
    remarks = []
    directory = file.workspace
    if os.path.realpath(directory) not in configured:
        message = "a role runs only where it is named; no workspace brings one along"
        hint = f"prxbus up --role {shlex.quote(directory)}, or the setting roles.dirs"
        remarks.append(_remark(file.path, "named_only", message, hint))
    if settings.scope == "all":
        message = 'roles.scope is "all": its hooks fire for every session, whatever role that plays'
        remarks.append(_remark(file.path, "scope_all", message, None))
    elif number > 1:
        name = quote(os.path.basename(directory))
        message = f"with {number} roles, its hooks fire only for sessions that name it"
        hint = f'have the agent send "role": {name} with session_start, or set roles.scope to "all"'
        remarks.append(_remark(file.path, "needs_role", message, hint))
    explained = replace(file.explained, diagnostics=(*file.explained.diagnostics, *remarks))
    return replace(file, explained=explained)


def _remark(path: str, code: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic("info", code, path, None, None, None, message, hint)
