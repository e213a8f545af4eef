"""Every kind of file that can be explained, in one table, and which of them a file is.

A file is taken for what its name says; a name that says nothing leaves it to the content. It refuses to know
what the files mean: each row names who does.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from ..dialects import rolebox_rules as rolebox
from ..dialects.codex_profiles import PROFILES
from ..dialects.librefang_rules import FILE_NAME as LIBREFANG_FILE
from ..dialects.prx_plugin_rules import FILE_NAME as PLUGIN_FILE
from ..dialects.prx_rules import FILE_NAME as PRX_FILE
from ..dialects.python_explanation import FOLDER as PYTHON_FOLDER
from ..dialects.python_explanation import NAME as PYTHON
from ..dialects.toml_text import has_endless_key
from ..hooks.explanation import Explained
from . import codex_inspection
from .hook_source import Reading
from .inspect_files import (
    CONFIGURATION,
    explain_configuration,
    explain_hooks_json,
    explain_librefang,
    explain_unit,
    hooks_folder_of,
    is_hook_file_name,
    is_user_configuration,
    read_configuration,
    read_hooks_json,
    read_librefang,
    read_unit,
)
from .inspect_finding import PYTHON_IMPORT, Finding, existing, hooks_of_home, plugins_of, python_units_of
from .inspect_plugins import explain_plugin, plugin_place, read_plugin
from .inspect_world import World
from .role_directories import read_role_file
from .role_inspection import explain_role

CONFIGURATION_FILE: Final = ".prxbus/config.toml"

PYTHON_BECAUSE: Final = "it is Python that imports subscribers.handlers"


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
    if kind.name in PROFILES:
        return codex_inspection.because(path)
    if kind.name == PYTHON:
        return f"it lies in {PYTHON_FOLDER}" if kind.is_named(path) else PYTHON_BECAUSE
    if is_user_configuration(path):
        return "its name is prxbus.toml"
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


def _is_prx(ending: str, _text: bytes, document: Mapping[str, Any]) -> str | None:
    is_it = ending == ".json" and isinstance(document.get("hooks"), dict)
    return "it is JSON with an object hooks" if is_it else None


def _is_plugin(ending: str, _text: bytes, document: Mapping[str, Any]) -> str | None:
    is_it = ending == ".toml" and "plugin" in document and "capabilities" in document
    return "it is TOML with plugin and capabilities" if is_it else None


def _is_python(ending: str, text: bytes, _document: Mapping[str, Any]) -> str | None:
    is_it = ending == ".py" and PYTHON_IMPORT in text
    return PYTHON_BECAUSE if is_it else None


def _family(name: str, file: str) -> Kind:
    """The hook files of one profile of the Codex family."""
    return Kind(
        name,
        file,
        partial(codex_inspection.is_named, name),
        lambda ending, _text, document: codex_inspection.is_like(name, ending, document),
        lambda folder: Finding(tuple(codex_inspection.files_in(name, folder))),
        codex_inspection.workspace_of,
        partial(codex_inspection.read, name),
        partial(codex_inspection.explain_file, name),
    )


def _explain_prx(text: bytes, path: str, workspace: str, world: World) -> Explained:
    """A PRX ``hooks.json``, unless it is plainly a hook file of the Codex family."""
    found = codex_inspection.foreign(path, _decoded(path, text))
    return explain_hooks_json(text, path, workspace, world) if found is None else found


def _workspace_of_unit(path: str) -> str:
    """The workspace of a file in ``.prxbus/handlers``; of any other, its folder."""
    folder = os.path.dirname(path)
    return folder.removesuffix(f"/{PYTHON_FOLDER}")


def _folder_of_configuration(path: str) -> str:
    """The folder that commands of a configuration are relative to."""
    folder = os.path.dirname(path)
    return folder if is_user_configuration(path) else os.path.dirname(folder)


def _workspace_of_plugin(path: str) -> str:
    place = plugin_place(path)
    return os.path.dirname(path) if place is None else place[0]


KINDS: Final = (
    _family("codex", ".prxbus/hooks.json"),
    _family("bitfun", ".bitfun/config/hooks.json"),
    _family("claude", ".claude/settings.json"),
    Kind(
        "prx",
        PRX_FILE,
        lambda path: os.path.basename(path) == PRX_FILE,
        _is_prx,
        lambda folder: existing(os.path.join(folder, PRX_FILE)),
        os.path.dirname,
        read_hooks_json,
        _explain_prx,
    ),
    Kind(
        "prx-plugin",
        PLUGIN_FILE,
        lambda path: os.path.basename(path) == PLUGIN_FILE,
        _is_plugin,
        plugins_of,
        _workspace_of_plugin,
        read_plugin,
        explain_plugin,
    ),
    Kind(
        "librefang",
        LIBREFANG_FILE,
        lambda path: is_hook_file_name(os.path.basename(path)),
        lambda _ending, _text, _document: None,
        hooks_of_home,
        hooks_folder_of,
        read_librefang,
        explain_librefang,
    ),
    Kind(
        rolebox.NAME,
        rolebox.FILE_NAME,
        lambda path: os.path.basename(path) == rolebox.FILE_NAME,
        lambda _ending, _text, _document: None,
        lambda folder: existing(os.path.join(folder, rolebox.FILE_NAME)),
        os.path.dirname,
        read_role_file,
        explain_role,
    ),
    Kind(
        CONFIGURATION,
        CONFIGURATION_FILE,
        lambda path: path.endswith(f"/{CONFIGURATION_FILE}") or is_user_configuration(path),
        lambda _ending, _text, _document: None,
        lambda folder: existing(os.path.join(folder, CONFIGURATION_FILE)),
        _folder_of_configuration,
        read_configuration,
        explain_configuration,
    ),
    Kind(
        PYTHON,
        f"{PYTHON_FOLDER}/*.py",
        lambda path: os.path.dirname(path).endswith(f"/{PYTHON_FOLDER}"),
        _is_python,
        python_units_of,
        _workspace_of_unit,
        read_unit,
        explain_unit,
    ),
)
"""The kinds, in the order in which a folder is gone through: commands that transform before functions."""
