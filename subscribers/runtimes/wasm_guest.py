"""A plugin's component at work: one call at a time, within its limits, in an instance that is kept warm.

Decides how a call ends: with success, with the plugin's own error, with a trap, or at its deadline. After a
trap or a timeout the next call gets a fresh instance. Refuses to know events, manifests and the bus.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from wasmtime import ExitTrap, Store, WasiConfig, WasmtimeError
from wasmtime import _ffi as ffi
from wasmtime import component as wc

from ..hooks.outcome import NOTHING, Outcome, Status
from .deadlines import Deadline, Deadlines
from .wasm_component import FUNCTION, Compiled, shortened
from .wasm_imports import Host, link

TABLES: Final = 10
INSTANCES: Final = 100
"""Tables and core instances of a component. A language with many libraries, Python, has 3 and some 20."""

TABLE_ELEMENTS: Final = 200_000
"""Most elements of one table. All tables together may take as much memory again as the memory limit."""

ELEMENT_BYTES: Final = 8

REASON_CHARACTERS: Final = 2_000
"""First characters of a plugin's own error that are its call's reason."""

MEMORIES: Final = 1
"""Linear memories of a component: the memory limit is for each, and has to hold for all."""

_CAUSE: Final = "Caused by:"


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What one call may use. ``fuel`` None: instructions are not counted."""

    memory_bytes: int
    seconds: float
    fuel: int | None


@dataclass(frozen=True, slots=True)
class Wasi:
    """What WASI opens: ``folders`` as pairs of a path here and one there; ``network`` in all directions."""

    folders: tuple[tuple[str, str], ...]
    network: bool


class _TimeOver(Exception):
    """A call's time was over before the component could be told of its end."""


class Guest:
    """A compiled component with its host. One thread calls it; :meth:`interrupt` is for any thread.

    ``on_fresh`` is called before each new instance. ``instances`` counts them.
    """

    def __init__(
        self,
        compiled: Compiled,
        host: Host,
        limits: CallLimits,
        deadlines: Deadlines,
        *,
        wasi: Wasi | None = None,
        on_fresh: Callable[[], None] = lambda: None,
    ) -> None:
        self.instances = 0
        self._compiled = compiled
        self._host = host
        self._limits = limits
        self._deadlines = deadlines
        self._wasi = wasi
        self._on_fresh = on_fresh
        self._linker = wc.Linker(compiled.engine)
        link(self._linker, list(compiled.imports), host)
        if wasi is not None and compiled.wants_wasi:
            self._linker.add_wasip2()
            if wasi.network and compiled.wants_http:
                self._linker.add_wasi_http()
        self._live: tuple[Store, wc.Func] | None = None
        self._deadline: Deadline | None = None
        self._is_unwanted = False

    def call(self, event: str, payload: str, on_stuck: Callable[[], None] | None = None) -> Outcome:
        """Call the component and say how it ended; raises nothing on its account.

        ``on_stuck`` is called from another thread when the call goes on although its time is over, which
        only a function of WASI can bring about.
        """
        began = time.monotonic()
        deadline = self._deadlines.arm(
            self._limits.seconds, self._compiled.engine.increment_epoch, on_stuck or _nothing
        )
        self._deadline = deadline
        if self._is_unwanted:  # told so before there was a deadline to be hurried
            self._deadlines.hurry(deadline)
        status: Status = "ok"
        reason: str | None = None
        try:
            answer = self._call(event, payload, deadline)
            self._deadlines.disarm(deadline)
            if deadline.passed:  # it slept in the host, where nothing interrupts it
                self.forget_instance()
                status, reason = "timeout", self._overtime()
            elif answer is not None:
                status, reason = "failed", shortened(str(answer), REASON_CHARACTERS)
        except Exception as error:  # traps, and whatever the library makes of what a component does
            self.forget_instance()
            self._deadlines.disarm(deadline)
            status, reason = self._explain(error, deadline)
        finally:
            self._deadlines.disarm(deadline)
            self._deadline = None
        return Outcome(status, None, None, time.monotonic() - began, NOTHING, NOTHING, reason)

    def interrupt(self) -> None:
        """Have a call that is under way, or is about to be, end now as if its time were over.

        The plugin is no longer needed: a later call ends in the same way.
        """
        self._is_unwanted = True
        deadline = self._deadline
        if deadline is not None:
            self._deadlines.hurry(deadline)

    def forget_instance(self) -> None:
        """Have the next call get a fresh instance."""
        self._live = None

    def _call(self, event: str, payload: str, deadline: Deadline) -> Any:
        if self._live is None:
            self._live = self._fresh(deadline)
        else:
            self._begin(self._live[0], deadline)
        store, function = self._live
        return function(store, event, payload)

    def _begin(self, store: Store, deadline: Deadline) -> None:
        """Give the call its fuel and its end, once: a fresh instance takes both from the same call.

        The end is the next time that the engine's epoch is raised, which the deadline does once. Had it done
        so before, nothing would ever end the call; ``passed`` is set before that.
        """
        if self._limits.fuel is not None:
            store.set_fuel(self._limits.fuel)
        store.set_epoch_deadline(1)
        if deadline.passed:
            raise _TimeOver

    def _fresh(self, deadline: Deadline) -> tuple[Store, wc.Func]:
        self._on_fresh()
        self.instances += 1
        compiled = self._compiled
        store = Store(compiled.engine)
        elements = self._limits.memory_bytes // (TABLES * ELEMENT_BYTES)
        store.set_limits(
            memory_size=self._limits.memory_bytes,
            table_elements=min(elements, TABLE_ELEMENTS),
            instances=INSTANCES,
            tables=TABLES,
            memories=MEMORIES,
        )
        self._begin(store, deadline)
        if self._wasi is not None and compiled.wants_wasi:
            store.set_wasi(self._wasi_config(self._wasi))
            if self._wasi.network and compiled.wants_http:
                store.set_wasi_http()
        instance = self._linker.instantiate(store, compiled.component)
        exported = instance.get_export_index(store, compiled.exported)
        index = instance.get_export_index(store, FUNCTION, exported)
        function = None if index is None else instance.get_func(store, index)
        assert function is not None  # its type was checked when it was compiled
        return store, function

    def _wasi_config(self, wasi: Wasi) -> WasiConfig:
        config = WasiConfig()
        config.stdout_custom = self._host.wrote
        config.stderr_custom = self._host.wrote
        for here, there in wasi.folders:
            config.preopen_dir(here, there)
        if wasi.network:
            ffi.wasi_config_inherit_network(config.ptr())
            ffi.wasi_config_allow_ip_name_lookup(config.ptr(), True)
        return config

    def _explain(self, error: Exception, deadline: Deadline) -> tuple[Status, str]:
        if isinstance(error, ExitTrap):
            return "failed", f"the plugin ended itself with exit code {error.code}"
        if isinstance(error, _TimeOver):
            return "timeout", self._overtime()
        words = str(error)
        cause = words.rpartition(_CAUSE)[2].strip() if _CAUSE in words else words.strip()
        if deadline.passed and "interrupt" in cause:
            return "timeout", self._overtime()
        if "all fuel consumed" in cause:
            return "failed", f"it used up its fuel of {self._limits.fuel} (max_fuel)"
        kind = "trap" if isinstance(error, WasmtimeError) else "error"
        return "failed", f"{kind}: {shortened(cause)}"

    def _overtime(self) -> str:
        if self._is_unwanted:
            return "it was ended early: the plugin is no longer needed"
        return f"it ran for {self._limits.seconds:g} s (max_execution_time_ms)"


def _nothing() -> None:
    """What happens to a call that is stuck where nobody asked."""
