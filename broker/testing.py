"""For the tests of code that uses the bus: a stub inside the process, and a real broker on demand.

    bus = StubBus()
    my_agent = Agent(publisher=bus.publisher("my-agent"))
    my_agent.run()
    assert [event.topic for event in bus.events] == ["prx.lifecycle.agent_start", ...]

What an agent asks is answered by functions, merged as the real bus has it merged:

    bus.decide("prx.lifecycle.tool_call_start", lambda event: Answer("guard", "deny", "not here"))
    assert not my_agent.may_run("rm -rf /")

The stub refuses what the real bus refuses and delivers through the same encoding and decoding,
without a socket, a thread or a wait.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, TypeAlias

from orjson import loads

from .client.closing import Closing
from .client.context import current
from .client.core.asking import Question, check_timeout, pack_answers, read_heard
from .client.core.numbering import Numbering, Stream
from .client.core.question_content import put_content
from .client.core.reading import Reader
from .client.names import KnownNames
from .client.payloads import check_depth, encode_payload
from .client.publisher_id import new_publisher
from .protocol.decisions import (
    FAILURES,
    Answer,
    Constraints,
    Decision,
    Failure,
    Revalidate,
    Silence,
    input_of,
)
from .protocol.envelope import Claim, encode_event, is_text
from .protocol.errors import BusUnreachable, ClaimExpired, ClosedError, LimitExceeded
from .protocol.events import Event, decode_event
from .protocol.limits import (
    ASK_BYTES,
    CLAIM_BYTES,
    CLAIM_HEAD_BYTES,
    DEPTHS,
    NAME_BYTES,
    PAYLOAD_BYTES,
    PRIORITY,
    SESSION_ID_BYTES,
)
from .protocol.topics import Pattern, parse_patterns

__all__ = ["StubBus", "StubDecider", "StubPublisher", "StubSubscriber", "running_broker"]

Decide: TypeAlias = Callable[[Event], Answer | Iterable[Answer] | None]
"""What a stub decider says of an event: an answer, several, or nothing. TimeoutError: it is late; any other
exception: it has failed."""


class StubBus:
    """A bus for one test. ``events`` holds everything published, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._subscribers: list[StubSubscriber] = []
        self._deciders: list[StubDecider] = []
        self._retained: dict[str, bytes] = {}
        self._spool: dict[str, bytes] = {}
        self._stored = 0

    def publisher(self, source: str) -> StubPublisher:
        """A stand-in for ``Publisher(source)``."""
        return StubPublisher(self, source)

    def subscriber(
        self, patterns: Iterable[str], *, name: str = "stub", last: bool = False
    ) -> StubSubscriber:
        """A stand-in for ``Subscriber(patterns, name=name, last=last)``."""
        made = StubSubscriber(parse_patterns(patterns), name, self.load)
        self._subscribers.append(made)
        if last:
            made.queue.extend(made.reader.retained(self._retained.values()))
        return made

    def decide(
        self,
        patterns: str | Iterable[str],
        function: Decide,
        *,
        name: str = "stub",
        priority: int = 0,
        failure: Failure = "open",
    ) -> StubDecider:
        """A stand-in for a ``Decider``: ``function`` is called for each ask that ``patterns`` match.

        Raises what :class:`broker.client.Decider` raises for what can never work.
        """
        parsed = parse_patterns([patterns] if isinstance(patterns, str) else patterns)
        if not is_text(name, NAME_BYTES) or not name:
            raise LimitExceeded(f"name must be a string of 1 to {NAME_BYTES} bytes, not {name!r}")
        if type(priority) is not int or not -PRIORITY <= priority <= PRIORITY:
            raise LimitExceeded(
                f"priority must be a whole number from -{PRIORITY:,} to {PRIORITY:,}, not {priority!r}"
            )
        if failure not in FAILURES:
            raise ValueError(f"failure must be one of {', '.join(FAILURES)}, not {failure!r}")
        made = StubDecider(parsed, function, name, priority, failure)
        self._deciders.append(made)
        return made

    def gather(self, topic: str, frame: bytes) -> list[list[object]]:
        """What the deciders of ``topic`` say of the event in ``frame``, as the broker tells of it."""
        asked = [d for d in self._deciders if not d.closed and any(p.matches(topic) for p in d.patterns)]
        asked.sort(key=lambda decider: (decider.priority, decider.name))
        return [decider.row(_decoded(frame, self.load)) for decider in asked]

    def forget(self, claim: Claim) -> None:
        """Nobody is to load ``claim`` any more."""
        del self._spool[claim.reference]

    def deliver(self, topic: str, frame: bytes, *, retain: bool = False) -> int:
        """Give ``frame`` to everyone who wants ``topic``; returns how many do."""
        self.events.append(_decoded(frame, self.load))
        if retain:
            self._retained[topic] = frame
        wanting = [each for each in self._subscribers if not each.closed and each.reader.wanted(topic)]
        for each in wanting:
            each.queue.extend(each.reader.feed([frame], time.time_ns()))
        return len(wanting)

    def store(self, body: bytes) -> Claim:
        """Keep a large payload; returns its claim."""
        self._stored += 1
        reference = f"stub-{self._stored}"
        self._spool[reference] = body
        return Claim(len(body), sha256(body).digest(), reference, body[:CLAIM_HEAD_BYTES])

    def load(self, claim: Claim) -> bytes:
        """The payload that was stored for ``claim``; raises :class:`ClaimExpired` when it was forgotten."""
        try:
            return self._spool[claim.reference]
        except KeyError:
            raise ClaimExpired(f"the payload {claim.reference} is no longer there") from None


