"""The endpoints of the bus: events to watch and publish, status, health, metrics.

It decides paths, codes and bodies, and when a stream to a client is given up.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Query
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from broker.client.context import Cause
from broker.client.tool import Published, Tool
from broker.protocol.errors import BusError
from broker.protocol.topics import parse_patterns

from .blocking import Blocking
from .event_stream import EventStream, Streams, TooManyStreams, chunks
from .metrics import CONTENT_TYPE, Metrics
from .models import EventBody, Health, PublishedEvent, StatusDocument
from .problems import Problem
from .routing import JsonRoute

SOURCE: Final = "http-api"
"""The source of events that come in over HTTP."""

SEND_SECONDS: Final = 30.0
"""A client that takes nothing for so long is let go."""

PATTERNS: Final = 32
"""Patterns of one stream."""


class BusApi:
    """What the endpoints need. ``describe`` tells the status of this process, and blocks."""

    def __init__(
        self,
        runtime_dir: str | os.PathLike[str],
        streams: Streams,
        metrics: Metrics,
        blocking: Blocking,
        describe: Callable[[], dict[str, Any]],
    ) -> None:
        self.runtime_dir = runtime_dir
        self.streams = streams
        self.metrics = metrics
        self.blocking = blocking
        self.describe = describe

    def publish(self, body: EventBody) -> Published:
        """Publish through a connection of its own, so that a restarted broker disturbs nobody."""
        with Tool(SOURCE, runtime_dir=self.runtime_dir) as tool:
            return tool.publish(
                body.topic,
                body.payload,
                session_id=body.session_id,
                cause=Cause(body.depth, body.caused_by),
                retain=body.retain,
            )

    async def open_stream(self, patterns: list[str]) -> tuple[EventStream, asyncio.Event]:
        """A stream and what it wakes. Raises :class:`Problem`."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        def open_it() -> EventStream:
            return self.streams.open(patterns, wake)

        try:
            return await self.blocking.run(open_it, discard=self.streams.close), woken
        except TooManyStreams as error:
            raise Problem(503, "too_many_streams", str(error), headers={"retry-after": "5"}) from None


class _StreamResponse(Response):
    """Sends a stream until it ends, the client leaves, or takes nothing for too long."""

    media_type = "text/event-stream"

    def __init__(self, stream: EventStream, woken: asyncio.Event, close: Callable[[], Any]) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._stream = stream
        self._woken = woken
        self._close = close

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; whatever ends it, the stream is closed."""
        leaving = asyncio.ensure_future(self._await_leaving(receive))
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            async for chunk in chunks(self._stream, self._woken):
                async with asyncio.timeout(SEND_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (TimeoutError, OSError):
            return
        finally:
            leaving.cancel()
            self._stream.stop()
            await asyncio.shield(asyncio.to_thread(self._close))

    async def _await_leaving(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stream.stop()


def bus_router(api: BusApi, **options: Any) -> APIRouter:
    """The endpoints that need the token."""
    router = APIRouter(route_class=JsonRoute, **options)

    @router.get(
        "/api/events",
        tags=["events"],
        status_code=200,
        response_class=_StreamResponse,
        responses={200: {"description": "Events as they come.", "content": {"text/event-stream": {}}}},
    )
    async def watch_events(
        pattern: Annotated[
            list[str] | None,
            Query(max_length=PATTERNS, description="Topic patterns, such as prx.lifecycle.*; default: all."),
        ] = None,
    ) -> Response:
        """Events as server-sent events; those that found no room are told in an event `dropped`."""
        patterns = ["*"] if pattern is None else pattern
        try:
            parse_patterns(patterns)
        except BusError as error:
            raise Problem(422, error.code, str(error), field="pattern") from None
        stream, woken = await api.open_stream(patterns)
        return _StreamResponse(stream, woken, lambda: api.streams.close(stream))

    @router.post("/api/events", tags=["events"], status_code=202, responses={202: {"model": PublishedEvent}})
    async def publish_event(body: EventBody) -> Response:
        """Publish an event; the answer comes when the broker has taken it."""
        published = await api.blocking.run(lambda: api.publish(body))
        document = {
            "id": published.last_id,
            "published": published.sent,
            "over_depth": published.over_depth,
            "matching": published.matching,
        }
        return _json(document, 202)

    @router.get("/api/status", tags=["operation"], responses={200: {"model": StatusDocument}})
    async def status() -> Response:
        """The broker's status, asked now, and this process's own."""
        return _json(await api.blocking.run(api.describe))

    @router.get(
        "/metrics",
        tags=["operation"],
        response_class=Response,
        responses={200: {"description": "Prometheus text format.", "content": {"text/plain": {}}}},
    )
    async def metrics() -> Response:
        """Metrics in Prometheus' text format."""
        return Response(await api.blocking.run(api.metrics.text), headers={"content-type": CONTENT_TYPE})

    return router


def health_router(api: BusApi, **options: Any) -> APIRouter:
    """The one endpoint without a token."""
    router = APIRouter(route_class=JsonRoute, tags=["operation"], **options)

    @router.get("/healthz", responses={200: {"model": Health}})
    async def health() -> Response:
        """Whether the API and the bus are there; 503 while the broker does not answer."""
        with api.metrics.lock:
            is_there = api.metrics.tallies.status is not None
        if not is_there:
            raise Problem(503, "no_bus", "the broker does not answer", headers={"retry-after": "1"})
        return _json({"status": "ok"})

    return router


def told_status(ask: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any] | None, str | None]:
    """The broker's status, or why there is none."""
    try:
        return ask(), None
    except BusError as error:
        return None, str(error)


def _json(document: dict[str, Any], status: int = 200) -> Response:
    return Response(
        orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS), status, media_type="application/json"
    )
