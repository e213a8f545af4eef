"""One hook file on this machine explained: read, explained by its dialect, and compared with what is there.

It decides what is missing around a file: programs and folders. It refuses to start anything, and to know how
files are found.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ..dialects import (
    librefang_explanation,
    librefang_rules,
    prx_explanation,
    prx_rules,
    transform_command,
    transform_explanation,
)
from ..dialects.transform_explanation import Table
from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import Explained, Handler, Status, faulted
from ..hooks.spec import HookSpec
from . import discover, librefang_resolve, resolve
from .hook_source import Absent, Reading, Unreadable
from .inspect_world import World

CONFIGURATION: Final = "prxbus"
"""What a workspace's own configuration is called as a dialect."""

PYTHON_BYTES: Final = 1_048_576
"""Largest file of handlers in Python, in bytes; the loader has the same limit."""


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
    """A workspace's ``.prxbus/config.toml``, or the user's file; with a fault in it, nothing is started."""
    if is_user_configuration(path) and path != (own := user_configuration(world.environ)):
        message = f"this is not the configuration in force: that is {own}"
        hint = "move it there, or set PRXBUS_CONFIG_DIR"
        return Explained(
            (), (Diagnostic("warning", "not_in_force", path, None, None, None, message, hint),), False
        )
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


def is_user_configuration(path: str) -> bool:
    """Whether this is the name of the user's configuration file."""
    return os.path.basename(path) == "prxbus.toml"


def user_configuration(environ: Mapping[str, str]) -> str:
    """The absolute path of the user's configuration file, whether it exists or not."""
    from ..config.files import user_file

    return os.path.abspath(user_file(environ))


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
