"""One hook file on this machine explained: read, explained by its dialect, and compared with what is there.

It decides what is missing around a file: programs, folders, components, permissions. It refuses to start
anything, and to know how files are found.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..dialects import (
    librefang_explanation,
    librefang_rules,
    prx_explanation,
    prx_plugin,
    prx_plugin_explanation,
    prx_plugin_rules,
    prx_rules,
    transform_command,
    transform_explanation,
)
from ..dialects.transform_explanation import Table
from ..hooks.diagnostics import Diagnostic, quote
from ..hooks.explanation import Explained, Handler, Status, faulted
from ..hooks.spec import HookSpec
from . import discover, librefang_resolve, plugins, resolve
from .hook_source import Absent, Reading, Unreadable

if TYPE_CHECKING:
    from ..config.layers import Configured

ALLOWED: Final = ("none", "wasi", "filesystem", "network")
"""What the setting ``wasm.allow`` can be: each word brings those before it along."""


CONFIGURATION: Final = "prxbus"
"""What a workspace's own configuration is called as a dialect."""

PYTHON_BYTES: Final = 1_048_576
"""Largest file of handlers in Python, in bytes; the loader has the same limit."""


@dataclass(frozen=True, slots=True)
class World:
    """What else there is on this machine.

    ``prxbus_folder``: where the running command lies. ``environ``: what a LibreFang hook inherits.
    ``configured``: the configuration in force for a workspace. ``has_wasmtime``: whether components can be
    called at all. ``load`` executes a file of Python, of which the path and the workspace are given, and
    tells what it registers.
    """

    prxbus_folder: str
    environ: Mapping[str, str]
    configured: Callable[[str], Configured]
    has_wasmtime: bool
    load: Callable[[str, str], Explained]


def not_loaded(path: str, _workspace: str) -> Explained:
    """What is known of a file of Python that may not be executed."""
    message = "not loaded: loading executes it, and nobody has named the place"
    hint = "name it, as with: prxbus check ."
    return Explained((), (Diagnostic("info", "not_loaded", path, None, None, None, message, hint),), False)


def explain_hooks_json(text: bytes, path: str, workspace: str, world: World) -> Explained:
    """A ``hooks.json``, each command looked up as it would be for a run."""
    explained = prx_explanation.explain(text, path)
    handlers = tuple(
        located(handler, workspace, world.prxbus_folder, handler.spec) for handler in explained.handlers
    )
    return replace(explained, handlers=handlers)


def located(handler: Handler, workspace: str, prxbus_folder: str, spec: HookSpec | None) -> Handler:
    """A handler with the program and folder of its ``spec``, or with the reason why they cannot be had."""
    if spec is None:
        return handler
    found = resolve.resolve(spec, workspace, prxbus_folder)
    if isinstance(found, resolve.Resolved):
        return replace(handler, executable=found.executable, cwd=found.cwd)
    status: Status = "refused" if resolve.SEVERITIES[found.code] == "error" else "dead"
    place = (spec.path, handler.line, None, f"{handler.name}.{found.field}")
    return faulted(handler, status, Diagnostic("error", found.code, *place, found.message, found.hint))


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
    return []


def is_hook_file_name(name: str) -> bool:
    """Whether this is the name of a LibreFang hook file, or was meant to be."""
    return name.lower() in ("hook.yaml", "hook.yml")


def hooks_folder_of(path: str) -> str:
    """The folder ``hooks`` of the home that a hook file lies in; its own folder where it lies in none."""
    folder = os.path.dirname(path)
    hooks = os.path.dirname(folder)
    return hooks if os.path.basename(hooks) == "hooks" else folder


def read_librefang(path: str) -> Reading:
    """A ``HOOK.yaml``, read as the runner reads it."""
    return discover.read(path, librefang_rules.MAX_FILE_BYTES)


