"""Events as lines for people: one line each, aligned, cut to the terminal.

    12:34:56.789  prx.lifecycle.tool_call  s1  my-agent  {"tool":"Bash","success":true}

Decides the columns and their colours. Knows no terminal: its width and whether it has colours are
arguments. Text of an event is shown with its control characters escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any, Final, NamedTuple

from ..protocol.errors import BusError
from ..protocol.events import Event
from .run_lines import TOPICS, run_text
from .terminal import cut, cut_front, paint, printable, width

GAP: Final = "  "
NOTHING: Final = "-"

TOPIC_COLUMNS: Final = 48
NAME_COLUMNS: Final = 24
"""Widest that the columns of topics and of names (sessions, sources) grow, where there is room."""

TOPIC_SHARE: Final = 0.3
NAME_SHARE: Final = 0.12
"""Parts of a terminal's width that those columns grow to at most."""

NARROW: Final = 60
"""Below so many columns the source gives way to the payload, and so do the milliseconds."""


BAD_ENDINGS: Final = ("error", "failed", "failure", "denied", "dead_letter")
"""Last segments of a topic that tell of something that went wrong."""


class Part(NamedTuple):
    """A piece of a line: printable text, its styles, and the columns that it fills at least."""

    text: str
    styles: tuple[str, ...] = ()
    filled: int = 0


class EventLines:
    """Formats events; a column grows with what has been seen in it, up to its share of the width.

    ``columns`` is the width of the terminal, None for lines that are not cut. ``zone`` is the time
    zone of the clock times shown, None for the local one.
    """

    def __init__(self, columns: int | None, *, colour: bool, zone: tzinfo | None = None) -> None:
        self._columns = columns
        self._narrow = columns is not None and columns < NARROW
        self._colour = colour
        self._zone = zone
        self._widths = {"topic": 0, "session": 0, "source": 0}

    def line(self, event: Event) -> str:
        """``event`` as one line without its end, never wider than the terminal."""
        told = _report(event)
        moment = clock(event.time, self._zone)
        parts = [Part(moment[:-4] if self._narrow else moment, ("dim",))]
        parts += self._columns_of(event, alone=told is not None and self._columns is not None)
        if event.depth:
            parts.append(Part(f"depth {event.depth}", ("magenta",)))
        room = None
        if self._columns is not None:
            used = sum(max(part.filled, width(part.text)) + len(GAP) for part in parts)
            room = max(0, self._columns - used)
        text = None if told is None else run_text(told, room)
        parts.append(Part(payload_text(event, room) if text is None else text))
        return self._joined(parts)

    def _columns_of(self, event: Event, *, alone: bool) -> Iterator[Part]:
        """Topic, session and source; of a report that needs the width for itself the topic ``alone``."""
        bad = event.topic.rpartition(".")[2] in BAD_ENDINGS
        yield self._column("topic", event.topic, ("red" if bad else "cyan", "bold"), fill=not alone)
        if not alone:
            yield self._column("session", event.session_id or NOTHING, ("yellow",))
        if not alone and not self._narrow:
            yield self._column("source", event.source or NOTHING, ("green",))

    def _column(self, name: str, text: str, styles: tuple[str, ...], *, fill: bool = True) -> Part:
        shown = printable(text)
        most, share = (TOPIC_COLUMNS, TOPIC_SHARE) if name == "topic" else (NAME_COLUMNS, NAME_SHARE)
        if self._columns is not None:
            most = min(most, max(1, int(self._columns * share)))
            shown = cut_front(shown, most) if name == "topic" else cut(shown, most)
        if not fill:
            return Part(shown, styles)
        self._widths[name] = max(self._widths[name], min(width(shown), most))
        return Part(shown, styles, self._widths[name])

    def _joined(self, parts: Iterable[Part]) -> str:
        """The parts beside one another, as far as the terminal goes."""
        line = ""
        used = 0
        for part in parts:
            gap = GAP if line else ""
            text = part.text
            filled = part.filled
            if self._columns is not None:
                left = self._columns - used - len(gap)
                text, filled = cut(text, left), min(filled, left)
            if not text:
                break
            taken = width(text)
            used += len(gap) + max(taken, filled)
            shown = paint(text, *part.styles) if self._colour and part.styles else text
            line += gap + shown + " " * (filled - taken)
        return line


def _report(event: Event) -> Mapping[str, Any] | None:
    """The payload of a report of a hook's run; None for any other event."""
    if event.topic not in TOPICS or event.claim is not None:
        return None
    try:
        return event.payload
    except BusError:
        return None


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
