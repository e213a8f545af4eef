"""Agents' HTTP hooks behind the guard: who is let in, what is answered, and that nothing else ever is.

Names in brackets are those of the cases of Claude Code's reference that a server can fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from subscribers.http import agent_hooks, guard
from subscribers.http.access import Gate
from subscribers.http.agent_hooks import PREFIX, AgentHooks
from subscribers.http.guard import Entrance, Guard
from tests.subscribers.http.scene import ADDRESS, PORT, TOKEN

HOOK_TOKEN = "hook-token-0123456789"
LETTER = {"Authorization": f"Bearer {HOOK_TOKEN}", "Content-Type": "application/json"}
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
PAYLOAD = b'{"hook_event_name": "PreToolUse"}'


class Answers:
    """Stands for the bus: what it was asked, and what it says."""

    def __init__(self, answer: bytes | Exception = b"") -> None:
        self.answer = answer
        self.asked: list[tuple[str, bytes, float, bool]] = []

    async def __call__(self, dialect: str, payload: bytes, seconds: float, closed: bool) -> bytes:
        """Keep the question and answer it."""
        self.asked.append((dialect, payload, seconds, closed))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def api(scope: Any, receive: Any, send: Any) -> None:
    """Stands for the rest of the API, which hooks must not reach."""
    if scope["type"] == "lifespan":
        for stage in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{stage}.complete"})
        return
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


@contextmanager
def serving(answers: Answers) -> Iterator[TestClient]:
    """A client of the guard with an API, and hooks that ``answers`` answers."""
    app = AgentHooks(answers, ("claude", "codex"))
    entrance = Entrance(app, Gate(HOOK_TOKEN, attempts=10**9), "ask", agent_hooks.BODY_BYTES)
    with TestClient(
        Guard(api, Gate(TOKEN), PORT, others={PREFIX: entrance}), ADDRESS, headers=LETTER
    ) as client:
        yield client


@pytest.mark.parametrize("answer", [b"", b"{}", orjson.dumps(DENY)], ids=["G1", "G2", "G3"])
@pytest.mark.parametrize("dialect", ["claude", "codex"])
def test_an_answer_is_empty_or_json_and_always_a_success(answer: bytes, dialect: str) -> None:
    """Status 200 with its length; an empty body has no type, any other one is JSON."""
    answers = Answers(answer)
    with serving(answers) as client:
        told = client.post(f"/hooks/{dialect}?timeout=29.5", content=PAYLOAD)
    assert (told.status_code, told.content, told.headers["content-length"]) == (200, answer, str(len(answer)))
    assert told.headers.get("content-type") == ("application/json" if answer else None)
    assert answers.asked == [(dialect, PAYLOAD, 29.5, False)]


@pytest.mark.parametrize("closed,body", [("", b""), ("?closed=1", None), ("?closed=0", b"")])
def test_a_defect_is_answered_as_the_address_wants_it(closed: str, body: bytes | None) -> None:
    """No plain text [G4], list [G5] or other status [G6]: empty, or a block where that is wanted [G11]."""
    with serving(Answers(KeyError("defect"))) as client:
        told = client.post(f"/hooks/claude{closed}", content=PAYLOAD)
    assert told.status_code == 200
    if body is None:
        assert told.json()["decision"] == "block"
    else:
        assert told.content == body


@pytest.mark.parametrize(
    "headers,status,code",
    [
        ({"authorization": "Bearer "}, 401, "no_token"),
        ({"authorization": "Bearer"}, 401, "no_token"),
        ({"authorization": ""}, 401, "no_token"),
        ({"authorization": f"Basic {HOOK_TOKEN}"}, 401, "no_token"),
        ({"authorization": f"Bearer {TOKEN}"}, 401, "wrong_token"),
        ({"authorization": "Bearer $PRXBUS_HOOK_TOKEN"}, 401, "wrong_token"),
        ({"host": "evil.example"}, 403, "wrong_host"),
        ({"origin": "https://evil.example"}, 403, "wrong_origin"),
        ({"sec-fetch-site": "cross-site"}, 403, "wrong_origin"),
        ({"content-type": "text/plain"}, 415, "not_json_content"),
    ],
)
def test_who_has_not_the_hooks_own_token_is_refused(
    headers: Mapping[str, str], status: int, code: str
) -> None:
    """A bare prefix [G9], the API's token, a web page: a problem document, and nobody is asked."""
    answers = Answers(orjson.dumps(DENY))
    with serving(answers) as client:
        told = client.post("/hooks/claude", content=PAYLOAD, headers=headers)
    assert (told.status_code, told.json()["code"]) == (status, code)
    assert told.headers["content-type"] == "application/problem+json"
    assert answers.asked == []


