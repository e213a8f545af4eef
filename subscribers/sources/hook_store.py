"""The hooks of one ``hooks.json`` as things that programs list, add, change and delete.

It decides the order of an edit: lock, read, recognise, change the text, judge it, replace the file, keep the
ledger; an edit that meets somebody's save begins again with what was saved. Reading never writes the file.
What an edit makes of the text is :mod:`subscribers.dialects.prx_edit`'s, which hook is which
:mod:`subscribers.dialects.prx_ids`'s. Everything here blocks, never for long.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from broker.logs import get_logger

from ..dialects import prx
from ..dialects.prx_edit import (
    EMPTY,
    Action,
    At,
    EditRefused,
    Fault,
    FileRefused,
    add_action,
    check_action,
    check_file,
    check_room,
    check_size,
    fits,
    read_actions,
    remove_action,
    replace_action,
    set_fields,
    spec_of,
)
from ..dialects.prx_ids import Known, Ledger, identify
from ..hooks.diagnostics import Diagnostic
from ..hooks.spec import HookSpec
from . import discover, resolve
from .hook_source import Absent, Unreadable
from .hook_store_files import GuardedFile, StoreBusy
from .hook_store_state import StateFile
from .hook_store_values import (
    ABSENT,
    TOO_LARGE,
    FileBroken,
    Hook,
    HookMissing,
    Snapshot,
    StaleEdit,
    StoreUnusable,
    expect,
    file_etag,
    hook_of,
)

__all__ = [
    "EditRefused",
    "FileBroken",
    "FileRefused",
    "Hook",
    "HookMissing",
    "HookStore",
    "Snapshot",
    "StaleEdit",
    "StoreBusy",
    "StoreUnusable",
]

TRIES: Final = 5
"""How often an edit begins again because somebody saved the file meanwhile."""

log = get_logger("subscribers.hook_store")


class _Current(NamedTuple):
    """The file as an edit finds it: its text, its actions and who they are."""

    text: bytes
    actions: list[Action]
    ledger: Ledger
    etag: str

    def find(self, name: str) -> tuple[Action, Known]:
        for action, known in zip(self.actions, self.ledger.hooks, strict=True):
            if known.id == name:
                return action, known
        raise HookMissing(f"there is no hook {name!r}")

    def unsaid(self) -> dict[At, dict[str, Any]]:
        """What the file does not say yet of its hooks' ids and times."""
        found = {}
        for action, known in zip(self.actions, self.ledger.hooks, strict=True):
            kept = {"id": known.id, "created_at": known.created_at, "updated_at": known.updated_at}
            missing = {name: value for name, value in kept.items() if action.content.get(name) != value}
            if missing:
                found[action.at] = missing
        return found


class _Edited(NamedTuple):
    """What an edit makes of the file: its text, the hook that it was about, and who was there before."""

    text: bytes
    name: str
    before: Ledger


