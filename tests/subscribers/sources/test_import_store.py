"""A store of imports: what is in force, and changes that happen whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subscribers.sources.import_index import MAX_IMPORTS, Index, write_index
from subscribers.sources.import_places import ImportPlaces, import_root
from subscribers.sources.import_store import (
    CORRUPT_NAME,
    RETIRED_KEPT,
    RETIRED_SECONDS,
    ImportDamaged,
    ImportMissing,
    ImportStore,
    NothingToMend,
    StoreCorrupt,
    StoreUnusable,
    enabled_imports,
    store_signature,
)
from tests.subscribers.sources.import_scene import contents, record, stored


class Killed(BaseException):
    """The process ended here."""


@pytest.fixture
def places(tmp_path: Path) -> ImportPlaces:
    """Stores below a temporary folder."""
    return ImportPlaces(str(tmp_path / "imports"), str(tmp_path / "ws"))


@pytest.fixture
def folder(places: ImportPlaces) -> Path:
    """The user's store, which is not there yet."""
    found = places.folder("user")
    assert found is not None
    return Path(found)


def files_below(folder: Path) -> set[str]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def put(store: ImportStore, text: str, now: float = 0.0, **changes: Any) -> str:
    """Import these files."""
    files = contents(text)
    with store.locked():
        return store.put(record(files, **changes), files, now)


def test_imports_are_in_force_in_the_order_of_their_ids(places: ImportPlaces, folder: Path) -> None:
    """Enabled ones come with their generated file and profile; disabled ones do not come."""
    made = [stored(folder, "a", path=f"/h/{name}", enabled=name != "b") for name in "abc"]
    found = enabled_imports("user", places)
    assert [each.id for each in found.imports] == sorted(each.id for each in made if each.enabled)
    assert found.diagnostics == ()
    one = found.imports[0]
    assert Path(one.path).read_bytes() == contents("a")["hooks.json"].content
    assert (one.profile, one.scope, one.snapshot.verify()) == ("claude", "user", None)
    assert enabled_imports("project", places).imports == ()
    assert enabled_imports("project", ImportPlaces("/x")).imports == ()


def test_copies_are_read_only_and_keep_their_exec_bit(folder: Path) -> None:
    """A script can be executed if it could before, and nothing is for other users."""
    made = stored(folder)
    snapshot = Path(ImportStore(str(folder), "user").snapshot(made).folder)
    modes = {name: os.stat(snapshot / name).st_mode & 0o777 for name in made.files}
    assert modes == {"hooks.json": 0o400, "files/run.sh": 0o500, "files/below/lib.sh": 0o400}
    assert {os.stat(path).st_mode & 0o077 for path in (folder, snapshot, *snapshot.parents[:2])} == {0}


def test_stores_are_closed_to_others_whatever_the_umask(folder: Path) -> None:
    """A generous umask makes no store that would be refused afterwards."""
    before = os.umask(0)
    try:
        stored(folder)
    finally:
        os.umask(before)
    assert len(ImportStore(str(folder), "user").load().records) == 1


def _rewrite(path: Path, content: bytes) -> None:
    path.chmod(0o600)
    mode = 0o500 if path.suffix == ".sh" else 0o400
    path.write_bytes(content)
    path.chmod(mode)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").write_text("x")


