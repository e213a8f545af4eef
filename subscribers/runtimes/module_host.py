"""The process that holds module hooks, from the side of the one that uses it: loaded, called, kept alive.

    host = ModuleHost(argv, env, name="node", on_log=..., on_inject=..., on_state=...)
    host.start()
    host.load(hooks)                      # exactly these from now on
    host.call(hook_id, ModuleCall(...), done)
    host.close(seconds)

Three threads, none of which runs user code: whoever calls sends the call itself; a reader for each process
hands what comes of it to ``done`` at once; a keeper starts processes and looks at what is overdue. Whom to
load and whom to blame is decided in ``hooks/module_plan.py``, what a frame is in ``module_channel.py``.

When a process asks to be replaced, or stands still while calls wait, another one is started beside it, loads
everything, and takes over; calls that the first one had not begun are made again. When a process ends, its
reader knows at once.

Decides when a process is past hope, and which call is made again. Refuses to know languages, role files, and
what an edit means.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from broker.logs import get_logger
from broker.protocol.errors import shown

from ..hooks.module_hook import ModuleCall, ModuleHook, ModuleReturn
from ..hooks.module_plan import Change, ModulePlan, State
from .module_calls import CallBook, Done, Flight, Listeners, OnInject, OnLog, OnState, Returns
from .module_channel import ChannelBroken, FrameTooLong, call_frame
from .module_process import ModuleProcess

END_S: Final = 1.0
"""Seconds that a process whose successor has taken over may take to dispose its hooks."""

LEAST_S: Final = 0.001
"""Seconds that a call is given whose time was over while it waited: soon somebody will look."""

TICK_S: Final = 0.02
"""Seconds between two looks while there is something to look at."""

log = get_logger("subscribers.modules")


class ModuleHost:
    """A host, kept alive. Thread-safe; nothing here waits, apart from :meth:`settle` and :meth:`close`.

    ``argv`` starts the host program, to which ``--channel N`` is added (and ``--board M`` with ``board``);
    ``env`` is its whole environment, from which prxbus's own secrets are taken out; ``name`` stands in logs
    and reasons. The callbacks, and each ``done``, run in threads of the host's (``done`` also in the
    caller's, when it can be said at once) and must not call :meth:`close`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        name: str,
        cwd: str | None = None,
        board: bool = False,
        on_log: OnLog | None = None,
        on_inject: OnInject | None = None,
        on_state: OnState | None = None,
    ) -> None:
        self._argv, self._env, self._cwd, self._board = list(argv), dict(env), cwd, board
        self._name = name
        self._listeners = Listeners(on_log, on_inject, on_state)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._plan = ModulePlan()
        self._book = CallBook()
        self._current: ModuleProcess | None = None
        self._next: ModuleProcess | None = None  # loads, and is to take over
        self._retired: list[ModuleProcess] = []
        self._why_next: str | None = None
        self._start_at = 0.0
        self._numbers = self._starts = 0
        self._trouble: str | None = None
        self._closing = False
        self._wake = threading.Event()
        self._asleep = False
        self._keeper: threading.Thread | None = None

    # -- what it is used for ------------------------------------------------------------------

    def start(self) -> None:
        """Start the process, and keep one running from now on. Raises RuntimeError the second time."""
        if self._keeper is not None:
            raise RuntimeError(f"the {self._name} host has been started already")
        self._keeper = threading.Thread(target=self._keep, name=f"{self._name} keeper", daemon=True)
        self._keeper.start()

    def load(self, hooks: Iterable[ModuleHook]) -> None:
        """Want exactly these hooks: equal ones stay, others are unloaded, loaded or replaced."""
        with self._lock:
            before = self._plan.states()
            change = self._plan.want(hooks)
            for process in self._alive():
                if process is not (self._next or self._current):
                    process.tell(Change((), change.unload))
                elif process.is_ready:
                    process.tell(change)
            returns = self._after_change(before, self._plan.states())
        self._tell(returns)
        self._wake.set()

    def call(self, hook_id: str, call: ModuleCall, done: Done) -> None:
        """Call a handler; ``done`` is told what came of it, once, at the latest soon after its time is over.

        A call of a hook that is still being loaded waits for that, and its time runs. ``call.input`` has to
        be a JSON object: it is handed over as it is.
        """
        now = time.monotonic()
        flight = Flight(hook_id, call, done, now)
        with self._lock:
            no_room = f"the {self._name} host is being closed" if self._closing else self._book.admit(flight)
            refusal = flight.failed("lost", no_room, now) if no_room else self._place(flight, now)
        if refusal is not None:
            flight.tell(refusal)
        elif self._asleep:
            self._wake.set()

    def states(self) -> Mapping[str, State]:
        """How every wanted hook stands."""
        with self._lock:
            return self._plan.states()

    def settle(self, seconds: float) -> bool:
        """Wait until every wanted hook is loaded, refused or quarantined; whether that is so in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._plan.is_settled, seconds)

    @property
    def pid(self) -> int | None:
        """The id of the process that serves, if there is one."""
        return None if (process := self._current) is None else process.pid

    @property
    def version(self) -> str | None:
        """The language's version, as the process that serves has said."""
        return None if (process := self._current) is None else process.version

    @property
    def trouble(self) -> str | None:
        """Why there is no process that serves, if the last one could not be started or has ended."""
        return self._trouble

    def counters(self) -> dict[str, int]:
        """What has happened: ``restarts`` are processes after the first, ``dropped`` calls found no room,
        ``lost`` ones ended with their process, ``retried`` ones had not begun; ``under_way`` is of now.
        """
        with self._lock:
            return {
                "under_way": self._book.total,
                "dropped": self._book.dropped,
                "lost": self._book.lost,
                "retried": self._book.retried,
                "restarts": max(0, self._starts - 1),
            }

    def close(self, seconds: float) -> None:
        """Have every hook disposed within ``seconds``, and end everything. Idempotent.

        Calls under way are told as lost, at the latest then. Not to be called in a callback.
        """
        now = time.monotonic()
        with self._lock:
            self._closing = self._book.is_closed = True
            reason = f"the {self._name} host is being closed"
            returns = [self._book.lose(flight, reason, now) for flight in self._book.waiting]
            self._book.waiting.clear()
        self._tell(returns)
        self._wake.set()
        if self._keeper is not None:
            self._keeper.join()
        with self._lock:
            processes = self._alive()
            for process in processes:
                process.end(seconds * 0.8, now)
        for process in processes:
            assert process.reader is not None
            process.reader.join(max(0.0, now + seconds - time.monotonic()))
            process.kill("it did not end in time")
            process.reader.join()

    # -- calls, with the lock held ------------------------------------------------------------

    def _place(self, flight: Flight, now: float) -> ModuleReturn | None:
        """Send a call that was let in, or have it wait; or what it came to, and then it is out again."""
        standing = self._plan.standing(flight.hook_id, flight.call.handler)
        if standing.name == "absent" or standing.name == "lost":
            self._book.dismiss(flight)
            return flight.failed(standing.name, standing.reason, now)
        process = self._current
        if standing.name == "later" or process is None or not process.is_ready or process.refuses:
            self._book.waiting.append(flight)
            return None
        call = flight.call
        if now != flight.started:  # it has waited
            call = call._replace(timeout_s=max(flight.deadline - now, LEAST_S))
        self._numbers += 1
        try:
            framed = call_frame(self._numbers, flight.hook_id, call)
        except (FrameTooLong, TypeError) as error:
            self._book.dismiss(flight)
            return flight.failed("failed", f"its input cannot be handed over: {error}", now)
        flight.number, flight.sent = self._numbers, now
        process.flights[flight.number] = flight
        if not process.channel.send(framed):  # it reads nothing, or its reader is about to know better
            del process.flights[flight.number]
            self._book.waiting.append(flight)
        return None

    def _place_waiting(self, now: float) -> Returns:
        returns: Returns = []
        for _ in range(len(self._book.waiting)):
            flight = self._book.waiting.popleft()
            refusal = self._place(flight, now)
            if refusal is not None:
                returns.append((flight, refusal))
        return returns

    def _after_change(self, before: Mapping[str, State | None], after: Mapping[str, State | None]) -> Returns:
        """What follows from another state of hooks."""
        if not self._closing:
            self._listeners.changed(before, after)
        self._changed.notify_all()
        return self._place_waiting(time.monotonic())

    def _tell(self, returns: Returns) -> None:
        """Tell what there is to tell, with the lock not held."""
        for flight, returned in returns:
            flight.tell(returned)
        self._listeners.tell_states()

    # -- what a process says: in its reader's thread ------------------------------------------

    def _read(self, process: ModuleProcess) -> None:
        try:
            while True:
                for message in process.channel.receive():
                    self._hear(process, message)
        except ChannelBroken:
            self._has_ended(process)

    def _hear(self, process: ModuleProcess, message: dict[str, Any]) -> None:
        process.heard = time.monotonic()
        kind = message.get("is")
        try:
            if kind == "done":
                self._hear_done(process, message)
            elif kind == "log":
                fields = message.get("fields") or {}
                self._listeners.log(message["hook"], message["level"], message["message"], fields)
            elif kind == "inject":
                self._listeners.inject(message["hook"], message["session"], message["text"])
            elif kind in ("ready", "replace", "lost"):
                self._hear_of_itself(process, kind, message)
            elif kind == "unloaded":
                if message.get("problem"):
                    fields = {"detail": message.get("detail")}
                    self._listeners.log(message["hook"], "warn", message["problem"], fields)
            elif kind in ("loading", "loaded", "refused", "quarantined"):
                self._hear_of_hook(process, kind, message)
        except Exception as error:  # a member is missing, or is something else; others are to be heard
            log.error("a host said what it may not", host=self._name, kind=kind, error=shown(error, 300))

    def _hear_done(self, process: ModuleProcess, message: dict[str, Any]) -> None:
        with self._lock:
            flight = process.flights.pop(message["n"], None)
            if flight is None:
                return  # it was told of before
            self._book.dismiss(flight)
        flight.tell(
            ModuleReturn(
                message.get("status", "ok"),
                message.get("edit"),
                tuple(message.get("inject", ())),
                message.get("error"),
                message.get("detail"),
                process.heard - flight.started,
            )
        )

    def _hear_of_itself(self, process: ModuleProcess, kind: str, message: dict[str, Any]) -> None:
        returns: Returns = []
        with self._lock:
            before = self._plan.states()
            if kind == "ready":
                process.is_ready, process.version = True, message.get("version")
                self._trouble = None
                process.tell(Change(self._plan.to_load(), ()))
                returns += self._take_over_if_due(process)
            elif kind == "replace":
                if process is self._current and self._next is None:
                    self._why_next = str(message["reason"])
                    self._wake.set()
            elif (flight := process.flights.pop(message["n"], None)) is not None:
                reason = str(message["reason"])
                if message["started"]:
                    if self._plan.strike(flight.hook_id, process.heard, reason):
                        self._unload((flight.hook_id,))
                    returns.append(self._book.lose(flight, reason, process.heard))
                else:
                    process.refuses = process.refuses or self._why_next is not None or self._next is not None
                    returns += self._book.again(flight, reason, process.heard)
            returns += self._after_change(before, self._plan.states())
        self._tell(returns)

    def _hear_of_hook(self, process: ModuleProcess, kind: str, message: dict[str, Any]) -> None:
        hook_id: str = message["hook"]
        with self._lock:
            before = {hook_id: self._plan.state(hook_id)}
            if kind == "quarantined":
                if self._plan.quarantined(hook_id, message["reason"]):
                    self._unload((hook_id,))
            elif process is not (self._next or self._current):
                return  # it was told what to load before another one was
            elif kind == "loading":
                process.loads = (hook_id, process.heard)
                self._plan.loading(hook_id)
                return
            elif kind == "loaded":
                process.loads = None
                problem, detail = message.get("problem"), message.get("detail")
                self._plan.loaded(hook_id, message["handlers"], problem, detail)
            else:
                process.loads = None
                self._plan.refused(hook_id, message["error"], message.get("detail"))
            returns = self._take_over_if_due(process)
            returns += self._after_change(before, {hook_id: self._plan.state(hook_id)})
        self._tell(returns)

    # -- processes that come and go, with the lock held ---------------------------------------

    def _alive(self) -> list[ModuleProcess]:
        return [each for each in (self._current, self._next, *self._retired) if each is not None]

    def _unload(self, hook_ids: Sequence[str]) -> None:
        """Have every process let go of what was found guilty."""
        for process in self._alive():
            process.tell(Change((), tuple(hook_ids)))

    def _take_over_if_due(self, process: ModuleProcess) -> Returns:
        """A fresh process that has loaded everything serves from now on, and the one before it retires."""
        returns: Returns = []
        if process is not self._next or not self._plan.is_settled:
            return returns
        before, self._current, self._next = self._current, process, None
        self._plan.switched()
        if before is None:
            return returns
        self._retired.append(before)
        if before.has_board:
            before.hold()
            begun = before.begun()
            for number, flight in [*before.flights.items()]:
                if number not in begun:
                    del before.flights[number]
                    reason = "its process begins nothing any more"
                    returns += self._book.again(flight, reason, time.monotonic())
        return returns

    def _has_ended(self, process: ModuleProcess) -> None:
        """Its channel is closed: in its reader's thread, and the last thing that this does."""
        how = process.reap()
        begun, suspects = process.begun(), process.suspects()
        returns: Returns = []
        with self._lock:
            now = time.monotonic()
            before = self._plan.states()
            suspects = [] if process.is_ending or self._closing else suspects
            if process is self._current:
                self._current, self._trouble = None, how
            if process is (self._next or process) and process not in self._retired:
                guilty = self._end_of_newest(process, suspects, how, now)
            else:
                guilty = self._plan.blame(suspects, now, how)
                if process in self._retired:
                    self._retired.remove(process)
                elif self._next is not None:
                    self._plan.switched()
            self._unload(guilty)
            flights, process.flights = process.flights, {}
            for number, flight in flights.items():
                if number in begun or not process.has_board:
                    returns.append(self._book.lose(flight, how, now))
                else:
                    returns += self._book.again(flight, how, now)
            returns += self._after_change(before, self._plan.states())
        process.close()
        if not process.is_ending:
            log.warning("a host of hook modules ended", host=self._name, reason=how)
        self._tell(returns)
        self._wake.set()

    def _end_of_newest(
        self, process: ModuleProcess, suspects: list[str], how: str, now: float
    ) -> tuple[str, ...]:
        """The process that says what is loaded has ended; returns who is guilty."""
        serving = self._current is not None
        if process is self._next:
            self._next = None
        else:
            self._why_next = None
        self._start_at, guilty = self._plan.ended(suspects, now, how, serving=serving)
        return guilty

    # -- the keeper ---------------------------------------------------------------------------

    def _keep(self) -> None:
        """Start processes, and look at what is overdue, until closed."""
        while True:
            returns: Returns = []
            with self._lock:
                if self._closing:
                    return
                now = time.monotonic()
                starts = self._is_to_start(now)
                if not starts:
                    returns = self._look(now)
                    self._asleep = not self._has_something_to_look_at()
                asleep = self._asleep
            if starts:
                self._start_one(now)
                continue
            self._tell(returns)
            self._wake.wait(None if asleep else TICK_S)
            self._wake.clear()

    def _is_to_start(self, now: float) -> bool:
        wants = self._current is None or self._why_next is not None
        return wants and self._next is None and now >= self._start_at

    def _start_one(self, now: float) -> None:
        """Start a process: the one that serves, or the one that is to take over."""
        process: ModuleProcess | None = None
        how = ""
        try:
            process = ModuleProcess(self._argv, self._env, self._cwd, now, board=self._board)
        except OSError as error:
            how = f"its process cannot be started: {error.strerror or error}: {self._argv[0]}"
            log.error("a host of hook modules cannot be started", host=self._name, reason=how)
        with self._lock:
            self._starts += 1
            self._plan.started(now)
            if process is None:
                self._trouble = how
                self._start_at, _ = self._plan.ended((), now, how, serving=self._current is not None)
                return
            if self._current is None:
                self._current = process
            else:
                self._next, self._why_next = process, None
            process.reader = threading.Thread(
                target=self._read, args=(process,), name=f"{self._name} reader", daemon=True
            )
            process.reader.start()

    def _has_something_to_look_at(self) -> bool:
        return bool(
            self._book.total
            or self._current is None
            or self._next is not None
            or self._why_next is not None
            or self._retired
            or not self._current.is_ready
            or self._current.loads is not None
        )

    def _look(self, now: float) -> Returns:
        """Tell of what is overdue, end what is past hope, and try what could not be sent."""
        returns = self._place_waiting(now)
        for flight in self._book.overdue(now):
            reason = self._trouble or f"the {self._name} host has not loaded it yet"
            returns.append((flight, flight.failed("timeout", f"not begun in time: {reason}", now)))
        for process in self._alive():
            for flight in process.take_overdue(now):
                self._book.dismiss(flight)
                reason = f"no answer within {flight.call.timeout_s:g} s"
                returns.append((flight, flight.failed("timeout", reason, now)))
            process.hang_up_if_gone()
            hopeless = process.past_hope(now)
            if hopeless is not None:
                process.kill(hopeless)
        for process in self._retired:
            if not process.flights and not process.is_ending and not process.overdue:
                process.end(END_S, now)
        if self._current is not None and self._next is None and self._current.stands_still(now):
            self._current.refuses = True
            self._why_next = self._why_next or "it stands still"
            self._wake.set()
        return returns
