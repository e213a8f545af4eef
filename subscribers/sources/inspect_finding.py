"""Where the files of each kind lie in a folder, and what is said of places that cannot be searched.

It decides what belongs to a workspace or a home. It refuses to know what is in the files, except whether a
file of Python imports what handlers import.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from ..dialects.prx_plugin_rules import FILE_NAME as PLUGIN_FILE
from ..dialects.prx_plugin_rules import MAX_PLUGINS
from ..hooks.diagnostics import Diagnostic
from . import discover, handlers, librefang_home, plugins
from .hook_source import Content
from .inspect_files import is_hook_file_name

LOOKED_AT: Final = 1_048_576
"""Bytes of a file with a name that says nothing that are looked at."""

HOME_FOLDER: Final = ".librefang"
"""A home by its name; any other folder ``hooks`` without a hook file is probably something else."""

PYTHON_IMPORT: Final = b"subscribers.handlers"
"""What a file of handlers imports, and few others do."""


class Finding(NamedTuple):
    """The files of a kind in a folder, and what there is to say about the places where they lie."""

    paths: tuple[str, ...]
    remarks: tuple[Diagnostic, ...] = ()


def existing(*paths: str) -> Finding:
    """Those of the paths that there are, also links that lead nowhere."""
    return Finding(tuple(path for path in paths if os.path.lexists(path)))


def plugins_of(folder: str) -> Finding:
    """The manifests of a workspace, and one in the folder itself."""
    listing = plugins.look(folder)
    place = plugins.folder_of(folder)
    found = [os.path.join(place, name, PLUGIN_FILE) for name in listing.names]
    remarks: tuple[Diagnostic, ...] = ()
    if listing.fault is not None:
        fault = listing.fault
        remarks = (_error(fault.code, place, fault.message, fault.hint),)
    elif listing.left_out:
        message = f"{listing.left_out} folders are not looked at: there may be {MAX_PLUGINS}"
        remarks = (_error("too_many_plugins", place, message, "move some of them elsewhere"),)
    return Finding((*existing(os.path.join(folder, PLUGIN_FILE)).paths, *found), remarks)


def hooks_of_home(folder: str) -> Finding:
    """The hook files of a LibreFang home, and one in the folder itself; misspelled ones too."""
    own = [os.path.join(folder, name) for name in _spellings(folder)]
    root = librefang_home.hooks_folder(folder)
    try:
        listing = librefang_home.list_hooks(root)
    except OSError as error:
        message = f"the folder cannot be listed: {error.strerror}"
        unreadable = _error("unreadable_folder", root, message, "let this user read it")
        return Finding(tuple(own), () if isinstance(error, NotADirectoryError) else (unreadable,))
    misnamed = [remark.path for remark in listing.remarks if remark.code == "misnamed_file"]
    is_home = bool(listing.files or misnamed) or os.path.basename(folder) == HOME_FOLDER
    remarks = [
        d for d in listing.remarks if d.code != "misnamed_file" and (is_home or d.code != "no_hook_file")
    ]
    return Finding((*own, *sorted({*listing.files, *misnamed})), tuple(remarks))


def python_units_of(folder: str) -> Finding:
    """The units of a workspace, and those that lie in the folder itself and import what handlers import."""
    found = handlers.find(folder, (), installed=False)
    own = [path for path in handlers.find(None, (folder,), installed=False).units if _imports(path.path)]
    remarks = (*found.diagnostics, *_passed_over(handlers.folder_of(folder)))
    return Finding(tuple(unit.path for unit in (*found.units, *own)), remarks)


def _passed_over(folder: str) -> Iterator[Diagnostic]:
    """What lies in a folder of handlers under the name of such a file, and is none that can be loaded."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    except OSError:  # what there is to say of the folder is said by who looks for handlers
        return
    for name in names:
        path = os.path.join(folder, name)
        why = None if name.startswith(("_", ".")) else _why_passed_over(path)
        if why is not None:
            yield _error("passed_over", path, f"it is not loaded: {why}", "remove it, or mend it")


def _why_passed_over(path: str) -> str | None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "it is a link that leads nowhere"
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    if stat.S_ISDIR(mode):
        has_first = os.path.isfile(os.path.join(path, "__init__.py"))
        return None if has_first else "it is a folder, and no package: it has no __init__.py"
    return None if stat.S_ISREG(mode) else "it is no regular file"


def _imports(path: str) -> bool:
    """Whether a file, or a file of a package, imports what handlers import."""
    names = [path]
    if os.path.isdir(path):
        with suppress(OSError):
            names = [os.path.join(path, name) for name in os.listdir(path) if name.endswith(".py")]
    readings = (discover.read(name, LOOKED_AT) for name in names[: handlers.MAX_UNITS])
    return any(isinstance(reading, Content) and PYTHON_IMPORT in reading.text for reading in readings)


def _spellings(folder: str) -> list[str]:
    """What lies in a folder under the name of a hook file, in any spelling."""
    try:
        return sorted(name for name in os.listdir(folder) if is_hook_file_name(name))
    except OSError:
        return []


def _error(code: str, path: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic("error", code, path, None, None, None, message, hint)
