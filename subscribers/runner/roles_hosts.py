"""The two hosts of modules behind one door: each hook is called in the host of its language.

Decides which host a hook belongs to, and that a host is started with its first hook. Refuses to know how a
host runs a module, and what is called when.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from broker.client.context import CAUSE_VARIABLE, DEPTH_VARIABLE
from broker.places import ENVIRONMENT_VARIABLE

from ..hooks.module_hook import SUFFIXES, Language, ModuleCall, ModuleHook, ModuleReturn
from ..hooks.module_plan import State
from ..hooks.withheld import without_secrets
from ..runtimes.module_calls import OnInject, OnLog, OnState
from ..runtimes.module_host import ModuleHost
from ..runtimes.node_program import NodeMissing, NodeProgram
from ..runtimes.python_module_program import python_host_argv
from ..sources.role_modules import Languages

WITHHELD: Final = frozenset({DEPTH_VARIABLE, CAUSE_VARIABLE})
"""What modules do not find in their environment, besides our secrets: they outlive every event."""

PYTHON_PROGRAM: Final = "subscribers.runner.roles_python"

PYTHON_SHARE: Final = 4
"""How many times a JavaScript thread's memory all hooks in Python may use together."""

_LEVELS: Final[Mapping[str, Literal["debug", "info", "warn", "error"]]] = {
    "debug": "debug",
    "info": "info",
    "warning": "warn",
    "error": "error",
}


def languages(node: NodeProgram | NodeMissing) -> Languages:
    """What can be run with the Node that there is, or is not."""
    if isinstance(node, NodeMissing):
        return Languages(javascript=node.reason)
    return Languages(typescript=node.problem_of("module.ts"))


class RolesHosts:
    """The hosts. Thread-safe. ``workers`` threads of ``memory_mb`` run JavaScript; callbacks as of a host.

    ``runtime_dir``: the bus's directory, for the environment of hooks; None: there is no bus.
    """

    def __init__(
        self,
        node: NodeProgram | NodeMissing,
        *,
        workers: int,
        memory_mb: int,
        runtime_dir: str | None = None,
        log_level: str = "info",
        on_log: OnLog | None = None,
        on_inject: OnInject | None = None,
        on_state: OnState | None = None,
    ) -> None:
        self._node = node
        self._workers = workers
        self._memory_mb = memory_mb
        self._runtime_dir = runtime_dir
        self._log_level = _LEVELS.get(log_level, "info")
        self._on_log, self._on_inject, self._on_state = on_log, on_inject, on_state
        self._hosts: dict[Language, ModuleHost] = {}
        self._host_of: Mapping[str, ModuleHost] = {}

    def load(self, hooks: Sequence[ModuleHook]) -> None:
        """Want exactly these. For one thread at a time."""
        by_language: dict[Language, list[ModuleHook]] = {language: [] for language in self._hosts}
        for hook in hooks:
            by_language.setdefault(SUFFIXES[os.path.splitext(hook.path)[1]], []).append(hook)
        host_of: dict[str, ModuleHost] = {}
        for language, wanted in by_language.items():
            host = self._hosts.get(language)
            if host is None:
                host = self._hosts[language] = self._open(language)
                host.start()
            host_of |= dict.fromkeys((hook.id for hook in wanted), host)
        self._host_of = {**self._host_of, **host_of}  # before they are loaded: a call waits for that
        for language, wanted in by_language.items():
            self._hosts[language].load(wanted)
        self._host_of = host_of

    def call(self, hook_id: str, call: ModuleCall, done: Callable[[ModuleReturn], None], /) -> None:
        """Call a handler; see :meth:`ModuleHost.call`."""
        host = self._host_of.get(hook_id)
        if host is None:
            done(ModuleReturn("absent", error="the hook is not loaded"))
        else:
            host.call(hook_id, call, done)

    def states(self) -> dict[str, State]:
        """How every wanted hook stands."""
        return {key: state for host in self._hosts.values() for key, state in host.states().items()}

    def settle(self, seconds: float) -> bool:
        """Wait until everything is loaded, or cannot be; whether that is so in time."""
        until = time.monotonic() + seconds
        settled = [host.settle(max(0.0, until - time.monotonic())) for host in self._hosts.values()]
        return all(settled)

    def counters(self) -> dict[str, Any]:
        """Of each host, by language."""
        return {language: host.counters() for language, host in self._hosts.items()}

    def close(self, seconds: float) -> None:
        """Have every hook disposed, and end everything."""
        until = time.monotonic() + seconds
        for host in self._hosts.values():
            host.close(max(0.1, until - time.monotonic()))

    def _open(self, language: Language) -> ModuleHost:
        env = {name: value for name, value in without_secrets(os.environ).items() if name not in WITHHELD}
        if self._runtime_dir is not None:
            env[ENVIRONMENT_VARIABLE] = self._runtime_dir
        is_python = language == "python"
        if is_python:
            memory_mb = PYTHON_SHARE * self._memory_mb
            argv = python_host_argv(memory_mb=memory_mb, log_level=self._log_level, program=PYTHON_PROGRAM)
        else:
            assert isinstance(self._node, NodeProgram)  # else no hook would have a module
            argv = self._node.argv(workers=self._workers, memory_mb=self._memory_mb)
        return ModuleHost(
            argv,
            env,
            name="Python" if is_python else "Node",
            board=is_python,
            on_log=self._on_log,
            on_inject=self._on_inject,
            on_state=self._on_state,
        )
