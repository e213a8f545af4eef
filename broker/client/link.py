"""The thread that keeps a client in touch with the broker while the application is busy.

It alone touches the control socket: it says hello, hands in reports and carries requests. At each
tick it lets its owner look after its data socket. It decides nothing: what to say and what
answers mean is the session's.
"""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

import zmq

from ..protocol.control import Message, encode_message
from ..protocol.errors import BusUnreachable, ClosedError, QueueFull, RequestRefused, RequestTimeout
from .core.session import HELLO_SECONDS, Answered, ControlSession, Note
from .sockets import control_socket

TICK_SECONDS: Final = 1.0
"""Longest pause between two ticks; an owner may ask for a shorter one."""

OUTBOX: Final = 1_000
"""Requests that wait for the thread; beyond it a request is refused at once."""


class Owner(Protocol):
    """What the thread needs of the client it works for. All methods are called from the thread."""

    def tick(self, now: float, /) -> float:
        """Look after the data socket; returns the seconds until the next tick."""

    def note(self, note: Note) -> None:
        """Something that the broker said, other than the reply to a request."""

    def counters(self) -> Mapping[str, Any]:
        """What to report."""

    def watched(self) -> int | None:
        """A descriptor whose readiness should cause a tick at once, or None."""


class Pending:
    """A request under way; ``done`` is set when ``reply`` is there or the link has ended."""

    __slots__ = ("deadline", "done", "reply")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.done = threading.Event()
        self.reply: Message | None = None


class Link:
    """The control connection of one client at ``endpoint``. It lives from :meth:`begin` to :meth:`close`.

    ``key`` names the connection, where there are lanes beside it (see :mod:`broker.protocol.control`).
    """

    def __init__(
        self, endpoint: str, session: ControlSession, owner: Owner, key: bytes | None = None
    ) -> None:
        self.session = session
        self.unanswered = 0
        self._owner = weakref.ref(owner)  # a client that nobody holds any more is collected, and we end
        self._lock = threading.RLock()  # a signal handler may publish or close in the middle of either
        self._outbox: deque[bytes] = deque()
        self._unsent: deque[bytes] = deque()  # the session's own, which go first and need no welcome
        self._pending: dict[int, Pending] = {}
        self._ended = False
        self._tick_now = False
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._socket = control_socket(endpoint, key)
        self._thread = threading.Thread(target=self._run, name="prxbus-link", daemon=True)

    def begin(self) -> None:
        """Start the thread: the owner is complete."""
        self._thread.start()

    def send(self, kind: str, /, **body: Any) -> bool:
        """Queue a message that has no reply; false when there is no room for it."""
        return self._post(encode_message(kind, **body))

    def start(self, kind: str, timeout: float, /, **body: Any) -> Pending:
        """Queue a request; raises :class:`QueueFull` when there is no room for it."""
        pending = Pending(time.monotonic() + timeout)
        request, data = self.session.request(kind, **body)
        with self._lock:
            self._pending[request] = pending
            posted = self._post(data)
            if not posted:
                self._pending.pop(request, None)
        if not posted:
            raise QueueFull(f"{OUTBOX:,} control messages wait already; {kind!r} was not sent")
        return pending

    def wait(self, pending: Pending, what: str) -> Message:
        """The reply to a request.

        Raises :class:`RequestTimeout` past its deadline, :class:`RequestRefused` when the broker
        refused and :class:`ClosedError` when the client was closed meanwhile.
        """
        pending.done.wait(max(0.0, pending.deadline - time.monotonic()))
        reply = pending.reply
        if reply is None:
            if self._ended:
                raise ClosedError(f"closed while {what} was under way")
            if not self.session.welcomed:
                raise BusUnreachable(f"no bus answers ({what}); start one with 'prxbus up'")
            raise RequestTimeout(f"no answer to {what} in time; is the broker overloaded or away?")
        if reply.kind == "error":
            raise RequestRefused(reply.body["code"], reply.body["message"])
        return reply

    def hello(self) -> None:
        """Say hello again: the data plane has told of another broker before the control plane did."""
        self.session.expect_another()
        self._tick_now = True
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            if self._wake_write >= 0:
                with suppress(BlockingIOError):  # it is awake
                    os.write(self._wake_write, b"\0")

    def close(self, last_words: Iterable[bytes] = (), timeout: float = 2.0) -> None:
        """Hand over the closing beacons ``last_words``, say goodbye, end the thread. Safe to call twice."""
        with self._lock:
            if self._ended:
                return
            # After the hello, welcomed already or not.
            self._unsent.extend(encode_message("beacon", frame=frame) for frame in last_words)
            self._unsent.append(encode_message("bye"))
            self._ended = True
            self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _post(self, data: bytes) -> bool:
        with self._lock:
            if self._ended:
                raise ClosedError("this client is closed")
            if len(self._outbox) >= OUTBOX:
                return False
            self._outbox.append(data)
            self._wake()
        return True

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._wake_read, zmq.POLLIN)
        watched: int | None = None
        next_tick = 0.0
        try:
            while True:
                now = time.monotonic()
                if now >= next_tick or self._tick_now:
                    self._tick_now = False
                    next_tick = now + self._tick(now)
                self._flush()
                if self._ended:
                    return
                fresh = self._watched()
                if fresh != watched:
                    if watched is not None:
                        poller.unregister(watched)
                    if fresh is not None:
                        poller.register(fresh, zmq.POLLIN)
                    watched = fresh
                # A message that waits for the connection, or for room, is sent as soon as there is one.
                waits = self._unsent or (self._outbox and self.session.welcomed)
                poller.modify(self._socket, zmq.POLLIN | zmq.POLLOUT if waits else zmq.POLLIN)
                ready = dict(poller.poll(max(0, math.ceil((next_tick - now) * 1000))))
                if self._wake_read in ready:
                    os.read(self._wake_read, 4096)
                if watched is not None and watched in ready:
                    self._tick_now = True
                self._receive()
        except zmq.ZMQError:
            if not self._ended:  # else the process ends and took the socket along
                raise
        finally:
            self._socket.close()
            with self._lock:
                self._ended = True
                os.close(self._wake_read)
                os.close(self._wake_write)
                self._wake_read = self._wake_write = -1
                for pending in self._pending.values():
                    pending.done.set()

    def _tick(self, now: float) -> float:
        owner = self._owner()
        if owner is None:
            self._ended = True
            return 0.0
        pause = owner.tick(now)
        if not self._unsent:
            self._unsent.extend(self.session.tick(now, owner.counters()))
        with self._lock:
            late = [request for request, pending in self._pending.items() if now > pending.deadline]
            for request in late:
                self._pending.pop(request).done.set()
            self.unanswered += len(late)
        return min(pause, TICK_SECONDS if self.session.welcomed else HELLO_SECONDS)

    def _watched(self) -> int | None:
        owner = self._owner()
        return None if owner is None else owner.watched()

    def _flush(self) -> None:
        try:
            while self._unsent:
                self._socket.send(self._unsent[0], zmq.NOBLOCK)
                self._unsent.popleft()
            while self._outbox and self.session.welcomed:
                self._socket.send(self._outbox[0], zmq.NOBLOCK)
                self._outbox.popleft()
        except zmq.Again:
            return

    def _receive(self) -> None:
        for _ in range(1_000):
            try:
                parts = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            note = self.session.handle(parts[-1], time.monotonic())
            if isinstance(note, Answered):
                with self._lock:
                    pending = self._pending.pop(note.request, None)
                if pending is not None:
                    pending.reply = note.message
                    pending.done.set()
            elif note is not None and (owner := self._owner()) is not None:
                owner.note(note)
