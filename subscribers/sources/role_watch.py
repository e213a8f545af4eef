"""The roles that were named, followed: what of each is in force after a change.

A directory whose role.yaml breaks keeps its last good set, and that is said; one whose file is gone has none.
It refuses to load a module, and to know what a file means.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..dialects import rolebox_rules as rules
from ..dialects.rolebox_spec import Role
from ..hooks.diagnostics import Diagnostic
from ..hooks.withheld import without_secrets
from .discover import Signature, signature
from .hook_source import Content, Reading
from .looking_watch import LookingWatcher
from .role_directories import LoadedRole, directories_of, read_role_file, role_of, with_files
from .role_function_files import place_of_function
from .role_modules import EVERYTHING, Languages, place_of

MAX_ROLES: Final = 64
"""Roles that are loaded at a time."""


class RolesWatch:
    """The roles in force, read anew whenever something of them has changed and come to rest.

    ``on_change`` is called with all of them, in the watch's thread or that of :meth:`rescan`; ``on_error``
    gets what it raises. Thread-safe. What is said of roles is in their ``diagnostics``; the caller tells what
    is new. Roles beyond :data:`MAX_ROLES` are refused.
    """

    def __init__(
        self,
        named: Sequence[str],
        on_change: Callable[[tuple[LoadedRole, ...]], None],
        on_error: Callable[[Exception], None],
        *,
        languages: Languages = EVERYTHING,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        directories = directories_of(named)
        self._directories = directories[:MAX_ROLES]
        self._beyond = tuple(map(_beyond, directories[MAX_ROLES:]))
        self._languages = languages
        self._environ = without_secrets(os.environ if environ is None else environ)
        self._on_change = on_change
        self._lock = threading.Lock()
        self._roles: tuple[LoadedRole, ...] = ()
        self._read: dict[str, tuple[Reading, Role]] = {}
        self._watcher = LookingWatcher(self._look, self.rescan, on_error)
        self._roles = self._loaded()

    @property
    def roles(self) -> tuple[LoadedRole, ...]:
        """Those in force, in the order in which they were named."""
        return self._roles

    def start(self) -> None:
        """Begin to look; what changed since construction is noticed too."""
        self._watcher.start()

    def stop(self) -> None:
        """Stop looking: after this there is no further call. Not from a callback."""
        self._watcher.stop()

    def rescan(self) -> None:
        """Read everything anew, now; ``on_change`` is called in this thread if something is different."""
        with self._lock:
            before, after = self._roles, self._loaded()
            self._roles = after
            if after != before:
                self._on_change(after)

    def _loaded(self) -> tuple[LoadedRole, ...]:
        before = {role.directory: role for role in self._roles}
        found = (self._load(directory, before.get(directory)) for directory in self._directories)
        return (*found, *self._beyond)

    def _load(self, directory: str, before: LoadedRole | None) -> LoadedRole:
        role = self._role(directory)
        if before is None or before.role.refused or not _is_broken(role):
            return with_files(directory, role, self._languages, self._environ)
        message = "the file cannot be used: what it said before stays in force"
        said = Diagnostic("warning", "kept", role.path, None, None, None, message, "correct it")
        kept = with_files(directory, before.role, self._languages, self._environ)
        return replace(kept, diagnostics=(*role.diagnostics, said), kept=True)

    def _role(self, directory: str) -> Role:
        """What the file says now; it is read once as long as its bytes are the same."""
        reading = read_role_file(os.path.join(directory, rules.FILE_NAME))
        known = self._read.get(directory)
        if known is not None and isinstance(reading, Content) and known[0] == reading:
            return known[1]
        role = role_of(directory, reading, self._environ)
        self._read[directory] = (reading, role)
        return role

    def _look(self) -> Signature:
        """Everything that matters, from outside, as one number."""
        looks: list[object] = []
        for directory in self._directories:
            looks.append(signature(os.path.join(directory, rules.FILE_NAME)))
            looks.append(signature(os.path.join(directory, rules.FUNCTIONS_FOLDER)))
        for role in self._roles:
            looks += [signature(path) for path in _places(role)]
        return (hash(tuple(looks)),)


def _beyond(directory: str) -> LoadedRole:
    """One role too many."""
    path = os.path.join(directory, rules.FILE_NAME)
    message = f"{MAX_ROLES} roles are in force, and no more"
    said = Diagnostic("error", "too_many_roles", path, None, None, None, message, "name fewer")
    role = Role(path, diagnostics=(said,), refused=True)
    return LoadedRole(role, os.path.basename(directory), directory, diagnostics=(said,))


def _is_broken(role: Role) -> bool:
    """Whether a file is there and cannot be used; one that is gone, or another's, is no fault."""
    gone = any(said.code in ("no_role", "no_directory") for said in role.diagnostics)
    return role.refused and not role.foreign and not gone


def _places(role: LoadedRole) -> Iterable[str]:
    """The files around a role's own, whether they exist or not."""
    for hook in role.hooks:
        yield place_of(role.directory, hook.hook.module)
    for function in role.functions:
        yield place_of_function(role.directory, function.name)
