"""The asyncio twin: the same Publisher and Subscriber for code that runs in an event loop.

    async with Subscriber(["prx.lifecycle.*"], name="audit") as events:
        async for event in events: ...

Waiting is the loop's: the subscriber's descriptor is watched and drained many frames at a time.
Everything else is the blocking client's, whose core this shares. ``zmq.asyncio`` is not used: one
future per message costs ten times the message.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self

from ..protocol.decisions import Constraints, Decision, Revalidate
from ..protocol.errors import ClosedError, RequestRefused
from ..protocol.events import Event, decode_event
from ..protocol.limits import PAYLOAD_BYTES
from . import options, publisher, subscriber
from .core.asking import Question, ask_message, check_timeout, read_heard
from .core.session import HELLO_SECONDS, UNKNOWN_PEER
from .loop_asker import LoopAsker
from .outlet import PATIENCE_SECONDS


class Publisher:
    """Publishes from an event loop. Open it with ``async with``; :meth:`publish` never waits.

    Arguments as for :class:`broker.client.Publisher`, except that ``on_full="block"`` is not possible.
    """

    def __init__(
        self,
        source: str,
        *,
        runtime_dir: str | os.PathLike[str] | None = None,
        on_full: Literal["drop", "raise"] = "drop",
        on_absent: options.OnAbsent = "drop",
        oversize: options.Oversize = "claim",
    ) -> None:
        if on_full not in ("drop", "raise"):
            raise ValueError(f"on_full must be drop or raise in an event loop, not {on_full!r}")
        self._options: dict[str, Any] = {
            "runtime_dir": runtime_dir,
            "on_full": on_full,
            "on_absent": on_absent,
            "oversize": oversize,
        }
        self._source = source
        self._publisher: publisher.Publisher | None = None
        self._asks: LoopAsker | None = None

    async def __aenter__(self) -> Self:
        self._publisher = await asyncio.to_thread(publisher.Publisher, self._source, **self._options)
        self._loop = asyncio.get_running_loop()
        self._publisher.on_tail(self._flush_soon)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def publish(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        session_id: str | None = None,
        depth: int | None = None,
        caused_by: str | None = None,
        retain: bool = False,
    ) -> bool:
        """As :meth:`broker.client.Publisher.publish`: a few microseconds, never a wait."""
        return self._opened().publish(topic, payload, session_id, depth, caused_by, retain)

    async def publish_acknowledged(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        session_id: str | None = None,
        retain: bool = False,
        timeout: float = 2.0,  # noqa: ASYNC109 - the broker is told of it
    ) -> int:
        """As :meth:`broker.client.Publisher.publish_acknowledged`, without blocking the loop."""
        return await asyncio.to_thread(
            self._opened().publish_acknowledged,
            topic,
            payload,
            session_id=session_id,
            retain=retain,
            timeout=timeout,
        )

    async def ask(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        timeout: float = 2.0,  # noqa: ASYNC109 - the deciders are told of it
        session_id: str | None = None,
        depth: int | None = None,
        caused_by: str | None = None,
        constraints: Constraints | None = None,
        revalidate: Revalidate | None = None,
    ) -> Decision:
        """As :meth:`broker.client.Publisher.ask`, without blocking the loop; cancelling cancels the ask."""
        question, rows = await self._put(topic, payload, timeout, session_id, depth, caused_by, constraints)
        return question.decide(read_heard(rows, self._opened().load), revalidate)

    async def asked(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        timeout: float = 2.0,  # noqa: ASYNC109 - the deciders are told of it
        session_id: str | None = None,
        depth: int | None = None,
        caused_by: str | None = None,
    ) -> tuple[str | None, Decision]:
        """As :meth:`ask`, with the id of the event: None when it was too deep to be asked about.

        A payload of more than 64 KiB that is given in bytes is read and stored, and its answers are loaded,
        beside the loop.
        """
        question, rows = await self._put(topic, payload, timeout, session_id, depth, caused_by, None)
        load = self._opened().load
        is_large = question.claim is not None  # and so, perhaps, is what it is answered
        heard = await asyncio.to_thread(read_heard, rows, load) if is_large else read_heard(rows, load)
        decision = question.decide(heard, None)
        return decode_event(question.frame).id if question.frame else None, decision

    async def _put(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        timeout: float,  # noqa: ASYNC109 - as for ask
        session_id: str | None,
        depth: int | None,
        caused_by: str | None,
        constraints: Constraints | None,
    ) -> tuple[Question, list[Any]]:
        """The ask as it was put, and what was heard of it."""
        opened = self._opened()
        deadline = self._loop.time() + check_timeout(timeout)
        arguments = (topic, payload, session_id, depth, caused_by, constraints)
        if isinstance(payload, bytes) and len(payload) > PAYLOAD_BYTES:  # it is written to a file
            question = await asyncio.to_thread(opened.question, *arguments)
        else:
            question = opened.question(*arguments)
        if not question.open:
            if question.forbidden is not None:
                opened.pose(question, None)
            return question, []
        if self._asks is None:
            self._asks = LoopAsker(opened.asker)
        asks, request = self._asks, question.request
        try:
            if not asks.connected:
                await asks.connect(deadline)
            opened.pose(question, None)  # the copy is gathered, and the ask is sent before it leaves
            future = asks.send(request, ask_message(request, question.frame, timeout), deadline)
            try:
                return question, await future
            except RequestRefused as error:
                return question, await self._asked_again(question, error, deadline)
        finally:
            asks.forget(request)
            opened.settle(question)

    async def _asked_again(self, question: Question, error: RequestRefused, deadline: float) -> list[Any]:
        """What was heard at last: a broker that does not know us (yet) is told who we are and asked again."""
        assert self._asks is not None
        while error.remote_code == UNKNOWN_PEER and self._loop.time() < deadline:
            self._opened().introduce()
            await asyncio.sleep(HELLO_SECONDS / 10)
            left = max(0.001, deadline - self._loop.time())
            data = ask_message(question.request, question.frame, left)
            try:
                return await self._asks.send(question.request, data, deadline)
            except RequestRefused as again:
                error = again
        raise error

    @property
    def ready(self) -> bool:
        """Whether events reach the bus now."""
        return self._opened().ready

    @property
    def stats(self) -> dict[str, int]:
        """As :attr:`broker.client.Publisher.stats`."""
        return self._opened().stats

    async def close(self) -> None:
        """As :meth:`broker.client.Publisher.close`."""
        if self._asks is not None:
            self._asks.close()
            self._asks = None
        if self._publisher is not None:
            await asyncio.to_thread(self._publisher.close)

    def _flush_soon(self) -> None:
        """What one turn of the loop has published leaves at its end."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._loop.call_soon(self._flush)
        else:  # published by a thread
            self._loop.call_soon_threadsafe(self._flush)

    def _flush(self, pause: float = options.ROOM_SECONDS) -> None:
        if self._publisher is not None and not self._publisher.flush():
            self._loop.call_later(pause, self._flush, min(2 * pause, PATIENCE_SECONDS))

    def _opened(self) -> publisher.Publisher:
        if self._publisher is None:
            raise ClosedError("open this Publisher with 'async with' first")
        return self._publisher


