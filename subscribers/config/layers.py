"""Layers of configuration put together: which value holds, and where it came from.

In this order, later over earlier: defaults, the user's file, the workspace's file (which may not loosen
a safety setting), ``PRXBUS_*`` variables, flags. Every fault is one diagnostic with its place; a faulty
value is left out and the layer below holds. Pure: layers come in as values.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from ..hooks.diagnostics import Diagnostic
from ..hooks.withheld import WITHHELD
from . import hook_files, transforms
from .hook_files import HookFile
from .schema import SECTIONS, Settings, choices, keys, reach
from .transforms import Transform

VARIABLE_PREFIX: Final = "PRXBUS_"

TABLES: Final = (transforms.KEY, hook_files.KEY)
"""What else a file may hold: tables that are no settings, ``[[transform]]`` and ``[[hook_file]]``."""

NOT_SETTINGS: Final = frozenset(
    {
        "PRXBUS_DEPTH",
        "PRXBUS_CAUSE",
        "PRXBUS_PAGES",
        "PRXBUS_SCHEMAS",
        "PRXBUS_CONFIG_DIR",
        *WITHHELD,
    }
)
"""Variables of this prefix with a meaning of their own."""

_SHORT: Final = {"PRXBUS_RUNTIME_DIR": "bus.runtime_dir", "PRXBUS_LOG_LEVEL": "log.level"}


class Layer(NamedTuple):
    """One source: ``origin`` names it for people; ``values`` maps ``section.name`` to what it says."""

    origin: str
    values: Mapping[str, Any]
    is_workspace: bool = False


class Configured(NamedTuple):
    """The outcome: ``settings``, the ``origins`` of each key, what was wrong, and the tables in order."""

    settings: Settings
    origins: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...]
    transforms: tuple[Transform, ...] = ()
    hook_files: tuple[HookFile, ...] = ()


def from_document(document: Mapping[str, Any], origin: str) -> tuple[Layer, list[Diagnostic]]:
    """A parsed TOML document as a layer; unknown sections and keys become diagnostics.

    The tables that are no settings (:data:`TABLES`) are other modules'.
    """
    values: dict[str, Any] = {}
    faults: list[Diagnostic] = []
    for section, content in document.items():
        if section in TABLES:
            continue
        if section not in SECTIONS:
            faults.append(_unknown(origin, section, [*SECTIONS, *TABLES], "section"))
        elif not isinstance(content, Mapping):
            faults.append(_fault(origin, section, "not_a_table", f"[{section}] is a table of settings", None))
        else:
            for name, value in content.items():
                key = f"{section}.{name}"
                if name in SECTIONS[section].model_fields:
                    values[key] = value
                else:
                    faults.append(_unknown(origin, key, keys(), "setting"))
    return Layer(origin, values), faults


def from_environment(environ: Mapping[str, str]) -> tuple[Layer, list[Diagnostic]]:
    """``PRXBUS_SECTION_NAME`` variables as a layer, numbers, true and false read as such."""
    names = {f"{VARIABLE_PREFIX}{key.replace('.', '_').upper()}": key for key in keys()} | _SHORT
    values: dict[str, Any] = {}
    faults: list[Diagnostic] = []
    for variable, text in sorted(environ.items()):
        if variable in names:
            if text:
                values[names[variable]] = _number(text)
        elif variable.startswith(VARIABLE_PREFIX) and variable not in NOT_SETTINGS:
            faults.append(_unknown("environment", variable, list(names), "variable"))
    return Layer("environment", values), faults


def combine(layers: Iterable[Layer]) -> Configured:
    """Put ``layers`` together, the most important last."""
    origins = dict.fromkeys(keys(), "default")
    chosen: dict[str, Any] = {}
    faults: list[Diagnostic] = []
    for layer in layers:
        for key, value in layer.values.items():
            fault = _invalid(layer.origin, key, value) or (
                _loosens(layer.origin, key, value, chosen) if layer.is_workspace else None
            )
            if fault is not None:
                faults.append(fault)
            else:
                chosen[key], origins[key] = value, layer.origin
    return Configured(_settings(chosen), origins, tuple(faults))


def value_of(settings: Settings, key: str) -> Any:
    """The value of ``section.name``."""
    section, _, name = key.partition(".")
    return getattr(getattr(settings, section), name)


def _settings(values: Mapping[str, Any]) -> Settings:
    document: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.partition(".")
        document.setdefault(section, {})[name] = value
    return Settings.model_validate(document)


def _invalid(origin: str, key: str, value: Any) -> Diagnostic | None:
    try:
        _settings({key: value})
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        return _fault(origin, key, "bad_value", f"{value!r} is refused: {reason}", "correct or remove it")
    return None


def _loosens(origin: str, key: str, value: Any, chosen: Mapping[str, Any]) -> Diagnostic | None:
    section, _, name = key.partition(".")
    allowed = reach(section, name)
    if allowed == "never":
        return _fault(origin, key, "not_here", "a workspace may not set this", "set it in the user's file")
    current = chosen.get(key, value_of(Settings(), key))
    if allowed == "lower" and value > current:
        return _fault(
            origin, key, "loosens", f"{value!r} loosens {current!r}; a workspace may only lower it", None
        )
    if allowed == "tighten":
        order = choices(section, name)
        if order.index(value) < order.index(current):
            message = f"{value!r} loosens {current!r}; a workspace may only tighten it"
            return _fault(origin, key, "loosens", message, None)
    return None


def _number(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _unknown(origin: str, key: str, known: list[str], what: str) -> Diagnostic:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return _fault(origin, key, f"unknown_{what}", f"there is no such {what}", hint)


def _fault(origin: str, key: str, code: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic("error", code, origin, None, None, key, message, hint)
