"""The asking half of a publisher: one event, numbered and published as any other, and put to its deciders.

Decides in which order an ask is checked, numbered, sent, published and settled. How it travels is
:mod:`broker.client.asker`'s, what is said in it :mod:`broker.client.core.asking`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from time import time_ns
from typing import Any

from orjson import loads

from ..protocol.decisions import Constraints, Decision, Revalidate, input_of
from ..protocol.envelope import Claim
from ..protocol.errors import BusUnreachable, RequestRefused
from ..protocol.limits import DEPTHS
from .asker import Asker, Lane
from .context import Cause, current
from .core.asking import Question, ask_message, check_timeout, read_heard
from .core.numbering import Stream
from .core.question_content import put_content
from .core.session import HELLO_SECONDS, UNKNOWN_PEER
from .link import Link
from .names import KnownNames
from .outlet import Outlet
from .payloads import encode_payload
from .publisher_id import new_publisher
from .spool import Spool


class Asking:
    """What :class:`broker.client.Publisher` needs to ask; it is never made by itself."""

    ready: bool
    runtime_dir: str
    _answered: threading.Event
    _ask_bytes: int
    _asker: Asker
    _claims: int
    _link: Link
    _lock: threading.RLock
    _names: KnownNames
    _outlet: Outlet
    _over_depth: int
    _spool: Spool
    _streams: dict[str, Stream]
    _check_accepted: Callable[[], None]
    _check_usable: Callable[[], None]
    _level: Callable[[Cause | None, int | None], int]
    _look_for_subscriptions: Callable[[], None]
    _open: Callable[[object], Stream]

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
        """Ask the deciders of ``topic`` about an event, wait at most ``timeout`` seconds, and merge.

        The event is also published, under the id of the ask; of a ``tool_result`` only names, sizes and
        digests are. ``payload`` may take 16 MiB, or what ``bus.ask_bytes`` says. ``constraints`` judges the
        original input: a reason to refuse it is final, and nobody is asked. ``revalidate`` judges each
        rewritten input, and may refuse it with a reason. At depth 8 nobody is asked: no opinion.

        Raises what :meth:`Publisher.publish` raises, :class:`BusUnreachable` without a bus or when it ends
        meanwhile, :class:`RequestTimeout` when the broker says nothing at all and :class:`RequestRefused`.
        """
        deadline = time.monotonic() + check_timeout(timeout)
        question = self.question(topic, payload, session_id, depth, caused_by, constraints)
        if not question.open:
            if question.forbidden is not None:
                self.pose(question, None)
            return question.decide((), revalidate)
        lane = self._asker.take()
        try:
            self._asker.connect(lane, deadline)
            self.pose(
                question,
                lambda frame: lane.send((ask_message(question.request, frame, timeout),)),
                tail=False,
            )
            rows = self._answers_to(question, lane, deadline)
        finally:
            self._leave_copy()
            self._asker.put(lane)
            self.settle(question)
        return question.decide(read_heard(rows, self.load), revalidate)

    # -- for asks -----------------------------------------------------------------------------

    @property
    def asker(self) -> Asker:
        """The lanes of this publisher."""
        return self._asker

    def load(self, claim: Claim) -> bytes:
        """An answer that lies in the spool; nobody else reads it, so it is removed."""
        content = self._spool.load(claim)  # which also proves that it is what was answered
        self._spool.remove(claim)
        return content

    def introduce(self) -> None:
        """Say (again) who we are to whichever broker is there."""
        self._answered.clear()
        self._link.hello()

    def question(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        session_id: str | None,
        depth: int | None,
        caused_by: str | None,
        constraints: Constraints | None,
    ) -> Question:
        """An ask in the making; see :meth:`ask` for the arguments and what is raised."""
        self._check_usable()
        self._check_accepted()
        stream = self._streams.get(topic) or self._open(topic)
        body = encode_payload(payload, stream)
        plain: Mapping[str, Any] = payload if isinstance(payload, Mapping) else loads(body)
        names = self._names.pack(session_id, caused_by, current.get())
        level = self._level(current.get(), depth)
        question = Question(stream, level, names, input_of(plain))
        if level >= DEPTHS:
            self._over_depth += 1
            return question
        if constraints is not None:
            question.forbidden = constraints(question.original)
        put_content(question, body, plain, self._store, self._ask_bytes)
        return question

    def pose(self, question: Question, send: Callable[[bytes], object] | None, *, tail: bool = True) -> None:
        """Number the event of ``question``, hand its frame to ``send`` and publish its copy.

        Raises :class:`BusUnreachable`, and what ``send`` raises. The copy is gathered if that is possible, so
        that it leaves behind the ask and costs it no time; without ``tail`` the caller flushes it.
        """
        with self._lock:
            if not self.ready:
                self._check_usable()
                self._look_for_subscriptions()
            if not self.ready:
                raise BusUnreachable(
                    f"no bus answers in {self.runtime_dir!r}: nobody can be asked; start one with 'prxbus up'"
                )
            if question.stream.retired:
                question.stream = self._open(question.stream.topic)
            now_ns = time_ns()
            if question.body is not None:
                stream, level, names = question.stream, question.level, question.names
                if self._outlet.gather(stream, level, names, question.body, now_ns, tail=tail):
                    frame = question.numbered(now_ns)
                    if send is not None:
                        send(frame)
                    return
            self._outlet.flush()
            question.take_number(now_ns)
            frame = question.numbered(now_ns)
            if send is not None:
                try:
                    send(frame)
                except BaseException:
                    question.stream.sequence -= 1
                    raise
            self._outlet.copy(question.copied())

    def settle(self, question: Question) -> None:
        """The ask is over: what must not lie about is removed."""
        if question.copy is not None and question.claim is not None:
            self._spool.remove(question.claim)

    def _flush_copy(self) -> None:
        """Send the copy of an ask, if it has not left with something else."""
        with self._lock:
            self._outlet.flush()

    def _leave_copy(self) -> None:
        """The ask is over: its copy leaves soon, together with those of asks that follow at once."""
        with self._lock:
            self._outlet.leave(time_ns())

    def _store(self, body: bytes) -> Claim:
        claim = self._spool.store(new_publisher().hex(), body)
        self._claims += 1
        return claim

    def _answers_to(self, question: Question, lane: Lane, deadline: float) -> list[Any]:
        """What was heard; a broker that does not know us (yet) is told who we are and asked again."""
        while True:
            try:
                return self._asker.wait(lane, question.request, deadline, self._flush_copy)
            except RequestRefused as error:
                if error.remote_code != UNKNOWN_PEER or time.monotonic() >= deadline:
                    raise
            self.introduce()
            self._answered.wait(min(HELLO_SECONDS, max(0.0, deadline - time.monotonic())))
            left = max(0.001, deadline - time.monotonic())
            lane.send((ask_message(question.request, question.frame, left),))
