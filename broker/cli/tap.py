"""``prxbus tap``: show events as they come.

Decides when it ends and what goes where: events to stdout, what was missed to stderr. How a line looks is
:mod:`.event_lines`'s.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

import orjson

from ..client.core.describing import describe
from ..client.subscriber import BATCH_EVENTS, Subscriber
from ..protocol.events import Event
from .event_lines import EventLines
from .exits import DONE, TIMED_OUT
from .losses import Losses
from .options import add_json, duration, whole
from .printing import emit_bytes, note, reader_is_gone, terminal_safe
from .quantities import plural
from .terminal import columns, in_colour, is_terminal

SLICE_SECONDS = 0.5
"""Longest wait without looking after losses and the reader of our output."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``tap``."""
    parser.add_argument(
        "patterns",
        metavar="PATTERN",
        nargs="+",
        help="such as 'prx.lifecycle.*'; '*' alone (in quotes) shows everything",
    )
    parser.add_argument("--count", type=whole(1), metavar="N", help="end after N events")
    parser.add_argument(
        "--timeout",
        type=duration(),
        metavar="S",
        help="end after S seconds; exit code 5 when --count was not reached by then",
    )
    parser.add_argument(
        "--last", action="store_true", help="begin with the last retained value of each topic"
    )
    parser.add_argument(
        "--wait", type=duration(0), default=0.0, metavar="S", help="wait S seconds for a bus to appear"
    )
    parser.add_argument(
        "--ready", action="store_true", help="say on standard error when no event can be missed any more"
    )
    add_json(parser, "each event")


def run(options: argparse.Namespace) -> int:
    """Print events until told to end."""
    shown = _as_json if options.json else _as_lines()
    losses = Losses()
    left = options.count
    with Subscriber(
        options.patterns,
        name="prxbus-tap",
        last=options.last,
        wait=options.wait,
        runtime_dir=options.runtime_dir,
    ) as events:
        if options.ready:
            note("tap", "ready", as_json=options.json, code="ready")
        deadline = None if options.timeout is None else time.monotonic() + options.timeout
        while True:
            wait = SLICE_SECONDS if deadline is None else min(SLICE_SECONDS, deadline - time.monotonic())
            batch = events.batch(BATCH_EVENTS if left is None else min(BATCH_EVENTS, left), max(0.0, wait))
            if batch:
                emit_bytes(shown(batch))
            elif reader_is_gone():
                raise BrokenPipeError
            for loss in losses.news(events.stats):
                note("tap", loss.text, as_json=options.json, code=loss.code, **loss.fields)
            if left is not None:
                left -= len(batch)
                if left == 0:
                    return DONE
            if deadline is not None and time.monotonic() >= deadline:
                return DONE if left is None else _timed_out(options, options.count - left)


def _timed_out(options: argparse.Namespace, shown: int) -> int:
    """Say how far it came; the exit code."""
    text = f"timed out after {options.timeout:g} s with {shown:,} of {plural(options.count, 'event')}"
    note("tap", text, as_json=options.json, code="timeout", count=shown)
    return TIMED_OUT


def _as_json(events: list[Event]) -> bytes:
    return b"".join(terminal_safe(json_line(event)) for event in events)


def json_line(event: Event) -> bytes:
    """``event`` as one line of JSON, its payload with the numbers as they were written."""
    shown = describe(event)
    if "payload" in shown:  # it is JSON, so a line end in it stands between tokens
        flat = event.payload_bytes.replace(b"\n", b" ").replace(b"\r", b" ")
        shown["payload"] = orjson.Fragment(flat)
    return orjson.dumps(shown) + b"\n"


def _as_lines() -> Callable[[list[Event]], bytes]:
    terminal = is_terminal(sys.stdout)
    colour = in_colour(sys.stdout, os.environ)
    lines = EventLines(columns(os.environ) if terminal else None, colour=colour)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"

    def show(events: list[Event]) -> bytes:
        text = "".join(f"{lines.line(event)}\n" for event in events)
        return text.encode(encoding, "backslashreplace")

    return show