class StubPublisher(Closing):
    """Publishes into a :class:`StubBus` with the checks of :class:`broker.client.Publisher`."""

    def __init__(self, bus: StubBus, source: str) -> None:
        self.source = source
        self.ready = True
        self._bus = bus
        self._over_depth = 0
        self._numbering = Numbering(new_publisher(), source, 0.0)

    def publish(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        session_id: str | None = None,
        depth: int | None = None,
        caused_by: str | None = None,
        retain: bool = False,
    ) -> bool:
        """As :meth:`broker.client.Publisher.publish`; large payloads stay in memory."""
        return self._publish(topic, payload, session_id, depth, caused_by, retain) is not None

    def publish_acknowledged(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        session_id: str | None = None,
        retain: bool = False,
        timeout: float = 2.0,  # noqa: ARG002 - nothing is waited for here
    ) -> int:
        """As :meth:`broker.client.Publisher.publish_acknowledged`."""
        return self._publish(topic, payload, session_id, None, None, retain) or 0

    def ask(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        timeout: float = 2.0,
        session_id: str | None = None,
        depth: int | None = None,
        caused_by: str | None = None,
        constraints: Constraints | None = None,
        revalidate: Revalidate | None = None,
    ) -> Decision:
        """As :meth:`broker.client.Publisher.ask`; the deciders are those of :meth:`StubBus.decide`."""
        check_timeout(timeout)
        stream = self._stream(topic)
        body = encode_payload(payload, stream)
        plain: Mapping[str, Any] = payload if isinstance(payload, Mapping) else loads(body)
        names = KnownNames(self.source, None).pack(session_id, caused_by, current.get())
        question = Question(stream, _level(depth), names, input_of(plain))
        if question.level >= DEPTHS:
            self._over_depth += 1
            return question.decide((), revalidate)
        if constraints is not None:
            question.forbidden = constraints(question.original)
        put_content(question, body, plain, self._bus.store, ASK_BYTES)
        question.take_number(time.time_ns())
        frame = question.numbered(time.time_ns())
        self._bus.deliver(topic, question.copied())
        rows = self._bus.gather(topic, frame) if question.open else []
        if question.copy is not None and question.claim is not None:
            self._bus.forget(question.claim)
        return question.decide(read_heard(rows, self._bus.load), revalidate)

    @property
    def stats(self) -> dict[str, int]:
        """The counters of a publisher; a stub drops nothing."""
        return {
            "published": self._numbering.published,
            "dropped_absent": 0,
            "dropped_full": 0,
            "over_depth": self._over_depth,
            "claims": 0,
            "unanswered": 0,
        }

    def close(self) -> None:
        """End: publishing raises from now on."""
        self.ready = False

    def _publish(
        self,
        topic: str,
        payload: object,
        session_id: str | None,
        depth: int | None,
        caused_by: str | None,
        retain: bool,
    ) -> int | None:
        stream = self._stream(topic)
        context = current.get()
        level = _level(depth)
        if level >= DEPTHS:
            self._over_depth += 1
            return None
        body = encode_payload(payload, stream)
        if len(body) > CLAIM_BYTES:
            raise LimitExceeded(f"payload of {len(body):,} bytes of JSON is larger than {CLAIM_BYTES:,}")
        if session_id is not None and not is_text(session_id, SESSION_ID_BYTES):
            raise LimitExceeded(f"session id is longer than {SESSION_ID_BYTES} bytes")
        stream.sequence += 1
        frame = encode_event(
            topic,
            self._numbering.publisher,
            stream.sequence,
            time.time_ns(),
            self._bus.store(body) if len(body) > PAYLOAD_BYTES else body,
            session_id=session_id,
            source=self.source,
            cause=caused_by or (context.event if context else None),
            depth=level,
        )
        return self._bus.deliver(topic, frame, retain=retain)

    def _stream(self, topic: str) -> Stream:
        if not self.ready:
            raise ClosedError("this StubPublisher is closed")
        return self._numbering.streams.get(topic) or self._numbering.open(topic, time.time_ns())


