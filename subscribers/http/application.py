"""The application put together: routes, the guard before them, and one shape for every error.

It decides which error leads to which status, and what the OpenAPI document says of errors and of the token.
It refuses to know where it is served.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from broker.logs import get_logger
from broker.protocol.errors import (
    BusError,
    BusUnreachable,
    LimitExceeded,
    RequestRefused,
    RequestTimeout,
    RuntimeDirError,
    SchemaError,
    SpoolFull,
    TopicError,
)
from broker.version import __version__

from ..sources.hook_store import EditRefused, FileBroken, HookMissing, StaleEdit, StoreBusy, StoreUnusable
from .access import Gate
from .ask_api import PATH as ASK_PATH
from .ask_api import AskApi, AskEntrance, describe_ask
from .blocking import Blocking
from .bus_api import BusApi, bus_router, health_router
from .event_stream import Streams
from .guard import OWN_HINT, Entrance, Guard
from .hooks_api import HooksApi, hooks_router
from .metrics import Metrics
from .models import ProblemDocument
from .problems import MEDIA_TYPE, Problem, of_fields

DESCRIPTION: Final = (
    "Hooks of a workspace to list and edit, events to watch, publish and ask about, status and metrics. "
    "Every endpoint but /healthz needs the bearer token. Errors are problem documents (RFC 9457)."
)

_RETRY: Final = {"retry-after": "1"}

log = get_logger("subscribers.http")


def build_application(
    hooks: HooksApi,
    bus: BusApi,
    ask: AskApi,
    gate: Gate,
    port: int,
    others: Mapping[str, Entrance] = MappingProxyType({}),
) -> Guard:
    """The application as it is served on ``port``; ``others`` as for :class:`.guard.Guard`."""
    app = _routes(hooks, bus)
    asks = Entrance(AskEntrance(ask, app, problem_of), gate, OWN_HINT, ask.body_bytes)
    return Guard(app, gate, port, others={ASK_PATH: asks, **others})


def describe_api() -> dict[str, Any]:
    """The OpenAPI document, without anything that would have to be opened."""
    idle = Blocking(1, 0, "idle")
    hooks = HooksApi(None, None, idle, idle, lambda: 0)
    return _openapi(_routes(hooks, BusApi("", Streams("", 0), Metrics(), idle, dict)))


def _routes(hooks: HooksApi, bus: BusApi) -> FastAPI:
    app = FastAPI(title="prxbus", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None)
    errors: dict[int | str, dict[str, Any]] = {
        "default": {"model": ProblemDocument, "description": "What was wrong."}
    }
    token = [Security(HTTPBearer(auto_error=False, description="The token in http-token."))]
    app.include_router(hooks_router(hooks, responses=errors, dependencies=token))
    app.include_router(bus_router(bus, responses=errors, dependencies=token))
    app.include_router(health_router(bus, responses=errors))
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign] # the framework's documented way
    for kind in _HANDLERS:
        app.add_exception_handler(kind, lambda _request, error: problem_of(error).response())
    return app


def problem_of(error: Exception) -> Problem:
    """What is answered when a handler raises ``error``."""
    return next(_HANDLERS[kind] for kind in type(error).__mro__ if kind in _HANDLERS)(error)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The framework's document, with problem documents under their own media type and no error of its own."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = document["components"]["schemas"]
        document["paths"][ASK_PATH], asks = describe_ask()
        schemas.update(asks)
        for path in document["paths"].values():
            for operation in path.values():
                responses = operation["responses"]
                responses.pop("422", None)
                problem = {"$ref": f"#/components/schemas/{ProblemDocument.__name__}"}
                responses["default"]["content"] = {MEDIA_TYPE: {"schema": problem}}
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        app.openapi_schema = document
    return app.openapi_schema


def _of_framework(error: HTTPException) -> Problem:
    words = {
        404: ("no_such_path", "there is nothing at this path"),
        405: ("wrong_method", "this path does not take this method"),
    }
    code, detail = words.get(error.status_code, ("refused", str(error.detail)))
    return Problem(error.status_code, code, detail, headers=error.headers)


def _of_body(error: RequestValidationError) -> Problem:
    """A body or parameter of another shape than the documented one."""
    found = error.errors()
    broken = next((e for e in found if e["type"] == "json_invalid"), None)
    if broken is not None:
        cause = broken.get("ctx", {}).get("error", "")
        position = _position(error.body, broken["loc"][-1])
        return Problem(
            400,
            "not_json",
            f"the body is not JSON that can be read, at {position}: {cause}",
            field="body",
            hint="send JSON",
        )
    return of_fields(
        422,
        "wrong_shape",
        [
            {
                "field": ".".join(str(step) for step in e["loc"] if step not in ("body", "query", "header"))
                or "body",
                "code": e["type"],
                "message": e["msg"],
            }
            for e in found
        ],
    )


def _position(body: object, offset: object) -> str:
    if isinstance(body, str | bytes) and isinstance(offset, int):
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        error = json.JSONDecodeError("", text, offset)
        return f"line {error.lineno}, column {error.colno}"
    return f"character {offset}"


def _of_edit(error: EditRefused) -> Problem:
    return of_fields(422, "hook_refused", [fault._asdict() for fault in error.faults])


def _of_file(error: FileBroken) -> Problem:
    return Problem(
        409,
        "hooks_file_broken",
        f"hooks.json cannot be used: {error}",
        field="hooks.json",
        hint="correct the file, or replace all of it with PUT /api/hooks; a copy is kept",
        headers={"etag": error.etag},
        errors=[
            {
                "field": found.field or "hooks.json",
                "code": found.code,
                "message": found.message,
                "hint": found.hint,
                "line": found.line,
                "column": found.column,
            }
            for found in error.diagnostics
        ],
    )


def _of_fault(error: Exception) -> Problem:
    log.error("a request could not be answered", exc_info=error)
    return Problem(500, "internal", "this is a fault of prxbus; the log says more")


def _field(field: str) -> Callable[[BusError], Problem]:
    return lambda error: Problem(422, error.code, str(error), field=field)


_HANDLERS: Final[Mapping[type[Exception], Callable[[Any], Problem]]] = {
    Problem: lambda error: error,
    HTTPException: _of_framework,
    RequestValidationError: _of_body,
    EditRefused: _of_edit,
    FileBroken: _of_file,
    HookMissing: lambda error: Problem(404, "no_such_hook", str(error), field="id"),
    StaleEdit: lambda error: Problem(412, "stale", str(error), field="If-Match"),
    StoreBusy: lambda error: Problem(503, "busy", str(error), headers=_RETRY),
    StoreUnusable: lambda error: Problem(
        503, f"hooks_{error.code}", str(error), field="hooks.json", hint=error.hint
    ),
    TopicError: _field("topic"),
    SchemaError: lambda error: Problem(422, error.code, str(error), field=error.path),
    LimitExceeded: _field("payload"),
    BusUnreachable: lambda error: Problem(503, "no_bus", str(error), headers=_RETRY),
    RuntimeDirError: lambda error: Problem(503, "no_bus", str(error), headers=_RETRY),
    RequestTimeout: lambda error: Problem(503, "no_bus", str(error), headers=_RETRY),
    RequestRefused: lambda error: Problem(503, error.remote_code, str(error), headers=_RETRY),
    SpoolFull: lambda error: Problem(503, error.code, str(error), field="payload", headers=_RETRY),
    BusError: lambda error: Problem(503, error.code, str(error), headers=_RETRY),
    Exception: _of_fault,
}
"""Every error that a handler may raise, and what is answered."""
