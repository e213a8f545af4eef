"""Importing: look at what there is, plan, confirm exactly that plan, and look after what was imported.

Decides when something is written at all: only for a fingerprint that is the plan's of this very moment, made
under the store's lock, of a source whose handlers would not run twice. Everything else returns a plan or an
error and changes nothing. It refuses to know how any of it is shown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from ..dialects.nearest import nearest
from ..hooks.diagnostics import Diagnostic
from ..hooks.import_plan import Plan, Previous
from .attach_plan import handlers_in
from .import_index import ImportRecord, Index, SnapshotFile, import_id
from .import_places import SCOPES, ImportPlaces, Scope
from .import_reader import Read, SourceUnavailable, Text, plan_source, read_source
from .import_rules import is_own
from .import_sources import Homes, Source, find_sources
from .import_store import (
    Applied,
    ImportMissing,
    ImportStore,
    Mended,
    Step,
    StoreCorrupt,
    StoreUnusable,
    no_step,
)

Outcome: TypeAlias = Literal["preview", "stale"] | Applied
"""``stale``: the plan is another one now, and nothing was written."""

State: TypeAlias = Literal[
    "current", "update_available", "external_changed", "source_missing", "source_unreadable", "damaged"
]
"""``current`` without a refresh: the source is there. ``external_changed``: a file that was not copied is not
what it was. ``damaged``: nothing of the import runs."""

IMPORT_AGAIN: Final = "prxbus hooks update"


class ImportRefused(Exception):
    """Something is not done, by a rule: ``code`` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Done(NamedTuple):
    """A plan, and what became of it."""

    plan: Plan
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source that exists: how many handlers it has, or its ``fault``; and what it was imported as."""

    source: Source
    handlers: int
    fault: str | None
    imported_as: str | None
    is_attached: bool


@dataclass(frozen=True, slots=True)
class FoundImport:
    """An import and how it stands; ``detail`` says more about a state that is not ``current``."""

    record: ImportRecord
    state: State
    detail: str | None
    folder: str


class Listing(NamedTuple):
    """Everything that there is: sources, imports, and what is wrong with the stores."""

    sources: tuple[FoundSource, ...]
    imports: tuple[FoundImport, ...]
    diagnostics: tuple[Diagnostic, ...]


class Importer:
    """Imports for one user and one workspace. ``now`` arguments are seconds since the epoch."""

    def __init__(self, places: ImportPlaces, homes: Homes, step: Step = no_step) -> None:
        self.places = places
        self.homes = homes
        self._step = step

    # -- looking ------------------------------------------------------------------------------

    def sources(self) -> tuple[Source, ...]:
        """The sources that exist."""
        return tuple(each for each in self._candidates() if os.path.lexists(each.path))

    def list(self, *, refresh: bool) -> Listing:
        """Sources, imports and faults. ``refresh``: read the sources of imports, and say what changed."""
        imports: list[FoundImport] = []
        said: list[Diagnostic] = []
        for scope in SCOPES:
            store = self._store(scope)
            if store is None:
                continue
            try:
                records = store.load().records
            except (StoreCorrupt, StoreUnusable) as error:
                code = "import_store_corrupt" if isinstance(error, StoreCorrupt) else "import_store_unusable"
                hint = f"mend it with: prxbus hooks reset {scope} --confirm"
                said.append(Diagnostic("error", code, store.path, None, None, None, str(error), hint))
                continue
            imports += [self._found(store, record, refresh=refresh) for record in records]
        names = {(each.record.key, each.record.path): each.record.id for each in imports}
        attached = self.attached_agents()
        sources = tuple(
            _found_source(each, names.get((each.key, each.path)), each.agent in attached)
            for each in self.sources()
        )
        return Listing(sources, tuple(imports), tuple(said))

    def attached_agents(self) -> dict[str, str]:
        """The agents whose settings hold our own entry, and the path of those settings."""
        found: dict[str, str] = {}
        for source in self._candidates():
            if source.agent not in found and os.path.lexists(source.path):
                text = _text(source)
                entries = () if text is None else handlers_in(text.document)
                if any(is_own(handler) for _, handler in entries):
                    found[source.agent] = source.path
        return found

    def imports_of(self, agent: str) -> tuple[ImportRecord, ...]:
        """The enabled imports of an agent's hooks: attached, it would run them besides.

        What a corrupt store holds runs nowhere, and so does not count.
        """
        found: list[ImportRecord] = []
        keys = "claude:" if agent == "claude-code" else "codex:"
        for scope in SCOPES:
            store = self._store(scope)
            try:
                records = () if store is None else store.load().records
            except (StoreCorrupt, StoreUnusable):
                continue
            found += [each for each in records if each.enabled and each.key.startswith(keys)]
        return tuple(found)

    # -- importing ----------------------------------------------------------------------------

    def preview(self, key: str) -> Done:
        """The plan for importing a source. Raises :class:`SourceUnavailable` and the store's errors."""
        source = self._named(key)
        store = self._store_of(source)
        return Done(self._planned(source, store, store.load()).plan, "preview")

    def confirm(self, key: str, fingerprint: str, now: float, *, force: bool = False) -> Done:
        """Import a source, if its plan still has this fingerprint.

        Raises :class:`ImportRefused`, :class:`SourceUnavailable` and the store's errors.
        """
        return self._confirm(self._named(key), fingerprint, now, force=force)

    def preview_update(self, name: str) -> Done:
        """The plan for importing again what an import came from. Raises ImportMissing too."""
        source, store = self._source_of(name)
        return Done(self._planned(source, store, store.load()).plan, "preview")

    def confirm_update(self, name: str, fingerprint: str, now: float, *, force: bool = False) -> Done:
        """Update an import, if the plan still has this fingerprint; a disabled one stays disabled."""
        source, _ = self._source_of(name)
        return self._confirm(source, fingerprint, now, force=force)

    # -- looking after ------------------------------------------------------------------------

    def enable(self, name: str, now: float, *, force: bool = False) -> ImportRecord:
        """Switch an import on. Raises ImportMissing, ImportDamaged, ImportRefused and the store's errors."""
        store, record = self._record(name)
        if not record.enabled and not force:
            self._check_once(record.key, "enabled")
        with store.locked():
            return store.set_enabled(name, True, now)

    def disable(self, name: str, now: float) -> ImportRecord:
        """Switch an import off. Raises ImportMissing and the store's errors."""
        store, _ = self._record(name)
        with store.locked():
            return store.set_enabled(name, False, now)

    def remove(self, name: str, now: float) -> ImportRecord:
        """Take an import and its copies away. Raises ImportMissing and the store's errors."""
        store, _ = self._record(name)
        with store.locked():
            return store.remove(name, now)

    def reset(self, scope: Scope, now: float) -> Mended:
        """Mend a store. Raises NothingToMend and the store's errors."""
        store = self._store(scope)
        if store is None:
            raise ImportRefused("no_workspace", "a project's store needs a workspace")
        if not os.path.lexists(store.path):
            raise ImportRefused("nothing_to_mend", f"there is no store at {store.folder}")
        with store.locked():
            return store.reset(now)

    # -- parts --------------------------------------------------------------------------------

    def _candidates(self) -> tuple[Source, ...]:
        return find_sources(self.homes, self.places.workspace)

    def _store(self, scope: Scope) -> ImportStore | None:
        folder = self.places.folder(scope)
        return None if folder is None else ImportStore(folder, scope, self._step)

    def _store_of(self, source: Source) -> ImportStore:
        store = self._store(source.scope)
        if store is None:
            raise ImportRefused("no_workspace", f"{source.key} belongs to a workspace, and there is none")
        return store

    def _named(self, key: str) -> Source:
        known = {each.key: each for each in self._candidates()}
        if key in known:
            return known[key]
        near = nearest(key, known)
        there = ", ".join(each.key for each in self.sources()) or "none"
        meant = f"; did you mean {near}?" if near else ""
        raise SourceUnavailable(
            "unknown_source", f"there is no source {key!r}{meant}; those that exist: {there}"
        )

    def _record(self, name: str) -> tuple[ImportStore, ImportRecord]:
        known: list[str] = []
        corrupt: StoreCorrupt | None = None
        for scope in SCOPES:
            store = self._store(scope)
            if store is None:
                continue
            try:
                index = store.load()
            except StoreCorrupt as error:
                corrupt = error
                continue
            record = index.find(name)
            if record is not None:
                return store, record
            known += [each.id for each in index.records]
        if corrupt is not None:
            raise corrupt
        near = nearest(name, known)
        meant = f"did you mean {near}?" if near else f"there are: {', '.join(known) or 'none'}"
        raise ImportMissing(f"there is no import {name!r}; {meant}")

    def _source_of(self, name: str) -> tuple[Source, ImportStore]:
        store, record = self._record(name)
        for source in self._candidates():
            if (source.key, source.path) == (record.key, record.path):
                return source, store
        where = f"{record.path} is no source any more: the agent's folders are elsewhere now"
        raise SourceUnavailable("missing", where)

    def _planned(self, source: Source, store: ImportStore, index: Index) -> Read:
        name = import_id(source.key, source.path)
        record = index.find(name)
        previous = None
        if record is not None:
            previous = Previous(record.snapshot, record.external, record.enabled)
        return plan_source(source, self.homes, os.path.dirname(store.snapshot_folder(name, "-")), previous)

    def _confirm(self, source: Source, fingerprint: str, now: float, *, force: bool) -> Done:
        store = self._store_of(source)
        first = self._planned(source, store, store.load()).plan
        if first.fingerprint != fingerprint:  # before anything is made, even a folder
            return Done(first, "stale")
        with store.locked():
            read = self._planned(source, store, store.load())
            plan = read.plan
            if plan.fingerprint != fingerprint:
                return Done(plan, "stale")
            if not plan.handlers:
                raise ImportRefused("nothing_to_import", "no handler of this source can be imported")
            if plan.enabled and not force:
                self._check_once(source.key, "imported")
            return Done(plan, store.put(_record_of(read, now), read.contents, now))

    def _check_once(self, key: str, doing: str) -> None:
        """Refuse what an attached agent would run besides."""
        agent = "claude-code" if key.startswith("claude:") else "codex"
        where = self.attached_agents().get(agent)
        if where is not None:
            raise ImportRefused(
                "runs_twice",
                f"{agent} is attached (by {where}) and runs its own hooks itself: {doing}, they would run "
                "twice; detach it, or say --force",
            )

    def _found(self, store: ImportStore, record: ImportRecord, *, refresh: bool) -> FoundImport:
        snapshot = store.snapshot(record)
        wrong = snapshot.verify()
        if wrong is not None:
            return FoundImport(record, "damaged", wrong, snapshot.folder)
        state, detail = self._state(store, record, refresh=refresh)
        return FoundImport(record, state, detail, snapshot.folder)

    def _state(self, store: ImportStore, record: ImportRecord, *, refresh: bool) -> tuple[State, str | None]:
        if not os.path.lexists(record.path):
            return "source_missing", "it runs from its copy"
        if not refresh:
            return "current", None
        try:
            source, _ = self._source_of(record.id)
            plan = self._planned(source, store, store.load()).plan
        except SourceUnavailable as error:
            return "source_unreadable", str(error)
        if plan.snapshot != record.snapshot:
            return "update_available", f"look at it with: {IMPORT_AGAIN} {record.id}"
        changed = sorted(path for path in record.external if plan.external.get(path) != record.external[path])
        if changed:
            return "external_changed", f"not what was confirmed: {', '.join(changed[:3])}"
        return "current", None


