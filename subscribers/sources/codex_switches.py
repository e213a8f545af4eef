"""BitFun's own switches: ``app.hooks`` of its ``app.json``.

Decides what holds where the file is not there, says nothing, or says what makes no sense: a value of the
wrong type is off, for nobody who writes one wants more to run. Refuses to know which files they govern.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from ..hooks.diagnostics import Diagnostic
from . import discover
from .hook_source import Absent, Content

APP_FILE: Final = os.path.join("config", "app.json")
APP_BYTES: Final = 1_048_576


class BitFunSwitches(NamedTuple):
    """``app.hooks.enabled``, ``app.hooks.project_hooks_enabled``, and what is wrong with the file."""

    enabled: bool = True
    project: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()


def bitfun_folder(environ: Mapping[str, str]) -> str:
    """BitFun's configuration folder of this user: ``~/.config/bitfun`` on Linux."""
    import platformdirs

    if (base := environ.get("XDG_CONFIG_HOME")) and os.path.isabs(base):
        return os.path.join(base, "bitfun")
    return platformdirs.user_config_dir("bitfun", appauthor=False, roaming=True)


def app_file(environ: Mapping[str, str]) -> str:
    """The absolute path of its ``app.json``, whether it exists or not."""
    return os.path.join(bitfun_folder(environ), APP_FILE)


def read_switches(path: str) -> BitFunSwitches:
    """The switches in force. Raises nothing: where the file cannot be used, the defaults hold."""
    reading = discover.read(path, APP_BYTES)
    if isinstance(reading, Absent):
        return BitFunSwitches()
    if not isinstance(reading, Content):
        return BitFunSwitches(diagnostics=(_said(path, None, reading.message, reading.hint),))
    try:
        document = orjson.loads(reading.text)
    except orjson.JSONDecodeError as error:
        return BitFunSwitches(diagnostics=(_said(path, None, f"it is not JSON: {error}", "correct it"),))
    section: Any = document
    for name in ("app", "hooks"):
        section = section.get(name, {}) if isinstance(section, dict) else None
        if not isinstance(section, dict):
            return BitFunSwitches(diagnostics=(_said(path, name, "it is not an object", "correct it"),))
    faults: list[Diagnostic] = []
    found = [
        _switch(section, name, default, path, faults)
        for name, default in (("enabled", True), ("project_hooks_enabled", False))
    ]
    return BitFunSwitches(found[0], found[1], tuple(faults))


def _switch(
    section: Mapping[str, Any], name: str, default: bool, path: str, faults: list[Diagnostic]
) -> bool:
    value = section.get(name, default)
    if isinstance(value, bool):
        return value
    hint = "write true or false"
    faults.append(_said(path, f"app.hooks.{name}", "it is neither true nor false, and counts as false", hint))
    return False


def _said(path: str, field: str | None, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic("error", "bad_switches", path, None, None, field, message, hint)