def explain_librefang(text: bytes, path: str, _workspace: str, world: World) -> Explained:
    """A ``HOOK.yaml``, its command looked up as it would be for a run."""
    explained = librefang_explanation.explain(text, path)
    handlers = explained.handlers
    spec = next((handler.spec for handler in handlers if handler.spec is not None), None)
    if spec is not None:
        found = librefang_resolve.resolve(spec, world.environ.get("PATH"))
        handlers = tuple(_placed(handler, found) for handler in handlers)
    explained = replace(explained, handlers=handlers)
    if os.path.basename(path) == librefang_rules.FILE_NAME:
        return explained
    message = f"this file is not read: a hook is described by {librefang_rules.FILE_NAME}, in this spelling"
    hint = f"rename it to {librefang_rules.FILE_NAME}"
    said = Diagnostic("error", "misnamed_file", path, None, None, None, message, hint)
    return replace(
        explained,
        handlers=tuple(faulted(handler, "dead", said) for handler in handlers),
        diagnostics=(said, *explained.diagnostics),
        refused=True,
    )


def _placed(handler: Handler, found: resolve.Resolved | resolve.Unresolved) -> Handler:
    """A hook with its program, or with the reason why there is none; all entries of a file share it."""
    spec = handler.spec
    if spec is None:
        return handler
    line, column = spec.command_at or (spec.line, None)
    place = (spec.path, line, column, "command")
    if isinstance(found, resolve.Unresolved):
        return faulted(handler, "dead", Diagnostic("error", found.code, *place, found.message, found.hint))
    handler = replace(handler, executable=found.executable, cwd=found.cwd)
    if found.notice is None:
        return handler
    hint = "write its absolute path if that is meant"
    notice = Diagnostic("info", "command_on_path", *place, found.notice, hint)
    return replace(handler, diagnostics=(*handler.diagnostics, notice))


def read_unit(path: str) -> Reading:
    """A file of handlers in Python, or the first file of a package."""
    return discover.read(os.path.join(path, "__init__.py") if os.path.isdir(path) else path, PYTHON_BYTES)


def explain_unit(_text: bytes, path: str, workspace: str, world: World) -> Explained:
    """A file of handlers, loaded where that may be done; loading executes it."""
    return world.load(path, workspace)


def unreadable(path: str, reading: Absent | Unreadable) -> Explained:
    """What is said of a file whose bytes cannot be had."""
    if isinstance(reading, Absent):
        reading = Unreadable("no_file", "there is no such file", "correct the path")
    said = Diagnostic("error", reading.code, path, None, None, None, reading.message, reading.hint)
    return Explained((), (said,), refused=True)


def read_hooks_json(path: str) -> Reading:
    """A ``hooks.json``, read as the runner reads it."""
    return discover.read(path, prx_rules.MAX_FILE_BYTES)


def explain_configuration(text: bytes, path: str, workspace: str, world: World) -> Explained:
    """A workspace's ``.prxbus/config.toml``; with a fault in it, nothing at all is started."""
    configured = world.configured(workspace)
    faults = tuple(d for d in configured.diagnostics if d.path == path)
    tables = [
        Table(t.name, tuple(t.table.command), tuple(t.table.tools), tuple(t.table.agents), t.table.timeout)
        for t in configured.transforms
        if t.path == path
    ]
    explained = transform_explanation.explain(text, path, tables, faults)
    handlers = tuple(
        located(handler, workspace, world.prxbus_folder, transform_spec(handler, path))
        for handler in explained.handlers
    )
    return replace(explained, handlers=handlers, refused=bool(faults))


def transform_spec(handler: Handler, path: str) -> HookSpec | None:
    """A transform's command in the shape that is looked up; None where it cannot run."""
    if handler.status != "ok":
        return None
    return HookSpec(
        id=handler.name,
        dialect=transform_command.NAME,
        path=path,
        line=handler.line,
        event=transform_command.EVENT,
        command=handler.command or "",
        args=handler.args,
        env={},
        cwd=None,
        timeout_s=handler.timeout_s or 0.0,
        grace_s=0.0,
        stdin=True,
    )


def read_configuration(path: str) -> Reading:
    """A ``config.toml``, bounded as the configuration's own reader bounds it."""
    from ..config.files import FILE_BYTES

    return discover.read(path, FILE_BYTES)
