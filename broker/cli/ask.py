"""``prxbus ask``: put an event to its deciders, and end as they decide.

Decides which exit code a decision is: 4 means denied and nothing else, so that a script can rely on it. What
a wrong argument is for ``pub`` ends with 2 here, and what the broker refuses with 1.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from ..client.context import inherited
from ..client.tool import Asked, Tool
from ..protocol.catalogue import check
from ..protocol.decision_document import ask_fields, timed_out
from ..protocol.decisions import Decision
from ..protocol.errors import (
    BusError,
    LimitExceeded,
    RequestRefused,
    RuntimeDirError,
    SchemaError,
    SpoolFull,
    TopicError,
)
from ..protocol.limits import ASK_SECONDS, DEPTHS
from ..protocol.topics import check_topic
from .decision_lines import decision_lines
from .exits import ASK_USER, DONE, FAILED, REFUSED, TIMED_OUT, USAGE, error_line
from .options import add_json, duration, whole
from .printing import emit, emit_json, forget_stdout, note, say
from .pub import event_topic, meant_topic, parse_object, raised, read_payload
from .terminal import columns, in_colour, is_terminal

SECONDS: Final = 2.0
"""How long deciders may take, unless it is told; as for :meth:`broker.client.Publisher.ask`."""

GREETING_SECONDS: Final = 5.0
"""How long the broker may take to greet us at least."""

SOURCE: Final = "prxbus-ask"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``ask``."""
    parser.add_argument("topic", metavar="TOPIC", help="such as prx.lifecycle.tool_call_start")
    parser.add_argument(
        "payload",
        metavar="JSON",
        nargs="?",
        default="{}",
        help="a JSON object; - reads it from standard input, @FILE from a file (default {})",
    )
    parser.add_argument(
        "--timeout",
        type=duration(),
        default=SECONDS,
        metavar="S",
        help=f"seconds the deciders may take, at most {ASK_SECONDS:,.0f} (default {SECONDS:g})",
    )
    parser.add_argument("--session", metavar="S", help="id of the agent session that the event belongs to")
    parser.add_argument(
        "--depth",
        type=whole(0),
        default=0,
        metavar="N",
        help="recursion depth, if more than $PRXBUS_DEPTH; about 8 and more nobody is asked",
    )
    add_json(parser, "the decision")
    parser.epilog = (
        f"Exit codes: {DONE} allowed, or nobody has an opinion; {REFUSED} denied; {TIMED_OUT} nobody denied "
        f"it, but a decider was late; {ASK_USER} the user is to be asked; 3 no bus answers; "
        f"{USAGE} wrong usage, also of topic or payload; {FAILED} failed."
    )


def run(options: argparse.Namespace) -> int:
    """Ask, tell the decision, and end as it says."""
    try:
        asked = _ask(options)
    except (TopicError, SchemaError, LimitExceeded) as error:
        return _say(error, USAGE, options)
    except (RequestRefused, SpoolFull, RuntimeDirError) as error:
        return _say(error, FAILED, options)
    _notes(asked, options)
    try:
        _tell(asked, options)
    except BrokenPipeError:  # nobody reads: the exit code says it all the same
        forget_stdout()
    return ending(asked.decision)


def ending(decision: Decision) -> int:
    """The exit code of a decision: who was late might have said no."""
    if decision.denied:
        return REFUSED
    if timed_out(decision):
        return TIMED_OUT
    return DONE if decision.allowed else ASK_USER


def _ask(options: argparse.Namespace) -> Asked:
    check_topic(options.topic)
    payload = read_payload(options.payload).strip()
    check(options.topic, parse_object(payload))
    if options.timeout > ASK_SECONDS:
        raise LimitExceeded(f"--timeout must be at most {ASK_SECONDS:g} s, not {options.timeout:g}")
    cause = raised(inherited(os.environ), options.depth)
    greeting = max(GREETING_SECONDS, options.timeout)
    with Tool(SOURCE, runtime_dir=options.runtime_dir, timeout=greeting) as tool:
        return tool.ask(
            options.topic, payload, timeout=options.timeout, session_id=options.session, cause=cause
        )


def _tell(asked: Asked, options: argparse.Namespace) -> None:
    if options.json:
        emit_json(ask_fields(options.topic, asked.id, asked.matching, asked.decision))
    else:
        width = columns(os.environ) if is_terminal(sys.stdout) else None
        emit("\n".join(decision_lines(asked.decision, width, colour=in_colour(sys.stdout, os.environ))))


def _notes(asked: Asked, options: argparse.Namespace) -> None:
    """What there is to say beside the decision."""
    if asked.id is None:
        note(
            "ask",
            f"the depth is beyond {DEPTHS - 1}, so nobody was asked: "
            "a handler seems to ask about what it is started by",
            as_json=options.json,
            code="over_depth",
        )
    if asked.unpublished is not None:
        note(
            "ask",
            f"the event was not published: {asked.unpublished}",
            as_json=options.json,
            code="unpublished",
        )
    meant = meant_topic(options.topic)
    if meant is None and asked.id is not None and not asked.decision.heard:
        meant = event_topic(options.topic)
    if meant is not None:
        note(
            "ask",
            f"{options.topic} is not in the catalogue of events, so its payload was not checked; "
            f"did you mean {meant}?",
            as_json=options.json,
            code="uncatalogued",
        )


def _say(error: BusError, status: int, options: argparse.Namespace) -> int:
    say(error_line("ask", error, as_json=options.json))
    return status