def _record_of(read: Read, now: float) -> ImportRecord:
    plan = read.plan
    return ImportRecord(
        id=plan.import_id,
        key=plan.source.key,
        scope="user" if plan.source.scope == "user" else "project",
        profile=plan.source.profile,
        path=plan.source.path,
        enabled=plan.enabled,
        snapshot=plan.snapshot,
        files={
            name: SnapshotFile(content.sha256, len(content.content), content.executable)
            for name, content in read.contents.items()
        },
        external=plan.external,
        handlers=len(plan.handlers),
        skipped=sum(each.count for each in plan.skipped),
        fingerprint=plan.fingerprint,
        imported_at=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _text(source: Source) -> Text | None:
    try:
        return read_source(source)
    except SourceUnavailable:
        return None


def _found_source(source: Source, imported_as: str | None, is_attached: bool) -> FoundSource:
    try:
        document = read_source(source).document
    except SourceUnavailable as error:
        return FoundSource(source, 0, str(error), imported_as, is_attached)
    count = sum(1 for _ in _handlers(document.get("hooks")))
    return FoundSource(source, count, None, imported_as, is_attached)


def _handlers(hooks: object) -> Iterator[object]:
    """Every handler, whatever it is, apart from our own entries."""
    for _, handler in handlers_in({"hooks": hooks}):
        if not is_own(handler):
            yield handler