class StubSubscriber(Closing):
    """Receives from a :class:`StubBus` what :class:`broker.client.Subscriber` would receive."""

    def __init__(
        self, patterns: tuple[Pattern, ...], name: str, load_claim: Callable[[Claim], bytes]
    ) -> None:
        self.patterns = patterns
        self.name = name
        self.closed = False
        self.reader = Reader(patterns, load_claim)
        self.reader.accounting.ready(time.time_ns())
        self.queue: deque[Event] = deque()

    def batch(self, max_events: int = 1_024, timeout: float | None = None) -> list[Event]:  # noqa: ARG002
        """What has been published and not yet taken; never waits."""
        if self.closed:
            raise ClosedError("this StubSubscriber is closed")
        return [self.queue.popleft() for _ in range(min(max_events, len(self.queue)))]

    def __iter__(self) -> Iterator[Event]:
        """Ends when nothing more has been published, so that a test ends too."""
        while self.queue:
            yield self.queue.popleft()

    @property
    def stats(self) -> dict[str, Any]:
        """The counters of a subscriber; a stub misses nothing."""
        return {"received": self.reader.received, "missed": 0, "late": 0, "away": 0, "gaps": {}}

    def close(self) -> None:
        """Receive nothing more."""
        self.closed = True


class StubDecider(Closing):
    """A decider of a :class:`StubBus`. ``asked`` holds the events that it was asked about, in order."""

    def __init__(
        self, patterns: tuple[Pattern, ...], function: Decide, name: str, priority: int, failure: Failure
    ) -> None:
        self.patterns = patterns
        self.name = name
        self.priority = priority
        self.failure = failure
        self.asked: list[Event] = []
        self.closed = False
        self._function = function

    def row(self, event: Event) -> list[object]:
        """What it says of ``event``, as the broker tells of it: packed, or why it has no answer."""
        self.asked.append(event)
        began = time.monotonic()
        silence: Silence | None = None
        packed = b""
        try:
            said = self._function(event)
            answers = () if said is None else (said,) if isinstance(said, Answer) else tuple(said)
            packed = pack_answers(answers)
        except TimeoutError:
            silence = "timeout"
        except Exception:
            silence = "failed"
        return [self.name, self.failure, silence, round((time.monotonic() - began) * 1e6), packed]

    def close(self) -> None:
        """Be asked nothing more."""
        self.closed = True


def _decoded(frame: bytes, load: Callable[[Claim], bytes]) -> Event:
    """The event in ``frame``; its payload can be loaded when it travels as a claim."""
    event = decode_event(frame)
    if event.claim is not None:
        event.claim.load = load
    return event


def _level(depth: int | None) -> int:
    context = current.get()
    return max(context.depth if context else 0, 0 if depth is None else check_depth(depth))


@contextmanager
def running_broker(
    runtime_dir: str | os.PathLike[str] | None = None, *, options: Iterable[str] = (), timeout: float = 20.0
) -> Iterator[str]:
    """A real broker in a process of its own; yields its runtime directory.

    Without ``runtime_dir`` it gets a temporary one, removed afterwards. ``options`` are further arguments
    of ``python -m broker``. Raises
    :class:`BusUnreachable` with what the broker said when it is not ready within ``timeout`` seconds.
    """
    directory = os.fspath(runtime_dir) if runtime_dir is not None else tempfile.mkdtemp(prefix="prxbus-")
    command = [sys.executable, "-P", "-m", "broker", "--runtime-dir", directory, "--json", *options]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said)
        try:
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], timeout)
            if not ready or not process.stdout.readline():
                said.seek(0)
                words = said.read().decode("utf-8", "replace").strip()
                raise BusUnreachable(f"the broker in {directory!r} did not start: {words or 'no word'}")
            yield directory
        finally:
            process.terminate()
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
            if runtime_dir is None:
                shutil.rmtree(directory, ignore_errors=True)
