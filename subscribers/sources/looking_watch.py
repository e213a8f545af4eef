"""Says when something that can be looked at has changed and has come to rest.

It looks twice a second, in a thread of its own; it needs no notifications, so that links and network file
systems make no difference. It refuses to know what it looks at.
"""

from __future__ import annotations

from collections.abc import Callable

from .discover import Signature
from .watch import LOOK_S, WatchThread


class LookingWatcher(WatchThread):
    """Calls ``on_settled`` in its thread after each change of what ``look`` gives.

    A change between construction and :meth:`start` is reported too. ``on_error`` gets what either raises, and
    watching goes on.
    """

    def __init__(
        self,
        look: Callable[[], Signature],
        on_settled: Callable[[], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        super().__init__("watch hooks")
        self._look = look
        self._on_settled = on_settled
        self._on_error = on_error
        self._seen = look()

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_S):
            try:
                if self._look() != self._seen:
                    self._settle()
            except Exception as error:
                self._on_error(error)

    def _settle(self) -> None:
        rest = self._rested(self._look)
        if rest is not None:
            self._seen = rest.seen
            self._on_settled()
