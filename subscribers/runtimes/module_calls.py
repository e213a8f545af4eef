"""Calls of module hooks that nobody has been told of yet, and who is told of what.

Decides how many calls there may be and which of them wait, and that what a listener raises reaches nobody
else. Refuses to know processes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from broker.logs import get_logger
from broker.protocol.errors import shown

from ..hooks.module_hook import CallStatus, ModuleCall, ModuleReturn
from ..hooks.module_plan import State

CALLS_PER_HOOK: Final = 64
CALLS: Final = 1_024
"""Calls under way and waiting, of one hook and in all; one more is dropped and counted."""

INPUT_BYTES: Final = 134_217_728
"""Bytes of input (128 MiB) of all calls under way and waiting."""

log = get_logger("subscribers.modules")

Done: TypeAlias = Callable[[ModuleReturn], None]
"""Told what came of a call, once."""


class OnLog(Protocol):
    """Told of what a hook logs; ``level`` is debug, info, warn or error. To be quick: the reader waits."""

    def __call__(self, hook_id: str, level: str, message: str, fields: Mapping[str, Any], /) -> None:
        """Take it."""


class OnInject(Protocol):
    """Told of a text that a hook injects outside of a call, or after its end. To be quick, too."""

    def __call__(self, hook_id: str, session_id: str | None, text: str, /) -> None:
        """Take it."""


class OnState(Protocol):
    """Told of each change of how a wanted hook stands, in order. To be quick, too."""

    def __call__(self, hook_id: str, state: State, /) -> None:
        """Take it."""


class Flight:
    """A call that has not been told of; times in seconds of ``time.monotonic()``.

    ``number`` is 0 while it waits to be sent; ``retried``: it was sent once, and had not begun.
    """

    __slots__ = ("call", "deadline", "done", "hook_id", "number", "retried", "sent", "started")

    def __init__(self, hook_id: str, call: ModuleCall, done: Done, now: float) -> None:
        self.hook_id = hook_id
        self.call = call
        self.done = done
        self.started = now
        self.deadline = now + call.timeout_s
        self.sent = 0.0
        self.number = 0
        self.retried = False

    def failed(self, status: CallStatus, reason: str | None, now: float) -> ModuleReturn:
        """What it came to when it did not come to its end."""
        return ModuleReturn(status, error=reason, seconds=now - self.started)

    def tell(self, returned: ModuleReturn) -> None:
        """Hand it to whoever called; what they raise is logged, for others are to be told, too."""
        try:
            self.done(returned)
        except Exception as error:
            log.error("what follows a call failed", hook=self.hook_id, error=shown(error, 300))


Returns: TypeAlias = list[tuple[Flight, ModuleReturn]]
"""What is to be told when no lock is held any more."""


class CallBook:
    """Counts calls in and out, and holds those that cannot be sent yet. For one thread at a time."""

    def __init__(self) -> None:
        self._per_hook: dict[str, int] = {}
        self._bytes = 0
        self.total = 0
        self.dropped = self.lost = self.retried = 0
        self.is_closed = False
        self.waiting: deque[Flight] = deque()

    def admit(self, flight: Flight) -> str | None:
        """Count a call in; or why not."""
        mine = self._per_hook.get(flight.hook_id, 0)
        size = len(flight.call.input)
        if mine >= CALLS_PER_HOOK or self.total >= CALLS or self._bytes + size > INPUT_BYTES:
            self.dropped += 1
            return f"no room: {mine} calls of it and {self.total} in all are under way already"
        self._per_hook[flight.hook_id] = mine + 1
        self.total += 1
        self._bytes += size
        return None

    def dismiss(self, flight: Flight) -> None:
        """Count a call out that was let in."""
        left = self._per_hook.pop(flight.hook_id) - 1
        if left:
            self._per_hook[flight.hook_id] = left
        self.total -= 1
        self._bytes -= len(flight.call.input)

    def lose(self, flight: Flight, reason: str, now: float) -> tuple[Flight, ModuleReturn]:
        """Count a call out of which nothing will come; what is to be told."""
        self.lost += 1
        self.dismiss(flight)
        return flight, flight.failed("lost", reason, now)

    def again(self, flight: Flight, reason: str, now: float) -> Returns:
        """Have a call wait that had not begun where it was sent, once; or what is to be told."""
        if now >= flight.deadline:
            self.dismiss(flight)
            return [(flight, flight.failed("timeout", f"not begun in time: {reason}", now))]
        if flight.retried or self.is_closed:
            return [self.lose(flight, reason, now)]
        flight.retried = True
        self.retried += 1
        self.waiting.append(flight)
        return []

    def overdue(self, now: float) -> list[Flight]:
        """Waiting calls whose time is over; they are taken out."""
        over = [flight for flight in self.waiting if now >= flight.deadline]
        if over:
            self.waiting = deque(flight for flight in self.waiting if now < flight.deadline)
            for flight in over:
                self.dismiss(flight)
        return over


class Listeners:
    """Who is told of what hooks say, and how they stand. Thread-safe; states are told in order."""

    def __init__(self, on_log: OnLog | None, on_inject: OnInject | None, on_state: OnState | None) -> None:
        self._on_log, self._on_inject, self._on_state = on_log, on_inject, on_state
        self._states: deque[tuple[str, State]] = deque()
        self._telling = threading.RLock()

    def log(self, hook_id: str, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """A hook logs something."""
        self._guarded(self._on_log, hook_id, level, message, fields)

    def inject(self, hook_id: str, session_id: str | None, text: str) -> None:
        """A hook injects something."""
        self._guarded(self._on_inject, hook_id, session_id, text)

    def changed(self, before: Mapping[str, State | None], after: Mapping[str, State | None]) -> None:
        """Note which hooks stand in another way, to be told by :meth:`tell_states`."""
        for hook_id, state in after.items():
            if state is not None and before.get(hook_id) != state:
                self._states.append((hook_id, state))

    def tell_states(self) -> None:
        """Tell what was noted; with no lock held."""
        with self._telling:
            while self._states:
                self._guarded(self._on_state, *self._states.popleft())

    @staticmethod
    def _guarded(listener: Callable[..., None] | None, *facts: object) -> None:
        try:
            if listener is not None:
                listener(*facts)
        except Exception as error:  # others are to be heard, too
            log.error("a listener failed", error=shown(error, 300))