class HookStore:
    """The hooks of ``workspace``. Thread-safe, and safe beside other programs that edit the same file.

    ``state_folder`` is where ids that are not in the file are kept; ``now`` gives seconds since the epoch.
    """

    def __init__(
        self,
        workspace: str,
        state_folder: str,
        prxbus_folder: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.workspace = os.path.abspath(workspace)
        self.path = discover.hook_file(workspace, prx)
        self._prxbus_folder = prxbus_folder
        self._now = now
        self._file = GuardedFile(self.path)
        self._state = StateFile(state_folder, self.path)
        self._seen: Snapshot | None = None
        self._last, self._is_kept = Ledger(), True
        self._seen_lock = threading.Lock()

    # -- reading ------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """All hooks. Raises FileBroken for a file that cannot be edited, StoreUnusable and StoreBusy."""
        text = self._read()
        with self._seen_lock:
            if self._seen is not None and self._seen.etag == file_etag(text):
                return self._seen
        return self._look()[1]

    def get(self, name: str) -> Hook:
        """One hook. Raises HookMissing and what :meth:`snapshot` raises."""
        for hook in self.snapshot().hooks:
            if hook.id == name:
                return hook
        raise HookMissing(f"there is no hook {name!r}")

    def spec(self, name: str) -> tuple[Hook, HookSpec]:
        """A hook and what the runtime makes of it, disabled or not.

        Raises EditRefused where the runtime would not run it, HookMissing and what :meth:`snapshot` raises.
        """
        current, _ = self._look()
        action, known = current.find(name)
        return hook_of(action, known), self._resolvable(spec_of(current.text, action))

    # -- editing ------------------------------------------------------------------------------

    def create(
        self, event: str, action: Mapping[str, Any], enabled: bool, expected: Collection[str] | None = None
    ) -> Hook:
        """Add a hook. ``expected``: entity tags of which the file must have one.

        Every edit raises EditRefused for what the runtime would refuse, StaleEdit, FileBroken,
        StoreUnusable and StoreBusy; the file is then what it was.
        """
        action = _without_nulls(action)
        spec = self._checked(event, action)

        def edit(current: _Current) -> _Edited:
            expect(expected, current.etag)
            number, name = current.ledger.next, f"hook_{current.ledger.next:02d}"
            now = self._moment()
            kept = {"enabled": enabled, "created_at": now, "updated_at": now}
            text = set_fields(current.text, current.unsaid())
            text = add_action(text, spec.event, {"id": name, **action, **kept})
            check_room(text)
            return _Edited(text, name, current.ledger._replace(next=number + 1))

        return self._edit_one(edit)

    def replace(
        self,
        name: str,
        event: str,
        action: Mapping[str, Any],
        enabled: bool,
        expected: Collection[str] | None = None,
    ) -> Hook:
        """Replace what a hook does; keys that are not documented stay. Raises HookMissing too.

        ``expected``: entity tags of which the hook or the file must have one.
        """
        action = _without_nulls(action)
        spec = self._checked(event, action)

        def edit(current: _Current) -> _Edited:
            found, known = current.find(name)
            expect(expected, current.etag, hook_of(found, known).etag)
            unsaid = current.unsaid()
            fields = {**unsaid.pop(found.at, {}), "updated_at": self._moment()}
            if enabled is not found.content.get("enabled", True):
                fields["enabled"] = enabled
            text = set_fields(current.text, unsaid)
            text = replace_action(text, found, spec.event, action, fields)
            check_room(text)
            return _Edited(text, name, current.ledger)

        return self._edit_one(edit)

    def toggle(self, name: str, expected: Collection[str] | None = None) -> Hook:
        """Enable a disabled hook, disable an enabled one. Raises HookMissing too."""

        def edit(current: _Current) -> _Edited:
            found, known = current.find(name)
            expect(expected, current.etag, hook_of(found, known).etag)
            unsaid = current.unsaid()
            change = {"enabled": not found.enabled, "updated_at": self._moment()}
            own = {found.at: {**unsaid.get(found.at, {}), **change}}
            text = set_fields(current.text, {**unsaid, **own})
            if not fits(text):  # the ledger alone knows the others, as before
                text = set_fields(current.text, own)
            return _Edited(text, name, current.ledger)

        return self._edit_one(edit)

    def delete(self, name: str, expected: Collection[str] | None = None) -> None:
        """Delete a hook; its id is not given again. Raises HookMissing too."""

        def edit(current: _Current) -> _Edited:
            found, known = current.find(name)
            expect(expected, current.etag, hook_of(found, known).etag)
            text = remove_action(set_fields(current.text, current.unsaid()), found.at)
            if not fits(text):  # what is to make room is never refused for want of it
                text = remove_action(current.text, found.at)
            others = tuple(other for other in current.ledger.hooks if other is not known)
            return _Edited(text, name, current.ledger._replace(hooks=others))

        self._edit(edit)

    def replace_file(
        self, text: bytes, expected: Collection[str] | None = None
    ) -> tuple[Snapshot, str | None]:
        """Replace the whole file, also a broken one, of which a copy is kept; returns the path of that copy.

        ``text`` is a ``hooks.json`` in which nothing may be refused. Ids and times are put into it.
        """
        check_file(text)
        actions = read_actions(text)
        for action in actions:
            self._checked(action.event, action.documented)
        with self._locked():
            for _ in range(TRIES):
                signature = discover.signature(self.path)
                tag, is_broken = self._condition()
                expect(expected, tag)
                ledger = identify(actions, self._known(), self._moment())
                new = _Current(text, actions, ledger, "")
                whole = set_fields(text, new.unsaid())
                check_room(whole)
                written = read_actions(whole)
                copy = self._file.keep_copy("broken") if is_broken else None
                is_done = False
                try:
                    is_done = self._file.replace(whole, signature)
                finally:
                    if copy is not None and not is_done:
                        with suppress(OSError):
                            os.unlink(copy)
                if is_done:
                    self._keep(ledger)
                    return self._remember(written, ledger, file_etag(whole)), copy
        raise StoreBusy(f"{self.path} is saved all the time by another program; nothing was changed")

    # -- parts --------------------------------------------------------------------------------

    def _look(self) -> tuple[_Current, Snapshot]:
        """The file as it is now, and what is kept of it."""
        with self._recognising():
            current = self._current()
            if current.etag != ABSENT:  # a file that is away for a moment takes no ids with it
                self._keep(current.ledger)
            return current, self._remember(current.actions, current.ledger, current.etag)

    def _edit_one(self, edit: Callable[[_Current], _Edited]) -> Hook:
        snapshot, name = self._edit(edit)
        return next(hook for hook in snapshot.hooks if hook.id == name)

    def _edit(self, edit: Callable[[_Current], _Edited]) -> tuple[Snapshot, str]:
        """Carry out an edit. What it makes of the file can be read again, or nothing is written."""
        with self._locked():
            for _ in range(TRIES):
                signature = discover.signature(self.path)
                current = self._current()
                text, name, before = edit(current)
                check_size(text)
                actions = read_actions(text)
                ledger = identify(actions, before, self._moment())
                if self._file.replace(text, signature):
                    self._keep(ledger)
                    return self._remember(actions, ledger, file_etag(text)), name
        raise StoreBusy(f"{self.path} is saved all the time by another program; nothing was changed")

    def _checked(self, event: str, action: Mapping[str, Any]) -> HookSpec:
        return self._resolvable(check_action(event, action))

    def _resolvable(self, spec: HookSpec) -> HookSpec:
        """The spec, if its program is where it says. Raises EditRefused."""
        found = resolve.resolve(spec, self.workspace, self._prxbus_folder)
        if isinstance(found, resolve.Unresolved) and resolve.SEVERITIES[found.code] == "error":
            raise EditRefused([Fault(f"action.{found.field}", found.code, found.message, found.hint)])
        return spec

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone with the file and the ledger."""
        try:
            with self._file.locked(), self._recognising():
                yield
        except OSError as error:
            message = f"{self.path} cannot be edited: {error.strerror or error}"
            raise StoreUnusable("unwritable", message, _hint(error)) from None

    @contextmanager
    def _recognising(self) -> Iterator[None]:
        """Alone with the ledger, if there is a place for one; nothing of the workspace is touched."""
        with ExitStack() as held:
            try:
                held.enter_context(self._state.locked())
            except OSError as error:
                log.warning("the ids of hooks cannot be kept", path=self._state.path, error=str(error))
            yield

    def _read(self) -> bytes | None:
        """The text of the file; None without one."""
        reading = discover.read(self.path, prx.MAX_FILE_BYTES)
        if isinstance(reading, Absent):
            return None
        if isinstance(reading, Unreadable):
            if reading.code == "file_too_large":
                found = (reading.code, prx.FILE_NAME, None, None, None, reading.message, reading.hint)
                raise FileBroken([Diagnostic("error", *found)], TOO_LARGE)
            raise StoreUnusable(reading.code, f"{self.path}: {reading.message}", reading.hint)
        return reading.text

    def _current(self) -> _Current:
        text = self._read()
        try:
            actions = [] if text is None else read_actions(text)
        except FileRefused as error:
            raise FileBroken(error.diagnostics, file_etag(text)) from None
        ledger = self._known()
        ledger = ledger._replace(hooks=()) if text is None else identify(actions, ledger, self._saved_at())
        return _Current(EMPTY if text is None else text, actions, ledger, file_etag(text))

    def _known(self) -> Ledger:
        """What was kept; where that is lost or could not be written, what this process knows itself."""
        kept = self._state.load()
        with self._seen_lock:
            last, is_kept = self._last, self._is_kept
        found = kept if is_kept and kept != Ledger() else last
        return found._replace(next=max(kept.next, last.next))

    def _keep(self, ledger: Ledger) -> None:
        """Keep what is new of the ledger. Where it cannot be written, ids hold as long as this process."""
        is_kept = True
        try:
            if self._state.load() != ledger:
                self._state.save(ledger)
        except OSError as error:
            is_kept = False
            log.warning("the ids of hooks could not be kept", path=self._state.path, error=str(error))
        with self._seen_lock:
            self._last = ledger._replace(next=max(ledger.next, self._last.next))
            self._is_kept = is_kept

    def _condition(self) -> tuple[str, bool]:
        """The entity tag of the file, and whether it is one that cannot be edited."""
        try:
            text = self._read()
        except FileBroken as error:
            return error.etag, True
        try:
            read_actions(EMPTY if text is None else text)
        except FileRefused:
            return file_etag(text), True
        return file_etag(text), False

    def _remember(self, actions: list[Action], ledger: Ledger, etag: str) -> Snapshot:
        hooks = tuple(hook_of(action, known) for action, known in zip(actions, ledger.hooks, strict=True))
        snapshot = Snapshot(hooks, etag)
        with self._seen_lock:
            self._seen = snapshot
        return snapshot

    def _moment(self) -> str:
        return _rfc3339(self._now())

    def _saved_at(self) -> str:
        try:
            return _rfc3339(os.stat(self.path).st_mtime)
        except (OSError, ValueError, OverflowError):
            return self._moment()


def _without_nulls(action: Mapping[str, Any]) -> dict[str, Any]:
    """Null is the same as absent."""
    return {name: value for name, value in action.items() if value is not None}


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _hint(error: OSError) -> str | None:
    return "let this user write there" if isinstance(error, PermissionError) else None
