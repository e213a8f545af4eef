"""How a request's body becomes JSON: by the parser that reads hook files and payloads.

Python's own takes NaN and lone surrogates, which nothing behind it could write again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response


class _JsonRequest(Request):
    async def json(self) -> Any:
        """The body as a JSON value; raises json.JSONDecodeError, which the framework answers."""
        return orjson.loads(await self.body())


class JsonRoute(APIRoute):
    """A route whose body is read strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request that parses strictly."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return strict
