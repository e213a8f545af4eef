"""Every kind of file that can be explained, in one table, and which of them a file is.

A file is taken for what its name says; a name that says nothing leaves it to the content. It refuses to know
what the files mean: each row names who does.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ..dialects.librefang_rules import FILE_NAME as LIBREFANG_FILE
from ..dialects.prx_plugin_rules import FILE_NAME as PLUGIN_FILE
from ..dialects.prx_plugin_rules import MAX_PLUGINS
from ..dialects.prx_rules import FILE_NAME as PRX_FILE
from ..dialects.python_explanation import FOLDER as PYTHON_FOLDER
from ..dialects.python_explanation import NAME as PYTHON
from ..dialects.toml_text import has_endless_key
from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import Explained
from . import discover, handlers, librefang_home, plugins
from .hook_source import Content, Reading
from .inspect_files import (
    CONFIGURATION,
    World,
    explain_configuration,
    explain_hooks_json,
    explain_librefang,
    explain_plugin,
    explain_unit,
    hooks_folder_of,
    is_hook_file_name,
    plugin_place,
    read_configuration,
    read_hooks_json,
    read_librefang,
    read_plugin,
    read_unit,
)

CONFIGURATION_FILE: Final = ".prxbus/config.toml"

PYTHON_IMPORT: Final = b"subscribers.handlers"
"""What a file of handlers imports, and few others do."""

PYTHON_BECAUSE: Final = "it is Python that imports subscribers.handlers"

LOOKED_AT: Final = 1_048_576
"""Bytes of a file with a name that says nothing that are looked at."""


class Finding(NamedTuple):
    """The files of a kind in a folder, and what there is to say about the places where they lie."""

    paths: tuple[str, ...]
    remarks: tuple[Diagnostic, ...] = ()


class Kind(NamedTuple):
    """A kind of file.

    ``name`` is what ``--dialect`` calls it, ``file`` how people recognise it. ``is_named`` says whether a
    path is one, ``is_like`` why an ending and a decoded document are. ``find`` lists those of a folder,
    ``workspace`` says to which folder one belongs, ``read`` and ``explain`` do what they say.
    """

    name: str
    file: str
    is_named: Callable[[str], bool]
    is_like: Callable[[str, bytes, Mapping[str, Any]], str | None]
    find: Callable[[str], Finding]
    workspace: Callable[[str], str]
    read: Callable[[str], Reading]
    explain: Callable[[bytes, str, str, World], Explained]


def recognise(path: str, text: bytes) -> tuple[Kind, str] | None:
    """The kind of a file and why it is taken for that; None when it is none that is known."""
    for kind in KINDS:
        if kind.is_named(path):
            return kind, because_named(kind, path)
    document = _decoded(path, text)
    for kind in KINDS:
        reason = kind.is_like(os.path.splitext(path)[1], text, document)
        if reason is not None:
            return kind, reason
    return None


def because_named(kind: Kind, path: str) -> str:
    """That a file is taken for what its name says, or nearly says."""
    if kind.name == PYTHON:
        return f"it lies in {PYTHON_FOLDER}" if kind.is_named(path) else PYTHON_BECAUSE
    is_exact = path.endswith(f"/{kind.file}")
    return f"its name is {kind.file}" if is_exact else f"its name is nearly {kind.file}"


def supported() -> str:
    """The kinds in words: ``hooks.json (prx), plugin.toml (prx-plugin)``."""
    return ", ".join(f"{kind.file} ({kind.name})" for kind in KINDS)


def _decoded(path: str, text: bytes) -> Mapping[str, Any]:
    """A file with an ending that says how it is written, decoded; empty where that cannot be done."""
    try:
        if path.endswith(".json"):
            found = json.loads(text)
        elif path.endswith(".toml") and not has_endless_key(text):
            found = tomllib.loads(text.decode())
        else:
            return {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _existing(*paths: str) -> Finding:
    return Finding(tuple(path for path in paths if os.path.lexists(path)))


def _is_prx(ending: str, _text: bytes, document: Mapping[str, Any]) -> str | None:
    is_it = ending == ".json" and isinstance(document.get("hooks"), dict)
    return "it is JSON with an object hooks" if is_it else None


def _is_plugin(ending: str, _text: bytes, document: Mapping[str, Any]) -> str | None:
    is_it = ending == ".toml" and "plugin" in document and "capabilities" in document
    return "it is TOML with plugin and capabilities" if is_it else None


def _plugins_of(folder: str) -> Finding:
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
    return Finding((*_existing(os.path.join(folder, PLUGIN_FILE)).paths, *found), remarks)


def _hooks_of_home(folder: str) -> Finding:
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
    remarks = [d for d in listing.remarks if d.severity != "info" and d.code != "misnamed_file"]
    return Finding((*own, *sorted({*listing.files, *misnamed})), tuple(remarks))


def _is_python(ending: str, text: bytes, _document: Mapping[str, Any]) -> str | None:
    is_it = ending == ".py" and PYTHON_IMPORT in text
    return PYTHON_BECAUSE if is_it else None


def _python_units_of(folder: str) -> Finding:
    """The units of a workspace, and those that lie in the folder itself and import what handlers import."""
    found = handlers.find(folder, (), installed=False)
    own = [path for path in handlers.find(None, (folder,), installed=False).units if _imports(path.path)]
    return Finding(tuple(unit.path for unit in (*found.units, *own)), found.diagnostics)


def _imports(path: str) -> bool:
    """Whether a file, or a file of a package, imports what handlers import."""
    names = [path]
    if os.path.isdir(path):
        with suppress(OSError):
            names = [os.path.join(path, name) for name in os.listdir(path) if name.endswith(".py")]
    readings = (discover.read(name, LOOKED_AT) for name in names[: handlers.MAX_UNITS])
    return any(isinstance(reading, Content) and PYTHON_IMPORT in reading.text for reading in readings)


def _workspace_of_unit(path: str) -> str:
    """The workspace of a file in ``.prxbus/handlers``; of any other, its folder."""
    folder = os.path.dirname(path)
    return folder.removesuffix(f"/{PYTHON_FOLDER}")


def _spellings(folder: str) -> list[str]:
    """What lies in a folder under the name of a hook file, in any spelling."""
    try:
        return sorted(name for name in os.listdir(folder) if is_hook_file_name(name))
    except OSError:
        return []


def _error(code: str, path: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic("error", code, path, None, None, None, message, hint)


def _workspace_of_plugin(path: str) -> str:
    place = plugin_place(path)
    return os.path.dirname(path) if place is None else place[0]


KINDS: Final = (
    Kind(
        "prx",
        PRX_FILE,
        lambda path: os.path.basename(path) == PRX_FILE,
        _is_prx,
        lambda folder: _existing(os.path.join(folder, PRX_FILE)),
        os.path.dirname,
        read_hooks_json,
        explain_hooks_json,
    ),
    Kind(
        "prx-plugin",
        PLUGIN_FILE,
        lambda path: os.path.basename(path) == PLUGIN_FILE,
        _is_plugin,
        _plugins_of,
        _workspace_of_plugin,
        read_plugin,
        explain_plugin,
    ),
    Kind(
        "librefang",
        LIBREFANG_FILE,
        lambda path: is_hook_file_name(os.path.basename(path)),
        lambda _ending, _text, _document: None,
        _hooks_of_home,
        hooks_folder_of,
        read_librefang,
        explain_librefang,
    ),
    Kind(
        CONFIGURATION,
        CONFIGURATION_FILE,
        lambda path: path.endswith(f"/{CONFIGURATION_FILE}"),
        lambda _ending, _text, _document: None,
        lambda folder: _existing(os.path.join(folder, CONFIGURATION_FILE)),
        lambda path: os.path.dirname(os.path.dirname(path)),
        read_configuration,
        explain_configuration,
    ),
    Kind(
        PYTHON,
        f"{PYTHON_FOLDER}/*.py",
        lambda path: os.path.dirname(path).endswith(f"/{PYTHON_FOLDER}"),
        _is_python,
        _python_units_of,
        _workspace_of_unit,
        read_unit,
        explain_unit,
    ),
)
"""The kinds, in the order in which a folder is gone through: commands that transform before functions."""
