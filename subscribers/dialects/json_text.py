"""Bytes to a JSON value, or a refusal that names line and column.

It decides how a JSON hook file is decoded and how a syntax error is explained. It refuses to know what the
value means.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")

_HINTS: Final = {
    "": "the text ends too early: the file is perhaps half written",
    "/": "JSON has no comments",
    "#": "JSON has no comments",
    "'": "JSON strings stand in double quotes",
    "N": "JSON has no NaN",
    "T": "JSON writes true",
    "F": "JSON writes false",
}
"""What the character at the error usually means."""


class JsonRefused(ValueError):
    """The bytes are not a JSON document; ``line`` and ``column`` count from 1, columns in characters."""

    def __init__(self, message: str, line: int, column: int, hint: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint


def read_json(text: bytes) -> Any:
    """The value of a UTF-8 JSON document without byte order mark.

    Raises :class:`JsonRefused` and nothing else. Of equal keys in one object the last one counts; finding
    them is the business of :mod:`.json_positions`.
    """
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(text, error.start) from None
    if not text.strip(b" \t\r\n"):
        raise JsonRefused("the file is empty", 1, 1, "write {} for a file without hooks")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        at_fault = error.doc[error.pos : error.pos + 1]
        raise JsonRefused(f"not JSON: {error.msg}", error.lineno, error.colno, _HINTS.get(at_fault)) from None


def _not_utf8(text: bytes, offset: int) -> JsonRefused:
    if text.startswith(_UTF16_MARKS):
        return JsonRefused("the file is UTF-16", 1, 1, "save it as UTF-8")
    line = text.count(b"\n", 0, offset) + 1
    before = text[text.rfind(b"\n", 0, offset) + 1 : offset]
    column = len(before.decode()) + 1
    return JsonRefused(f"byte 0x{text[offset]:02x} is not UTF-8", line, column, "save the file as UTF-8")
