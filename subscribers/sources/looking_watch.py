"""Says when something that can be looked at has changed and has come to rest.

It looks twice a second, in a thread of its own; it needs no notifications, so that links and network file
systems make no difference. It refuses to know what it looks at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from .discover import Signature
from .watch import LOOK_S, Rest

_STOP_S = 5.0


class LookingWatcher:
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
        self._look = look
        self._on_settled = on_settled
        self._on_error = on_error
        self._stop = threading.Event()
        self._seen = look()
        self._thread = threading.Thread(target=self._run, name="watch hooks", daemon=True)

    def start(self) -> None:
        """Begin to watch; once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching and wait for the thread: after this there is no further call. Not from a callback."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            try:
                if self._look() != self._seen:
                    self._settle()
            except Exception as error:
                self._on_error(error)

    def _settle(self) -> None:
        rest = Rest(self._look())
        while not self._stop.wait(rest.pause):
            if rest.look(self._look()):
                self._seen = rest.seen
                self._on_settled()
                return
