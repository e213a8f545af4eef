"""Where the module of a role's hook is on this machine, now, and what its bytes are.

A relative path is one of the role's directory, and may not lead out of it, by ``..`` or a link. An absolute
path may lead anywhere, because somebody wrote it on purpose. The answer is the file itself, links followed,
so that what was looked at is what is loaded. It refuses to load anything, and to know what a module does.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..dialects.nearest import nearest
from ..hooks.diagnostics import printable, quote
from ..hooks.module_hook import SUFFIXES, Language
from . import discover
from .hook_source import Content, Reading, Unreadable

MAX_MODULE_BYTES: Final = 4_194_304
"""Bytes of a module's own file; what it imports is not looked at."""

TYPESCRIPT: Final = frozenset({".ts", ".mts", ".cts"})

NO_RUNTIME_HINT: Final = (
    "install one, or name it with the setting roles.node; the role's other hooks run without it"
)
_NEIGHBOURS: Final = 1_000
"""Files of a folder among which the one is sought that was meant."""


@dataclass(frozen=True, slots=True)
class Languages:
    """Why modules of a language cannot be run on this machine; None: they can.

    ``typescript`` is asked only where ``javascript`` can be run.
    """

    javascript: str | None = None
    typescript: str | None = None

    def against(self, path: str) -> str | None:
        """Why a module of this name cannot be run, None where it can."""
        suffix = os.path.splitext(path)[1]
        if SUFFIXES.get(suffix) != "javascript":
            return None
        if self.javascript is None and suffix in TYPESCRIPT:
            return self.typescript
        return self.javascript


EVERYTHING: Final = Languages()
"""A machine on which every language can be run."""


class Module(NamedTuple):
    """A module's file: its absolute path, links followed, the digest of its bytes, and its language."""

    path: str
    digest: str
    language: Language


class NoModule(NamedTuple):
    """Why a hook has no module: a stable code, the reason, and what to do."""

    code: str
    message: str
    hint: str | None


def place_of(role_dir: str, written: str) -> str:
    """The absolute path that is written, links not followed."""
    return os.path.join(os.path.abspath(role_dir), written)


def resolve_module(role_dir: str, written: str, languages: Languages = EVERYTHING) -> Module | NoModule:
    """The module's file, or why there is none. Raises nothing."""
    found = find_inside(role_dir, written)
    if isinstance(found, NoModule):
        return found
    language = SUFFIXES.get(os.path.splitext(found)[1])
    if language is None:
        kinds = ", ".join(SUFFIXES)
        message = f"{quote(os.path.basename(found))} has no ending of a module"
        return NoModule("unknown_suffix", message, f"the endings are {kinds}")
    reading = discover.read(found, MAX_MODULE_BYTES)
    if not isinstance(reading, Content):
        return _unread(reading)
    reason = languages.against(found)
    if reason is not None:
        return NoModule("no_runtime", reason, NO_RUNTIME_HINT)
    return Module(found, reading.digest, language)


def find_inside(role_dir: str, written: str) -> str | NoModule:
    """The file that a path of a role leads to, links followed, if it may lead there. Raises nothing."""
    try:
        return _find(role_dir, written)
    except (OSError, ValueError) as error:  # a path that this system cannot spell, or may not look at
        reason = getattr(error, "strerror", None) or str(error)
        return NoModule("unreadable_module", f"{quote(written)} cannot be looked at: {reason}", None)


def _find(role_dir: str, written: str) -> str | NoModule:
    root = os.path.realpath(role_dir)
    if not os.path.isabs(written):
        inside = os.path.normpath(os.path.join(root, written))
        if not _is_in(inside, root):
            message = f"{quote(written)} leads out of the role's directory"
            return NoModule("outside_role", message, "put the file into it, or write its absolute path")
    place = os.path.join(root, written)
    real = os.path.realpath(place)
    try:
        mode = os.stat(real).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return _missing(place, written)
    if not os.path.isabs(written) and not _is_in(real, root):
        message = f"{quote(written)} leads out of the role's directory by a link, to {printable(real)}"
        return NoModule("outside_role", message, "put the file into it, or write its absolute path")
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe, socket or device"
        return NoModule("no_file", f"{quote(written)} is {what}, not a file", "name the file in it")
    return real


def _is_in(path: str, root: str) -> bool:
    return path.startswith(root.rstrip(os.sep) + os.sep)


def _missing(place: str, written: str) -> NoModule:
    if os.path.islink(place):
        message = f"{quote(written)} is a link to {printable(os.path.realpath(place))}, which cannot be found"
        return NoModule("missing_module", message, "correct the link")
    folder, name = os.path.split(place)
    message = f"there is no file {quote(written)}: {printable(place)} is looked for"
    if written.startswith("~"):
        return NoModule("missing_module", message, "~ means nothing here: write the absolute path")
    try:
        names = sorted(os.listdir(folder))[:_NEIGHBOURS]
    except OSError:
        return NoModule("missing_module", message, "create the file, or correct the path")
    near = _nearest(name, names)
    if near is None:
        return NoModule("missing_module", message, "create the file, or correct the path")
    meant = os.path.join(os.path.dirname(written), near)
    return NoModule("missing_module", message, f"did you mean {quote(meant)}?")


def _nearest(name: str, names: list[str]) -> str | None:
    """The module that was probably meant, by its name without the ending, which many have in common."""
    stem, ending = os.path.splitext(name)
    modules = [other for other in names if os.path.splitext(other)[1] in SUFFIXES]
    modules.sort(key=lambda other: other.endswith(ending))  # of equal names the last one counts
    by_stem = {os.path.splitext(other)[0]: other for other in modules}
    near = nearest(stem, by_stem)
    return None if near is None else by_stem[near]


def _unread(reading: Reading) -> NoModule:
    if isinstance(reading, Unreadable):
        return NoModule("unreadable_module", reading.message, reading.hint)
    return NoModule("missing_module", "the file is gone", "create it anew")
