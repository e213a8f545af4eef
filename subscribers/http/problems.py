"""Errors as problem documents (RFC 9457): what was wrong, which field, and what to do.

It decides the shape of every answer that is not a success. ``type`` is a URN and ``code`` its last part,
stable and machine-readable; ``detail`` is for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import orjson
from starlette.responses import Response

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:prxbus:problem:"

MAX_ERRORS: Final = 50
"""Errors that one document lists; the number of all stands beside them."""


class Problem(Exception):
    """A request that is answered with an error. ``errors`` are maps with field, code, message and hint."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.field = field
        self.hint = hint
        self.errors = errors
        self.headers = dict(headers or {})

    def document(self) -> dict[str, Any]:
        """The problem document."""
        found: dict[str, Any] = {
            "type": TYPE_PREFIX + self.code,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": str(self),
            "code": self.code,
        }
        if self.field is not None:
            found["field"] = self.field
        if self.hint is not None:
            found["hint"] = self.hint
        if self.errors:
            found["errors"] = list(self.errors[:MAX_ERRORS])
            found["error_count"] = len(self.errors)
        return found

    def response(self) -> Response:
        """The document as an answer."""
        return Response(
            orjson.dumps(self.document()), self.status, media_type=MEDIA_TYPE, headers=self.headers
        )


def of_fields(status: int, code: str, errors: Iterable[Mapping[str, Any]]) -> Problem:
    """A problem with one or more fields; the first one is told in words."""
    listed = list(errors)
    first = listed[0]
    return Problem(
        status,
        code,
        f"{first['field']}: {first['message']}",
        field=str(first["field"]),
        hint=first.get("hint"),
        errors=listed,
    )
