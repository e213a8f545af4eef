"""What can be configured: every setting with its type, bounds, default and meaning.

The table in the README and the messages of ``prxbus config`` come from here. ``workspace`` says what a
workspace's own file may do to a setting: ``free``, ``lower`` it only, ``tighten`` it only (a later one of its
choices), or ``never`` touch it.
"""

from __future__ import annotations

import os
from typing import Any, Final, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field

from broker.protocol.limits import ASK_BYTES, CLAIM_BYTES, CLAIM_SECONDS, SPOOL_BYTES

Reach = Literal["free", "lower", "tighten", "never"]


def _setting(default: Any, reach: Reach, description: str, **bounds: Any) -> Any:
    return Field(default, description=description, json_schema_extra={"workspace": reach}, **bounds)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Bus(_Section):
    """``[bus]``: the broker."""

    runtime_dir: str | None = _setting(
        None, "never", "directory of its sockets; default as for every client", min_length=1
    )
    spool_bytes: int = _setting(
        SPOOL_BYTES, "lower", "bytes that large payloads may take", ge=1_048_576, le=2**40
    )
    claim_seconds: float = _setting(
        CLAIM_SECONDS, "lower", "seconds that a large payload can be loaded", ge=1, le=86_400
    )
    ask_bytes: int = _setting(
        ASK_BYTES, "lower", "bytes of the largest payload that can be asked about", ge=65_536, le=CLAIM_BYTES
    )
    memory_bytes: int = _setting(
        2**32, "lower", "bytes at which the broker ends and is started again", ge=2**26, le=2**40
    )


class Hooks(_Section):
    """``[hooks]``: running them."""

    enabled: bool = _setting(
        True, "lower", "run the hook files of PRX and of the Codex family; the latter from the next event on"
    )
    project_hooks_enabled: bool = _setting(
        False,
        "never",
        "run a workspace's own hooks of the Codex family too (`.prxbus/hooks.json`): they are commands of a "
        "repository, so whoever can commit to it can run code on this machine; only for repositories that "
        "you trust, and look at the file again after each pull",
    )
    bitfun: bool = _setting(
        False, "never", "run also the hooks at BitFun's own places, as far as its `app.json` says so"
    )
    strict: bool = _setting(
        False,
        "never",
        "one bad handler voids its whole file of the Codex family, as it does in Codex, and reports say of "
        "an answer what Codex says and no more",
    )
    http_urls: str | None = _setting(
        None,
        "never",
        "URLs beyond this machine that `http` handlers may call: patterns with `*`, spaces between them",
        min_length=1,
    )
    import_dir: str | None = _setting(
        None, "never", "where imported hooks are kept; default as the platform has it", min_length=1
    )
    runs: int = _setting(32, "lower", "runs at once", ge=1, le=1_024)
    runs_per_hook: int = _setting(8, "lower", "runs at once of one hook", ge=1, le=1_024)
    queue: int = _setting(
        1_024, "lower", "runs that may wait; beyond it they are dropped", ge=0, le=1_000_000
    )
    drain_seconds: float = _setting(
        5.0, "lower", "seconds that runs may take to end when the bus stops", ge=0, le=300
    )

    sandbox: Literal["none", "bubblewrap"] = _setting(
        "none", "tighten", "what encloses a run; bubblewrap: no network, a read-only system, the limits below"
    )
    sandbox_memory_bytes: int = _setting(
        2**32, "lower", "address space of each process in the sandbox", ge=2**26, le=2**46
    )
    sandbox_processes: int = _setting(256, "lower", "processes of one run in the sandbox", ge=4, le=100_000)
    sandbox_file_bytes: int = _setting(
        2**30, "lower", "bytes of each file written in the sandbox", ge=4_096, le=2**40
    )


class Handlers(_Section):
    """``[handlers]``: handlers in Python."""

    enabled: bool = _setting(
        True, "lower", "call the Python handlers of the workspace, of `path` and of installed packages"
    )
    installed: bool = _setting(True, "lower", "call the Python handlers of installed packages")
    path: str | None = _setting(
        None, "never", "more files and folders of handlers, with ':' between them", min_length=1
    )
    calls: int = _setting(32, "lower", "calls at once in one file", ge=1, le=1_024)
    calls_per_handler: int = _setting(8, "lower", "calls at once of one handler", ge=1, le=1_024)
    queue: int = _setting(
        1_024, "lower", "calls that may wait in one file; beyond it they are dropped", ge=0, le=1_000_000
    )
    drain_seconds: float = _setting(
        5.0, "lower", "seconds that calls may take to end when the bus stops", ge=0, le=300
    )


