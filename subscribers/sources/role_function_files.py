"""The functions of a role as files of its directory: which there are, and what cannot be read.

Decides where they are looked for. What a file means is the dialect's. It refuses to know which are active.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from ..dialects import rolebox_rules as rules
from ..dialects.rolebox_function import read_function
from ..dialects.rolebox_spec import Role, RoleFunction
from ..hooks.diagnostics import Diagnostic, quote
from . import discover
from .hook_source import Absent, Unreadable
from .role_modules import NoModule, find_inside, place_of


def place_of_function(directory: str, name: str) -> str:
    """Where the file of a function lies, whether there is one or not."""
    return place_of(directory, _written(name))


def read_functions(
    directory: str, role: Role, environ: Mapping[str, str]
) -> tuple[tuple[RoleFunction, ...], tuple[Diagnostic, ...]]:
    """The functions of the role, and those of its folder that are marked, though nothing names them."""
    found: dict[str, RoleFunction] = {}
    said: list[Diagnostic] = []
    for name in dict.fromkeys((*role.functions, *role.auto_activate)):
        function, remarks = _function(directory, name, environ)
        said += remarks
        if function is None and name in role.auto_activate:
            said.append(_only_a_name(role.path, name))
        found[name] = RoleFunction(name) if function is None else function
    for name in _unnamed(directory, (*found, *role.disabled)) if role.builtin_auto_activate else ():
        function, _ = _function(directory, name, environ)
        if function is not None and function.marked:
            found[name] = function
    return tuple(found.values()), tuple(said)


def _only_a_name(path: str, name: str) -> Diagnostic:
    file = f"{rules.FUNCTIONS_FOLDER}/{name}.md"
    message = f"{quote(name)} has no {file}: while it is active the prompt names it, and no more"
    hint = f"write its instructions into {file}"
    return Diagnostic("info", "only_a_name", path, None, None, "auto_activate", message, hint)


def _unnamed(directory: str, named: Collection[str]) -> list[str]:
    """Names of files among the functions that role.yaml does not name."""
    try:
        files = sorted(os.listdir(os.path.join(directory, rules.FUNCTIONS_FOLDER)))
    except OSError:
        return []
    names = [file.removesuffix(".md") for file in files if file.endswith(".md")]
    names = [name for name in names if name not in named and rules.FUNCTION_NAME.fullmatch(name)]
    return names[: rules.MAX_FUNCTIONS - len(named)]


def _function(
    directory: str, name: str, environ: Mapping[str, str]
) -> tuple[RoleFunction | None, tuple[Diagnostic, ...]]:
    """The function of a file; nothing is said where there is none: rolebox has functions elsewhere too."""
    place = find_inside(directory, _written(name))
    path = place_of_function(directory, name)
    if isinstance(place, NoModule):
        if place.code == "missing_module":
            return None, ()
        return None, (Diagnostic("error", place.code, path, None, None, None, place.message, place.hint),)
    reading = discover.read(place, rules.MAX_FUNCTION_BYTES)
    if isinstance(reading, Unreadable):
        said = Diagnostic("error", reading.code, path, None, None, None, reading.message, reading.hint)
        return None, (said,)
    return (None, ()) if isinstance(reading, Absent) else read_function(reading.text, path, name, environ)


def _written(name: str) -> str:
    return os.path.join(rules.FUNCTIONS_FOLDER, f"{name}.md")
