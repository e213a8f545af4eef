"""For the tests of code that uses the bus: a stub inside the process, and a real broker on demand.

    bus = StubBus()
    my_agent = Agent(publisher=bus.publisher("my-agent"))
    my_agent.run()
    assert [event.topic for event in bus.events] == ["prx.lifecycle.agent_start", ...]

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
from typing import Any

from .client.closing import Closing
from .client.context import current
from .client.core.numbering import Numbering
from .client.core.reading import Reader
from .client.payloads import check_depth, encode_payload
from .client.publisher_id import new_publisher
from .protocol.errors import BusUnreachable, ClosedError, LimitExceeded
from .protocol.events import Claim, Event, decode_event, encode_event, is_text
from .protocol.limits import CLAIM_BYTES, CLAIM_HEAD_BYTES, DEPTHS, PAYLOAD_BYTES, SESSION_ID_BYTES
from .protocol.topics import Pattern, parse_patterns

__all__ = ["StubBus", "StubPublisher", "StubSubscriber", "running_broker"]


class StubBus:
    """A bus for one test. ``events`` holds everything published, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._subscribers: list[StubSubscriber] = []
        self._retained: dict[str, bytes] = {}
        self._spool: dict[str, bytes] = {}

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

    def deliver(self, topic: str, frame: bytes, *, retain: bool = False) -> int:
        """Give ``frame`` to everyone who wants ``topic``; returns how many do."""
        event = decode_event(frame)
        if event.claim is not None:
            event.claim.load = self.load
        self.events.append(event)
        if retain:
            self._retained[topic] = frame
        wanting = [each for each in self._subscribers if not each.closed and each.reader.wanted(topic)]
        for each in wanting:
            each.queue.extend(each.reader.feed([frame], time.time_ns()))
        return len(wanting)

    def store(self, body: bytes) -> Claim:
        """Keep a large payload; returns its claim."""
        reference = f"stub-{len(self._spool)}"
        self._spool[reference] = body
        return Claim(len(body), sha256(body).digest(), reference, body[:CLAIM_HEAD_BYTES])

    def load(self, claim: Claim) -> bytes:
        """The payload that was stored for ``claim``."""
        return self._spool[claim.reference]


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
        *,
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
        if not self.ready:
            raise ClosedError("this StubPublisher is closed")
        now_ns = time.time_ns()
        stream = self._numbering.streams.get(topic) or self._numbering.open(topic, now_ns)
        context = current.get()
        level = max(context.depth if context else 0, 0 if depth is None else check_depth(depth))
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
            now_ns,
            self._bus.store(body) if len(body) > PAYLOAD_BYTES else body,
            session_id=session_id,
            source=self.source,
            cause=caused_by or (context.event if context else None),
            depth=level,
        )
        return self._bus.deliver(topic, frame, retain=retain)


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
