"""Everything about one role: its hooks and functions, whether its modules load, and whether it has changed.

Decides what makes a check fail: an error in its files, a module that is not there or does not load, one that
exports no handler that an event could call, files that differ from what was accepted or installed. What
cannot be verified is said, and fails nothing. A check loads the modules, in processes that end with it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..config.schema import Roles
from ..dialects import rolebox_rules
from ..hooks.diagnostics import Diagnostic
from ..hooks.module_hook import HANDLER_OF
from ..hooks.module_plan import State
from ..hooks.trust_record import Changes, compare
from ..runtimes.node_program import NodeMissing, NodeProgram, find_node, node_environment
from ..sources.record_files import RecordUnusable
from ..sources.role_directories import LoadedHook, LoadedRole, directory_of, load_role, roles_below
from ..sources.role_inspection import configured_directories
from ..sources.role_integrity import Integrity, NoIntegrity, integrity_of
from ..sources.role_lock import LockCheck, Sort, check_lock
from ..sources.role_records import RoleRecord, RoleRecords
from .roles_hosts import RolesHosts, languages

LOAD_S: Final = 60.0
"""Seconds that all modules together may take to load; one that hangs takes a third of them."""
CLOSE_S: Final = 2.0

_SORT_S: Final = 20.0
_SORT: Final = (
    "let text = '';"
    "process.stdin.on('data', (piece) => { text += piece; }).on('end', () => {"
    "  const paths = JSON.parse(text);"
    "  process.stdout.write(JSON.stringify(paths.sort((a, b) => a.localeCompare(b))));"
    "});"
)


class UnknownRole(Exception):
    """No role is called so, or several are; the text says which there are."""


@dataclass(frozen=True, slots=True)
class HookInfo:
    """A hook, and how its module stands; ``state`` None: nobody has loaded it."""

    loaded: LoadedHook
    state: State | None = None

    @property
    def problem(self) -> str | None:
        """What keeps the hook from running; None: nothing that is known."""
        if self.loaded.module is None:
            return next((said.message for said in self.loaded.diagnostics), "its module cannot be found")
        if self.state is None:
            return None
        if self.state.name == "loading":
            return f"its module is not loaded after {LOAD_S:g} s"
        if self.state.name != "loaded":
            return self.state.reason or f"its module is {self.state.name}"
        if not set(self.state.handlers).intersection(HANDLER_OF.values()):
            return "its module exports no handler that an event could call"
        return None

    @property
    def without_handler(self) -> tuple[str, ...]:
        """The events of the hook that its module has no handler for; nothing happens at those."""
        if self.state is None or self.state.name != "loaded":
            return ()
        handlers = self.state.handlers
        return tuple(event for event in self.loaded.hook.events if HANDLER_OF[event] not in handlers)


@dataclass(frozen=True, slots=True)
class IntegrityInfo:
    """The role's files now, and as they were accepted, if that is known; ``problem`` says why it is not."""

    now: Integrity | None
    record: RoleRecord | None
    problem: str | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the files are those that were accepted; None: there is nothing to compare with."""
        if self.now is None:
            return False
        return None if self.record is None else self.now.hash == self.record.hash

    @property
    def changes(self) -> Changes:
        """How the files differ from what was accepted."""
        if self.now is None or self.record is None:
            return Changes()
        return compare(self.record.files, self.now.files)


@dataclass(frozen=True, slots=True)
class RoleInfo:
    """Everything. ``checked``: its modules were loaded."""

    role: LoadedRole
    hooks: tuple[HookInfo, ...]
    integrity: IntegrityInfo
    lock: LockCheck | None
    checked: bool
    diagnostics: tuple[Diagnostic, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong with it, as far as it was looked at."""
        return (
            not self.role.role.refused
            and not any(said.severity == "error" for said in self.diagnostics)
            and all(hook.problem is None for hook in self.hooks)
            and self.integrity.passed is not False
            and (self.lock is None or self.lock.passed is not False)
        )


