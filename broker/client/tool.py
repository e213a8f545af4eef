"""A short-lived client for commands: ask the broker something, or publish and know who listens.

One socket, no thread, no waiting without a deadline. It speaks through the control plane only, so a
command that publishes one event needs no data-plane connection of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple

import zmq

from ..places import check_directory, endpoints, runtime_directory, spool_directory
from ..protocol.beacons import Beacon, encode_beacons
from ..protocol.control import Message, encode_message
from ..protocol.errors import BusUnreachable, LimitExceeded, RequestRefused, RequestTimeout
from ..protocol.events import Claim, encode_event, is_text
from ..protocol.limits import CLAIM_BYTES, DEPTHS, PAYLOAD_BYTES, SESSION_ID_BYTES, SPOOL_BYTES
from ..version import __version__
from .closing import Closing
from .context import Cause
from .core.numbering import Numbering
from .core.session import Answered, ControlSession, Identity, Refused, Welcomed
from .payloads import encode_payload
from .publisher_id import new_publisher
from .sockets import control_socket

WINDOW: Final = 256
"""Requests under way at a time."""


class Published(NamedTuple):
    """What a one-shot publish came to: subscribers that match, events sent, events too deep to send.

    ``last_id`` is the id of the last event that was sent, None when none was.
    """

    matching: int
    sent: int
    over_depth: int
    last_id: str | None = None


class Tool(Closing):
    """A connection to the broker for one command. Raises :class:`BusUnreachable` when there is none.

    ``timeout`` is how long the broker may take to answer the hello and each request, in seconds.
    """

    def __init__(
        self, name: str, *, runtime_dir: str | os.PathLike[str] | None = None, timeout: float = 2.0
    ) -> None:
        self.runtime_dir = runtime_directory(runtime_dir)
        check_directory(self.runtime_dir)
        address = endpoints(self.runtime_dir).control
        self.timeout = timeout
        self._spool_bytes = SPOOL_BYTES
        self.name = name
        if not os.path.exists(address.removeprefix("ipc://")):
            raise self._unreachable()
        self._session = ControlSession(Identity("tool", name, os.getpid(), __version__))
        self._socket = control_socket(address)
        self._socket.sndtimeo = max(1, int(timeout * 1000))
        try:
            self._greet()
        except BaseException:
            self._socket.close(0)
            raise

    def request(self, kind: str, /, **body: Any) -> Message:
        """The reply to one request; raises :class:`RequestRefused` and :class:`RequestTimeout`."""
        return next(self.requests(iter([(kind, body)])))

    def requests(self, requests: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[Message]:
        """The replies to many requests, in their order, with many under way at a time."""
        source = iter(requests)
        waiting: list[int] = []
        replies: dict[int, Message] = {}
        while True:
            for kind, body in islice(source, WINDOW - len(waiting)):
                number, data = self._session.request(kind, **body)
                waiting.append(number)
                self._transmit(data)
            if not waiting:
                return
            while waiting[0] not in replies:
                answer = self._receive(time.monotonic() + self.timeout)
                if isinstance(answer, Answered):
                    replies[answer.request] = answer.message
            reply = replies.pop(waiting.pop(0))
            if reply.kind == "error":
                raise RequestRefused(reply.body["code"], reply.body["message"])
            yield reply

    def publish(
        self,
        topic: str,
        payload: object,
        *,
        count: int = 1,
        session_id: str | None = None,
        cause: Cause = Cause(0, None),  # noqa: B008 - a constant
        retain: bool = False,
    ) -> Published:
        """Publish ``payload`` ``count`` times under this tool's name, each acknowledged by the broker.

        Raises what :meth:`broker.client.Publisher.publish` raises for a bad event.
        """
        numbering = Numbering(new_publisher(), self.name, time.monotonic())
        stream = numbering.open(topic, time.time_ns())
        body = encode_payload(payload, stream)
        if session_id is not None and not is_text(session_id, SESSION_ID_BYTES):
            raise LimitExceeded(f"session id is longer than {SESSION_ID_BYTES} bytes")
        if cause.depth >= DEPTHS:
            return Published(0, 0, count)
        content = self._claim(body) if len(body) > PAYLOAD_BYTES else body

        def frames() -> Iterator[tuple[str, dict[str, Any]]]:
            for _ in range(count):
                stream.sequence += 1
                frame = encode_event(
                    topic,
                    numbering.publisher,
                    stream.sequence,
                    time.time_ns(),
                    content,
                    session_id=session_id,
                    source=self.name,
                    cause=cause.event,
                    depth=cause.depth,
                )
                yield "publish", {"frame": frame, "retain": retain}

        matching = 0
        for reply in self.requests(frames()):
            matching = reply.body["matching"]
        self._say_last(numbering.beacon(closing=True))
        last_id = f"{numbering.publisher.hex()}:{topic}:{stream.sequence}" if count else None
        return Published(matching, count, 0, last_id)

    def close(self) -> None:
        """Say goodbye; what is queued is sent within a second."""
        if not self._socket.closed:
            self._offer(encode_message("bye"))
            self._socket.close()

    def _say_last(self, beacon: Beacon) -> None:
        for frame in encode_beacons(beacon):
            self._offer(encode_message("beacon", frame=frame))

    def _offer(self, data: bytes) -> None:
        """Send what needs no answer; a broker that has gone will not miss it."""
        with suppress(zmq.Again):
            self._socket.send(data, zmq.NOBLOCK)

    def _transmit(self, data: bytes) -> None:
        try:
            self._socket.send(data)
        except zmq.Again:
            raise self._late() from None

    def _claim(self, body: bytes) -> Claim:
        if len(body) > CLAIM_BYTES:
            raise LimitExceeded(
                f"payload of {len(body):,} bytes of JSON is larger than {CLAIM_BYTES:,}; shorten it"
            )
        from .spool import Spool  # brings hashlib, which most commands do without

        spool = Spool(spool_directory(self.runtime_dir), self._spool_bytes)
        return spool.store(new_publisher().hex(), body)

    def _greet(self) -> None:
        deadline = time.monotonic() + self.timeout
        try:
            self._socket.send(self._session.hello(time.monotonic()))
            while not isinstance(answer := self._receive(deadline), Welcomed):
                if isinstance(answer, Refused):
                    raise RequestRefused(answer.code, answer.error)
            self._spool_bytes = int(answer.limits.get("spool_bytes", SPOOL_BYTES))
        except (zmq.Again, RequestTimeout):
            raise self._unreachable() from None

    def _receive(self, deadline: float) -> object:
        left = deadline - time.monotonic()
        if left <= 0 or not self._socket.poll(max(1, int(left * 1000))):
            raise self._late()
        return self._session.handle(self._socket.recv(), time.monotonic())

    def _late(self) -> RequestTimeout:
        return RequestTimeout(f"the broker in {self.runtime_dir!r} did not answer within {self.timeout:g} s")

    def _unreachable(self) -> BusUnreachable:
        return BusUnreachable(
            f"no bus answers in {self.runtime_dir!r}; start one with 'prxbus up', or name its directory "
            "with --runtime-dir or PRXBUS_RUNTIME_DIR"
        )
