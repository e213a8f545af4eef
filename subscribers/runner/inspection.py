"""What would run on this machine, and what would not: hook files explained as the runner sees them.

It decides where to look when nobody says, and what is checked beyond the files: interpreters and the sandbox.
It refuses to start a hook.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from ..config import files
from ..config.layers import Configured
from ..config.schema import LibreFang
from ..dialects import python_explanation, rolebox_rules
from ..dialects.codex_profiles import PROFILES
from ..hooks.diagnostics import Diagnostic, Severity, quote
from ..hooks.explanation import Explained, ExplainedFile, Handler, faulted
from ..runtimes.sandbox import Limits, SandboxUnavailable
from ..runtimes.start_failure import explain, missing_interpreter
from ..sources import role_inspection, trust_inspection
from ..sources.codex_inspection import users_own
from ..sources.codex_layers import is_remote
from ..sources.handlers import entry_points, folder_of
from ..sources.inspect_files import user_configuration
from ..sources.inspect_paths import Place, inspect
from ..sources.inspect_world import World
from ..sources.librefang_home import find_home
from ..sources.role_modules import Languages
from .codex_inspection import on_this_machine, remote
from .codex_runs import patterns_of
from .enclosure import NONE, open_sandbox
from .python_inspection import Probed, Prober

WASM_PACKAGE: Final = "wasmtime"

INTERPRETER: Final = re.compile(r"(?:ba|da|z|k)?sh|(?:python|perl|ruby|node|deno|bun|php|lua)[0-9.]*")
"""Programs whose first argument, unless it is an option, is the script that they run."""

LOOKED_AT: Final = 4_096
"""First bytes of a program that are looked at."""


def world(environ: Mapping[str, str], *, strict: bool | None = None) -> World:
    """What there is on this machine, for this process. ``strict`` None: as the configuration says."""

    @cache
    def configured(workspace: str) -> Configured:
        return files.load(environ, {"hooks.strict": strict}, workspace)

    return World(
        prxbus_folder=sysconfig.get_path("scripts"),
        environ=environ,
        configured=configured,
        has_wasmtime=importlib.util.find_spec(WASM_PACKAGE) is not None,
        load=lambda path, workspace: _loaded(path, workspace, environ, configured(workspace)),
        languages=cache(lambda: _languages(configured(os.getcwd()).settings.roles.node, environ)),
    )


def _languages(node: str | None, environ: Mapping[str, str]) -> Languages:
    """In which modules of roles can be run here; asks Node for its version."""
    from ..runtimes.node_program import find_node  # only roles need to know
    from .roles_hosts import languages

    return languages(find_node(node, environ))


def _loaded(path: str, workspace: str, environ: Mapping[str, str], configured: Configured) -> Explained:
    """A file of handlers in Python, loaded in a process of its own."""
    with Prober(environ) as prober:
        probed = prober.probe(path)
    told = _told(probed, path, unit_name(path), configured)
    if told.refused or os.path.dirname(path) == folder_of(workspace):
        return told
    message = "it is not in a workspace's folder: it is loaded where it is named"
    named = _remark("info", "named_only", path, message, f"prxbus up --handlers {path}")
    return replace(told, diagnostics=(*told.diagnostics, named))


def _told(probed: Probed, path: str, name: str, configured: Configured) -> Explained:
    """What a file of handlers comes to that was loaded; reports call it ``name``."""
    if probed.error is not None:
        return Explained((), (probed.error,), refused=True)
    handlers = python_explanation.handlers(probed.functions, name)
    if not configured.settings.handlers.enabled:
        off = _remark("info", "disabled", path, "the setting handlers.enabled is false", None)
        handlers = tuple(faulted(handler, "skipped", off) for handler in handlers)
    if handlers:
        return Explained(handlers, (), refused=False)
    hint = "from subscribers.handlers import on, decide, transform"
    return Explained((), (_remark("warning", "no_handlers", path, "it registers no handler", hint),), False)


def unit_name(path: str) -> str:
    """What reports call a file of handlers."""
    return os.path.basename(path)


def _remark(severity: Severity, code: str, path: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic(severity, code, path, None, None, None, message, hint)


def places(paths: Sequence[str], here: World) -> list[Place]:
    """Where to look: the paths, which the user has named.

    Without any, in the current directory, which nobody named but the user may have trusted, in the user's
    LibreFang home, hook files of the Codex family and configuration, and where that says that there are
    roles and handlers in Python.
    """
    if paths:
        return [Place(os.path.abspath(path), True) for path in paths]
    folder = os.getcwd()
    found = [Place(folder, trust_inspection.is_trusted(folder, here.environ))]
    settings = files.load(here.environ, {}, None).settings
    home = _librefang_home(settings.librefang, here)
    found += [] if home is None else [Place(home, True)]
    found += [Place(path, True, profile) for path, profile in users_own(here.environ, here)]
    own = user_configuration(here.environ)
    found += [Place(own, True)] if os.path.exists(own) else []
    roles = role_inspection.configured_directories(settings.roles)
    found += [Place(role_inspection.place_of(directory), True, rolebox_rules.NAME) for directory in roles]
    named = settings.handlers.path or ""
    return [*found, *(Place(os.path.abspath(path), True) for path in named.split(os.pathsep) if path)]


def _librefang_home(settings: LibreFang, here: World) -> str | None:
    """The home whose hooks ``prxbus up`` runs; it is the user's own."""
    home = find_home(settings.home, here.environ) if settings.enabled else None
    return home if home is not None and os.path.isdir(home) else None