class LibreFang(_Section):
    """``[librefang]``: the hooks of a LibreFang home."""

    enabled: bool = _setting(True, "lower", "run the hooks of a LibreFang home, where there is one")
    home: str | None = _setting(
        None, "never", "the home; default LIBREFANG_HOME, then ~/.librefang if it is there", min_length=1
    )
    reload: Literal["sighup", "watch"] = _setting(
        "sighup", "never", "when its hooks are scanned again: on SIGHUP only, or also when they change"
    )


class Agents(_Section):
    """``[agents]``: attached agents, which ask the bus about their own events."""

    enabled: bool = _setting(True, "lower", "listen for the hook commands of attached agents")


class Http(_Section):
    """``[http]``: the HTTP API."""

    enabled: bool = _setting(True, "lower", "serve the HTTP API")
    port: int = _setting(16_831, "never", "port on 127.0.0.1; 0 takes any that is free", ge=0, le=65_535)
    streams: int = _setting(16, "lower", "event streams at a time", ge=0, le=1_024)
    state_dir: str | None = _setting(
        None,
        "never",
        "where ids of hand-written hooks are kept; default as the platform has it",
        min_length=1,
    )


class Wasm(_Section):
    """``[wasm]``: WASM plugins."""

    enabled: bool = _setting(True, "lower", "call the plugins of the workspace")
    queue: int = _setting(
        1_024, "lower", "events that may wait for one plugin; beyond it they are dropped", ge=1, le=100_000
    )
    drain_seconds: float = _setting(
        5.0, "lower", "seconds that calls may take to end when the bus stops", ge=0, le=300
    )
    memory_mb: int = _setting(1_024, "lower", "most memory that a manifest may ask for", ge=1, le=4_096)
    kv_storage_mb: int = _setting(
        64, "lower", "most room for keys and values that a manifest may ask for", ge=0, le=1_024
    )
    allow: Literal["network", "filesystem", "wasi", "none"] = _setting(
        "none",
        "tighten",
        "what plugins get that ask for it; each brings what follows it here along: "
        "network, filesystem (folders of the workspace), wasi (clocks, randomness)",
    )
    cache_dir: str | None = _setting(
        None, "never", "where compiled plugins are kept; default as the platform has it", min_length=1
    )
    state_dir: str | None = _setting(
        None, "never", "where plugins' keys are kept; default as the platform has it", min_length=1
    )


class Roles(_Section):
    """``[roles]``: roles of rolebox, whose hooks are modules in JavaScript or Python."""

    enabled: bool = _setting(True, "lower", "run the hooks of the roles that are named")
    dirs: str | None = _setting(
        None,
        "never",
        "directories of roles, each with a `role.yaml`, with ':' between them; a relative one is sought in "
        "the current directory",
        min_length=1,
    )
    scope: Literal["session", "all"] = _setting(
        "session",
        "never",
        "whose events reach a role's hooks: those of sessions that play the role, or all of them",
    )
    timeout: float = _setting(5.0, "lower", "seconds that one handler may take", ge=0.1, le=300)
    workers: int = _setting(4, "lower", "threads that run modules in JavaScript", ge=1, le=16)
    memory_mb: int = _setting(
        256, "lower", "memory of each of these threads; a hook that needs more is lost", ge=16, le=65_536
    )
    node: str | None = _setting(
        None, "never", "path of the `node` that runs them; default the one on the PATH", min_length=1
    )

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories that ``dirs`` names, as written but for a ``~``."""
        return tuple(os.path.expanduser(part) for part in (self.dirs or "").split(os.pathsep) if part)


class Log(_Section):
    """``[log]``: what is written to stderr."""

    level: Literal["debug", "info", "warning", "error"] = _setting("info", "free", "least weight of a record")


class Settings(_Section):
    """Everything."""

    bus: Bus = Bus()
    hooks: Hooks = Hooks()
    handlers: Handlers = Handlers()
    librefang: LibreFang = LibreFang()
    agents: Agents = Agents()
    http: Http = Http()
    wasm: Wasm = Wasm()
    roles: Roles = Roles()
    log: Log = Log()


SECTIONS: Final[dict[str, type[_Section]]] = {
    "bus": Bus,
    "hooks": Hooks,
    "handlers": Handlers,
    "librefang": LibreFang,
    "agents": Agents,
    "http": Http,
    "wasm": Wasm,
    "roles": Roles,
    "log": Log,
}


def reach(section: str, name: str) -> Reach:
    """What a workspace's file may do to a setting."""
    extra = SECTIONS[section].model_fields[name].json_schema_extra
    return cast("Reach", cast("dict[str, Any]", extra)["workspace"])


def choices(section: str, name: str) -> tuple[Any, ...]:
    """The values of a setting that has a list of them, loosest first; empty for any other."""
    return get_args(SECTIONS[section].model_fields[name].annotation)


def keys() -> list[str]:
    """Every setting as ``section.name``, in the order of the schema."""
    return [f"{section}.{name}" for section, model in SECTIONS.items() for name in model.model_fields]
