"""``prxbus top``: rates, subscribers, deciders and hooks, live.

It is an ordinary subscriber of everything, and asks the broker for its status at each interval. A thread
reads events, so that drawing never makes this view lag. What is shown is :mod:`.top_view`'s.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ..client.subscriber import Subscriber
from ..client.tool import Tool
from ..protocol.errors import BusError, ClosedError
from .exits import DONE, UsageError
from .options import add_json, duration
from .printing import emit, emit_json
from .terminal import in_colour, is_terminal
from .top_view import View, Watch

QUIT: Final = b"qQ"
"""Keys that end the live view."""

SLICE_SECONDS: Final = 0.25

Show = Callable[[View], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``top``."""
    parser.add_argument(
        "--interval",
        type=duration(0.1),
        default=1.0,
        metavar="S",
        help="seconds between two views (default 1)",
    )
    parser.add_argument("--once", action="store_true", help="print one view after one interval, and end")
    add_json(parser, "each view")


def run(options: argparse.Namespace) -> int:
    """Watch until q or Ctrl-C, or once."""
    if not (options.once or options.json or is_terminal(sys.stdout)):
        raise UsageError("the live view needs a terminal; --once prints one view, --json one line for each")
    live = not (options.once or options.json) and is_terminal(sys.stdin)
    with _display(options) as show, _watching(options) as watch:
        while True:
            if _quit_within(options.interval, keys=live):
                return DONE
            show(watch())
            if options.once:
                return DONE


@contextmanager
def _watching(options: argparse.Namespace) -> Iterator[Callable[[], View]]:
    """Connected to the bus; yields a function that asks the broker and returns the view of now."""
    lock = threading.Lock()
    with Subscriber("*", name="prxbus-top", runtime_dir=options.runtime_dir) as events:
        watch = Watch(time.monotonic())

        def read() -> None:
            with suppress(ClosedError):
                while not events.closed:
                    batch = events.batch(timeout=SLICE_SECONDS)
                    with lock:
                        watch.events(batch, events.stats["missed"])

        def ask() -> None:
            status, problem = _status(options)
            with lock:
                watch.report(status, time.monotonic(), problem)

        def look() -> View:
            ask()
            with lock:
                return watch.view(time.monotonic())

        reader = threading.Thread(target=read, name="prxbus-top")
        reader.start()
        try:
            ask()
            yield look
        finally:
            events.close()
            reader.join()


def _status(options: argparse.Namespace) -> tuple[dict[str, object] | None, str | None]:
    """The broker's status, or why there is none. A new connection each time survives any restart."""
    try:
        with Tool("prxbus-top", runtime_dir=options.runtime_dir, timeout=2.0) as tool:
            return tool.request("status").body["status"], None
    except BusError as error:
        return None, str(error)


@contextmanager
def _display(options: argparse.Namespace) -> Iterator[Show]:
    """Where views go: lines of JSON, one print, or the live screen."""
    if options.json:
        yield lambda view: emit_json(_as_json(view))
        return
    from rich.console import Console
    from rich.live import Live

    from .top_screen import screen

    # Without a colour system there is no bold and no dim either, which NO_COLOR alone would leave.
    console = Console(color_system="auto" if in_colour(sys.stdout, os.environ) else None)
    if options.once:

        def once(view: View) -> None:
            with console.capture() as drawn:
                console.print(screen(view, console.width, 10_000))
            emit("\n".join(line.rstrip() for line in drawn.get().splitlines()))

        yield once
        return
    with Live(console=console, screen=True, auto_refresh=False) as live, _keys():
        yield lambda view: live.update(screen(view, *console.size), refresh=True)


@contextmanager
def _keys() -> Iterator[None]:
    """Keys come one by one and unseen while it lasts, if standard input is a terminal."""
    if not is_terminal(sys.stdin):
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(0)
    tty.setcbreak(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _quit_within(seconds: float, *, keys: bool) -> bool:
    """Wait for ``seconds``; true at once when one of the ``keys`` says to quit."""
    deadline = time.monotonic() + seconds
    watched = [0] if keys else []
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select(watched, [], [], left)
        if ready:
            pressed = os.read(0, 64)
            if set(pressed) & set(QUIT):
                return True
            if not pressed:
                watched = []
    return False


def _as_json(view: View) -> dict[str, object]:
    shown: dict[str, object] = view._asdict()
    for part in ("topics", "subscribers", "deciders", "hooks"):
        shown[part] = [row._asdict() for row in getattr(view, part)]
    return shown
