"""Where handlers in Python are found: a workspace's folder, named files and folders, installed packages.

A unit is what one worker loads: a file, a folder that is a package (it has an ``__init__.py``), or the entry
point of an installed package, in the group ``prxbus.handlers``. Files whose names begin with ``_`` or ``.``
are neighbours that units may import, not units. Refuses to execute anything, and to know whether the
workspace may be trusted: it was named before it came here.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ..hooks.diagnostics import Diagnostic
from .discover import Signature, signature

FOLDER: Final = os.path.join(".prxbus", "handlers")
GROUP: Final = "prxbus.handlers"
MAX_UNITS: Final = 64
"""Units that are looked at: each is a process."""

DIGESTED_BYTES: Final = 1_048_577
"""First bytes of a file that its digest is of."""

Origin: TypeAlias = Literal["workspace", "named", "installed"]


@dataclass(frozen=True, slots=True)
class HandlerUnit:
    """What one worker loads. ``name`` is unique among the units; ``entry_point`` that of an installed one."""

    name: str
    path: str
    origin: Origin
    entry_point: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The units that there are, in order, and what there is to say about the places."""

    units: tuple[HandlerUnit, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def folder_of(workspace: str) -> str:
    """The folder of a workspace's handlers, whether it exists or not."""
    return os.path.join(os.path.abspath(workspace), FOLDER)


def find(workspace: str | None, named: Sequence[str], *, installed: bool) -> Found:
    """Every unit that there is now. Raises nothing: what cannot be had is said."""
    faults: list[Diagnostic] = []
    paths: dict[str, Origin] = {}
    if workspace is not None:
        for path in _units_in(folder_of(workspace), faults, may_be_missing=True):
            paths.setdefault(path, "workspace")
    for name in named:
        for path in _units_at(os.path.abspath(name), faults):
            paths.setdefault(path, "named")
    names = _names(paths)
    units = [HandlerUnit(names[path], path, origin) for path, origin in paths.items()]
    units += entry_points() if installed else []
    if len(units) > MAX_UNITS:
        message = f"{len(units) - MAX_UNITS} of {len(units)} files are not loaded: there may be {MAX_UNITS}"
        faults.append(_fault("too_many_files", units[MAX_UNITS].path, message, "make packages of some"))
    return Found(tuple(units[:MAX_UNITS]), tuple(faults))


def entry_points() -> list[HandlerUnit]:
    """What installed packages offer; the first of a name."""
    from importlib import metadata  # 15 ms of imports

    found: dict[str, HandlerUnit] = {}
    for point in metadata.entry_points(group=GROUP):
        unit = HandlerUnit(f"{point.name} (installed)", point.value, "installed", point.name)
        found.setdefault(point.name, unit)
    return [found[name] for name in sorted(found)]


def digest(files: Iterable[str]) -> str:
    """Of the content of ``files``: equal ones mean that there is nothing new."""
    total = hashlib.sha256()
    for file in sorted(set(files)):
        total.update(f"{file}\0".encode("utf-8", "surrogateescape"))
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            with open(descriptor, "rb") as stream:
                content = stream.read(DIGESTED_BYTES) if _is_regular(descriptor) else b""
            total.update(b"%d\0%b" % (len(content), content))
        except OSError as error:
            total.update(b"-%d" % (error.errno or 0))
    return total.hexdigest()


def first_file(unit: HandlerUnit) -> str | None:
    """The file that is executed first; None for an entry point, where only loading tells."""
    if unit.entry_point is not None:
        return None
    return os.path.join(unit.path, "__init__.py") if os.path.isdir(unit.path) else unit.path


def looks(files: Iterable[str]) -> tuple[tuple[str, Signature], ...]:
    """What ``files`` look like from outside; cheap enough to ask twice a second."""
    return tuple((file, signature(file)) for file in sorted(set(files)))


def _units_at(path: str, faults: list[Diagnostic]) -> list[str]:
    """The units at a path that somebody has named."""
    if os.path.isdir(path):
        return [path] if _is_package(path) else _units_in(path, faults, may_be_missing=False)
    if not os.path.exists(path):
        faults.append(_fault("missing", path, "there is no such file or folder", None))
        return []
    if not path.endswith(".py"):
        faults.append(_fault("not_python", path, "handlers are files that end in .py", None))
        return []
    return [path]


def _units_in(folder: str, faults: list[Diagnostic], *, may_be_missing: bool) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if _is_unit(entry))
    except FileNotFoundError:
        if may_be_missing:
            return []
        faults.append(_fault("missing", folder, "there is no such folder", None))
    except OSError as error:
        faults.append(_fault("unreadable", folder, f"it cannot be read: {error.strerror}", None))
    return []


def _is_unit(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(("_", ".")):
        return False
    try:
        return _is_package(entry.path) if entry.is_dir() else entry.name.endswith(".py") and entry.is_file()
    except OSError:  # a link that leads to itself
        return False


def _is_package(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "__init__.py"))


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _names(paths: Iterable[str]) -> dict[str, str]:
    """For each path as many of its last parts as make it unique."""
    names: dict[str, str] = {}
    for path in paths:
        parts = path.split(os.sep)
        candidates = (os.sep.join(parts[-count:]) for count in range(1, len(parts) + 1))
        taken = set(names.values())
        names[path] = next((name for name in candidates if name not in taken), path)
    return names


def _fault(code: str, path: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic("error", code, path, None, None, None, message, hint)
