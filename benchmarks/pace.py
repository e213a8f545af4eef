"""When a publisher may send: flat out inside a closed window, or on a metronome.

Decides how many events go out next and when a run has ended; refuses to know how anything is sent. Every
contender is driven by the same pace, so that all of them are measured lossless and under the same
back-pressure.

The closed window: the publisher is never more than `window` events ahead of the slowest watched subscriber.
The rate is what every watched subscriber received, from the first send of the run to the last receipt.
Warm-up events come before it, because a subscription needs a handshake and a run without it would begin
with loss.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from .board import Board

END = -1
_WARM_UP_EVERY = 0.004  # seconds between warm-up events
_QUIET = 0.05  # seconds without a receipt after which the warm-up has drained
_WARM_UP_LIMIT = 20.0  # seconds until a contender that delivers nothing is given up
_STALL = (
    8.0  # seconds without a receipt after which what is missing counts as lost; a busy machine may starve us
)


class NothingArrives(RuntimeError):
    """No event of the warm-up reached every subscriber in time."""


class Pace(Protocol):
    """The publisher's instructions. `grant` is asked again and again until it answers END."""

    def grant(self) -> int:
        """Events to send now; 0 when there is nothing to send yet; END when the run is over."""

    def payload(self, template: bytes) -> bytes:
        """The payload to send for `template`, stamped if the pace needs it."""

    def rest(self) -> float:
        """Seconds to wait after a grant of 0."""

    @property
    def exact(self) -> bool:
        """True if `rest` must be kept to the microsecond (an asyncio timer rounds up to the next
        millisecond).
        """


def drive(pace: Pace, send: Callable[[bytes, int], None], template: bytes) -> None:
    """Run a publisher that is plain code: `send(payload, times)` publishes the payload that many times."""
    while (times := pace.grant()) != END:
        if times:
            send(pace.payload(template), times)
        else:
            time.sleep(pace.rest())


async def drive_async(pace: Pace, send: Callable[[bytes, int], Awaitable[None]], template: bytes) -> None:
    """The same for a publisher that lives on an event loop."""
    while (times := pace.grant()) != END:
        if times:
            await send(pace.payload(template), times)
        elif pace.exact:
            time.sleep(pace.rest())  # noqa: ASYNC251 - nothing else is due, and a timer would be late
        else:
            await asyncio.sleep(pace.rest())


class _WarmUp:
    """Sends single events until every subscriber has received one, then waits until the line is quiet."""

    def __init__(self, board: Board, watched: Sequence[int]) -> None:
        self._board = board
        self._watched = watched
        self._began = self._moved = time.monotonic()
        self._next = 0.0
        self._seen: list[int] = []
        self.counts: list[int] | None = None  # the counters at the end of the warm-up

    def grant(self) -> int:
        now = time.monotonic()
        counts = [self._board.count(i) for i in self._watched]
        if counts != self._seen:
            self._seen, self._moved = counts, now
        if not all(counts):
            if now - self._began > _WARM_UP_LIMIT:
                raise NothingArrives(
                    f"after {_WARM_UP_LIMIT:.0f} s the subscribers had {counts} warm-up events"
                )
            if now >= self._next:
                self._next = now + _WARM_UP_EVERY
                return 1
        elif now - self._moved > _QUIET:
            self.counts = counts
        return 0


