"""Says when there may be something new among the handlers: a file was edited, added or deleted.

It looks twice a second, at the places where units are found and at every file that a worker has said it read,
and tells of a change once it has come to rest. Refuses to know what is done about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .discover import Signature
from .handlers import Found, digest, find, first_file, looks
from .watch import LOOK_S, WatchThread


class HandlersWatch(WatchThread):
    """Follows units and their files.

    ``on_change`` is called in the watch's thread. Thread-safe.
    """

    def __init__(
        self,
        workspace: str | None,
        named: Sequence[str],
        on_change: Callable[[], None],
        *,
        installed: bool,
    ) -> None:
        self._workspace = workspace
        self._named = tuple(named)
        self._installed = installed
        self._on_change = on_change
        self._files: dict[str, tuple[str, ...]] = {}
        self._seen = self._snapshot()
        super().__init__("watch handlers")

    def find(self) -> Found:
        """Every unit that there is now."""
        return find(self._workspace, self._named, installed=self._installed)

    def follow(self, unit: str, files: Iterable[str]) -> None:
        """Have these files looked at, too, for the unit of that name: it was loaded from them."""
        self._files[unit] = tuple(files)

    def forget(self, unit: str) -> None:
        """The unit is gone."""
        self._files.pop(unit, None)

    def digest_of(self, unit: str, first: str | None) -> str:
        """Of everything that the unit was loaded from, as far as that is known."""
        files = self._files.get(unit, ())
        return digest(files if first is None else (*files, first))

    def _snapshot(self) -> Signature:
        """Everything that matters, from outside, as one number."""
        found = find(self._workspace, self._named, installed=False)  # what is installed does not change
        files = {file for unit in found.units if (file := first_file(unit)) is not None}
        files.update(file for known in tuple(self._files.values()) for file in known)
        return (hash((found, looks(files))),)

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_S):
            if self._snapshot() != self._seen:
                rest = self._rested(self._snapshot)
                if rest is not None:
                    self._seen = rest.seen
                    self._on_change()
