"""``POST /api/ask``: put an event to its deciders over HTTP, for agents that are not written in Python.

The answer is the object that ``prxbus ask --json`` prints. Decides what a body may say, which asks are small
enough for the event loop, and which failure is which status: 504 when the broker says no word in time, 503
without a bus. A decider that was late is no failure: the decision says so. How an ask travels is the
client's; where the publisher lives is the server's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.client import aio
from broker.protocol.decision_document import ask_fields
from broker.protocol.decisions import Decision
from broker.protocol.errors import BusUnreachable, RequestTimeout
from broker.protocol.limits import ASK_BYTES, ASK_SECONDS, CAUSE_BYTES, SESSION_ID_BYTES, TOPIC_BYTES

from .agent_hooks import until_either
from .models import ProblemDocument
from .problems import Problem
from .routing import read_json

PATH: Final = "/api/ask"
SOURCE: Final = "http-ask"
"""The source of events that are asked about over HTTP."""

SECONDS: Final = 2.0
"""How long deciders may take, unless the body says; as for every asker."""

ROOM_BYTES: Final = 65_536
"""What a body may have beside its payload."""

LOOP_BYTES: Final = 65_536
"""A larger body is read, checked, stored and answered in threads: it would keep everybody waiting."""

QUIET_SECONDS: Final = 0.5
"""After so long it is watched whether the client is still there: most are answered before."""


class AskBody(BaseModel):
    """An event to decide before it happens. ``depth`` and ``caused_by`` as for POST /api/events."""

    model_config = ConfigDict(extra="forbid", strict=True)

    topic: str = Field(max_length=TOPIC_BYTES, examples=["prx.lifecycle.tool_call_start"])
    payload: dict[str, Any] = Field(examples=[{"tool": "Bash", "arguments": {"command": "ls"}}])
    session_id: str | None = Field(default=None, max_length=SESSION_ID_BYTES)
    timeout_s: Annotated[float, Field(gt=0, le=ASK_SECONDS)] = SECONDS
    depth: int = Field(default=0, ge=0, le=255)
    caused_by: str | None = Field(default=None, max_length=CAUSE_BYTES, pattern=r"^[!-~]+$")


class DecisionDocument(BaseModel):
    """The decision. ``allowed`` is true when nobody has an opinion, and false when the user is to be asked.

    ``matching`` is null: nobody waits to hear how many subscribers the event's published copy has.
    """

    model_config = ConfigDict(extra="forbid")

    topic: str
    id: str | None
    matching: int | None
    timed_out: bool
    verdict: str
    reason: str | None
    by: str | None
    denied: bool
    allowed: bool
    partial: bool
    contexts: list[dict[str, str]]
    system_messages: list[dict[str, str]]
    updated_input: dict[str, Any] | None
    changed_by: dict[str, str]
    conflicts: list[dict[str, Any]]
    output: dict[str, Any] | None
    stop: dict[str, Any] | None
    heard: list[dict[str, Any]]


class AskApi:
    """What the endpoint needs: ``publisher`` asks. ``ask_bytes`` is the bus's limit."""

    def __init__(self, publisher: aio.Publisher, ask_bytes: int = ASK_BYTES) -> None:
        self.body_bytes = ask_bytes + ROOM_BYTES
        self._publisher = publisher

    async def open(self) -> None:
        """Be ready to ask; in the server's event loop."""
        await self._publisher.__aenter__()

    async def close(self) -> None:
        """Ask no more."""
        await self._publisher.close()

    async def answer(self, content: bytes) -> bytes:
        """The JSON that answers a body; raises :class:`Problem` and what the client raises."""
        if len(content) <= LOOP_BYTES:
            body = read_body(content)
            return _written(body.topic, *await self._ask(body, body.payload))
        body, payload = await asyncio.to_thread(_read_large, content)
        return await asyncio.to_thread(_written, body.topic, *await self._ask(body, payload))

    async def _ask(self, body: AskBody, payload: Mapping[str, Any] | bytes) -> tuple[str | None, Decision]:
        if not self._publisher.ready:
            raise BusUnreachable("no bus answers; it has ended, or is being started again")
        try:
            return await self._publisher.asked(
                body.topic,
                payload,
                timeout=body.timeout_s,
                session_id=body.session_id,
                depth=body.depth,
                caused_by=body.caused_by,
            )
        except RequestTimeout as error:
            raise Problem(504, "timeout", str(error), headers={"retry-after": "1"}) from None


def read_body(content: bytes) -> AskBody:
    """The ask that a body means; raises RequestValidationError, which the application answers."""
    try:
        value = read_json(content)
    except json.JSONDecodeError as error:
        found = {"type": "json_invalid", "loc": ("body", error.pos), "ctx": {"error": error.msg}}
        raise RequestValidationError([found], body=error.doc) from None
    try:
        return AskBody.model_validate(value)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None


def _read_large(content: bytes) -> tuple[AskBody, bytes]:
    """A body, and its payload in bytes: the client puts what is large and in bytes into the spool."""
    body = read_body(content)
    return body, orjson.dumps(body.payload)


def _written(topic: str, identity: str | None, decision: Decision) -> bytes:
    return orjson.dumps(ask_fields(topic, identity, None, decision))


class AskEntrance:
    """The application of this endpoint, beside the framework: routing there takes longer than the ask.

    ``problem`` says what an exception is; requests for other paths go on to ``app``.
    """

    def __init__(self, api: AskApi, app: ASGIApp, problem: Callable[[Exception], Problem]) -> None:
        self._api = api
        self._app = app
        self._problem = problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose body is there already; a client that goes away takes its ask back."""
        if scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._answer(scope, receive)
        except Exception as error:
            await self._problem(error).response()(scope, receive, send)
        else:
            if answer is not None:
                await Response(answer, media_type="application/json")(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> bytes | None:
        """The answer; None when there is nobody to be answered."""
        if scope["method"] != "POST":
            raise Problem(405, "wrong_method", "an ask is sent with POST", headers={"allow": "POST"})
        asked = asyncio.ensure_future(self._api.answer((await receive())["body"]))
        try:
            if not (await asyncio.wait((asked,), timeout=QUIET_SECONDS))[0]:
                await until_either(asked, receive)
            return asked.result() if asked.done() else None
        finally:
            asked.cancel()


def describe_ask() -> tuple[dict[str, Any], dict[str, Any]]:
    """The endpoint as the OpenAPI document tells it: its operations, and the schemas that they name."""
    operation = {
        "tags": ["events"],
        "summary": "Ask",
        "description": "Put an event to its deciders, wait for them, and answer what they decide. The event "
        "is published too. A client that goes away takes its ask back.",
        "operationId": "ask_api_ask_post",
        "requestBody": {"required": True, "content": _content(AskBody)},
        "responses": {
            "200": {"description": "The decision.", "content": _content(DecisionDocument)},
            "default": {"description": "What was wrong.", "content": _content(ProblemDocument)},
        },
        "security": [{"HTTPBearer": []}],
    }
    schemas = {model.__name__: model.model_json_schema() for model in (AskBody, DecisionDocument)}
    return {"post": operation}, schemas


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
