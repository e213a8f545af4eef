"""Events as lines for people: one line each, aligned, cut to the terminal.

    12:34:56.789  prx.lifecycle.tool_call  s1  my-agent  {"tool":"Bash","success":true}

Decides the columns and their colours. Knows no terminal: its width and whether it has colours are
arguments. Text of an event is shown with its control characters escaped.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Final

from ..protocol.events import Event
from .terminal import cut, paint, printable, width

GAP: Final = "  "
NOTHING: Final = "-"

TOPIC_COLUMNS: Final = 48
NAME_COLUMNS: Final = 24
"""Widest that the columns of topics and of names (sessions, sources) grow."""

LEAST_PAYLOAD: Final = 20
"""Columns that the payload keeps on a narrow terminal; the line wraps then."""

BAD_ENDINGS: Final = ("error", "failed", "failure", "denied", "dead_letter")
"""Last segments of a topic that tell of something that went wrong."""


class EventLines:
    """Formats events; a column grows with what has been seen in it, up to its limit.

    ``columns`` is the width of the terminal, None for lines that are not cut. ``zone`` is the time
    zone of the clock times shown, None for the local one.
    """

    def __init__(self, columns: int | None, *, colour: bool, zone: tzinfo | None = None) -> None:
        self._columns = columns
        self._colour = colour
        self._zone = zone
        self._widths = {"topic": 0, "session": 0, "source": 0}

    def line(self, event: Event) -> str:
        """``event`` as one line without its end."""
        bad = event.topic.rpartition(".")[2] in BAD_ENDINGS
        parts = [
            self._painted(clock(event.time, self._zone), "dim"),
            self._column("topic", event.topic, TOPIC_COLUMNS, "red" if bad else "cyan", "bold"),
            self._column("session", event.session_id or NOTHING, NAME_COLUMNS, "yellow"),
            self._column("source", event.source or NOTHING, NAME_COLUMNS, "green"),
        ]
        used = len("12:34:56.789") + sum(self._widths.values()) + 4 * len(GAP)
        if event.depth:
            depth = f"depth {event.depth}"
            parts.append(self._painted(depth, "magenta"))
            used += len(depth) + len(GAP)
        room = None if self._columns is None else max(LEAST_PAYLOAD, self._columns - used)
        parts.append(payload_text(event, room))
        return GAP.join(parts)

    def _column(self, name: str, text: str, most: int, *styles: str) -> str:
        shown = printable(text) if self._columns is None else cut(printable(text), most)
        taken = width(shown)
        self._widths[name] = wide = max(self._widths[name], min(taken, most))
        return self._painted(shown, *styles) + " " * (wide - taken)

    def _painted(self, text: str, *styles: str) -> str:
        return paint(text, *styles) if self._colour else text


def clock(moment: datetime, zone: tzinfo | None) -> str:
    """The time of day of ``moment`` in ``zone`` (None: local), with milliseconds."""
    return moment.astimezone(zone).strftime("%H:%M:%S.%f")[:-3]


def payload_text(event: Event, columns: int | None) -> str:
    """The payload as one line of JSON; of one that travels by claim check, its size and its beginning."""
    claim = event.claim
    if claim is None:
        raw = event.payload_bytes
        mark = ""
    else:
        raw = claim.head
        mark = f"[{claim.size:,} bytes] "
    more = claim is not None
    if columns is not None:
        kept = raw[: 4 * columns]  # a character has at most four bytes: enough to fill the columns
        more = more or len(kept) < len(raw)
        raw = kept
    text = mark + printable(_one_line(raw.decode("utf-8", "ignore" if more else "replace")))
    if columns is None:
        return text + "…" * more
    return cut(text + "…" * more, columns)


def _one_line(text: str) -> str:
    """Without the line ends and indents of JSON that was written over several lines."""
    if "\n" not in text and "\r" not in text:
        return text
    return " ".join(line.strip() for line in text.splitlines())
