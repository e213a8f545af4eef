"""Which hook files of the Codex family are in force, in which order, and why the others are not.

    1. the user's own files: ours, BitFun's where it is asked for, those that the user's configuration names
    2. what the user has imported, by import id
    3. the workspace's own files: the same three, where its hooks are switched on
    4. what was imported for the workspace, by import id

Layers add up: nothing replaces or hides anything, and a file that is named twice runs once. Decides that
order and who is switched off. Refuses to read
a file; the files in which agents keep what they run themselves are in no layer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from ..dialects.codex_place import placed
from ..dialects.codex_profiles import CODEX
from .codex_switches import BitFunSwitches, bitfun_folder

if TYPE_CHECKING:
    from ..config.hook_files import HookFile

Scope: TypeAlias = Literal["user", "project"]

OWN_FILE: Final = "hooks.json"
WORKSPACE_FILE: Final = os.path.join(".prxbus", OWN_FILE)
BITFUN_USER_FILE: Final = os.path.join("config", OWN_FILE)
BITFUN_WORKSPACE_FILE: Final = os.path.join(".bitfun", "config", OWN_FILE)

OFF: Final = "hooks.enabled is false, which turns off all hooks"
PROJECT_OFF: Final = "hooks.project_hooks_enabled is false, as it is unless you set it"
BITFUN_OFF: Final = "app.hooks.enabled is false in BitFun's app.json, which turns off all its hooks"
BITFUN_PROJECT_OFF: Final = "app.hooks.project_hooks_enabled is false in BitFun's app.json (the default)"

WARNING: Final = (
    "a workspace's hooks are commands out of its repository: whoever can commit to it can run code on this "
    "machine; switch them on only for repositories that you trust, and look at the file again after a pull"
)
"""The page's warning, told wherever such hooks are or could be switched on."""

REMOTE: Final = (
    "its workspace is remote: hooks are not supported there, because a process here and a path there do not "
    "belong to one file system"
)


class Layer(NamedTuple):
    """A hook file in its place. ``off`` is why it is not in force, None where it is.

    ``name`` is what people are told, such as ``user`` or ``project import 3``. ``on_failure`` holds for
    handlers that do not say for themselves. ``verify`` is asked before each run: why nothing of it may run
    now, or None. ``damage`` is what is wrong with the copy of an import, of which nothing runs then.
    """

    name: str
    path: str
    profile: str
    scope: Scope
    off: str | None = None
    on_failure: Literal["continue", "block"] = "continue"
    verify: Callable[[], str | None] | None = None
    damage: str | None = None


class Switches(NamedTuple):
    """The settings that count here; see ``[hooks]`` of the configuration."""

    enabled: bool = True
    project: bool = False
    bitfun: bool = False
    strict: bool = False


class Imported(Protocol):
    """An enabled import; see :class:`.import_store.EnabledImport`."""

    @property
    def id(self) -> str:
        """What it is called."""

    @property
    def path(self) -> str:
        """The hook file of its snapshot."""

    @property
    def profile(self) -> str:
        """Whose rules hold for it."""

    @property
    def snapshot(self) -> Verified:
        """What was confirmed."""

    @property
    def damage(self) -> str | None:
        """What is wrong with that; None: nothing."""


class Verified(Protocol):
    """A snapshot that can be compared with what was confirmed."""

    def verify(self) -> str | None:
        """What is wrong with it now; None: nothing."""


Imports: TypeAlias = Callable[[Scope], Sequence[Imported]]
"""The enabled imports of a scope."""


def no_imports(_scope: Scope) -> Sequence[Imported]:
    """Where nothing is imported."""
    return ()


def config_folder(environ: Mapping[str, str]) -> str:
    """The folder of our configuration and of the user's own hook file."""
    from ..config.files import user_file

    return os.path.dirname(os.path.abspath(user_file(environ)))


def layers(
    config: str,
    workspace: str | None,
    switches: Switches,
    app: BitFunSwitches,
    files: Sequence[HookFile] = (),
    imports: Imports = no_imports,
    environ: Mapping[str, str] = os.environ,
) -> tuple[Layer, ...]:
    """Every layer in order, those that are switched off too. ``config``: see :func:`config_folder`."""
    found: list[Layer] = [*_scope("user", config, switches, app, files, environ)]
    found += _imported("user", switches, imports)
    if workspace is not None:
        found += _scope("project", workspace, switches, app, files, environ)
        found += _imported("project", switches, imports)
    return tuple(found)


def run_once(found: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers, each file in force where it comes first only, links followed; the others say where that is.

    A failure policy that any of them was configured with holds for the one: it is not to be lost.
    """
    first: dict[str, int] = {}
    kept: list[Layer] = []
    for layer in found:
        place = first.setdefault(os.path.realpath(layer.path), len(kept)) if layer.off is None else len(kept)
        if place < len(kept):
            own = kept[place]
            if layer.on_failure == "block":
                kept[place] = own._replace(on_failure="block")
            layer = layer._replace(
                off=f"it is a file that runs already, and runs once: {own.name}, {own.path}"
            )
        kept.append(layer)
    return tuple(kept)


def _scope(
    scope: Scope,
    folder: str,
    switches: Switches,
    app: BitFunSwitches,
    files: Sequence[HookFile],
    environ: Mapping[str, str],
) -> Iterator[Layer]:
    is_user = scope == "user"
    off = None if switches.enabled else OFF
    own = off if is_user or switches.project else off or PROJECT_OFF
    yield Layer(scope, os.path.join(folder, OWN_FILE if is_user else WORKSPACE_FILE), "codex", scope, own)
    if switches.bitfun:
        place = (
            os.path.join(bitfun_folder(environ), BITFUN_USER_FILE)
            if is_user
            else os.path.join(folder, BITFUN_WORKSPACE_FILE)
        )
        theirs = off if app.enabled else off or BITFUN_OFF
        if not is_user and not app.project:
            theirs = theirs or BITFUN_PROJECT_OFF
        yield Layer(f"BitFun's {scope}", place, "bitfun", scope, theirs)
    for file in files:
        if file.is_workspace != is_user:
            profile = file.profile or profile_of(file.path)
            yield Layer(f"{scope}, configured", file.path, profile, scope, own, file.on_failure)


def _imported(scope: Scope, switches: Switches, imports: Imports) -> Iterator[Layer]:
    off = None if switches.enabled else OFF
    for found in sorted(imports(scope), key=lambda each: each.id):
        name = f"{scope} import {found.id}"
        verify, damage = found.snapshot.verify, found.damage
        yield Layer(name, found.path, found.profile, scope, off, verify=verify, damage=damage)


def profile_of(path: str) -> str:
    """The profile of a hook file by its place and name; ``codex`` where they say nothing."""
    found = placed(path)
    return CODEX.name if found is None else found.profile.name


def is_remote(place: str) -> bool:
    """Whether a working directory is another machine's: a URL other than ``file:``, or ``host:/path``."""
    scheme, separator, _ = place.partition("://")
    if separator:
        return scheme.isascii() and scheme.replace("-", "").replace("+", "").isalnum() and scheme != "file"
    host, colon, rest = place.partition(":/")
    return bool(colon) and bool(host) and "/" not in host and bool(rest) and len(host) > 1


def is_within(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies in it, links followed."""
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return real == root or real.startswith(root.rstrip(os.sep) + os.sep)
