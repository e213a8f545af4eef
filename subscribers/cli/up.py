"""``prxbus up``: the broker and its subscribers in the foreground, supervised.

Decides which processes there are and what is said when they are ready. Hooks run only for a
workspace that was named, or that was trusted and is what it was then: workspace code is somebody else's code.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from broker.cli.exits import DONE, REFUSED, CommandError, UsageError
from broker.cli.options import add_json, whole
from broker.client.context import CAUSE_VARIABLE, DEPTH_VARIABLE
from broker.client.tool import Tool
from broker.logs import configure, get_logger
from broker.places import runtime_directory
from broker.protocol.errors import BusError
from broker.version import __version__

from ..runner.supervisor import Program, StartFailed, Supervisor
from . import trust_start
from .agents_program import agents_program
from .codex_program import add_strict, codex_program, has_hooks, missing_package, of_family
from .librefang_arguments import librefang_arguments, librefang_home, of_home
from .python_program import named_path, of_handlers, python_program
from .roles_program import add_role, named_roles, of_roles, role_directories, roles_program
from .transform_program import of_transforms, transform_program
from .wasm_program import missing_extra, wasm_program

if TYPE_CHECKING:
    from ..config.hook_files import HookFile
    from ..config.schema import Settings
    from ..config.transforms import Transform

log = get_logger("prxbus.up")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``up``."""
    parser.add_argument("--workspace", metavar="DIR", help="run the hooks of this directory (hooks.json)")
    parser.add_argument(
        "--librefang-home",
        metavar="DIR",
        help="run the hooks below this home (hooks/*/HOOK.yaml); default LIBREFANG_HOME, then ~/.librefang",
    )
    parser.add_argument(
        "--handlers",
        action="append",
        metavar="PATH",
        help="call the Python handlers in this file or folder (repeatable)",
    )
    parser.add_argument(
        "--bitfun",
        action="store_true",
        default=None,
        help="run also the hooks at BitFun's own places, as its app.json says",
    )
    add_strict(parser)
    add_role(parser)
    parser.add_argument(
        "--http", type=whole(0), metavar="PORT", help="port of the HTTP API (default 16831; 0: any free one)"
    )
    parser.add_argument("--no-http", action="store_true", help="do without the HTTP API")
    add_json(parser, "the ready line")
    parser.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")


def run(options: argparse.Namespace) -> int:
    """Run until told to stop; returns the exit code."""
    from ..config import files

    workspace, started = _workspace(options.workspace)
    flags = {
        "bus.runtime_dir": options.runtime_dir,
        "log.level": options.log_level,
        "handlers.path": named_path(options.handlers),
        "roles.dirs": named_roles(options.role),
        "librefang.home": options.librefang_home,
        "hooks.bitfun": options.bitfun,
        "hooks.strict": options.strict,
        "http.port": options.http,
        "http.enabled": False if options.no_http else None,
    }
    configured = files.load(os.environ, flags, workspace)
    if configured.diagnostics:
        faults = "\n".join(diagnostic.render() for diagnostic in configured.diagnostics)
        print(faults, file=sys.stderr)
        raise UsageError("the configuration has faults; nothing was started")
    settings = configured.settings
    directory = runtime_directory(settings.bus.runtime_dir)
    configure(settings.log.level)
    home = librefang_home(settings, os.environ)
    hook_files = configured.hook_files
    is_named = settings.handlers.path is not None or bool(role_directories(settings))
    is_idle = workspace is None and home is None and not is_named
    is_told = started is not None and started.warning is not None
    if is_idle and not has_hooks(settings, workspace, hook_files, os.environ):
        if not is_told:
            print(
                f"prxbus up: no workspace named, so no hooks run; name one with --workspace {_here()}, "
                "or start it in one that you have looked at with 'prxbus trust'",
                file=sys.stderr,
            )
    elif workspace is not None and (missing := missing_extra(settings, workspace)) is not None:
        print(f"prxbus up: {missing}", file=sys.stderr)
    if (missing := missing_package()) is not None:
        print(f"prxbus up: {missing}", file=sys.stderr)
    environ = {k: v for k, v in os.environ.items() if k not in (DEPTH_VARIABLE, CAUSE_VARIABLE)}

    undo = ExitStack()

    def ready(said: Mapping[str, Mapping[str, Any]]) -> None:
        print(_ready_line(directory, workspace, said, json=options.json), flush=True)
        _publish_startup(directory)
        if started is not None and started.workspace is not None:
            bare = files.load(os.environ, flags, None)
            kept = trust_start.with_port(bare.settings, said)
            without = programs(kept, directory, None, home, bare.transforms, bare.hook_files)
            watch = started.watch(lambda: supervisor.change(without))
            undo.callback(watch.stop)
            watch.start()

    try:
        running = programs(settings, directory, workspace, home, configured.transforms, hook_files)
        if started is not None and started.workspace is not None:
            running = trust_start.gated(running)
        supervisor = Supervisor(running, ready, environ)
        with undo:
            supervisor.run()
    except StartFailed as failure:
        told = str(failure)
        if failure.name == "broker" and failure.exit_code == REFUSED:
            told = (
                f"nothing was started: the broker refused {directory!r}, as it says above; if another "
                "'prxbus up' runs there, stop that one or choose another --runtime-dir"
            )
        if failure.name == "http" and failure.exit_code == REFUSED:
            told = "nothing was started: the HTTP API cannot be served, as it says above"
        raise CommandError(told, "start_failed", failure.exit_code) from None
    return DONE


