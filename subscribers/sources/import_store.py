"""A store of imported hooks: which ones are in force, and every change to them, whole or not at all.

    <store>/index.json                          what is imported; the only truth
    <store>/snapshots/<import>/<digest>/        hooks.json, and the scripts that were copied
    <store>/staging-<n>/                        being written

Decides the order of a change, under one lock: a snapshot is written aside and compared, renamed into place,
and only then does the index, replaced in one step, name it. Killed between any two steps a store is what it
was or what it was to become; what is left over is swept by the next change. Nothing of an agent's is touched.
It refuses to know how a plan is made.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, Literal, NamedTuple, TypeAlias

from ..hooks.diagnostics import Diagnostic
from .discover import Signature, read, signature
from .hook_source import Absent, Unreadable
from .hook_store_files import GuardedFile, StoreBusy
from .import_files import Contents, sync_folder, write_below
from .import_index import (
    INDEX_BYTES,
    MAX_IMPORTS,
    ImportRecord,
    Index,
    IndexCorrupt,
    Retired,
    read_index,
    write_index,
)
from .import_places import INDEX_NAME, ImportPlaces, Scope
from .import_snapshot import Snapshot

__all__ = [
    "EnabledImport",
    "EnabledImports",
    "ImportStore",
    "StoreBusy",
    "enabled_imports",
    "store_signature",
]

RETIRED_SECONDS: Final = 3_600.0
"""How long a snapshot outlives the update that replaced it: runs that captured it may still begin."""

RETIRED_KEPT: Final = 4
"""Replaced snapshots that are kept of one import."""

SNAPSHOTS_NAME: Final = "snapshots"
STAGING_PREFIX: Final = "staging-"
CORRUPT_NAME: Final = "index.json.corrupt"

Applied: TypeAlias = Literal["applied", "unchanged", "repaired"]
Step: TypeAlias = Callable[[str], None]
"""Called between the steps of a change with the name of the one just done."""


def no_step(_: str) -> None:
    """Nobody asks."""


class StoreCorrupt(Exception):
    """The index of a store cannot be believed; ``reset`` mends it. ``kept`` are the records that hold."""

    def __init__(self, path: str, reason: str, kept: tuple[ImportRecord, ...] = ()) -> None:
        super().__init__(f"{path} is corrupt: {reason}")
        self.reason = reason
        self.kept = kept


class StoreUnusable(Exception):
    """A store cannot be read or written at all."""


class ImportMissing(Exception):
    """There is no import of that id."""


class ImportDamaged(Exception):
    """An import's snapshot is not what was confirmed."""


class NothingToMend(Exception):
    """A store is in order: it is not reset."""


class EnabledImport(NamedTuple):
    """One import that is to run: ``path`` is its generated hook file, read by the rules of ``profile``.

    Ask ``snapshot.verify()`` before each run: None, or why nothing of it may run. ``damage`` is what it said
    when it was looked up.
    """

    id: str
    path: str
    profile: str
    scope: Scope
    source: str
    snapshot: Snapshot
    damage: str | None = None


