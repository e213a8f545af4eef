"""A PRX plugin on this machine explained: its manifest, its component, and what the operator allows.

It decides what keeps a plugin with a good manifest from being called. It refuses to compile a component: only
loading tells whether it can be.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

from ..dialects import prx_plugin, prx_plugin_explanation, prx_plugin_rules
from ..hooks.diagnostics import Diagnostic, quote
from ..hooks.explanation import Explained, Status, faulted
from . import discover, plugins
from .hook_source import Reading, Unreadable
from .inspect_world import World

ALLOWED: Final = ("none", "wasi", "filesystem", "network")
"""What the setting ``wasm.allow`` can be: each word brings those before it along."""

CORE_MODULE: Final = b"\0asm\x01\0\0\0"
"""How a core module begins; a component has another version number."""


def plugin_place(path: str) -> tuple[str, str] | None:
    """Workspace and name of the plugin whose manifest this is; None where no workspace has it."""
    folder = os.path.dirname(path)
    plugins_folder = os.path.dirname(folder)
    if os.path.basename(plugins_folder) != prx_plugin_rules.FOLDER:
        return None
    return os.path.dirname(plugins_folder), os.path.basename(folder)


def read_plugin(path: str) -> Reading:
    """A manifest, read as the runner reads it: in a workspace nothing may be a link."""
    place = plugin_place(path)
    if place is None:
        return discover.read(path, prx_plugin_rules.MAX_FILE_BYTES)
    return plugins.read_manifest(*place)


def explain_plugin(text: bytes, path: str, workspace: str, world: World) -> Explained:
    """A ``plugin.toml``, with its component looked at and its wishes compared with the settings."""
    explained = prx_plugin_explanation.explain(text, path)
    manifest = prx_plugin.parse(text, path).manifest
    if manifest is None:
        return explained
    component = os.path.join(os.path.dirname(path), manifest.wasm)
    handlers = tuple(replace(handler, executable=component) for handler in explained.handlers)
    if not world.configured(workspace).settings.wasm.enabled:
        off = Diagnostic(
            "info", "disabled", path, None, None, None, "the setting wasm.enabled is false", None
        )
        handlers = tuple(faulted(handler, "skipped", off) for handler in handlers)
    for status, code, field, message, hint in _obstacles(manifest, path, workspace, world):
        said = Diagnostic("error", code, path, None, None, field, message, hint)
        handlers = tuple(faulted(handler, status, said) for handler in handlers)
    return replace(explained, handlers=handlers)


_Obstacle = tuple[Status, str, str | None, str, str | None]


def _obstacles(manifest: prx_plugin.Manifest, path: str, workspace: str, world: World) -> list[_Obstacle]:
    """Why no event would reach a plugin whose manifest is good: status, code, field, message, hint."""
    found: list[_Obstacle] = []
    place = plugin_place(path)
    if place is None:
        hint = f"move its folder to {prx_plugin_rules.FOLDER}/ in a workspace"
        found.append(("dead", "not_in_plugins", None, "the file lies in no folder of plugins", hint))
    else:
        found += _component(place, manifest.wasm)
    if not world.has_wasmtime:
        hint = "install it with: pip install 'prxbus[run,wasm]'"
        found.append(("dead", "missing_extra", None, "the package wasmtime is missing", hint))
    settings = world.configured(workspace).settings.wasm
    for what, key, wanted, most in (
        ("memory", "max_memory_mb", manifest.max_memory_mb, settings.memory_mb),
        ("keys and values", "max_kv_storage_mb", manifest.max_kv_storage_mb, settings.kv_storage_mb),
    ):
        if wanted > most:
            setting = f"wasm.{key.removeprefix('max_')}"
            message = f"it wants {wanted} MiB of {what}, and the setting {setting} allows {most}"
            hint = f"lower it, or raise {setting} in prxbus.toml"
            found.append(("refused", "over_limit", f"resources.{key}", message, hint))
    allowed = ALLOWED[1 : ALLOWED.index(settings.allow) + 1]
    for name in manifest.required:
        if name not in allowed:
            message = f"it needs the permission {quote(name)}, which is not allowed"
            hint = f'to allow it, set wasm.allow = "{name}" in prxbus.toml'
            found.append(("refused", "not_allowed", "permissions.required", message, hint))
    return found


def _component(place: tuple[str, str], wasm: str) -> list[_Obstacle]:
    seen = plugins.component_signature(*place, wasm)
    if seen is None:
        hint = "build it; it is loaded as soon as it is there"
        return [("dead", "no_component", "plugin.wasm", f"its component {quote(wasm)} is not there", hint)]
    if isinstance(seen, Unreadable):
        message = f"its component {quote(wasm)}: {seen.message}"
        return [("refused", seen.code, "plugin.wasm", message, seen.hint)]
    if _is_core_module(os.path.join(plugins.folder_of(place[0]), place[1], wasm)):
        message = f"its component {quote(wasm)} is a core module, not a component"
        hint = "make one of it with `wasm-tools component new`"
        return [("dead", "core_module", "plugin.wasm", message, hint)]
    return []


def _is_core_module(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(CORE_MODULE)) == CORE_MODULE
    except OSError:
        return False