def _workspace(named: str | None) -> tuple[str | None, trust_start.Started | None]:
    """The workspace whose hooks run, and where none is named, how it stands with the current directory."""
    from ..sources.codex_layers import REMOTE, is_remote

    if named is None:
        started = trust_start.here(os.environ)
        if started is not None and started.warning is not None:
            print(f"prxbus up: {started.warning}", file=sys.stderr)
        return (None if started is None else started.workspace), started
    if is_remote(named):
        raise UsageError(f"workspace {named!r}: {REMOTE}")
    workspace = _absolute(named)
    if not os.path.isdir(workspace):
        raise UsageError(f"workspace {workspace!r} is not a directory")
    return workspace, None


def _absolute(workspace: str) -> str:
    try:
        return os.path.abspath(workspace)
    except FileNotFoundError:
        raise UsageError(
            f"workspace {workspace!r} cannot be found: the current directory was deleted; "
            "name the workspace by its absolute path"
        ) from None


def _here() -> str:
    """The current directory for a hint, or a placeholder where it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "DIR"


def programs(
    settings: Settings,
    directory: str,
    workspace: str | None,
    home: str | None = None,
    transforms: Sequence[Transform] = (),
    hook_files: Sequence[HookFile] = (),
) -> list[Program]:
    """The processes of a bus: the broker, those for hooks and plugins, and the HTTP API.

    ``home``: the LibreFang home whose hooks run, or None. ``transforms`` and ``hook_files``: the configured
    ones.
    """
    python = (sys.executable, "-P", "-m")
    level = ("--log-level", settings.log.level)
    found = [
        Program(
            "broker",
            (
                *(*python, "broker", "--json", "--lifeline", "--runtime-dir", directory),
                *("--spool-bytes", str(settings.bus.spool_bytes)),
                *("--claim-seconds", str(settings.bus.claim_seconds)),
                *("--memory-bytes", str(settings.bus.memory_bytes)),
                *("--ask-bytes", str(settings.bus.ask_bytes)),
                *level,
            ),
            rank=0,
        )
    ]
    hooks = settings.hooks
    sandbox = (
        *("--sandbox", hooks.sandbox, "--sandbox-processes", str(hooks.sandbox_processes)),
        *("--sandbox-memory-bytes", str(hooks.sandbox_memory_bytes)),
        *("--sandbox-file-bytes", str(hooks.sandbox_file_bytes)),
    )
    prx = workspace if hooks.enabled else None
    if prx is not None or home is not None:
        found.append(
            Program(
                "shell",
                (
                    *(*python, "subscribers.runner.shell_service", "--lifeline", "--runtime-dir", directory),
                    *(() if prx is None else ("--workspace", prx)),
                    *librefang_arguments(settings, home),
                    *("--runs", str(hooks.runs), "--runs-per-hook", str(hooks.runs_per_hook)),
                    *("--queue", str(hooks.queue), "--drain-seconds", str(hooks.drain_seconds)),
                    *sandbox,
                    *level,
                ),
                rank=1,
            )
        )
    others = (
        None if workspace is None else wasm_program(settings, directory, workspace),
        python_program(settings, directory, workspace),
        transform_program(settings, directory, workspace, transforms, sandbox),
        codex_program(settings, directory, workspace, hook_files, sandbox, os.environ)
        if missing_package() is None
        else None,
        roles_program(settings, directory),
        agents_program(settings, directory),
    )
    found += [each for each in others if each is not None]
    if settings.http.enabled:
        found.append(_http_program(settings, directory, workspace, sandbox))
    return found


def _http_program(
    settings: Settings, directory: str, workspace: str | None, sandbox: tuple[str, ...]
) -> Program:
    """The process of the HTTP API."""
    argv = (
        *(sys.executable, "-P", "-m", "subscribers.runner.http_service"),
        *("--lifeline", "--runtime-dir", directory),
        *("--port", str(settings.http.port), "--streams", str(settings.http.streams)),
        *("--ask-bytes", str(settings.bus.ask_bytes)),
        *(() if workspace is None else ("--workspace", workspace)),
        *(("--agents",) if settings.agents.enabled else ()),
        *(() if settings.http.state_dir is None else ("--state-dir", settings.http.state_dir)),
        *sandbox,
        *("--log-level", settings.log.level),
    )
    return Program("http", argv, rank=1)


def _ready_line(
    directory: str, workspace: str | None, said: Mapping[str, Mapping[str, Any]], *, json: bool
) -> str:
    processes = {name: line.get("pid") for name, line in said.items()}
    shell = said.get("shell", {})
    hooks = shell.get("hooks", 0)
    librefang = {"librefang": shell["librefang"]} if "librefang" in shell else {}
    commands = shell or said.get("codex", {})
    sandbox = {name: commands[name] for name in ("sandbox", "refusal") if name in commands}
    plugins = {name: said["wasm"][name] for name in ("plugins",) if name in said.get("wasm", {})}
    python = {
        name: said["python"][name] for name in ("handlers", "refused") if name in said.get("python", {})
    }
    transform = said.get("transform", {}).get("transforms")
    codex = said.get("codex", {})
    roles = {name: value for name, value in said.get("roles", {}).items() if name.startswith("role")}
    http = {name: value for name, value in said.get("http", {}).items() if name.startswith("http")}
    if json:
        line = {
            "ready": True,
            "runtime_dir": directory,
            "workspace": workspace,
            "pid": os.getpid(),
            "processes": processes,
            "hooks": hooks,
            **librefang,
            **plugins,
            **({} if not python else {"handlers": python["handlers"], "handlers_refused": python["refused"]}),
            **({} if transform is None else {"transforms": transform}),
            "codex": {"handlers": codex.get("handlers", 0)},
            **roles,
            **sandbox,
            **http,
        }
        return orjson.dumps(line).decode()
    running = ", ".join(f"{name} (pid {pid})" for name, pid in processes.items())
    of = "" if workspace is None else f"; {hooks} {'hook' if hooks == 1 else 'hooks'} of {workspace}"
    if librefang:
        of += of_home(librefang["librefang"])
    if plugins:
        count = plugins["plugins"]
        of += f", {count} plugin{'' if count == 1 else 's'}"
    if python:
        of += of_handlers(**python)
    if transform is not None:
        of += of_transforms(transform)
    of += of_family(codex)
    of += of_roles(roles)
    if sandbox:
        refusal = sandbox["refusal"]
        of += f", in {sandbox['sandbox']}" if refusal is None else f"; no hooks run: {refusal}"
    if http:
        of += f"; HTTP API at {http['http']}"
    return f"prxbus {__version__} is ready in {directory}: {running}{of}"


def _publish_startup(directory: str) -> None:
    """Tell the bus that it is up: the lifecycle event ``gateway_startup``, kept as last value."""
    started = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
    payload = {"version": __version__, "started_at": started.replace("+00:00", "Z")}
    try:
        with Tool("prxbus up", runtime_dir=directory) as tool:
            tool.publish("prx.lifecycle.gateway_startup", payload, retain=True)
    except BusError as error:
        log.warning("gateway_startup could not be published", error=str(error))