def _link(path: Path) -> None:
    path.rename(f"{path}.moved")
    path.symlink_to(f"{path}.moved")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a changed script": lambda s: _rewrite(s / "files/run.sh", b"#!/bin/sh\necho b\n"),
    "a changed hook file": lambda s: _rewrite(s / "hooks.json", b"{}"),
    "a missing file": lambda s: (s / "files/below/lib.sh").unlink(),
    "a file more": lambda s: (s / "files/more").write_text("x"),
    "a folder instead": lambda s: _folder(s / "hooks.json"),
    "a link instead": lambda s: _link(s / "files/run.sh"),
    "a link to a folder": lambda s: (s / "files/more").symlink_to("/etc"),
    "a lost exec bit": lambda s: (s / "files/run.sh").chmod(0o400),
    "an exec bit more": lambda s: (s / "hooks.json").chmod(0o500),
    "no snapshot": shutil.rmtree,
    "a link to a snapshot": _link,
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_snapshot_runs_nothing_and_is_repaired(
    places: ImportPlaces, folder: Path, what: str
) -> None:
    """Whatever was done to it is noticed when it is loaded and before each run; importing again mends it."""
    made, other = stored(folder, "a"), stored(folder, "b", path="/h/other")
    before = enabled_imports("user", places).imports
    snapshot = next(each.snapshot for each in before if each.id == made.id)
    assert snapshot.verify() is None
    DAMAGE[what](Path(snapshot.folder))
    assert snapshot.verify()
    found = enabled_imports("user", places)
    assert [each.id for each in found.imports] == [other.id]
    assert [(each.code, each.field) for each in found.diagnostics] == [("import_damaged", made.id)]
    store = ImportStore(str(folder), "user")
    with store.locked(), pytest.raises(ImportDamaged):
        store.set_enabled(made.id, True, 0.0)
    assert put(store, "a") == "repaired"
    assert len(enabled_imports("user", places).imports) == 2
    assert not [name for name in files_below(folder) if "staging" in name]


