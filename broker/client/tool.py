"""A short-lived client for commands: request something of the broker, publish and know who listens, or ask.

One socket, no thread, no waiting without a deadline. It speaks through the control plane only, so a
command that publishes one event needs no data-plane connection of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import zmq

from ..places import check_directory, endpoints, runtime_directory, spool_directory
from ..protocol.beacons import Beacon, encode_beacons
from ..protocol.control import Message, encode_message
from ..protocol.envelope import Claim, Names, encode_event, is_text
from ..protocol.errors import BusUnreachable, LimitExceeded, RequestRefused, RequestTimeout
from ..protocol.limits import ASK_BYTES, CLAIM_BYTES, DEPTHS, PAYLOAD_BYTES, SESSION_ID_BYTES, SPOOL_BYTES
from ..version import __version__
from .closing import Closing
from .context import Cause
from .core.numbering import Numbering
from .core.session import UNKNOWN_PEER, Answered, ControlSession, Identity, Refused, Welcomed
from .payloads import encode_payload
from .publisher_id import new_publisher
from .sockets import control_socket

if TYPE_CHECKING:
    from ..protocol.decisions import Decision
    from .core.asking import Question
    from .spool import Spool

WINDOW: Final = 256
"""Requests under way at a time."""

SLICE_SECONDS: Final = 1.0
"""Longest single wait for the end of an ask: then the broker is given a sign of life, if one is due."""


class Published(NamedTuple):
    """What a one-shot publish came to: subscribers that match, events sent, events too deep to send.

    ``last_id`` is the id of the last event that was sent, None when none was.
    """

    matching: int
    sent: int
    over_depth: int
    last_id: str | None = None


class Asked(NamedTuple):
    """What an ask came to: the decision, the id of its event, and the subscribers that match its copy.

    ``id`` is None when the event was too deep to be asked about; ``matching`` is None when there is no copy:
    ``unpublished`` says why the broker refused it.
    """

    decision: Decision
    id: str | None
    matching: int | None
    unpublished: str | None = None


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
        self._ask_bytes = ASK_BYTES
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

    def ask(
        self,
        topic: str,
        payload: object,
        *,
        timeout: float,
        session_id: str | None = None,
        cause: Cause = Cause(0, None),  # noqa: B008 - a constant
    ) -> Asked:
        """Ask the deciders of ``topic``, for at most ``timeout`` seconds, and publish the event.

        Raises what :meth:`broker.client.Publisher.ask` raises. It travels on this tool's own connection.
        """
        from orjson import loads

        from ..protocol.decisions import input_of
        from .core.asking import Question, check_timeout, read_heard
        from .core.question_content import put_content

        deadline = time.monotonic() + check_timeout(timeout)
        numbering = Numbering(new_publisher(), self.name, time.monotonic())
        stream = numbering.open(topic, time.time_ns())
        body = encode_payload(payload, stream)
        if session_id is not None and not is_text(session_id, SESSION_ID_BYTES):
            raise LimitExceeded(f"session id is longer than {SESSION_ID_BYTES} bytes")
        plain = loads(body)
        names = Names(session_id, self.name, cause.event)
        question = Question(stream, cause.depth, names, input_of(plain))
        if not question.open:
            return Asked(question.decide((), None), None, None)
        put_content(question, body, plain, self._claim, self._ask_bytes)
        question.take_number(time.time_ns())
        try:
            matching, unpublished, rows = self._put(question, timeout, deadline)
            heard = read_heard(rows, lambda claim: self._spool().load(claim))
        finally:
            if question.copy is not None and question.claim is not None:
                self._spool().remove(question.claim)
        if unpublished is None:
            self._say_last(numbering.beacon(closing=True))
        identity = f"{numbering.publisher.hex()}:{topic}:{stream.sequence}"
        return Asked(question.decide(heard, None), identity, matching, unpublished)

    def close(self) -> None:
        """Say goodbye; what is queued is sent within a second."""
        if not self._socket.closed:
            self._offer(encode_message("bye"))
            self._socket.close()

    def _put(
        self, question: Question, timeout: float, deadline: float
    ) -> tuple[int | None, str | None, list[Any]]:
        """Put ``question`` to its deciders and publish it: who matches, or why not, and what was heard."""
        from .core.asking import GRACE_SECONDS, ask_message

        number, cancel = self._session.request("cancel")  # which has the number of the ask
        self._transmit(ask_message(number, question.numbered(time.time_ns()), timeout))
        publishing, data = self._session.request("publish", frame=question.copied(), retain=False)
        self._transmit(data)
        replies: dict[int, Message] = {}
        try:
            while len(replies) < 2:
                answer = self._receive_patiently(deadline + GRACE_SECONDS)
                if isinstance(answer, Answered) and answer.request in (number, publishing):
                    replies[answer.request] = answer.message
                    if answer.request == number and answer.message.kind == "error":
                        raise _refusal(answer.message)
        except BaseException:
            self._offer(cancel)
            raise
        rows: list[Any] = replies[number].body["heard"]
        published = replies[publishing].body
        return published.get("matching"), published.get("message"), rows

    def _receive_patiently(self, last: float) -> object:
        """What comes next, before ``last``; who waits long says now and then that it is still there."""
        while not self._socket.poll(max(1, int(1000 * min(SLICE_SECONDS, last - time.monotonic())))):
            now = time.monotonic()
            if now >= last:
                raise RequestTimeout("no word of the ask in time; is the broker overloaded or away?")
            for data in self._session.tick(now, {}):
                self._offer(data)
        return self._session.handle(self._socket.recv(), time.monotonic())

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
        return self._spool().store(new_publisher().hex(), body)

    def _spool(self) -> Spool:
        from .spool import Spool  # brings hashlib, which most commands do without

        return Spool(spool_directory(self.runtime_dir), self._spool_bytes)

    def _greet(self) -> None:
        deadline = time.monotonic() + self.timeout
        try:
            self._socket.send(self._session.hello(time.monotonic()))
            while not isinstance(answer := self._receive(deadline), Welcomed):
                if isinstance(answer, Refused):
                    raise RequestRefused(answer.code, answer.error)
            self._spool_bytes = int(answer.limits.get("spool_bytes", SPOOL_BYTES))
            self._ask_bytes = int(answer.limits.get("ask_bytes", ASK_BYTES))
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


def _refusal(message: Message) -> BusUnreachable | RequestRefused:
    """What the broker's error about an ask means; another broker than the one that knew us lost the ask."""
    code, words = message.body["code"], message.body["message"]
    if code == UNKNOWN_PEER:
        return BusUnreachable("the broker ended while the ask was under way; ask again")
    return RequestRefused(code, words)
