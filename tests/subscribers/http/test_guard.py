"""What every request passes first: name, origin, token, size, time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import Message

from subscribers.http import guard
from tests.subscribers.http.scene import LETTER, TOKEN, Scene, scene

JSON = {"content-type": "application/json"}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Scene]:
    """The application over an empty workspace."""
    with scene(tmp_path) as found:
        yield found


@pytest.mark.parametrize(
    "header,code,field",
    [
        ({"host": "evil.example:16831"}, "wrong_host", "Host"),
        ({"host": "127.0.0.1:1"}, "wrong_host", "Host"),
        ({"origin": "http://evil.example"}, "wrong_origin", "Origin"),
        ({"origin": "null"}, "wrong_origin", "Origin"),
        ({"sec-fetch-site": "cross-site"}, "wrong_origin", "Sec-Fetch-Site"),
    ],
)
@pytest.mark.parametrize("path", ["/api/hooks", "/healthz", "/metrics", "/openapi.json", "/nowhere"])
def test_a_web_page_cannot_reach_anything(
    api: Scene, path: str, header: dict[str, str], code: str, field: str
) -> None:
    """Neither from another site, nor by a name that points here, and not with the token either."""
    answer = api.client.get(path, headers=header)
    assert api.problem(answer) == (403, code, field)
    assert "access-control-allow-origin" not in answer.headers


def test_our_own_names_are_let_in(api: Scene) -> None:
    """As are requests that say they come from the very address."""
    assert api.client.get("/api/hooks", headers={"host": "localhost:16831"}).status_code == 200
    same = {"origin": "http://127.0.0.1:16831", "sec-fetch-site": "same-origin"}
    assert api.client.get("/api/hooks", headers=same).status_code == 200


def test_everything_but_healthz_needs_the_token(api: Scene) -> None:
    """401 with a challenge for no token, another scheme and a wrong one; also for paths that do not exist."""
    del api.client.headers["authorization"]
    for path in ("/api/hooks", "/api/events", "/api/status", "/metrics", "/openapi.json", "/nowhere"):
        answer = api.client.get(path)
        assert api.problem(answer) == (401, "no_token", "Authorization")
        assert answer.headers["www-authenticate"] == "Bearer"
    answer = api.client.get("/api/hooks", headers={"authorization": f"Basic {TOKEN}"})
    assert api.problem(answer) == (401, "no_token", "Authorization")
    answer = api.client.get("/api/hooks", headers={"authorization": "Bearer wrong"})
    assert api.problem(answer) == (401, "wrong_token", "Authorization")
    assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert api.problem(api.client.get("/healthz")) == (503, "no_bus", None)


def test_five_wrong_tokens_make_all_but_the_right_one_wait(
    api: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """429 with Retry-After for ten seconds; whoever has the token is not to be silenced by others."""
    now = 50.0
    monkeypatch.setattr(api.app, "_now", lambda: now)
    for _ in range(5):
        assert api.client.get("/api/hooks", headers={"authorization": "Bearer wrong"}).status_code == 401
    for header in ("Bearer wrong", ""):
        answer = api.client.get("/api/hooks", headers={"authorization": header})
        assert api.problem(answer) == (429, "too_many_wrong_tokens", "Authorization")
        assert answer.headers["retry-after"] == "10"
        assert api.client.get("/api/hooks", headers=LETTER).status_code == 200
    assert api.client.get("/healthz").status_code == 503
    now = 60.0
    assert api.client.get("/api/hooks", headers={"authorization": ""}).status_code == 401


def test_a_body_has_at_most_a_mebibyte(api: Scene) -> None:
    """Announced or not; the last byte that fits is let in."""
    fits, large = b"x" * guard.BODY_BYTES, b"x" * (guard.BODY_BYTES + 1)
    assert api.problem(api.client.post("/api/hooks", content=fits, headers=JSON))[:2] == (400, "not_json")
    for content in (large, iter([large])):
        answer = api.client.post("/api/hooks", content=content, headers=JSON)
        assert api.problem(answer) == (413, "body_too_large", None)


def test_a_body_is_json_by_its_header(api: Scene) -> None:
    """A form of a web page could not say so."""
    for headers in (
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {},
    ):
        answer = api.client.post("/api/hooks", content=b"{}", headers=headers)
        assert api.problem(answer) == (415, "not_json_content", "Content-Type")
    good = {"content-type": "Application/JSON; charset=utf-8"}
    assert api.client.post("/api/hooks", content=b"{}", headers=good).status_code == 422


def test_nobody_waits_for_a_slow_body(api: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that stops in the middle is answered 408; one that hangs up gets nothing done."""
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.05)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/hooks",
        "headers": [(b"host", b"127.0.0.1:16831"), (b"authorization", f"Bearer {TOKEN}".encode())],
    }

    async def call(said: list[Message]) -> Message:
        told: list[Message] = []

        async def receive() -> Message:
            if said:
                return said.pop()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            told.append(message)

        await api.app(scope, receive, send)
        return told[0]

    part: Message = {"type": "http.request", "body": b"{", "more_body": True}
    assert asyncio.run(call([part]))["status"] == 408
    assert asyncio.run(call([{"type": "http.disconnect"}, part]))["status"] == 400


def test_too_many_requests_at_a_time_are_refused(api: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with Retry-After, before anything is read."""
    monkeypatch.setattr(guard, "REQUESTS", 0)
    answer = api.client.get("/api/hooks")
    assert api.problem(answer) == (503, "busy", None)
    assert answer.headers["retry-after"] == "1"


def test_a_full_house_is_told_to_those_with_the_token(api: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else takes a place, so the wrong ones hear that they are wrong, and health is told."""
    monkeypatch.setattr(guard, "REQUESTS", 0)
    answer = api.client.get("/api/hooks", headers={"authorization": "Bearer wrong"})
    assert api.problem(answer) == (401, "wrong_token", "Authorization")
    assert api.problem(api.client.get("/healthz")) == (503, "no_bus", None)


def test_bodies_have_a_bound_together(api: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What finds no room is told to come again, also one of unknown size; what has no body is answered."""
    monkeypatch.setattr(guard, "BODIES_BYTES", 200)
    assert api.client.post("/api/events", content=b"[]", headers=JSON).status_code == 422
    large: list[bytes | Iterator[bytes]] = [
        b" " * 201,
        iter([b"[]"]),
    ]  # the second one comes in chunks, and so may be of any size
    for body in large:
        answer = api.client.post("/api/events", content=body, headers=JSON)
        assert api.problem(answer) == (503, "busy", None)
        assert answer.headers["retry-after"] == "1"
    assert api.client.post("/api/events", content=b" " * (guard.BODY_BYTES + 1)).status_code == 413
    assert api.client.get("/api/hooks").status_code == 200
    assert api.client.post("/api/events", content=b"[]", headers=JSON).status_code == 422


def test_health_waits_for_no_body(api: Scene) -> None:
    """It is asked without a token, and whoever has none keeps nothing waiting."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/healthz",
        "raw_path": b"/healthz",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:16831"), (b"content-length", b"5")],
    }
    told: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def send(message: Message) -> None:
        told.append(message)

    asyncio.run(api.app(scope, receive, send))
    assert told[0]["status"] == 503


def test_answers_are_counted(api: Scene) -> None:
    """By status, refused ones too."""
    api.client.get("/api/hooks")
    api.client.get("/nowhere")
    api.client.get("/api/hooks", headers={"host": "x"})
    assert api.app.answered == {200: 1, 404: 1, 403: 1}
