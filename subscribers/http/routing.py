"""How a request's body becomes JSON: by the parser that reads hook files and payloads.

Python's own takes NaN and lone surrogates, which nothing behind it could write again; nor could it what is
nested too deep.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from ..dialects.json_depth import MAX_DEPTH, is_too_deep


class _JsonRequest(Request):
    async def json(self) -> Any:
        """The body as a JSON value; raises json.JSONDecodeError, which the framework answers."""
        return read_json(await self.body())


class JsonRoute(APIRoute):
    """A route whose body is read strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request that parses strictly."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return strict


def read_json(body: bytes) -> Any:
    """The JSON value that ``body`` is; raises json.JSONDecodeError."""
    value = orjson.loads(body)
    if is_too_deep(value):
        raise json.JSONDecodeError(f"nested more than {MAX_DEPTH} levels deep", body.decode(), 0)
    return value