class EnabledImports(NamedTuple):
    """The enabled imports of one scope in the order of their ids, and why others contribute nothing.

    ``damaged`` are those that run nothing as long as their snapshot is not what was confirmed.
    """

    imports: tuple[EnabledImport, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    damaged: tuple[EnabledImport, ...] = ()


class Mended(NamedTuple):
    """What a reset kept and what it took away, by id; ``copy``: where the corrupt index was put."""

    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    copy: str | None


def enabled_imports(scope: Scope, places: ImportPlaces) -> EnabledImports:
    """What runs of the imports of ``scope``: those that are enabled and whose snapshot is right.

    Raises nothing. An index that is corrupt switches its imports off, and only them.
    """
    folder = places.folder(scope)
    if folder is None:
        return EnabledImports()
    store = ImportStore(folder, scope)
    try:
        index = store.load()
    except (StoreCorrupt, StoreUnusable) as error:
        hint = f"mend it with: prxbus hooks reset {scope} --confirm"
        code = "import_store_corrupt" if isinstance(error, StoreCorrupt) else "import_store_unusable"
        return EnabledImports((), (_error(code, store.path, None, str(error), hint),))
    found: list[EnabledImport] = []
    damaged: list[EnabledImport] = []
    said: list[Diagnostic] = []
    for record in index.records:
        if not record.enabled:
            continue
        snapshot = store.snapshot(record)
        wrong = snapshot.verify()
        row = (record.id, snapshot.hooks_path, record.profile, scope, record.path, snapshot)
        if wrong is None:
            found.append(EnabledImport(*row))
        else:
            damaged.append(EnabledImport(*row, damage=wrong))
            hint = f"copy it again with: prxbus hooks update {record.id}"
            said.append(
                _error("import_damaged", snapshot.folder, record.id, f"nothing of it runs: {wrong}", hint)
            )
    return EnabledImports(tuple(found), tuple(said), tuple(damaged))


def store_signature(scope: Scope, places: ImportPlaces) -> Signature:
    """What the index of ``scope`` looks like from outside; another one: ask for the imports again."""
    folder = places.folder(scope)
    return None if folder is None else signature(os.path.join(folder, INDEX_NAME))


class ImportStore:
    """The store in ``folder``. Safe beside other programs that change the same one; every call may block.

    ``step`` is told what was just done, so that a test can end the process there.
    """

    def __init__(self, folder: str, scope: Scope, step: Step = no_step) -> None:
        self.folder = folder
        self.scope: Scope = scope
        self.path = os.path.join(folder, INDEX_NAME)
        self._guard = GuardedFile(self.path)
        self._step = step

    # -- reading ------------------------------------------------------------------------------

    def load(self) -> Index:
        """The index as it is now. Raises :class:`StoreCorrupt` and :class:`StoreUnusable`."""
        try:
            self._check_folders()
            if os.path.lexists(self.path) and not stat.S_ISREG(os.lstat(self.path).st_mode):
                raise StoreCorrupt(self.path, "it is no regular file")
        except OSError as error:
            raise _unusable(error) from None
        reading = read(self.path, INDEX_BYTES)
        if isinstance(reading, Absent):
            return Index()
        if isinstance(reading, Unreadable):
            if reading.code == "file_too_large":
                raise StoreCorrupt(self.path, reading.message)
            raise StoreUnusable(f"{self.path}: {reading.message}")
        try:
            return read_index(reading.text, self.scope)
        except IndexCorrupt as error:
            raise StoreCorrupt(self.path, str(error), error.kept) from None

    def snapshot(self, record: ImportRecord) -> Snapshot:
        """The snapshot of a record, not looked at yet."""
        return Snapshot(self.snapshot_folder(record.id, record.snapshot), record.files)

    def snapshot_folder(self, name: str, digest: str) -> str:
        """Where the snapshot ``digest`` of the import ``name`` lies, or would."""
        return os.path.join(self.folder, SNAPSHOTS_NAME, name, digest)

    # -- changing -----------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the store, which is made if there is none; every change below is called so.

        Raises :class:`StoreBusy` when others hold it for too long, and :class:`StoreUnusable`.
        """
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)
            self._check_folders()
            lock = self._guard.locked()
            lock.__enter__()
        except OSError as error:
            raise _unusable(error) from None
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def put(self, record: ImportRecord, contents: Mapping[str, Contents], now: float) -> Applied:
        """Have ``record`` in the store, with ``contents`` as its snapshot, the bytes of each of its files.

        Raises :class:`StoreUnusable`, :class:`StoreCorrupt` and :class:`StoreBusy`; the store is then what it
        was.
        """
        index = self.load()
        before = index.find(record.id)
        if before is None and len(index.records) >= MAX_IMPORTS:
            raise StoreUnusable(f"{self.path} holds {MAX_IMPORTS} imports already; remove some")
        is_whole = self.snapshot(record).verify() is None
        if before is not None and is_whole and _is_same(before, record):
            return "unchanged"
        try:
            if not is_whole:
                self._publish(record, contents)
            retired = index.retired
            if before is not None and before.snapshot != record.snapshot:
                retired = _retiring(retired, Retired(before.id, before.snapshot, now))
            self._write(index._replace(retired=retired).with_record(record), now)
        except OSError as error:
            raise _unusable(error) from None
        was_same = before is not None and before.snapshot == record.snapshot
        return "repaired" if was_same and not is_whole else "applied"

    def set_enabled(self, name: str, enabled: bool, now: float) -> ImportRecord:
        """Switch an import on or off. One whose snapshot is damaged is not switched on.

        Raises :class:`ImportMissing`, :class:`ImportDamaged` and what :meth:`put` raises.
        """
        index = self.load()
        record = self._found(index, name)
        if enabled and (wrong := self.snapshot(record).verify()) is not None:
            raise ImportDamaged(f"{name} is not switched on: {wrong}")
        if record.enabled is not enabled:
            record = replace(record, enabled=enabled)
            self._write_told(index.with_record(record), now)
        return record

    def remove(self, name: str, now: float) -> ImportRecord:
        """Take an import away, and every copy that was made for it.

        Raises :class:`ImportMissing` and what :meth:`put` raises.
        """
        index = self.load()
        record = self._found(index, name)
        self._write_told(index.without(name), now)
        return record

    def reset(self, now: float) -> Mended:
        """Mend a store: what is whole stays, what contradicts itself or is damaged goes.

        Raises :class:`NothingToMend`, and :class:`StoreUnusable` where nobody could mend it.
        """
        copy = None
        try:
            index = self.load()
            named = index.records
        except StoreCorrupt as error:
            index, named = Index(), error.kept
            copy = os.path.join(self.folder, CORRUPT_NAME)
        whole = tuple(record for record in named if self.snapshot(record).verify() is None)
        dropped = tuple(record.id for record in named if record not in whole)
        if copy is None and not dropped:
            raise NothingToMend(f"{self.path} is in order, and so is every import in it")
        try:
            if copy is not None:
                self._put_aside(copy)
            retired = tuple(each for each in index.retired if each.id not in dropped)
            self._write(Index(whole, retired), now)
        except OSError as error:
            raise _unusable(error) from None
        return Mended(tuple(record.id for record in whole), dropped, copy)

    # -- parts --------------------------------------------------------------------------------

    def _publish(self, record: ImportRecord, contents: Mapping[str, Contents]) -> None:
        """Write a snapshot aside, compare it, and rename it into its place; a damaged one there goes."""
        staging = os.path.join(self.folder, f"{STAGING_PREFIX}{os.getpid()}")
        _remove_tree(staging)
        os.mkdir(staging, 0o700)
        self._step("staging made")
        for name, content in contents.items():
            write_below(staging, name, content)
            self._step("file staged")
        wrong = Snapshot(staging, record.files).verify()
        if wrong is not None:
            raise StoreUnusable(f"what was written is not what was to be: {wrong}")
        target = self.snapshot_folder(record.id, record.snapshot)
        parent = os.path.dirname(target)
        for path in (os.path.dirname(parent), parent):  # each closed to others, whatever the umask
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
        if os.path.lexists(target):
            aside = f"{staging}-damaged"
            _remove_tree(aside)
            os.rename(target, aside)
            self._step("damaged one put aside")
        os.rename(staging, target)
        self._step("snapshot in place")
        sync_folder(parent)

    def _write_told(self, index: Index, now: float) -> None:
        try:
            self._write(index, now)
        except OSError as error:
            raise _unusable(error) from None

    def _write(self, index: Index, now: float) -> None:
        """Replace the index, then sweep what it no longer names."""
        fresh = tuple(each for each in index.retired if 0 <= now - each.at < RETIRED_SECONDS)
        index = index._replace(retired=fresh)
        text = write_index(index)
        if len(text) > INDEX_BYTES:
            raise StoreUnusable(
                f"{self.path} would have more than {INDEX_BYTES:,} bytes; remove some imports"
            )
        self._step("index about to be written")
        if not self._guard.replace(text, signature(self.path)):
            raise StoreBusy(f"{self.path} is changed by a program that does not lock it; nothing was changed")
        self._step("index written")
        self._sweep(index)

    def _sweep(self, index: Index) -> None:
        """Delete what no record names. What cannot be deleted stays for the next time."""
        named = {(each.id, each.snapshot) for each in index.records}
        named |= {(each.id, each.snapshot) for each in index.retired}
        for entry in _entries(self.folder):
            if entry.name.startswith(STAGING_PREFIX):
                _remove_tree(entry.path)
                self._step("staging swept")
        for of_import in _entries(os.path.join(self.folder, SNAPSHOTS_NAME)):
            for entry in _entries(of_import.path):
                if (of_import.name, entry.name) not in named:
                    _remove_tree(entry.path)
                    self._step("snapshot swept")
            with suppress(OSError):
                os.rmdir(of_import.path)

    def _put_aside(self, copy: str) -> None:
        """Keep the corrupt index, one of them; it stays in its place too until it is replaced."""
        _remove_tree(copy)
        if stat.S_ISREG(os.lstat(self.path).st_mode):
            os.link(self.path, copy)
        else:
            os.rename(self.path, copy)
        self._step("corrupt index put aside")

    def _found(self, index: Index, name: str) -> ImportRecord:
        record = index.find(name)
        if record is None:
            known = ", ".join(each.id for each in index.records) or "none"
            raise ImportMissing(f"there is no import {name!r}; there are: {known}")
        return record

    def _check_folders(self) -> None:
        """Refuse a store that somebody else could put there: a link, or another user's folder."""
        for path in (self.folder, os.path.join(self.folder, SNAPSHOTS_NAME)):
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if not stat.S_ISDIR(status.st_mode):
                raise StoreUnusable(f"{path} is a link or no folder; move it away")
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise StoreUnusable(f"{path} can be changed by other users; chmod 700 it, or move it away")


def _retiring(retired: tuple[Retired, ...], last: Retired) -> tuple[Retired, ...]:
    """What is kept of the past with one more: the newest few of an import, however often it is updated."""
    own = [each for each in retired if each.id == last.id]
    dropped = own[: max(0, len(own) + 1 - RETIRED_KEPT)]
    return (*(each for each in retired if each not in dropped), last)


def _is_same(before: ImportRecord, after: ImportRecord) -> bool:
    """Whether two records say the same, apart from which plan was confirmed, and when."""
    return before == replace(after, fingerprint=before.fingerprint, imported_at=before.imported_at)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What lies in a folder; nothing where there is none, or a link."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return []
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _remove_tree(path: str) -> None:
    """Remove whatever is at ``path``; a link is removed, not what it leads to."""
    try:
        is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return
    if is_folder:
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)


def _unusable(error: OSError) -> StoreUnusable:
    where = f" ({error.filename})" if error.filename else ""
    return StoreUnusable(f"the store of imports cannot be used: {error.strerror or error}{where}")


def _error(code: str, path: str, field: str | None, message: str, hint: str) -> Diagnostic:
    return Diagnostic("error", code, path, None, None, field, message, hint)
