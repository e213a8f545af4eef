"""A client's side of the control plane: hello until welcomed, reports while there is news, requests.

Decides what to say to the broker and when, and what an answer means. Sans-IO: messages go in
and out as bytes, times are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Final, NamedTuple

from ...protocol.control import Message, decode_message, encode_message
from ...protocol.errors import DecodeError, VersionMismatch

HELLO_SECONDS: Final = 0.25
"""Pause between two hellos while nobody answers."""

REPORT_SECONDS: Final = 1.0
"""Pause between two reports while counters change."""

IDLE_REPORT_SECONDS: Final = 5.0
"""Pause between two reports while they do not: a sign of life."""

UNKNOWN_PEER: Final = "unknown_peer"
"""Code of the error by which a broker asks for a hello."""


class Identity(NamedTuple):
    """What a client says of itself: ``role`` is one of :data:`broker.protocol.control.ROLES`."""

    role: str
    name: str
    pid: int
    release: str
    patterns: tuple[str, ...] = ()
    priority: int = 0
    failure: str = "open"


class Welcomed(NamedTuple):
    """A broker answered a hello. ``again`` is true when it is another one than before."""

    epoch: bytes
    limits: Mapping[str, Any]
    again: bool


class Held(NamedTuple):
    """The broker drains: nothing may be sent until the next welcome."""


class BatchesTold(NamedTuple):
    """Whether every registered subscriber decodes batches has changed."""

    allowed: bool


class Answered(NamedTuple):
    """The reply to request number ``request``; its kind is ``error`` when it was refused."""

    request: int
    message: Message


class Refused(NamedTuple):
    """The broker refused us or what it sent was no message; ``error`` says why."""

    code: str
    error: str


Note = Welcomed | Held | BatchesTold | Answered | Refused


class ControlSession:
    """One client's conversation with whichever broker is there.

    ``publisher`` is the id that hello tells, kept current by its owner. ``batches`` says whether
    every registered subscriber decodes batches. ``epoch`` is the broker's, None until welcomed.
    """

    def __init__(self, identity: Identity, publisher: bytes | None = None) -> None:
        self.identity = identity
        self.publisher = publisher
        self.epoch: bytes | None = None
        self.welcomed = False
        self.batches = False
        self._numbers = count(1)
        self._next_hello = 0.0
        self._next_report = 0.0
        self._next_sign = 0.0
        self._reported: Mapping[str, Any] = {}

    def request(self, kind: str, **body: Any) -> tuple[int, bytes]:
        """A new request: its number and its bytes."""
        number = next(self._numbers)
        return number, encode_message(kind, number, **body)

    def hello(self, now: float) -> bytes:
        """Say (again) who we are; the next tick repeats it unless a welcome comes first."""
        self._next_hello = now + HELLO_SECONDS
        self.welcomed = False
        role, name, pid, release, patterns, priority, failure = self.identity
        declared = {"priority": priority, "failure": failure} if role == "decider" else {}
        return encode_message(
            "hello",
            role=role,
            name=name,
            pid=pid,
            release=release,
            patterns=list(patterns),
            batches=True,
            publisher=self.publisher,
            **declared,
        )

    def expect_another(self) -> None:
        """Another broker may be there: the next tick says hello."""
        self.welcomed = False
        self._next_hello = 0.0

    def tick(self, now: float, counters: Mapping[str, Any]) -> list[bytes]:
        """What is to be sent at ``now``: a hello until welcomed, then reports of ``counters``."""
        if not self.welcomed:
            return [self.hello(now)] if now >= self._next_hello else []
        if now >= self._next_sign or (now >= self._next_report and counters != self._reported):
            self._next_report = now + REPORT_SECONDS
            self._next_sign = now + IDLE_REPORT_SECONDS
            self._reported = dict(counters)
            return [encode_message("report", counters=self._reported)]
        return []

    def handle(self, data: bytes, now: float) -> Note | None:
        """What a message from the broker means to us; None when it is of no consequence."""
        try:
            message = decode_message(data)
        except VersionMismatch as error:
            return Refused(error.code, str(error))
        except DecodeError:
            return None
        if message.kind == "welcome":
            return self._welcome(message.body, now)
        if message.kind == "hold":
            return Held()
        if message.kind == "batches":
            self.batches = message.body["batches"]
            return BatchesTold(self.batches)
        if message.kind == "error" and message.request == 0:
            return self._refused(message.body["code"], message.body["message"])
        return Answered(message.request, message) if message.request else None

    def _welcome(self, body: Mapping[str, Any], now: float) -> Welcomed:
        again = self.epoch is not None and self.epoch != body["epoch"]
        self.epoch = body["epoch"]
        self.batches = body["batches"]
        self.welcomed = True
        self._next_report = self._next_sign = now
        return Welcomed(body["epoch"], body["limits"], again)

    def _refused(self, code: str, error: str) -> Refused | None:
        if code == UNKNOWN_PEER:
            self.expect_another()
            return None
        return Refused(code, error)