def test_each_token_opens_its_own_door_alone() -> None:
    """The hooks' token is worth nothing at the API; wrong tokens, however many, keep no agent out [G10]."""
    with serving(Answers()) as client:
        assert client.get("/api/hooks").status_code == 401
        assert client.get("/api/hooks", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 204
        for _ in range(20):
            wrong = {"authorization": "Bearer wrong-token-0123456"}
            assert client.post("/hooks/claude", content=PAYLOAD, headers=wrong).status_code == 401
        assert client.post("/hooks/claude", content=PAYLOAD).status_code == 200


@pytest.mark.parametrize(
    "method,path,status,code",
    [
        ("GET", "/hooks/claude", 405, "wrong_method"),
        ("POST", "/hooks/cursor", 404, "no_such_path"),
        ("POST", "/hooks/claude/x", 404, "no_such_path"),
        ("POST", "/hooks/claude?timeout=0", 422, "bad_timeout"),
        ("POST", "/hooks/claude?timeout=nan", 422, "bad_timeout"),
        ("POST", "/hooks/claude?timeout=1e9", 422, "bad_timeout"),
        ("POST", "/hooks/claude?timeout=soon", 422, "bad_timeout"),
    ],
)
def test_an_address_that_says_something_else_is_a_problem(
    method: str, path: str, status: int, code: str
) -> None:
    """It is told what is wrong with it, as a problem document."""
    answers = Answers()
    with serving(answers) as client:
        told = client.request(method, path)
    assert (told.status_code, told.json()["code"]) == (status, code)
    assert answers.asked == []


def test_payloads_may_be_as_large_as_an_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger than what the API takes; beyond that it is a problem."""
    monkeypatch.setattr(guard, "BODY_BYTES", 1_000)
    monkeypatch.setattr(agent_hooks, "BODY_BYTES", 3_000_000)
    answers = Answers()
    with serving(answers) as client:
        assert client.post("/hooks/claude", content=b"x" * 2_000_000).status_code == 200
        assert client.post("/hooks/claude", content=b"x" * 3_000_001).status_code == 413
    assert [len(payload) for _, payload, _, _ in answers.asked] == [2_000_000]


def test_who_has_gone_is_asked_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that gave up, at its own timeout [G8], takes the question along; nothing is sent."""
    monkeypatch.setattr(agent_hooks, "QUIET_SECONDS", 0.0)
    cancelled = False

    async def never(dialect: str, payload: bytes, seconds: float, closed: bool) -> bytes:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = True
            raise
        return b""

    async def run() -> list[Message]:
        came: list[Message] = [
            {"type": "http.request", "body": PAYLOAD, "more_body": False},
            {"type": "http.disconnect"},
        ]
        sent: list[Message] = []

        async def receive() -> Message:
            return came.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {"type": "http", "path": "/hooks/codex", "method": "POST", "query_string": b""}
        await AgentHooks(never, ("codex",))(scope, receive, send)
        await asyncio.sleep(0)
        return sent

    assert asyncio.run(run()) == []
    assert cancelled


def test_an_answer_that_takes_long_still_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is watched whether the agent stays."""
    monkeypatch.setattr(agent_hooks, "QUIET_SECONDS", 0.0)
    with serving(Answers(b"{}")) as client:
        assert client.post("/hooks/claude", content=PAYLOAD).content == b"{}"
