"""The roles that were named, each a directory: read, with its modules and functions.

Decides what belongs to a role: a hook without a module is said, and leaves the others. It refuses to load a
module, and to know whose sessions a role is for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Final, NamedTuple

from ..dialects import rolebox_rules as rules
from ..dialects.rolebox_file import read_role
from ..dialects.rolebox_function import automatic, locked
from ..dialects.rolebox_spec import Role, RoleFunction, RoleHook
from ..hooks.diagnostics import Diagnostic, Severity, quote
from ..hooks.module_hook import ModuleHook
from ..hooks.withheld import without_secrets
from . import discover
from .hook_source import Content, Reading, Unreadable
from .role_function_files import read_functions
from .role_modules import EVERYTHING, Languages, NoModule, resolve_module

_WARNINGS: Final = frozenset({"no_runtime"})
"""Reasons why a hook has no module that are no fault of the role."""

SHOWN_ROLES: Final = 5
"""Roles that are named to somebody who has named the folder around them."""
LOOKED_AT: Final = 1_000
"""Entries of a folder among which roles are sought that were meant."""


class LoadedHook(NamedTuple):
    """A hook of a role, its module, and what there is to say of the module; without one it does not run."""

    hook: RoleHook
    module: ModuleHook | None
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedRole:
    """A role as it is in force.

    ``id`` is the name of its directory. ``functions`` are those that it has, rolebox's own among them;
    ``automatic`` are the names that the first message of a session activates, ``locked`` those of them that
    stay. ``diagnostics`` is everything that there is to say, that of ``hooks`` and of ``role`` included.
    ``kept``: the file cannot be used, and this is what it said before.
    """

    role: Role
    id: str
    directory: str
    hooks: tuple[LoadedHook, ...] = ()
    functions: tuple[RoleFunction, ...] = ()
    automatic: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    kept: bool = False

    @property
    def name(self) -> str:
        """What the file calls the role, or its id."""
        return self.role.name or self.id

    @property
    def modules(self) -> tuple[ModuleHook, ...]:
        """The modules to load, in the order of registration."""
        return tuple(hook.module for hook in self.hooks if hook.module is not None)


def load_role(
    directory: str, languages: Languages = EVERYTHING, environ: Mapping[str, str] | None = None
) -> LoadedRole:
    """Read a role as it is now. Raises nothing: what is wrong is a diagnostic.

    ``directory`` may also be its role.yaml. ``environ`` is what ``{env:NAME}`` is taken from, by default that
    of this process without prxbus's own secrets.
    """
    directory = directory_of(directory)
    environ = without_secrets(os.environ if environ is None else environ)
    role = role_of(directory, read_role_file(os.path.join(directory, rules.FILE_NAME)), environ)
    return with_files(directory, role, languages, environ)


def directory_of(written: str) -> str:
    """The absolute path of the role's directory that somebody names, or whose file they name."""
    path = os.path.abspath(written)
    return os.path.dirname(path) if os.path.basename(path) == rules.FILE_NAME else path


def directories_of(named: Iterable[str]) -> tuple[str, ...]:
    """The directories of roles, each once, in the order in which they were named."""
    found: dict[str, str] = {}
    for name in named:
        directory = directory_of(name)
        found.setdefault(os.path.realpath(directory), directory)
    return tuple(found.values())


def read_role_file(path: str) -> Reading:
    """The bytes of a ``role.yaml``, or why there are none."""
    return discover.read(path, rules.MAX_FILE_BYTES)


def role_of(directory: str, reading: Reading, environ: Mapping[str, str]) -> Role:
    """What the file of a directory says, or the role that says why there is none."""
    path = os.path.join(directory, rules.FILE_NAME)
    if isinstance(reading, Content):
        return read_role(reading.text, path, environ)
    return Role(path, diagnostics=(_unread(directory, path, reading),), refused=True)


def _unread(directory: str, path: str, reading: Reading) -> Diagnostic:
    """Why there is no file to read."""
    if isinstance(reading, Unreadable):
        code, message, hint = reading.code, reading.message, reading.hint
    elif not os.path.isdir(directory):
        code, message, hint = "no_directory", "there is no such directory", "correct the path"
    else:
        code, message = "no_role", f"{quote(directory)} has no {rules.FILE_NAME}"
        hint = _other_spelling(directory) or roles_below(directory) or "name a directory that has one"
    return Diagnostic("error", code, path, None, None, None, message, hint)


def _other_spelling(directory: str) -> str | None:
    try:
        names = os.listdir(directory)
    except OSError:
        return None
    found = next((name for name in names if name.lower() in ("role.yaml", "role.yml")), None)
    return (
        None if found is None else f"rename {quote(found)}: the name is {rules.FILE_NAME}, in this spelling"
    )


def roles_below(directory: str) -> str | None:
    """What to do where the roles lie one level deeper; None where none does."""
    names = sorted(_folders_with_a_role(directory))
    if not names:
        return None
    such = ", ".join(map(quote, names[:SHOWN_ROLES])) + (", ..." if len(names) > SHOWN_ROLES else "")
    return f"name a directory that has one, as these below it: {such}"


def _folders_with_a_role(directory: str) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            for entry in islice(entries, LOOKED_AT):
                if os.path.isfile(os.path.join(entry.path, rules.FILE_NAME)):
                    yield entry.name
    except OSError:
        return


def with_files(directory: str, role: Role, languages: Languages, environ: Mapping[str, str]) -> LoadedRole:
    """The role of a directory, by its absolute path, with what lies around its file."""
    name = os.path.basename(directory)
    ids = _ids(directory, role.hooks)
    hooks = tuple(_hook(directory, role, hook, ids[hook.index], languages) for hook in role.hooks)
    functions, remarks = ((), ()) if role.refused else read_functions(directory, role, environ)
    said = [*role.diagnostics, *(d for hook in hooks for d in hook.diagnostics)]
    said.sort(key=lambda remark: (remark.line or 0, remark.column or 0))
    return LoadedRole(
        role,
        name,
        directory,
        hooks,
        functions,
        automatic(role, functions),
        locked(role, functions),
        (*said, *remarks),
    )


def _ids(directory: str, hooks: Iterable[RoleHook]) -> dict[int, str]:
    """An id for each hook, by its name: an entry that is added leaves the others what they are."""
    found: dict[str, int] = {}
    for hook in hooks:
        first = f"{directory}#{hook.name}"
        further = (f"{first}#{number}" for number in count(2))
        found[next(free for free in chain((first,), further) if free not in found)] = hook.index
    return {index: hook_id for hook_id, index in found.items()}


def _hook(directory: str, role: Role, hook: RoleHook, id: str, languages: Languages) -> LoadedHook:
    found = resolve_module(directory, hook.module, languages)
    if isinstance(found, NoModule):
        severity: Severity = "warning" if found.code in _WARNINGS else "error"
        field = f"hooks.custom[{hook.index}].module"
        said = Diagnostic(severity, found.code, role.path, *hook.module_at, field, found.message, found.hint)
        return LoadedHook(hook, None, (said,))
    name = role.name or os.path.basename(directory)
    return LoadedHook(hook, ModuleHook(id, hook.name, found.path, found.digest, hook.config, name))
