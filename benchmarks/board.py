"""Counters that the processes of one run share: who has received how much, and whether the run is over.

Decides the layout of the shared page. Refuses to know sockets, payloads and time. A plain anonymous
mapping, inherited by fork, because a counter that travels over a socket would be traffic of the thing that
is being measured.
"""

from __future__ import annotations

import mmap

_WORD = 8
_STRIDE = 8  # words: one cache line each, so that subscribers on two cores do not fight for one line


class Board:
    """One 64-bit counter per subscriber and one flag for everybody. Create it before the roles are forked."""

    def __init__(self, subscribers: int) -> None:
        self.subscribers = subscribers
        self._words = memoryview(mmap.mmap(-1, (subscribers + 1) * _STRIDE * _WORD)).cast("Q")

    @property
    def done(self) -> bool:
        """True once the run is over and every role should end."""
        return self._words[0] != 0

    def finish(self) -> None:
        """Tell every role to end."""
        self._words[0] = 1

    def count(self, subscriber: int) -> int:
        """How many events subscriber number `subscriber` has received, warm-up included."""
        return self._words[(subscriber + 1) * _STRIDE]

    def tally(self, subscriber: int) -> Tally:
        """The view that one subscriber writes to."""
        return Tally(self, self._words, (subscriber + 1) * _STRIDE)


class Tally:
    """What a subscriber sees of the board: its own counter, and the end of the run."""

    __slots__ = ("_board", "_index", "_words", "total")

    def __init__(self, board: Board, words: memoryview, index: int) -> None:
        self._board = board
        self._words = words
        self._index = index
        self.total = 0

    def add(self, events: int) -> None:
        """Count `events` more received events, visible to the publisher at once."""
        self.total += events
        self._words[self._index] = self.total

    @property
    def done(self) -> bool:
        """True once the run is over. Reading it is a look at memory, cheap enough for every event."""
        return self._words[0] != 0
