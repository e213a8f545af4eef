"""The chain in force: which handlers there are now, from the configuration and the files of handlers.

In this order: tables of the user's configuration, functions of what ``--handlers`` names and of installed
packages, tables of the workspace's configuration, functions of the workspace's own files; within a file as
they stand there. So nothing of a workspace comes in front of what the user has set up.

Decides what a change on disk changes: one file is loaded anew, all others go on; what cannot be used leaves
the last good version in force and is said once. An ask under way keeps the handlers that it began with.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from broker.logs import get_logger
from broker.protocol.errors import shown

from ..config import files as config_files
from ..config.transforms import KEY, Transform
from ..hooks.diagnostics import Diagnostic
from ..hooks.transform_chain import Handler
from ..runtimes.transform_pool import LOAD_S, FunctionPool, LoadFailed
from ..sources.handlers import HandlerUnit, Origin, looks
from ..sources.transform_files import may_transform
from .transform_reports import Who
from .transform_steps import FUNCTION, FunctionStep, Step

LOOK_S: Final = 0.25
"""Seconds between two looks at the files; a change counts once it looks the same twice."""

log = get_logger("subscribers.transform")

USERS: Final[tuple[Origin, ...]] = ("named", "installed")
WORKSPACES: Final[tuple[Origin, ...]] = ("workspace",)

OpenPool = Callable[[HandlerUnit], FunctionPool]
"""Starts the processes of one file. Raises LoadFailed."""
MakeHandler = Callable[[Transform], Handler[Step]]
Look = tuple[tuple[str, Any], ...]


@dataclass
class _File:
    """One file of handlers. ``handlers`` and ``pool`` are of the last good load, ``seen`` of the last one."""

    unit: HandlerUnit
    handlers: tuple[Handler[Step], ...] = ()
    pool: FunctionPool | None = None
    files: tuple[str, ...] = ()
    seen: Look | None = None


@dataclass(eq=False)
class _InForce:
    """One state of the chain; ``users`` asks go along it."""

    handlers: tuple[Handler[Step], ...] = ()
    pools: tuple[FunctionPool, ...] = ()
    users: int = field(default=0)


class Registry:
    """Holds the chain and follows the files. Call :meth:`load` first, then :meth:`start`.

    ``why_not`` is asked before anything is loaded: why that may not be done now, or None.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        workspace: str | None,
        units: Callable[[], Sequence[HandlerUnit]],
        open_pool: OpenPool,
        make_handler: MakeHandler,
        why_not: Callable[[], str | None] | None = None,
    ) -> None:
        self._why_not = why_not
        self._environ = environ
        self._workspace = workspace
        self._units = units
        self._open_pool = open_pool
        self._make_handler = make_handler
        self._configs = [config_files.user_file(environ)]
        if workspace is not None:
            self._configs.append(config_files.workspace_file(workspace))
        self._tables: dict[str, tuple[Transform, ...]] = dict.fromkeys(self._configs, ())
        self._config_seen: Look = ()
        self._files: dict[HandlerUnit, _File] = {}
        self._loading = threading.Lock()
        self._lock = threading.Lock()  # over what is below
        self._now = _InForce()
        self._old: list[_InForce] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="watch transforms", daemon=True)

    @property
    def handlers(self) -> tuple[Handler[Step], ...]:
        """The chain of now."""
        return self._now.handlers

    @contextmanager
    def in_force(self) -> Iterator[tuple[Handler[Step], ...]]:
        """The chain of now, which can be used until the block is left."""
        with self._lock:
            state = self._now
            state.users += 1
        try:
            yield state.handlers
        finally:
            with self._lock:
                state.users -= 1
                unused = self._unused()
            for pool in unused:
                pool.close()

    def start(self) -> None:
        """Follow the files from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Follow them no longer, and end every process."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        with self._loading:
            for file in self._files.values():
                if file.pool is not None:
                    file.pool.close()
            for state in self._old:
                for pool in state.pools:
                    pool.close()

    def load(self, *, again: bool = False) -> None:
        """Look at everything and put in force what can be used. ``again``: also what looks unchanged."""
        with self._loading:
            why = None if self._why_not is None else self._why_not()
            if why is not None:
                log.warning("nothing is loaded anew", reason=shown(why, 300))
                return
            changed = self._load_tables(again=again)
            units = self._units()
            for unit in self._files.keys() - set(units):
                changed |= bool(self._files.pop(unit).handlers)
            changed |= self._load_files(units, again=again)
            self._files = {unit: self._files[unit] for unit in units}
            if changed:
                self._put_in_force()

    # -- loading ------------------------------------------------------------------------------

    def _load_tables(self, *, again: bool) -> bool:
        look = looks(self._configs)
        if look == self._config_seen and not again:
            return False
        self._config_seen = look
        configured = config_files.load(self._environ, {}, self._workspace)
        changed = False
        for path in self._configs:
            faults = [d for d in configured.diagnostics if d.path == path and _is_ours(d)]
            tables = tuple(t for t in configured.transforms if t.path == path)
            for fault in faults:
                log.error(fault.render())
            if faults and self._tables[path]:
                log.error("the last good transforms of a file stay in force", path=path)
            elif tables != self._tables[path]:
                self._tables[path], changed = tables, True
        return changed

    def _load_files(self, units: Sequence[HandlerUnit], *, again: bool) -> bool:
        """Load the files that look different than before, side by side; whether any handlers changed."""
        changed = False
        due: list[_File] = []
        for unit in units:
            file = self._files.setdefault(unit, _File(unit))
            is_alive = file.pool is None or file.pool.alive
            look = self._look(file)
            if look == file.seen and is_alive and not again:
                continue
            if may_transform(unit):
                due.append(file)
            else:
                file.seen, file.files = look, ()
                changed |= self._replace(file, (), None)
        started = [(file, self._look(file), self._start(file)) for file in due]
        deadline = time.monotonic() + LOAD_S  # for all: those that hang do not add up
        for file, before, pool in started:
            changed |= self._finish(file, pool, deadline)
            after = dict(file.seen or ())
            if any(after.get(path, look) != look for path, look in before):
                file.seen = None  # edited while it was read: what was loaded may be neither version
        return changed

    def _start(self, file: _File) -> FunctionPool | Diagnostic:
        try:
            return self._open_pool(file.unit)
        except LoadFailed as failure:
            return _cannot_load(file.unit, failure)

    def _finish(self, file: _File, pool: FunctionPool | Diagnostic, deadline: float) -> bool:
        """Take what came of loading a file; whether its handlers changed."""
        file.seen = self._look(file)
        if isinstance(pool, Diagnostic):
            return self._cannot_use(file, pool)
        try:
            said = pool.loaded(deadline)
        except LoadFailed as failure:
            return self._cannot_use(file, _cannot_load(file.unit, failure))
        file.files = tuple(said["files"])
        file.seen = self._look(file)
        if said["error"] is not None:
            pool.close()
            return self._cannot_use(file, Diagnostic("error", *_fault(said["error"])))
        if not said["handlers"]:
            pool.close()
            return self._replace(file, (), None)
        pool.warm_up()
        return self._replace(file, tuple(_function_handlers(file.unit, pool, said["handlers"])), pool)

    def _cannot_use(self, file: _File, error: Diagnostic) -> bool:
        """Keep the last good version, unless its processes are gone too; whether the handlers changed."""
        log.error(error.render())
        if not file.handlers:
            return False
        facts = {"path": file.unit.path, "handlers": [handler.name for handler in file.handlers]}
        if file.pool is not None and file.pool.alive:
            log.error("the last good transforms of a file stay in force", **facts)
            return False
        log.error("transforms are in force no longer: their processes ended, and cannot be loaded", **facts)
        return self._replace(file, (), None)

    def _replace(self, file: _File, handlers: tuple[Handler[Step], ...], pool: FunctionPool | None) -> bool:
        changed = bool(file.handlers or handlers)
        file.handlers, file.pool = handlers, pool
        return changed

    def _look(self, file: _File) -> Look:
        own = () if file.unit.entry_point is not None else (file.unit.path,)
        return looks((*own, *file.files))

    def _put_in_force(self) -> None:
        handlers: list[Handler[Step]] = []
        for path, origins in zip(self._configs, (USERS, WORKSPACES), strict=False):
            handlers += map(self._make_handler, self._tables[path])
            for origin in origins:
                for file in self._files.values():
                    handlers += file.handlers if file.unit.origin == origin else ()
        pools = tuple(file.pool for file in self._files.values() if file.pool is not None)
        with self._lock:
            self._old.append(self._now)
            self._now = _InForce(tuple(handlers), pools)
            unused = self._unused()
        for pool in unused:
            pool.close()
        log.info("transforms are in force", handlers=[handler.name for handler in handlers])

    def _unused(self) -> list[FunctionPool]:
        """The pools of states that nobody goes along any more and that no other state holds. Locked."""
        over = [state for state in self._old if not state.users]
        self._old = [state for state in self._old if state.users]
        held = {id(pool) for state in (self._now, *self._old) for pool in state.pools}
        found = {id(pool): pool for state in over for pool in state.pools if id(pool) not in held}
        return list(found.values())

    # -- following ----------------------------------------------------------------------------

    def _follow(self) -> None:
        seen, applied = self._whole_look(), None  # what changed since it was loaded is to be noticed too
        while not self._stop.wait(LOOK_S):
            try:
                now = self._whole_look()
                if now == seen and (now != applied or self._has_lost_one()):
                    applied = now
                    self.load()
                seen = now
            except Exception as error:  # what is in force goes on
                log.error("looking at the transforms failed", error=shown(error, 300))

    def _has_lost_one(self) -> bool:
        """Whether the process that holds a file's functions has ended."""
        return any(file.pool is not None and not file.pool.alive for file in list(self._files.values()))

    def _whole_look(self) -> Look:
        """What everything that counts looks like, also which files there are."""
        own = [unit.path for unit in self._units() if unit.entry_point is None]
        members = [path for file in list(self._files.values()) for path in file.files]
        return looks([*self._configs, *own, *members])


def _is_ours(fault: Diagnostic) -> bool:
    """Whether a fault of the configuration is about transforms, or about the whole file."""
    return fault.code == "unusable_file" or (fault.field or "").startswith(KEY)


def _cannot_load(unit: HandlerUnit, failure: LoadFailed) -> Diagnostic:
    return Diagnostic("error", "cannot_load", unit.path, None, None, None, str(failure), None)


def _fault(said: list[Any]) -> tuple[str, str, int | None, None, None, str, str | None]:
    code, path, line, message, hint = said
    return code, path, line, None, None, message, hint


def _function_handlers(
    unit: HandlerUnit, pool: FunctionPool, said: list[list[Any]]
) -> Iterator[Handler[Step]]:
    for index, (function, path, line, tools, agents, timeout_s) in enumerate(said):
        name = f"{unit.name}:{function}"
        step = FunctionStep(pool, index, Who(name, FUNCTION, path, line, ""))
        yield Handler(name, step, timeout_s, tuple(tools), tuple(agents))