def explained(paths: Sequence[str], dialect: str | None, here: World) -> list[ExplainedFile]:
    """Every file that ``paths`` stand for, explained; ``dialect`` is what to take files for."""
    refusals: dict[str, str | None] = {}
    elsewhere = [remote(path) for path in paths if is_remote(path)]
    if elsewhere:
        here_too = [path for path in paths if not is_remote(path)]
        return [*elsewhere, *(explained(here_too, dialect, here) if here_too else ())]
    looked = inspect(places(paths, here), dialect, here)
    found = [_on_this_machine(file, here, refusals) for file in looked]
    found = trust_inspection.said(found, paths or (os.curdir,), here.environ)
    if any(file.dialect == rolebox_rules.NAME for file in found):
        found = role_inspection.said(found, files.load(here.environ, {}, None).settings.roles)
    return found if paths or dialect not in (None, python_explanation.NAME) else [*found, *_installed(here)]


def _installed(here: World) -> Iterator[ExplainedFile]:
    """The handlers that installed packages offer: whoever installed them trusts them."""
    configured = files.load(here.environ, {}, None)
    settings = configured.settings.handlers
    for unit in entry_points() if settings.enabled and settings.installed else ():
        with Prober(here.environ) as prober:
            probed = prober.probe(unit.path, entry_point=unit.entry_point)
        told = _told(probed, unit.path, unit.name, configured)
        because = "an installed package offers it"
        yield ExplainedFile(unit.path, python_explanation.NAME, because, "/", True, told)


def _on_this_machine(file: ExplainedFile, here: World, refusals: dict[str, str | None]) -> ExplainedFile:
    handlers = file.explained.handlers
    if file.dialect in PROFILES:
        if file.workspace not in refusals:
            refusals[file.workspace] = _sandbox_refusal(file.workspace, here)
        urls = patterns_of(here.configured(file.workspace).settings.hooks.http_urls)
        return on_this_machine(file, here.environ, refusals[file.workspace], urls)
    if any(_is_command(handler) and handler.status == "ok" for handler in handlers):
        if file.workspace not in refusals:
            refusals[file.workspace] = _sandbox_refusal(file.workspace, here)
        refusal = refusals[file.workspace]
        handlers = tuple(_startable(handler, file.path, refusal) for handler in handlers)
    return replace(file, explained=replace(file.explained, handlers=handlers))


def _startable(handler: Handler, path: str, refusal: str | None) -> Handler:
    """A command with what else would keep it from starting."""
    if not _is_command(handler) or handler.status != "ok":
        return handler
    program = handler.executable
    missing = None if program is None else missing_interpreter(program)
    if missing is not None:
        handler = faulted(handler, "dead", _error(handler, path, "missing_interpreter", missing, None))
    elif program is not None and _lacks_interpreter(program):
        why = explain(OSError(errno.ENOEXEC, ""), program, handler.cwd or "/", ())
        handler = faulted(handler, "dead", _error(handler, path, "no_interpreter", why, None))
    script = _missing_script(handler)
    if script is not None:
        message = f"its program will not find {quote(script)}: there is no such file"
        remark = replace(_error(handler, path, "missing_script", message, None), severity="warning")
        handler = replace(handler, diagnostics=(*handler.diagnostics, remark))
    if refusal is not None:
        hint = "no hook runs until it can be used"
        handler = faulted(handler, "refused", _error(handler, path, "sandbox_unavailable", refusal, hint))
    return handler


def _is_command(handler: Handler) -> bool:
    """Whether a program is started: not for a component, nor for a function, which has no folder."""
    return handler.runtime in ("shell", "transform") and handler.cwd is not None


def _lacks_interpreter(program: str) -> bool:
    """Whether a file that may be executed is plain text without a first line that says by what."""
    try:
        with open(program, "rb") as file:
            head = file.read(LOOKED_AT)
    except OSError:  # it may be run and not read: only running tells
        return False
    return not head.startswith(b"#!") and b"\0" not in head


def _missing_script(handler: Handler) -> str | None:
    """The script that an interpreter is given and that is not there; None where nothing is missing."""
    if handler.executable is None or handler.cwd is None or not handler.args:
        return None
    script = handler.args[0]
    is_interpreter = INTERPRETER.fullmatch(os.path.basename(handler.executable)) is not None
    if not is_interpreter or script.startswith("-") or "\0" in script:
        return None
    return None if os.path.exists(os.path.join(handler.cwd, script)) else script


def _sandbox_refusal(workspace: str, here: World) -> str | None:
    """Why the sandbox that is configured for a workspace cannot be used; None where it can, or is none."""
    hooks = here.configured(workspace).settings.hooks
    if hooks.sandbox == NONE:
        return None
    limits = Limits(hooks.sandbox_memory_bytes, hooks.sandbox_processes, hooks.sandbox_file_bytes)
    try:
        sandbox = open_sandbox(hooks.sandbox, workspace, limits, here.prxbus_folder)
    except SandboxUnavailable as error:
        return f"hooks.sandbox is {hooks.sandbox}, which cannot be used here: {error}"
    if sandbox is not None:
        sandbox.close()
    return None


def _error(handler: Handler, path: str, code: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic("error", code, path, handler.line, None, f"{handler.name}.command", message, hint)
