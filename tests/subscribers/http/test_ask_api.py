"""``POST /api/ask`` behind the guard: what a body may say, what is answered, and what a failure is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import orjson
import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from broker.client import aio
from broker.protocol.decision_document import ask_fields
from broker.protocol.decisions import Answer, Decision, Heard, merge
from broker.protocol.errors import BusError, BusUnreachable, LimitExceeded, RequestTimeout
from subscribers.http import ask_api
from subscribers.http.access import Gate
from subscribers.http.application import build_application
from subscribers.http.ask_api import AskApi
from subscribers.http.blocking import Blocking
from subscribers.http.bus_api import BusApi
from subscribers.http.event_stream import Streams
from subscribers.http.guard import BODY_BYTES, Guard
from subscribers.http.hooks_api import HooksApi
from subscribers.http.metrics import Metrics
from tests.subscribers.http.scene import ADDRESS, LETTER, PORT, TOKEN

TOPIC = "prx.lifecycle.tool_call_start"
CALL = {"tool": "Bash", "arguments": {"command": "ls"}}
HEARD = Heard("guard", "open", None, 0.0004, (Answer("g", "deny", "not here", ("use make",)),))


class Asks:
    """Stands for the bus: what it was asked, and what it says."""

    def __init__(self, error: BusError | None = None) -> None:
        self.ready = True
        self.error = error
        self.asked_for: list[tuple[Any, ...]] = []
        self.cancelled = asyncio.Event()

    async def asked(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        timeout: float,  # noqa: ASYNC109 - as of the client
        session_id: str | None,
        depth: int,
        caused_by: str | None,
    ) -> tuple[str | None, Decision]:
        """Keep the question and answer it; about ``prx.never`` nothing is ever said."""
        self.asked_for.append((topic, payload, timeout, session_id, depth, caused_by))
        if topic == "prx.never":
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        if self.error is not None:
            raise self.error
        return "p:t:1", merge((HEARD,), CALL["arguments"])  # type: ignore[arg-type]


def guard(asks: Asks, ask_bytes: int = 200_000) -> Guard:
    """The application with nothing behind it but ``asks``."""
    idle = Blocking(1, 0, "idle")
    hooks = HooksApi(None, None, idle, idle, lambda: 0)
    bus = BusApi("", Streams("", 0), Metrics(), idle, dict)
    return build_application(
        hooks, bus, AskApi(cast(aio.Publisher, asks), ask_bytes), Gate(TOKEN, 10**9), PORT
    )


def client(asks: Asks) -> TestClient:
    """A client that has the token."""
    return TestClient(guard(asks), ADDRESS, raise_server_exceptions=False, headers=LETTER)


def test_an_ask_is_answered_by_its_decision() -> None:
    """The object of ``prxbus ask --json``, of what the body says with the defaults of every asker."""
    asks = Asks()
    with client(asks) as api:
        answer = api.post("/api/ask", json={"topic": TOPIC, "payload": CALL})
        assert answer.status_code == 200
        assert answer.json() == ask_fields(TOPIC, "p:t:1", None, merge((HEARD,), {}))
        whole = {"session_id": "s", "timeout_s": 30, "depth": 3, "caused_by": "x:y:1"}
        assert api.post("/api/ask", json={"topic": TOPIC, "payload": {}, **whole}).json()["denied"]
    assert asks.asked_for == [(TOPIC, CALL, 2.0, None, 0, None), (TOPIC, {}, 30.0, "s", 3, "x:y:1")]


def test_a_large_body_is_taken_here_and_nowhere_else() -> None:
    """The limit is that of an ask with room beside its payload; another path keeps its own, and says so."""
    asks = Asks()
    payload = {"output": "x" * 150_000}
    with client(asks) as api:
        assert api.post("/api/ask", json={"topic": TOPIC, "payload": payload}).status_code == 200
        (asked,) = asks.asked_for
        assert orjson.loads(asked[1]) == payload
        most = 200_000 + ask_api.ROOM_BYTES
        too_much = api.post("/api/ask", json={"topic": TOPIC, "payload": {"output": "x" * most}})
        assert (too_much.status_code, too_much.json()["detail"]) == (
            413,
            f"a body has at most {most:,} bytes",
        )
        elsewhere = api.post("/api/events", json={"topic": "a", "payload": {"output": "x" * BODY_BYTES}})
        assert elsewhere.json()["detail"] == f"a body has at most {BODY_BYTES:,} bytes"
    assert len(asks.asked_for) == 1


@pytest.mark.parametrize(
    "body,status,code,field",
    [
        (b"", 400, "not_json", "body"),
        (b'{"topic": "a",\n "payload": {]}', 400, "not_json", "body"),
        (b'{"topic":"a","payload":{"deep":' + b"[" * 400 + b"]" * 400 + b"}}", 400, "not_json", "body"),
        (b"[]", 422, "wrong_shape", "body"),
        (b'{"payload": {}}', 422, "wrong_shape", "topic"),
        (b'{"topic": "a", "payload": []}', 422, "wrong_shape", "payload"),
        (b'{"topic": "a", "payload": {}, "timeout_s": 0}', 422, "wrong_shape", "timeout_s"),
        (b'{"topic": "a", "payload": {}, "timeout_s": 3601}', 422, "wrong_shape", "timeout_s"),
        (b'{"topic": "a", "payload": {}, "depth": "1"}', 422, "wrong_shape", "depth"),
        (b'{"topic": "a", "payload": {}, "timeout": 5}', 422, "wrong_shape", "timeout"),
    ],
)
def test_a_body_that_is_no_ask_is_refused_with_its_field(
    body: bytes, status: int, code: str, field: str
) -> None:
    """As a problem document; nobody is asked."""
    asks = Asks()
    with client(asks) as api:
        answer = api.post("/api/ask", content=body, headers={"Content-Type": "application/json"})
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert (answer.status_code, told["code"], told["field"]) == (status, code, field)
    assert asks.asked_for == []


@pytest.mark.parametrize(
    "error,status,code",
    [
        (RequestTimeout("no word"), 504, "timeout"),
        (BusUnreachable("gone"), 503, "no_bus"),
        (LimitExceeded("too much"), 422, "limit_exceeded"),
    ],
)
def test_a_failure_has_its_status(error: BusError, status: int, code: str) -> None:
    """No word in time is 504, no bus 503, and either may be tried again."""
    with client(Asks(error)) as api:
        answer = api.post("/api/ask", json={"topic": TOPIC, "payload": CALL})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert ("retry-after" in answer.headers) is (status > 500)


def test_without_a_bus_nobody_waits() -> None:
    """An API whose broker has gone says so at once."""
    asks = Asks()
    asks.ready = False
    with client(asks) as api:
        answer = api.post("/api/ask", json={"topic": "prx.never", "payload": {}})
    assert (answer.status_code, answer.json()["code"], asks.asked_for) == (503, "no_bus", [])


@pytest.mark.asyncio
async def test_a_client_that_leaves_takes_its_ask_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciders are told; nothing waits for an hour on behalf of nobody."""
    monkeypatch.setattr(ask_api, "QUIET_SECONDS", 0.01)
    asks = Asks()
    body = orjson.dumps({"topic": "prx.never", "payload": {}, "timeout_s": 3600})
    words: list[Message] = [
        {"type": "http.request", "body": body, "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return words.pop(0)

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [
        (b"host", f"127.0.0.1:{PORT}".encode()),
        (b"authorization", f"Bearer {TOKEN}".encode()),
        (b"content-type", b"application/json"),
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/ask",
        "raw_path": b"/api/ask",
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
    }
    await asyncio.wait_for(guard(asks)(scope, receive, send), 20)
    await asyncio.wait_for(asks.cancelled.wait(), 20)
    assert sent == []


def test_another_method_or_path_is_none_of_its_own() -> None:
    """405 says which method there is; what only begins like it is not there."""
    with client(Asks()) as api:
        answer = api.get("/api/ask")
        assert (answer.status_code, answer.json()["code"], answer.headers["allow"]) == (
            *(405, "wrong_method"),
            "POST",
        )
        assert api.post("/api/askew", json={}).status_code == 404


def test_a_fault_of_ours_is_told_as_one() -> None:
    """Not as a decision, and without its traceback; the log has that."""
    with client(Asks(cast(BusError, KeyError("secret")))) as api:
        answer = api.post("/api/ask", json={"topic": TOPIC, "payload": CALL})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
