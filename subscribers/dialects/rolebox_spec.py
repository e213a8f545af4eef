"""What a role.yaml says, as values: the role, its hooks in the order of the file, and its functions.

Decides the words in which everything behind the reader speaks of a role. Pure data: it refuses to know how a
file is read, where a module lies and what runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..hooks.diagnostics import Diagnostic

Phase: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class RoleHook:
    """An entry of ``hooks.custom`` that may run.

    ``index`` is its place in the list, from 0: the order of registration. ``events`` are names of the page,
    each once. ``module`` is as written. ``config`` is JSON text of an object, None where there is none.
    ``tools`` and ``event_types`` are the filter's lists, None where it has none. Hooks of one phase run by
    ``priority``, then by ``index``. ``line`` and ``column`` are where the entry begins, ``module_at`` where
    its module is written.
    """

    index: int
    name: str
    description: str
    events: tuple[str, ...]
    module: str
    config: str | None
    tools: tuple[str, ...] | None
    event_types: tuple[str, ...] | None
    priority: float
    phase: Phase
    line: int
    column: int
    module_at: tuple[int, int]


@dataclass(frozen=True, slots=True)
class RoleFunction:
    """A function of a role: instructions that are part of the system prompt while it is active.

    ``text`` is what its file says, None where no file was found and only its name is known. ``params`` are
    the defaults of the placeholders in the text. Active functions are shown by ``priority``, smaller first,
    and only once all that it ``requires`` are active. ``marked``: its own file asks to be activated with the
    first message. ``locked``: its own file says that what was activated so stays.
    """

    name: str
    description: str = ""
    text: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    priority: float = 50.0
    marked: bool = False
    locked: bool = False
    path: str | None = None

    def __hash__(self) -> int:
        """Of its name and text; the defaults of its placeholders cannot be hashed."""
        return hash((self.name, self.text))


@dataclass(frozen=True, slots=True)
class Role:
    """A role.yaml as read.

    ``name`` is what the file calls the role, None where it does not; ``path`` is how diagnostics name the
    file. ``hooks`` are those that may run; ``bad_hooks`` counts the entries that may not. ``functions`` are
    the names the role has: rolebox's own, the file's, without the ``disabled`` ones. ``auto_activate`` is the
    top-level list, ``builtin_auto_activate`` the switch ``hooks.builtin.auto_activate``, None where it is not
    written. ``locked``: what was activated by itself stays active. ``refused``: nothing of the file can be
    used. ``foreign``: it belongs to something else and is left alone; it is refused then, too, and that is no
    error.
    """

    path: str
    name: str | None = None
    description: str = ""
    hooks: tuple[RoleHook, ...] = ()
    builtin_auto_activate: bool | None = None
    auto_activate: tuple[str, ...] = ()
    locked: bool = False
    functions: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    bad_hooks: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()
    refused: bool = False
    foreign: bool = False
