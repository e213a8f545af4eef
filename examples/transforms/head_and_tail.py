"""Shortens what is too long for a conversation: the first lines, the last ones, and a word about the rest.

    prxbus up --workspace . --handlers examples/transforms/head_and_tail.py

A JSON dump of 5 MB becomes 200 lines. JSON that stands in one line is laid out first, so that there are
lines to choose from; a line that is too long itself is cut in its middle. In a chain the first text wins and
nothing runs behind it: so what is shortened here is redacted here, too, whole, before it is cut.
"""

from __future__ import annotations

import orjson

from subscribers.handlers import Context, HandlerEvent, transform

from .redact_secrets import redact

LINES = 200
TAIL_LINES = 50
LINE_CHARACTERS = 500
SHORT_CHARACTERS = 20_000
"""A text up to here stays as it is, however many lines it has."""


def head_and_tail(text: str) -> str:
    """At most :data:`LINES` lines, one of them about what was left out, each of bounded length."""
    lines = _laid_out(text).splitlines()
    left_out = len(lines) - LINES + 1
    if left_out > 1:
        head = lines[: LINES - 1 - TAIL_LINES]
        lines = [*head, f"[... {left_out:,} lines left out ...]", *lines[-TAIL_LINES:]]
    return "\n".join(map(_cut, lines))


def _laid_out(text: str) -> str:
    """JSON of one line over several; every other text as it is."""
    if not text.startswith(("{", "[")) or "\n" in text.rstrip("\n"):
        return text
    try:
        return orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):  # no JSON, or nested too deeply to be written
        return text


def _cut(line: str) -> str:
    if len(line) <= LINE_CHARACTERS:
        return line
    half = (LINE_CHARACTERS - 50) // 2
    return f"{line[:half]}[... {len(line) - 2 * half:,} characters left out ...]{line[-half:]}"


@transform(timeout=5.0)
def shorten(event: HandlerEvent, _ctx: Context) -> str | None:
    """Shorten a long output; leave a short one to the next handler."""
    output: str = event.payload["tool_output"]
    if len(output) <= SHORT_CHARACTERS:
        return None
    return head_and_tail(redact(output))
