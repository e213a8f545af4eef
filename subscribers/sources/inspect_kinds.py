"""Every kind of file that can be explained, in one table, and which of them a file is.

A file is taken for what its name says; a name that says nothing leaves it to the content. It refuses to know
what the files mean: each row names who does.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ..dialects.prx_plugin_rules import FILE_NAME as PLUGIN_FILE
from ..dialects.prx_plugin_rules import FOLDER as PLUGINS
from ..dialects.prx_rules import FILE_NAME as PRX_FILE
from ..dialects.toml_text import has_endless_key
from ..hooks.explanation import Explained
from . import plugins
from .hook_source import Reading
from .inspect_files import (
    World,
    explain_configuration,
    explain_hooks_json,
    explain_plugin,
    plugin_place,
    read_configuration,
    read_hooks_json,
    read_plugin,
)

CONFIGURATION: Final = ".prxbus/config.toml"

LOOKED_AT: Final = 1_048_576
"""Bytes of a file with a name that says nothing that are looked at."""


class Kind(NamedTuple):
    """A kind of file.

    ``name`` is what ``--dialect`` calls it, ``file`` how people recognise it. ``is_named`` says whether a
    path is one, ``is_like`` why an ending and a decoded document are. ``find`` lists those of a folder,
    ``workspace`` says to which folder one belongs, ``read`` and ``explain`` do what they say.
    """

    name: str
    file: str
    is_named: Callable[[str], bool]
    is_like: Callable[[str, Mapping[str, Any]], str | None]
    find: Callable[[str], list[str]]
    workspace: Callable[[str], str]
    read: Callable[[str], Reading]
    explain: Callable[[bytes, str, str, World], Explained]


def recognise(path: str, text: bytes) -> tuple[Kind, str] | None:
    """The kind of a file and why it is taken for that; None when it is none that is known."""
    for kind in KINDS:
        if kind.is_named(path):
            return kind, f"its name is {kind.file}"
    document = _decoded(path, text)
    for kind in KINDS:
        reason = None if document is None else kind.is_like(os.path.splitext(path)[1], document)
        if reason is not None:
            return kind, reason
    return None


def supported() -> str:
    """The kinds in words: ``hooks.json (prx), plugin.toml (prx-plugin)``."""
    return ", ".join(f"{kind.file} ({kind.name})" for kind in KINDS)


def _decoded(path: str, text: bytes) -> Mapping[str, Any] | None:
    """A file with an ending that says how it is written, decoded, as far as that goes without an error."""
    try:
        if path.endswith(".json"):
            found = json.loads(text)
        elif path.endswith(".toml") and not has_endless_key(text):
            found = tomllib.loads(text.decode())
        else:
            return None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _existing(*paths: str) -> list[str]:
    return [path for path in paths if os.path.lexists(path)]


def _is_prx(ending: str, document: Mapping[str, Any]) -> str | None:
    is_it = ending == ".json" and isinstance(document.get("hooks"), dict)
    return "it is JSON with an object hooks" if is_it else None


def _is_plugin(ending: str, document: Mapping[str, Any]) -> str | None:
    is_it = ending == ".toml" and "plugin" in document and "capabilities" in document
    return "it is TOML with plugin and capabilities" if is_it else None


def _plugins_of(folder: str) -> list[str]:
    """The manifests of a workspace, and one in the folder itself."""
    names = plugins.look(folder).names
    found = [os.path.join(folder, PLUGINS, name, PLUGIN_FILE) for name in names]
    return [*_existing(os.path.join(folder, PLUGIN_FILE)), *found]


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
        "prxbus",
        CONFIGURATION,
        lambda path: path.endswith(f"/{CONFIGURATION}"),
        lambda _ending, _document: None,
        lambda folder: _existing(os.path.join(folder, CONFIGURATION)),
        lambda path: os.path.dirname(os.path.dirname(path)),
        read_configuration,
        explain_configuration,
    ),
)
"""The kinds, in the order in which a folder is gone through."""