def find_role(named: str, settings: Roles) -> str:
    """The directory that somebody means: that of a role, or a configured role by its id or name.

    Raises :class:`UnknownRole`.
    """
    directory = directory_of(named)
    if os.path.lexists(os.path.join(directory, rolebox_rules.FILE_NAME)):
        return directory
    below = roles_below(directory)
    hint = "" if below is None else f"; {below}"
    if os.sep in named:
        raise UnknownRole(f"{named!r} is no role: there is no {directory}/{rolebox_rules.FILE_NAME}{hint}")
    configured = configured_directories(settings)
    found = [path for path in configured if os.path.basename(path) == named]
    found = found or [path for path in configured if load_role(path).role.name == named]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownRole(f"{named!r} names {len(found)} configured roles: write one of {', '.join(found)}")
    known = ", ".join(map(os.path.basename, configured)) or "none"
    what = "a directory without a role" if os.path.isdir(directory) else "no directory"
    raise UnknownRole(f"{named!r} is {what}, and no configured role (roles.dirs names: {known}){hint}")


def look(directory: str, settings: Roles, environ: Mapping[str, str], *, loads: bool) -> RoleInfo:
    """The role of a directory, as it is now. ``loads``: its modules are loaded, which executes them."""
    node = find_node(settings.node, environ)
    role = load_role(directory, languages(node), environ)
    states = _states(role, node, settings) if loads else {}
    hooks = tuple(
        HookInfo(hook, None if hook.module is None else states.get(hook.module.id)) for hook in role.hooks
    )
    lock = check_lock(role.directory, environ, _sorter(node, environ))
    return RoleInfo(role, hooks, _integrity(role), lock, loads, role.diagnostics)


def accept(info: RoleInfo, at: str) -> RoleInfo:
    """Record the role as it is. Raises :class:`RecordUnusable`."""
    now = info.integrity.now
    if now is None:
        raise RecordUnusable(f"there is nothing to accept: {info.integrity.problem}")
    RoleRecords().write(info.role.directory, at, now.hash, now.files)
    return RoleInfo(
        info.role, info.hooks, _recorded(info.role, now), info.lock, info.checked, info.diagnostics
    )


def _states(role: LoadedRole, node: NodeProgram | NodeMissing, settings: Roles) -> Mapping[str, State]:
    """How the modules stand once they were loaded; nothing of them is left."""
    hosts = RolesHosts(node, workers=settings.workers, memory_mb=settings.memory_mb)
    try:
        hosts.load(role.modules)
        hosts.settle(LOAD_S)
        return hosts.states()
    finally:
        hosts.close(CLOSE_S)


def _integrity(role: LoadedRole) -> IntegrityInfo:
    try:
        now = integrity_of(role.directory, (module.path for module in role.modules))
    except NoIntegrity as error:
        return IntegrityInfo(None, None, str(error))
    return _recorded(role, now)


def _recorded(role: LoadedRole, now: Integrity) -> IntegrityInfo:
    try:
        return IntegrityInfo(now, RoleRecords().read(role.directory))
    except RecordUnusable as error:
        return IntegrityInfo(now, None, str(error))


def _sorter(node: NodeProgram | NodeMissing, environ: Mapping[str, str]) -> Sort:
    """Sorting as JavaScript compares texts, by Node where there is one."""

    def sort(paths: Sequence[str]) -> Sequence[str] | None:
        if isinstance(node, NodeMissing):
            return None
        try:
            answer = subprocess.run(
                [node.path, "-e", _SORT],
                input=json.dumps(list(paths)).encode(),
                capture_output=True,
                timeout=_SORT_S,
                env=node_environment(environ),
                check=True,
            )
            return [str(path) for path in json.loads(answer.stdout)]
        except (OSError, subprocess.SubprocessError, ValueError):
            return None

    return sort
