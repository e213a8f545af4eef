"""``prxbus pub``: publish an event, acknowledged by the broker.

Decides where the payload comes from and how its faults are told. The bytes travel as they were given, so
that no number is rounded on the way; what may be published is the client's and the catalogue's.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

import orjson

from ..client.context import Cause, inherited
from ..client.tool import Tool
from ..protocol.catalogue import EVENTS, check
from ..protocol.envelope import is_text
from ..protocol.errors import LimitExceeded, SchemaError
from ..protocol.limits import CLAIM_BYTES, DEPTHS, SOURCE_BYTES
from ..protocol.topics import LIFECYCLE, check_topic
from .exits import DONE, CommandError
from .options import add_json, add_timeout, whole
from .printing import emit, emit_json, note

NOT_JSON: Final = ("NaN", "Infinity", "-Infinity")
"""Numbers that some programs write into JSON and the format lacks (RFC 8259, section 6)."""

WORDS: Final = (
    ("expected a string key", 'a name in double quotes is expected here, as in {"tool": "Bash"}'),
    ("unexpected end of data", "it ends in the middle: a bracket or a quote is not closed"),
    ("trailing comma", "a comma with nothing after it"),
    (
        "control character in string",
        "a control character in a string; a line end is written \\n, a tab \\t",
    ),
    ("invalid escaped sequence", "a backslash with something after it that JSON does not know"),
    ("content after document", "there is more after the end of the object"),
    ("number is infinity", "a number too large to be kept"),
    ("surrogate in string", "half a character: \\ud800 to \\udfff come in pairs"),
    ("byte order mark", "it begins with a byte order mark; save it without"),
    ("invalid literal", "a word that is none of true, false and null"),
)
"""Parts of what the parser says, and how we say it; anything else is told in the parser's words."""

_EXPECTED: Final = "an event's payload is a JSON object, such as {}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pub``."""
    parser.add_argument("topic", metavar="TOPIC", help="such as prx.lifecycle.tool_call")
    parser.add_argument(
        "payload",
        metavar="JSON",
        nargs="?",
        default="{}",
        help="a JSON object; - reads it from standard input, @FILE from a file (default {})",
    )
    parser.add_argument("--session", metavar="S", help="id of the agent session that the event belongs to")
    parser.add_argument(
        "--depth",
        type=whole(0),
        default=0,
        metavar="N",
        help="recursion depth, if more than $PRXBUS_DEPTH; 8 and more is not published",
    )
    parser.add_argument(
        "--count", type=whole(1), default=1, metavar="N", help="publish it so many times (default 1)"
    )
    parser.add_argument("--retain", action="store_true", help="keep it as the last value of its topic")
    parser.add_argument(
        "--source", default="prxbus-pub", metavar="NAME", help="who publishes (default prxbus-pub)"
    )
    add_timeout(parser, 5.0)
    add_json(parser, "the result")


def run(options: argparse.Namespace) -> int:
    """Publish; prints how many subscribers match."""
    check_topic(options.topic)
    payload = read_payload(options.payload).strip()
    check(options.topic, parse_object(payload))
    if not options.source or not is_text(options.source, SOURCE_BYTES):
        raise LimitExceeded(f"--source must be 1 to {SOURCE_BYTES} bytes, not {len(options.source)}")
    cause = raised(inherited(os.environ), options.depth)
    with Tool(options.source, runtime_dir=options.runtime_dir, timeout=options.timeout) as tool:
        published = tool.publish(
            options.topic,
            payload,
            count=options.count,
            session_id=options.session,
            cause=cause,
            retain=options.retain,
        )
    if options.json:
        emit_json(
            {
                "matching": published.matching,
                "published": published.sent,
                "over_depth": published.over_depth,
                "id": published.last_id,
            }
        )
    else:
        emit(f"matching subscribers: {published.matching}")
    if published.over_depth:
        note(
            "pub",
            f"depth {cause.depth} is beyond {DEPTHS - 1}, so the event was dropped: "
            "a handler seems to publish what it is started by",
            as_json=options.json,
            code="over_depth",
        )
    meant = meant_topic(options.topic)
    if meant is not None:
        note(
            "pub",
            f"{options.topic} is not in the catalogue of events, so its payload was not checked; "
            f"did you mean {meant}?",
            as_json=options.json,
            code="uncatalogued",
        )
    return DONE


def meant_topic(topic: str) -> str | None:
    """The catalogued topic that an uncatalogued lifecycle ``topic`` is near to; None when there is none."""
    name = topic.removeprefix(LIFECYCLE)
    if name == topic or name in EVENTS:
        return None
    from .spelling import nearest

    near = nearest(name, EVENTS)
    return None if near is None else LIFECYCLE + near


def event_topic(name: str) -> str | None:
    """The topic of the event that ``name`` is in any system's words, or a bare name is near to, or None."""
    from ..protocol.projections import DIALECT_EVENTS
    from .spelling import nearest

    for names in DIALECT_EVENTS.values():
        for event, native in names.items():
            if native == name:
                return LIFECYCLE + event
    if "." in name:
        return None
    near = name if name in EVENTS else nearest(name, EVENTS)
    return None if near is None else LIFECYCLE + near


def raised(cause: Cause, depth: int) -> Cause:
    """``cause`` at the greater of its depth and ``depth``."""
    return cause if cause.depth >= depth else Cause(depth, cause.event)


def read_payload(given: str) -> bytes:
    """The text that ``given`` stands for: itself, standard input for -, a file for @FILE."""
    try:
        if given == "-":
            text = sys.stdin.buffer.read(CLAIM_BYTES + 1)
        elif given.startswith("@"):
            with open(given[1:], "rb") as file:
                text = file.read(CLAIM_BYTES + 1)
        else:
            return os.fsencode(given)
    except OSError as error:
        raise CommandError(f"cannot read the payload from {given[1:]!r}: {error.strerror}") from None
    if len(text) > CLAIM_BYTES:
        raise LimitExceeded(f"the payload is larger than {CLAIM_BYTES:,} bytes; shorten it")
    return text


def parse_object(data: bytes) -> dict[str, object]:
    """The JSON object in ``data``; raises :class:`SchemaError` with line and column."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line, column = position(data[: error.start].decode())
        raise SchemaError(f"payload is not UTF-8 at line {line}, column {column}") from None
    try:
        if not text.strip():
            raise SchemaError(f"payload is empty; {_EXPECTED}")
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        start = error.pos - (text[error.pos - 1 : error.pos] == "-")
        number = next((name for name in NOT_JSON if text.startswith(name, start)), None)
        line, column = position(text[: start if number else error.pos])
        what = f"{number} is no JSON; send null or a string" if number else _worded(error.msg)
        raise SchemaError(f"payload is not JSON at line {line}, column {column}: {what}") from None
    if not isinstance(value, dict):
        raise SchemaError(f"payload is {_kind(value)}; {_EXPECTED}")
    return value


def _worded(message: str) -> str:
    return next((ours for part, ours in WORDS if part in message), message)


def position(before: str) -> tuple[int, int]:
    """Line and column, from 1, of what comes after ``before``."""
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