class Subscriber:
    """Receives events in an event loop. Open it with ``async with``, then iterate with ``async for``.

    Arguments as for :class:`broker.client.Subscriber`. For one task at a time.
    """

    def __init__(
        self,
        patterns: Iterable[str],
        *,
        name: str | None = None,
        last: bool = False,
        wait: float = 0.0,
        runtime_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self._patterns = [patterns] if isinstance(patterns, str) else list(patterns)
        self._options: dict[str, Any] = {"name": name, "last": last, "wait": wait, "runtime_dir": runtime_dir}
        self._subscriber: subscriber.Subscriber | None = None
        self._readable = asyncio.Event()

    async def __aenter__(self) -> Self:
        opened = await asyncio.to_thread(subscriber.Subscriber, self._patterns, **self._options)
        self._subscriber = opened
        loop = asyncio.get_running_loop()
        loop.add_reader(opened.descriptor, self._readable.set)
        opened.on_touched(lambda: loop.call_soon_threadsafe(self._readable.set))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def batch(
        self,
        max_events: int = subscriber.BATCH_EVENTS,
        timeout: float | None = None,  # noqa: ASYNC109 - as its twin
    ) -> list[Event]:
        """As :meth:`broker.client.Subscriber.batch`; an empty list after ``timeout`` seconds."""
        opened = self._opened()
        if opened.closed:
            raise ClosedError("this Subscriber is closed")
        try:
            async with asyncio.timeout(timeout):
                while not opened.closed:
                    # Cleared before looking: what arrives after the look sets it again. The
                    # descriptor is edge-triggered, so nobody waits before a look found nothing.
                    self._readable.clear()
                    events = opened.batch(max_events, timeout=0)
                    if events:
                        return events
                    if not opened.emptied:  # none was wanted; the descriptor will not tell of the rest
                        await asyncio.sleep(0)
                        continue
                    with suppress(TimeoutError):  # look at least so often: probes and close need it
                        async with asyncio.timeout(subscriber.SLICE_SECONDS):
                            await self._readable.wait()
        except TimeoutError:
            pass
        return []

    async def __aiter__(self) -> AsyncIterator[Event]:
        opened = self._opened()
        while not opened.closed:
            rest = iter(await self.batch())
            try:
                for event in rest:
                    yield event
            finally:
                opened.put_back(rest)

    @property
    def stats(self) -> dict[str, Any]:
        """As :attr:`broker.client.Subscriber.stats`."""
        return self._opened().stats

    async def close(self) -> None:
        """Stop receiving."""
        opened = self._subscriber
        if opened is not None and not opened.closed:
            asyncio.get_running_loop().remove_reader(opened.descriptor)
            self._readable.set()
            await asyncio.to_thread(opened.close)

    def _opened(self) -> subscriber.Subscriber:
        if self._subscriber is None:
            raise ClosedError("open this Subscriber with 'async with' first")
        return self._subscriber
