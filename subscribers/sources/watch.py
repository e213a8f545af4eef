"""Says when a file may have changed and has come to rest.

The folder is watched, not the file, so an editor that writes a temporary file and renames it is seen.
Besides, the file is looked at twice a second: this finds what no notification tells, such as an edit behind
a symbolic link, on a network file system, or in a folder that was replaced. Where the kernel gives no
notifications the look alone remains, four times a second. A change is reported once the file has stood
still, at the latest after two seconds. It refuses to read the file and to know whether the change matters.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Final, Literal

from .discover import Signature, signature

SETTLE_S: Final = 0.1
"""A file that did not change for so long is whole."""
GONE_S: Final = 0.3
"""A file that is away for so long was deleted; editors put it back sooner."""
UNSETTLED_S: Final = 2.0
"""A file that never stands still is reported after so long."""
LOOK_S: Final = 0.5
"""Seconds between looks beside notifications."""
POLL_S: Final = 0.25
"""Seconds between looks without notifications."""

_STEP_MS: Final = 100
_STOP_S: Final = 5.0


class Rest:
    """Decides whether a file has come to rest, from one look after another.

    Wait ``pause`` seconds before each :meth:`look`. Pure: it does not wait itself.
    """

    def __init__(self, first: Signature) -> None:
        self.seen = first
        self._waited = 0.0

    @property
    def pause(self) -> float:
        """Seconds without a change that show rest; more for a file that is away: editors put it back."""
        return GONE_S if self.seen is None else SETTLE_S

    def look(self, now: Signature) -> bool:
        """Whether the file is at rest after this look, or has moved for so long that it counts as such."""
        self._waited += self.pause
        is_same = now == self.seen
        self.seen = now
        return is_same or self._waited >= UNSETTLED_S


class WatchThread(ABC):
    """A thread that watches until it is stopped: ``_watch``, which is to look at ``_stop`` often."""

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def start(self) -> None:
        """Begin to watch; once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching and wait for the thread: after this there is no further call. Not from a callback."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_S)

    @abstractmethod
    def _watch(self) -> None:
        """Watch; ends soon after ``_stop`` is set."""

    def _rested(self, look: Callable[[], Signature]) -> Rest | None:
        """Wait until what ``look`` gives has come to rest; None when it is stopped before."""
        rest = Rest(look())
        while not self._stop.wait(rest.pause):
            if rest.look(look()):
                return rest
        return None


class FileWatcher(WatchThread):
    """Watches one path in a thread of its own, whether a file is there or not.

    ``on_settled`` is called in that thread after each change; ``on_error`` gets what it raises, and watching
    goes on. A change between construction and :meth:`start` is reported too. ``notify`` False: look only.
    """

    def __init__(
        self,
        path: str,
        on_settled: Callable[[], None],
        on_error: Callable[[Exception], None],
        *,
        notify: bool = True,
    ) -> None:
        self._folder, self._name = os.path.split(os.path.abspath(path))
        self._path = os.path.join(self._folder, self._name)
        self._on_settled = on_settled
        self._on_error = on_error
        super().__init__(f"watch {self._name}")
        self._seen = signature(self._path)
        self.mode: Literal["notify", "look"] = "notify" if notify else "look"

    def _watch(self) -> None:
        for named in self._wakes():
            if named or signature(self._path) != self._seen:
                self._settle()

    def _wakes(self) -> Iterator[bool]:
        """Wake up until stopped; true when a notification named the file."""
        if self.mode == "notify":
            try:
                yield from self._notifications()
            except (OSError, RuntimeError):  # no such folder, no room for another watch, a broken watch
                self.mode = "look"
        while not self._stop.wait(POLL_S):
            yield False

    def _notifications(self) -> Iterator[bool]:
        from watchfiles import watch  # 90 ms of imports, paid in this thread

        changes = watch(
            self._folder,
            watch_filter=lambda _, path: os.path.basename(path) == self._name,
            step=_STEP_MS,
            debounce=2 * _STEP_MS,
            rust_timeout=int(LOOK_S * 1_000),
            yield_on_timeout=True,
            stop_event=self._stop,
            raise_interrupt=False,
            recursive=False,
        )
        for named in changes:
            yield bool(named)

    def _settle(self) -> None:
        rest = self._rested(lambda: signature(self._path))
        if rest is not None:
            self._seen = rest.seen
            self._report()

    def _report(self) -> None:
        try:
            self._on_settled()
        except Exception as error:
            self._on_error(error)
