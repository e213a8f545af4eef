"""Node: where it is, how new, what it can, and how the host of JavaScript hooks is started with it.

    node = find_node(settings.node, os.environ)
    if isinstance(node, NodeMissing): ...          # node.reason: "needs Node 20 or newer: ..."
    ModuleHost(node.argv(workers=4, memory_mb=256), node_environment(os.environ), name="node", ...)

Decides which program is taken, whether it will do, and with which flags and limits the host runs. Refuses to
start the host, and to know what a hook is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, TypeAlias

from ..hooks.withheld import without_secrets

OLDEST: Final = (20, 0, 0)
"""The first that has a steady ``node:vm`` for modules and ``import.meta.resolve`` that answers at once."""

WORKERS: Final = 4
MEMORY_MB: Final = 256
LOAD_MS: Final = 5_000

HOST: Final = Path(__file__).parent / "node_host.mjs"

_VERSION: Final = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
_VERSION_S: Final = 10.0
_TYPESCRIPT: Final = frozenset({".ts", ".mts", ".cts"})
_FLAGS: Final = (
    "--experimental-vm-modules",  # an instance of a module for each hook
    "--experimental-import-meta-resolve",  # from the place of the module that imports
    "--expose-gc",  # what is garbage is not held against a hook
    "--no-warnings",  # the host passes on those that a hook causes, under its name
)
_OWN_MB: Final = 192
"""Data of the host itself; measured: 80 MB with Node 20 and 22."""
_FULL_THREAD_MB: Final = 64
"""What a thread needs beside its heap."""
_OTHER_THREADS: Final = 12
"""Threads beside the ``workers``: a spare one, those of slow hooks, those about to end."""
_OTHER_THREAD_MB: Final = 16
_RESERVES_CODE: Final = (23, 0, 0)
"""From here on Node's reserves for compiled code count as data: so much for itself and for a thread."""
_CODE_MB: Final = 512
_THREAD_CODE_MB: Final = 16

_LIMITED: Final = 'ulimit -S -d "$0" 2>/dev/null; exec "$@"'

Version: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class NodeMissing:
    """There is no Node that will do; ``reason`` says so in a line."""

    reason: str


@dataclass(frozen=True, slots=True)
class NodeProgram:
    """A Node that will do."""

    path: str
    version: Version

    @property
    def strips_types(self) -> bool:
        """Whether it can run TypeScript: its ``module.stripTypeScriptTypes`` came with 22.13 and 23.2."""
        major, minor, _ = self.version
        return (major == 22 and minor >= 13) or (major == 23 and minor >= 2) or major > 23

    def problem_of(self, module: str) -> str | None:
        """Why the module file of this name cannot be run, or None."""
        if self.strips_types or PurePath(module).suffix not in _TYPESCRIPT:
            return None
        return f"TypeScript needs Node 22.13 or newer, and {self.path} is {in_words(self.version)}"

    def argv(
        self, *, workers: int = WORKERS, memory_mb: int = MEMORY_MB, load_ms: int = LOAD_MS
    ) -> list[str]:
        """The command of the host, to which ``--channel N`` is to be added.

        ``workers`` threads hold the hooks, each with a heap of ``memory_mb`` and as much outside of it;
        ``load_ms`` is the time of a module to load, and of ``onLoad``. The limit of the data of the process
        is what full heaps need, so that a hook that asks for a huge buffer gets an error: V8's own limit is
        of the heap only. Programs that a hook starts inherit it, as a soft limit. ``sh`` sets it and becomes
        node.
        """
        data_mb = _OWN_MB + _OTHER_THREADS * _OTHER_THREAD_MB + workers * (memory_mb + _FULL_THREAD_MB)
        if self.version >= _RESERVES_CODE:
            data_mb += _CODE_MB + (workers + _OTHER_THREADS) * _THREAD_CODE_MB
        host = [
            str(HOST),
            "--workers",
            str(workers),
            "--memory-mb",
            str(memory_mb),
            "--load-ms",
            str(load_ms),
        ]
        return ["/bin/sh", "-c", _LIMITED, str(data_mb * 1_024), self.path, *_FLAGS, *host]


def find_node(setting: str | None, environ: Mapping[str, str]) -> NodeProgram | NodeMissing:
    """The Node to be used: ``setting``, a path or a name, else ``node`` on the ``PATH`` of ``environ``.

    Asks it for its version; the answer is kept for as long as the file stays the same.
    """
    wanted = setting or "node"
    path = shutil.which(os.path.expanduser(wanted), path=environ.get("PATH", os.defpath))
    if path is None:
        where = "is no program" if os.sep in wanted else "is not on the PATH"
        return NodeMissing(f"needs Node 20 or newer: {wanted} {where}")
    version = _version_of(path, environ)
    if version is None:
        return NodeMissing(f"needs Node 20 or newer: {path} does not say its version")
    if version < OLDEST:
        return NodeMissing(f"needs Node 20 or newer: {path} is {in_words(version)}")
    return NodeProgram(path, version)


def node_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the host: ``environ`` without the secrets of ours."""
    return without_secrets(environ)


def in_words(version: Version) -> str:
    """``v20.20.2``."""
    return "v" + ".".join(map(str, version))


_known: dict[tuple[str, int, int, int], Version] = {}


def _version_of(path: str, environ: Mapping[str, str]) -> Version | None:
    try:
        status = os.stat(path)
        key = (path, status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in _known:
            found = _ask_version(path, environ)
            if found is None:
                return None
            _known[key] = found
        return _known[key]
    except OSError:
        return None


def _ask_version(path: str, environ: Mapping[str, str]) -> Version | None:
    try:
        answer = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_S,
            env=without_secrets(environ),  # a manager of versions looks there for which one is meant
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    found = _VERSION.match(answer.stdout)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))