class ClosedWindow:
    """Flat out for `seconds`, at most `window` events ahead of the slowest of the `watched` subscribers.

    The warm-up reaches the `warm` subscribers (default: the watched ones). `on_start` and `on_end` are
    called at the borders of the run proper, in the publisher's process.
    """

    exact = False

    def __init__(
        self,
        board: Board,
        watched: Sequence[int],
        window: int,
        seconds: float,
        *,
        warm: Sequence[int] | None = None,
        on_start: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
        settle: float = 0.0,
    ) -> None:
        self._board = board
        self._watched = watched
        self._window = window
        self._seconds = seconds
        self._chunk = max(1, window // 32)
        self._warm_up = _WarmUp(board, watched if warm is None else warm)
        self._on_start = on_start
        self._on_end = on_end
        self._settle = settle
        self._base: list[int] = []
        self._began = self._moved = self._ended = 0.0
        self._arrived = 0
        self._phase = self._warm
        self.sent = 0
        self.elapsed = 0.0
        self.lost = 0

    def grant(self) -> int:
        """See `Pace.grant`."""
        return self._phase()

    def payload(self, template: bytes) -> bytes:
        """The template itself: a throughput run sends the same bytes again and again."""
        return template

    def rest(self) -> float:
        """Long enough to leave the core to the others, short against the window."""
        return 0.0002

    def _warm(self) -> int:
        times = self._warm_up.grant()
        if self._warm_up.counts is None:
            return times
        self._base = [self._board.count(i) for i in self._watched]
        self._on_start()
        self._began = self._moved = time.monotonic()
        self._phase = self._run
        return 0

    def _slowest(self) -> int:
        return min(self._board.count(i) - base for i, base in zip(self._watched, self._base, strict=True))

    def _stalled(self, arrived: int, now: float) -> bool:
        if arrived != self._arrived:
            self._arrived, self._moved = arrived, now
        return now - self._moved > _STALL

    def _run(self) -> int:
        now = time.monotonic()
        arrived = self._slowest()
        if now - self._began >= self._seconds or self._stalled(arrived, now):
            self._phase = self._drain
            return 0
        room = min(self._chunk, self._window - (self.sent - arrived))
        if room <= 0:
            return 0
        self.sent += room
        return room

    def _drain(self) -> int:
        now = time.monotonic()
        arrived = self._slowest()
        if arrived >= self.sent or self._stalled(arrived, now):
            self.elapsed = (now if arrived >= self.sent else self._moved) - self._began
            self.lost = sum(
                max(0, self.sent - (self._board.count(i) - base))
                for i, base in zip(self._watched, self._base, strict=True)
            )
            self._on_end()
            self._ended = time.monotonic()
            self._phase = self._wind_down
        return 0

    def _wind_down(self) -> int:
        if time.monotonic() - self._ended < self._settle:
            return 0
        self._phase = self._over
        self._board.finish()
        return (
            1  # one event more, so that a subscriber that waits without a deadline wakes up and sees the end
        )

    def _over(self) -> int:
        return END


class Metronome:
    """`events` events, `rate` a second on absolute deadlines, each stamped with the monotonic clock."""

    exact = True

    def __init__(self, board: Board, watched: Sequence[int], rate: float, events: int) -> None:
        self._board = board
        self._watched = watched
        self._warm_up = _WarmUp(board, watched)
        self._period = 1.0 / rate
        self._events = events
        self._next = 0.0
        self._sent = 0

    @property
    def base(self) -> int:
        """How many events the first watched subscriber had received when the warm-up ended."""
        return (self._warm_up.counts or [0])[0]

    def grant(self) -> int:
        """See `Pace.grant`."""
        now = time.monotonic()
        if self._warm_up.counts is None:
            times = self._warm_up.grant()
            self._next = now + self._period
            return times
        if self._sent == self._events:
            return self._wind_down(now)
        if now < self._next:
            return 0
        self._next += self._period
        self._sent += 1
        return 1

    def _wind_down(self, now: float) -> int:
        """One event more when everything has arrived, to wake the subscribers up; they see the end then."""
        if self._board.done:
            return END
        base = self._warm_up.counts or []
        arrived = min(self._board.count(i) - start for i, start in zip(self._watched, base, strict=True))
        if arrived < self._events and now < self._next + _STALL:
            return 0
        self._board.finish()
        return 1

    def payload(self, template: bytes) -> bytes:
        """The template with the present moment in its stamp field."""
        return stamp(template, time.monotonic_ns())

    def rest(self) -> float:
        """Until the next deadline, at most a short while."""
        return max(0.0, min(self._next - time.monotonic(), 0.002)) if self._sent < self._events else 0.002


_STAMP_PREFIX = b'{"at":"'
_STAMP_DIGITS = 19


def stamp(template: bytes, now_ns: int) -> bytes:
    """Write `now_ns` into a JSON payload that begins with a string of 19 digits under the key "at"."""
    return b"%b%019d%b" % (_STAMP_PREFIX, now_ns, template[len(_STAMP_PREFIX) + _STAMP_DIGITS :])


def read_stamp(payload: bytes) -> int:
    """The nanoseconds that `stamp` wrote."""
    return int(payload[len(_STAMP_PREFIX) : len(_STAMP_PREFIX) + _STAMP_DIGITS])