def test_a_snapshot_with_too_many_entries_is_not_gone_through(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking at a snapshot is bounded, whatever was put into it."""
    snapshot = ImportStore(str(folder), "user").snapshot(stored(folder))
    monkeypatch.setattr("subscribers.sources.import_snapshot.MAX_ENTRIES", 4)
    assert snapshot.verify() == "more than 4 entries lie in it"


def test_a_cache_of_an_interpreter_is_no_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python leaves beside a script that it ran switches nothing off, and is never run itself."""
    made = stored(folder)
    snapshot = ImportStore(str(folder), "user").snapshot(made)
    cache = Path(snapshot.folder, "files", "__pycache__")
    cache.mkdir()
    (cache / "x.pyc").write_bytes(b"x")
    assert snapshot.verify() is None
    assert not cache.exists()
    cache.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", lambda path, ignore_errors: None)
        assert snapshot.verify() == "files/'__pycache__' cannot be deleted"


def test_an_edit_that_keeps_size_and_time_is_noticed(folder: Path) -> None:
    """The look from outside includes what a user cannot set: when a file was changed last."""
    made = stored(folder)
    snapshot = ImportStore(str(folder), "user").snapshot(made)
    assert snapshot.verify() is None
    path = Path(snapshot.folder, "files/run.sh")
    times = os.stat(path)
    _rewrite(path, path.read_bytes().replace(b"a", b"z"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert snapshot.verify() == "'files/run.sh' is not what was confirmed"


def test_edits_within_one_tick_of_the_clock_are_noticed(folder: Path) -> None:
    """However soon an edit follows a look, the next look finds it; a file at rest is not read again."""
    snapshot = ImportStore(str(folder), "user").snapshot(stored(folder))
    path = Path(snapshot.folder, "files/run.sh")
    right = path.read_bytes()
    for _ in range(40):
        assert snapshot.verify() is None
        path.write_bytes(right.replace(b"a", b"z"))
        assert snapshot.verify() is not None
        path.write_bytes(right)


def test_a_snapshot_at_rest_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once its digests were right and it has rested, a look from outside is enough."""
    snapshot = ImportStore(str(folder), "user").snapshot(stored(folder))
    now = time.time_ns() + 10**10
    monkeypatch.setattr("time.time_ns", lambda: now)
    assert snapshot.verify() is None
    monkeypatch.setattr("subscribers.sources.import_snapshot.read_below", None)
    assert snapshot.verify() is None


def test_the_same_again_changes_nothing(places: ImportPlaces, folder: Path) -> None:
    """An import that is there already writes neither index nor snapshot."""
    stored(folder)
    seen = store_signature("user", places)
    assert put(ImportStore(str(folder), "user"), "a", fingerprint="e" * 64) == "unchanged"
    assert store_signature("user", places) == seen
    assert store_signature("project", ImportPlaces("/x")) is None


def test_an_update_keeps_the_old_copy_for_runs_that_began(folder: Path) -> None:
    """A replaced snapshot stays for an hour, and is swept by the next change after that."""
    made = stored(folder, "a", now=1_000.0)
    store = ImportStore(str(folder), "user")
    old = store.snapshot(made)
    assert put(store, "b", now=2_000.0) == "applied"
    assert old.verify() is None
    with store.locked():
        store.set_enabled(made.id, False, 2_000.0 + RETIRED_SECONDS - 1)
        assert old.verify() is None
        store.set_enabled(made.id, True, 2_000.0 + RETIRED_SECONDS)
    assert not os.path.exists(old.folder)
    assert store.load().retired == ()


def test_old_copies_do_not_pile_up(folder: Path) -> None:
    """However often an import is updated within the hour, a few of its snapshots are kept."""
    for number in range(9):
        stored(folder, str(number))
    store = ImportStore(str(folder), "user")
    (found,) = store.load().records
    kept = {each.snapshot for each in store.load().retired}
    assert len(kept) == RETIRED_KEPT
    assert set(os.listdir(folder / "snapshots" / found.id)) == {found.snapshot, *kept}


def test_an_index_that_could_not_be_read_again_is_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound on the index an import is refused, and what was there stays."""
    made = stored(folder)
    store = ImportStore(str(folder), "user")
    monkeypatch.setattr("subscribers.sources.import_store.INDEX_BYTES", len(write_index(store.load())) + 9)
    with pytest.raises(StoreUnusable, match="remove some imports"):
        put(store, "b", path="/h/other")
    assert store.load().records == (made,)


def test_removing_takes_every_copy_and_nothing_else(folder: Path) -> None:
    """Also those that an update retired; other imports stay."""
    made, other = stored(folder, "a"), stored(folder, "c", path="/h/other")
    stored(folder, "b")
    store = ImportStore(str(folder), "user")
    with store.locked():
        store.remove(made.id, 0.0)
        with pytest.raises(ImportMissing, match=other.id):
            store.remove(made.id, 0.0)
    assert store.load().records == (other,)
    assert {name.split("/")[1] for name in files_below(folder) if name.startswith("snapshots")} == {other.id}


def test_what_is_not_named_is_swept(folder: Path) -> None:
    """Leftovers of any kind go with the next change, and links are removed, not followed."""
    stored(folder)
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (folder / "snapshots" / "lost" / "0").mkdir(parents=True)
    (folder / "snapshots" / "file").write_text("x")
    (folder / "staging-1").symlink_to(outside)
    (folder / "staging-2").mkdir()
    os.symlink(outside, folder / "snapshots" / "linked")
    stored(folder, "b")
    assert {path.name for path in folder.iterdir()} == {"index.json", ".index.json.lock", "snapshots"}
    assert (outside / "kept").exists()


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_store_that_others_can_change_is_not_used(places: ImportPlaces, folder: Path, mode: int) -> None:
    """A store whose folder is open to others is refused, read or written."""
    stored(folder)
    folder.chmod(mode)
    assert [each.code for each in enabled_imports("user", places).diagnostics] == ["import_store_unusable"]
    with pytest.raises(StoreUnusable, match="other users"):
        put(ImportStore(str(folder), "user"), "a")


def test_a_linked_store_is_not_used(folder: Path, tmp_path: Path) -> None:
    """A link in the place of a store, or of its snapshots, leads nowhere."""
    stored(folder)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(StoreUnusable, match="is a link"):
        ImportStore(str(folder), "user").load()
    folder.unlink()
    folder.write_text("x")
    with pytest.raises(StoreUnusable):
        put(ImportStore(str(folder), "user"), "a")
    folder.unlink()
    (tmp_path / "moved").rename(folder)
    (folder / "snapshots").rename(folder / "other")
    (folder / "snapshots").symlink_to(folder / "other")
    with pytest.raises(StoreUnusable, match="is a link"):
        ImportStore(str(folder), "user").load()


def test_a_full_store_takes_no_more(folder: Path) -> None:
    """There is a bound on imports, and one more is refused."""
    folder.mkdir(parents=True, mode=0o700)
    rows = tuple(record(contents("a"), path=f"/h/{number}") for number in range(MAX_IMPORTS))
    (folder / "index.json").write_bytes(write_index(Index(rows)))
    with pytest.raises(StoreUnusable, match="256 imports"):
        put(ImportStore(str(folder), "user"), "a")


def test_contents_that_are_not_the_record_are_never_published(folder: Path) -> None:
    """What was written is compared before it is put into place."""
    store = ImportStore(str(folder), "user")
    with store.locked(), pytest.raises(StoreUnusable, match="not what was to be"):
        store.put(record(contents("a")), contents("b"), 0.0)
    assert store.load() == Index()


def test_a_full_disk_leaves_the_store_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that cannot be written is an error, and what it left goes with the next change."""
    made = stored(folder, "a")

    def full(path: str, name: str, content: object) -> None:
        Path(path, "half").write_text("x")
        raise OSError(errno.ENOSPC, "No space left on device", name)

    store = ImportStore(str(folder), "user")
    with monkeypatch.context() as patched:
        patched.setattr("subscribers.sources.import_store.write_below", full)
        with pytest.raises(StoreUnusable, match="No space left"):
            put(store, "b")
    assert store.load().records == (made,)
    assert store.snapshot(made).verify() is None
    assert put(store, "b") == "applied"
    assert not [name for name in files_below(folder) if name.startswith("staging")]


CORRUPT: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda path: path.write_bytes(b"{"),
    "empty": lambda path: path.write_bytes(b""),
    "another schema": lambda path: path.write_bytes(b'{"schema": 9, "imports": []}'),
    "too large": lambda path: path.write_bytes(b" " * 17_000_000),
    "a folder": _folder,
    "a link": _link,
    "a record that lies": lambda path: _change(path, id="claude-user-00000000"),
    "a record more": lambda path: _change(path, more=1),
}


def _change(path: Path, **fields: object) -> None:
    """Change the first record only."""
    document = json.loads(path.read_bytes())
    document["imports"][0].update(fields)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("what", CORRUPT)
def test_a_corrupt_index_switches_off_and_reset_mends_it(
    places: ImportPlaces, folder: Path, what: str
) -> None:
    """Nothing runs and every change is refused until a reset; what still holds is kept, and a copy too."""
    stored(folder, "a")
    stored(folder, "b", path="/h/other")
    CORRUPT[what](folder / "index.json")
    found = enabled_imports("user", places)
    assert found.imports == ()
    assert [each.code for each in found.diagnostics] == ["import_store_corrupt"]
    store = ImportStore(str(folder), "user")
    with pytest.raises(StoreCorrupt):
        put(store, "c")
    with store.locked():
        mended = store.reset(0.0)
    keeps = what.startswith("a record")
    assert (len(mended.kept), mended.dropped) == (1 if keeps else 0, ())
    assert mended.copy == str(folder / CORRUPT_NAME)
    assert os.path.lexists(mended.copy)
    assert len(enabled_imports("user", places).imports) == len(mended.kept)
    assert put(store, "c", path="/h/third") == "applied"


def test_reset_drops_what_is_damaged_and_refuses_to_do_nothing(folder: Path) -> None:
    """An index in order with a damaged snapshot loses that import; a store in order is left alone."""
    made, other = stored(folder, "a"), stored(folder, "b", path="/h/other")
    store = ImportStore(str(folder), "user")
    with store.locked():
        with pytest.raises(NothingToMend):
            store.reset(0.0)
        shutil.rmtree(store.snapshot(made).folder)
        assert store.reset(0.0) == ((other.id,), (made.id,), None)
        with pytest.raises(NothingToMend):
            store.reset(0.0)
    assert store.load().records == (other,)


def update(store: ImportStore) -> None:
    """Another content for the import that is there."""
    put(store, "b", now=5.0)


def repair(store: ImportStore) -> None:
    """The same content again, after its snapshot was damaged."""
    put(store, "a", now=5.0)


def change(name: str, *arguments: object) -> Callable[[ImportStore], None]:
    """A change by name, of the import that is there."""

    def run(store: ImportStore) -> None:
        with store.locked():
            getattr(store, name)(*arguments, 5.0)

    return run


def _damaged(folder: Path) -> None:
    made = stored(folder)
    (folder / "snapshots" / made.id / made.snapshot / "hooks.json").unlink()


def _corrupted(folder: Path) -> None:
    stored(folder)
    stored(folder, "c", path="/h/o")
    _change(folder / "index.json", more=1)


ID = record(contents("a")).id
OPERATIONS: dict[str, tuple[Callable[[Path], object], Callable[[ImportStore], None]]] = {
    "import": (lambda folder: None, update),
    "update": (stored, update),
    "repair": (_damaged, repair),
    "disable": (stored, change("set_enabled", ID, False)),
    "remove": (stored, change("remove", ID)),
    "reset": (_corrupted, change("reset")),
}


def steps_of(folder: Path, what: str) -> list[str]:
    """The steps of an operation that nobody interrupts."""
    OPERATIONS[what][0](folder)
    seen: list[str] = []
    OPERATIONS[what][1](ImportStore(str(folder), "user", seen.append))
    return seen


@pytest.mark.parametrize("what", OPERATIONS)
def test_killed_between_any_two_steps_a_store_is_old_or_new(tmp_path: Path, what: str) -> None:
    """Wherever a change ends, the index is the old or the new one, what it names is whole; it goes on."""
    steps = steps_of(tmp_path / "whole", what)
    new = ImportStore(str(tmp_path / "whole"), "user").load()
    assert len(steps) > 1
    for number in range(len(steps)):
        folder = tmp_path / str(number)
        OPERATIONS[what][0](folder)
        old = _loaded(folder)
        left = iter(range(number, -1, -1))

        def step(_: str, left: object = left) -> None:
            if next(left) == 0:  # type: ignore[call-overload]
                raise Killed

        with pytest.raises(Killed):
            OPERATIONS[what][1](ImportStore(str(folder), "user", step))
        found = _loaded(folder)
        assert found in (old, new), steps[number]
        assert steps.index("index written") <= number or found == old
        if isinstance(found, Index):
            store = ImportStore(str(folder), "user")
            wrong = [store.snapshot(each).verify() for each in found.records]
            assert wrong == [None] * len(wrong) or what == "repair"
        with suppress(ImportMissing, NothingToMend):
            OPERATIONS[what][1](ImportStore(str(folder), "user"))
        assert _loaded(folder) == new
        put(ImportStore(str(folder), "user"), "z", path="/h/z")
        assert not [name for name in files_below(folder) if name.startswith("staging")]


def _loaded(folder: Path) -> Index | str:
    try:
        return ImportStore(str(folder), "user").load()
    except StoreCorrupt as error:
        return error.reason


def test_changes_of_one_store_at_once_are_all_kept(folder: Path) -> None:
    """Writers wait for each other: none overwrites what another has just written."""
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda number: stored(folder, "a", path=f"/h/{number}"), range(24)))
    assert {each.id for each in ImportStore(str(folder), "user").load().records} == {each.id for each in made}


def test_where_stores_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By setting, by the base directory of the platform, and one for each workspace's real path."""
    assert import_root("/x/y", {}) == "/x/y"
    environ = {"PRXBUS_CONFIG_DIR": str(tmp_path), "XDG_DATA_HOME": "/d"}
    assert import_root(None, environ) == "/d/prxbus/imports"
    monkeypatch.setenv("XDG_DATA_HOME", "")
    assert import_root(None, {**environ, "XDG_DATA_HOME": "relative"}).endswith("/prxbus/imports")
    (tmp_path / "prxbus.toml").write_text('[hooks]\nimport_dir = "/from/file"\n')
    assert import_root(None, environ) == "/from/file"
    assert import_root(None, {**environ, "PRXBUS_HOOKS_IMPORT_DIR": "/from/variable"}) == "/from/variable"
    (tmp_path / "link").symlink_to(tmp_path)
    real, linked, other = (
        ImportPlaces("/x", str(path)).folder("project")
        for path in (tmp_path, tmp_path / "link", tmp_path / "a")
    )
    assert real == linked != other


def test_a_record_is_replaced_by_its_id() -> None:
    """The index stays in order, whatever is put into it."""
    one, two = record(contents("a")), record(contents("a"), path="/h/other")
    index = Index().with_record(one).with_record(two).with_record(replace(one, enabled=False))
    assert [each.id for each in index.records] == sorted((one.id, two.id))
    assert {each.id: each.enabled for each in index.records}[one.id] is False
