"""Which files of handlers there are, in the order in which their functions are registered.

Those of the user come first: what installed packages name (by name), then what ``--handlers`` names, as it
was written. Those of the workspace follow: ``.prxbus/handlers``, by file name. A named folder stands for the
files in it, one with an ``__init__.py`` for itself. Names that begin with ``_`` or ``.`` belong to their
neighbours. It refuses to load anything; whether a file can hold a ``@transform`` at all is read off its
bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Final, Literal, NamedTuple

from .discover import Signature, signature

GROUP: Final = "prxbus.handlers"
"""The entry points by which installed packages name their handlers."""

FOLDER: Final = os.path.join(".prxbus", "handlers")
"""Where a workspace keeps its own."""

FILES: Final = 256
"""Files of one folder that are looked at."""

_WORD: Final = b"transform"
_READ_BYTES: Final = 1_048_576


class Place(NamedTuple):
    """One file of handlers, or one entry point; ``place`` is its absolute path, or its name."""

    kind: Literal["file", "entry_point"]
    place: str

    @property
    def name(self) -> str:
        """What its handlers are called after."""
        return os.path.basename(self.place) if self.kind == "file" else self.place


def of_packages() -> list[Place]:
    """The entry points of installed packages that may hold transforms."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return [Place("entry_point", point.name) for point in points if _may_hold(point.module)]


def of_paths(paths: Iterable[str]) -> list[Place]:
    """The files that these files and folders stand for, in order, each once."""
    found: dict[Place, None] = {}
    for path in paths:
        path = os.path.abspath(path)
        for each in _expand(path):
            found.setdefault(Place("file", each))
    return list(found)


def of_workspace(workspace: str) -> list[Place]:
    """The files of a workspace."""
    folder = os.path.join(os.path.abspath(workspace), FOLDER)
    return [Place("file", each) for each in _members(folder)]


def mentions_transform(path: str) -> bool:
    """Whether a file, or one in a package's folder, has the word in it without which nothing transforms."""
    if not os.path.isdir(path):
        return _has_word(path)
    for folder, _, names in os.walk(path):
        if any(name.endswith(".py") and _has_word(os.path.join(folder, name)) for name in names):
            return True
    return False


def look(files: Iterable[str]) -> tuple[tuple[str, Signature], ...]:
    """What these files look like from outside; equal looks mean: probably the same bytes."""
    return tuple((path, signature(path)) for path in files)


def _expand(path: str) -> list[str]:
    if os.path.isdir(path) and not os.path.isfile(os.path.join(path, "__init__.py")):
        return _members(path)
    return [path]


def _members(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    found = []
    for name in names:
        path = os.path.join(folder, name)
        if name.startswith(("_", ".")):
            continue
        is_package = os.path.isfile(os.path.join(path, "__init__.py"))
        if is_package or (name.endswith(".py") and not os.path.isdir(path)):
            found.append(path)
    return found[:FILES]


def _has_word(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return _WORD in file.read(_READ_BYTES)
    except OSError:
        return False


def _may_hold(module: str) -> bool:
    """Whether a module may hold transforms; one whose source cannot be read may."""
    try:
        spec = find_spec(module)
    except Exception:  # its parent package cannot be imported: loading will say so
        return True
    origin = None if spec is None else spec.origin
    if origin is None or not origin.endswith(".py"):
        return True
    return mentions_transform(os.path.dirname(origin) if origin.endswith("__init__.py") else origin)
