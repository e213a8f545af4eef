"""The hooks of a workspace as things to edit: beside hand edits, beside each other, and never half."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects import prx, prx_edit, prx_rules
from subscribers.sources import hook_store, hook_store_files
from subscribers.sources.hook_store import (
    EditRefused,
    FileBroken,
    HookMissing,
    HookStore,
    StaleEdit,
    StoreBusy,
    StoreUnusable,
)
from subscribers.sources.hook_store_values import ABSENT, TOO_LARGE, file_etag

NOW, TODAY = 1_774_080_000.0, "2026-03-21T08:00:00Z"
LS: dict[str, Any] = {"command": "ls", "args": ["-l"]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def open_store(workspace: Path, tmp_path: Path) -> Callable[[], HookStore]:
    """Opens the workspace's store, as a new process does."""
    return lambda: HookStore(str(workspace), str(tmp_path / "state"), "/usr/bin", now=lambda: NOW)


@pytest.fixture
def store(open_store: Callable[[], HookStore]) -> HookStore:
    """The workspace's store."""
    return open_store()


def write(workspace: Path, text: str | bytes) -> bytes:
    """Save a hooks.json as an editor does, with a time of its own; its bytes."""
    data = text.encode() if isinstance(text, str) else text
    file = workspace / "hooks.json"
    file.write_bytes(data)
    os.utime(file, (NOW - 86_400, NOW - 86_400))
    return data


def by_hand(*commands: str) -> str:
    """The text of a file with these commands on errors."""
    return json.dumps({"hooks": {"error": [{"command": command} for command in commands]}}, indent=2)


def ids(store: HookStore) -> list[str]:
    """The ids in file order."""
    return [hook.id for hook in store.snapshot().hooks]


def test_reading_writes_nothing_into_the_workspace(store: HookStore, workspace: Path, tmp_path: Path) -> None:
    """A hand-written file is listed with ids and times; they lie in a state file, 0600, elsewhere."""
    text = write(workspace, by_hand("ls", "true"))
    first, second = store.snapshot().hooks
    assert (first.id, second.id, first.created_at) == ("hook_01", "hook_02", "2026-03-20T08:00:00Z")
    assert (workspace / "hooks.json").read_bytes() == text
    assert os.listdir(workspace) == ["hooks.json"]
    (kept,) = (tmp_path / "state").glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_ids_outlive_the_process_and_hand_edits(
    store: HookStore, workspace: Path, open_store: Callable[[], HookStore]
) -> None:
    """Another process finds the same ids; neither a hand edit nor a moment without a file moves them."""
    write(workspace, by_hand("ls", "true"))
    assert ids(store) == ["hook_01", "hook_02"]
    write(workspace, by_hand("pwd", "ls", "true"))
    assert ids(open_store()) == ["hook_03", "hook_01", "hook_02"]
    (workspace / "hooks.json").unlink()
    assert ids(store) == []
    write(workspace, by_hand("ls", "true"))
    assert ids(store) == ["hook_01", "hook_02"]


def test_an_edit_says_every_id_in_the_file(store: HookStore, workspace: Path, tmp_path: Path) -> None:
    """With the first edit ids and times stand in the file, so that a lost state changes nothing."""
    write(workspace, by_hand("ls", "true"))
    store.toggle("hook_02")
    actions = json.loads((workspace / "hooks.json").read_text())["hooks"]["error"]
    assert [action["id"] for action in actions] == ["hook_01", "hook_02"]
    assert (actions[1]["enabled"], actions[1]["updated_at"]) == (False, TODAY)
    assert "enabled" not in actions[0]
    for kept in (tmp_path / "state").glob("*.json"):
        kept.unlink()
    write(workspace, json.dumps({"hooks": {"error": list(reversed(actions))}}))
    assert ids(store) == ["hook_02", "hook_01"]


def test_the_life_of_a_hook(store: HookStore, workspace: Path) -> None:
    """Created in a new file of its owner's alone, replaced, toggled, deleted; its id does not come back."""
    assert store.snapshot() == ((), ABSENT)
    hook = store.create("llm-response", {**LS, "cwd": None}, True)
    assert hook == ("hook_01", "llm_response", LS, True, TODAY, TODAY)
    assert stat.S_IMODE((workspace / "hooks.json").stat().st_mode) == 0o600
    assert store.get("hook_01") == hook
    found, spec = store.spec("hook_01")
    assert (found, spec.args) == (hook, ("-l",))
    changed = store.replace("hook_01", "error", {"command": "true"}, False)
    assert (changed.event, changed.action, changed.enabled) == ("error", {"command": "true"}, False)
    assert store.toggle("hook_01").enabled
    assert [spec.command for spec in prx.parse((workspace / "hooks.json").read_bytes(), "f").specs] == [
        "true"
    ]
    store.delete("hook_01")
    assert ids(store) == []
    assert store.create("error", LS, False).id == "hook_02"
    for edit in (store.get, store.toggle, store.delete, lambda name: store.replace(name, "error", LS, True)):
        with pytest.raises(HookMissing, match="there is no hook 'hook_01'"):
            edit("hook_01")


def test_an_edit_leaves_the_rest_of_the_file_alone(store: HookStore, workspace: Path) -> None:
    """Unknown keys, their order and the indentation of a person survive every kind of edit."""
    before = '{\n\t"$schema": "x",\n\t"mine": [1,  2],\n\t"hooks": {\n\t\t"error": [\n\t\t\t{"command": "'
    write(workspace, before + 'ls", "why": "é"}\n\t\t]\n\t}\n}')
    store.replace("hook_01", "error", {"command": "true"}, True)
    store.delete(store.create("error", LS, True).id)
    after = (workspace / "hooks.json").read_text()
    assert after.startswith(before + 'true", "why": "é", ')
    assert after.endswith("}\n\t\t]\n\t}\n}")


@pytest.mark.parametrize(
    "event,action,field",
    [
        ("nothing", LS, "event"),
        ("error", {"command": "a|b"}, "action.command"),
        ("error", {"command": "ls", "cwd": "out"}, "action.cwd"),
    ],
)
def test_what_the_runtime_would_refuse_changes_nothing(
    store: HookStore, workspace: Path, event: str, action: dict[str, Any], field: str
) -> None:
    """Also what only this machine knows: a folder that a link leads out of the workspace."""
    (workspace / "out").symlink_to("/")
    text = write(workspace, by_hand("ls"))
    for edit in (
        lambda: store.create(event, action, True),
        lambda: store.replace("hook_01", event, action, True),
        lambda: store.replace_file(json.dumps({"hooks": {event: [action]}}).encode()),
    ):
        with pytest.raises(EditRefused) as caught:
            edit()
        assert caught.value.faults[0].field in (field, f"hooks.{event}", f"hooks.{event}[0].command")
    assert (workspace / "hooks.json").read_bytes() == text


def test_the_257th_hook_is_refused(store: HookStore, workspace: Path) -> None:
    """The runtime reads 256 actions of a file, so no more are written."""
    write(workspace, by_hand(*["ls"] * prx_rules.MAX_ACTIONS))
    with pytest.raises(EditRefused, match="at most 256 actions"):
        store.create("error", LS, True)
    store.delete("hook_01")
    assert store.create("error", LS, True).id == "hook_257"


def test_an_expectation_guards_against_lost_updates(store: HookStore) -> None:
    """The tag of the hook, of the file, or any: else the edit is stale and nothing is changed."""
    assert store.create("error", LS, True, [ABSENT]).id == "hook_01"
    with pytest.raises(StaleEdit):
        store.create("error", LS, True, [ABSENT])
    hook, whole = store.get("hook_01"), store.snapshot().etag
    store.create("error", LS, True, [whole])
    assert store.get("hook_01").etag == hook.etag
    toggled = store.toggle("hook_01", [hook.etag])
    for edit in (
        lambda: store.toggle("hook_01", [hook.etag]),
        lambda: store.replace("hook_01", "error", LS, True, [whole, hook.etag]),
        lambda: store.delete("hook_01", [hook.etag]),
        lambda: store.replace_file(b"{}", [whole]),
    ):
        with pytest.raises(StaleEdit):
            edit()
    assert store.get("hook_01") == toggled
    store.delete("hook_01", ["*"])


@pytest.mark.parametrize("broken", [b'{"hooks": {', b"", b"[]", b'{"hooks": 5}', b"\xff"])
def test_a_broken_file_is_told_and_can_be_replaced(store: HookStore, workspace: Path, broken: bytes) -> None:
    """Nothing edits it; a whole new file takes its place, a copy of the broken one stays beside it."""
    write(workspace, by_hand("ls"))
    assert ids(store) == ["hook_01"]
    write(workspace, broken)
    for use in (store.snapshot, lambda: store.create("error", LS, True), lambda: store.delete("hook_01")):
        with pytest.raises(FileBroken) as caught:
            use()
        assert caught.value.etag == file_etag(broken)
    with pytest.raises(StaleEdit):
        store.replace_file(b"{}", ['"other"'])
    expected = [file_etag(broken)]
    snapshot, copy = store.replace_file(by_hand("ls", "true").encode(), expected)
    assert [hook.id for hook in snapshot.hooks] == ["hook_01", "hook_02"]
    assert copy == str(workspace / "hooks.json.broken")
    assert Path(copy).read_bytes() == broken
    write(workspace, broken)
    assert store.replace_file(b"{}")[1] == str(workspace / "hooks.json.broken-2")
    assert store.replace_file(by_hand("true").encode())[1] is None


def test_a_file_that_is_too_large_can_be_replaced(store: HookStore, workspace: Path) -> None:
    """It is not read, but its copy is kept whole."""
    large = write(workspace, b" " * (prx_rules.MAX_FILE_BYTES + 1))
    for use in (store.snapshot, lambda: store.toggle("hook_01")):
        with pytest.raises(FileBroken, match="more than 1048576 bytes") as caught:
            use()
        assert caught.value.etag == TOO_LARGE
    _, copy = store.replace_file(by_hand("ls").encode(), [TOO_LARGE])
    assert copy is not None
    assert Path(copy).read_bytes() == large


def test_what_is_no_file_is_told(store: HookStore, workspace: Path) -> None:
    """A folder of that name is neither read nor replaced."""
    (workspace / "hooks.json").mkdir()
    for use in (store.snapshot, lambda: store.create("error", LS, True), lambda: store.replace_file(b"{}")):
        with pytest.raises(StoreUnusable, match="this is a folder"):
            use()


def test_a_workspace_that_is_gone_is_told(store: HookStore, workspace: Path) -> None:
    """An edit that cannot write says so."""
    workspace.rmdir()
    with pytest.raises(StoreUnusable, match="cannot be edited: No such file or directory") as caught:
        store.create("error", LS, True)
    assert caught.value.hint is None


def test_a_link_is_followed_and_stays(store: HookStore, workspace: Path, tmp_path: Path) -> None:
    """People link their configuration: the file behind the link is replaced, with its mode."""
    real = tmp_path / "dotfiles.json"
    real.write_text(by_hand("ls"))
    real.chmod(0o640)
    (workspace / "hooks.json").symlink_to(real)
    store.create("error", LS, True)
    assert (workspace / "hooks.json").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert len(json.loads(real.read_text())["hooks"]["error"]) == 2


def test_an_edit_that_meets_a_save_begins_again(
    store: HookStore, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person saves while an edit is made: both are in the file."""
    write(workspace, by_hand("ls"))
    real, saves = prx_edit.add_action, [by_hand("ls", "pwd")]

    def slow(*arguments: Any) -> bytes:
        if saves:
            write(workspace, saves.pop())
        return real(*arguments)

    monkeypatch.setattr(hook_store, "add_action", slow)
    store.create("error", {"command": "true"}, True)
    assert [hook.action["command"] for hook in store.snapshot().hooks] == ["ls", "pwd", "true"]


def test_a_file_that_is_saved_all_the_time_is_told(
    store: HookStore, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit gives up after some tries, keeps no copy, and leaves the file to the other program."""
    saves = iter(range(100))

    def restless(*_: Any) -> bytes:
        write(workspace, by_hand(*["ls"] * next(saves)))
        return b"{}"

    monkeypatch.setattr(hook_store, "add_action", restless)
    with pytest.raises(StoreBusy, match="saved all the time"):
        store.create("error", LS, True)
    write(workspace, b"{")
    monkeypatch.setattr(hook_store, "check_room", lambda _: write(workspace, b"{" + b" " * next(saves)))
    with pytest.raises(StoreBusy, match="saved all the time"):
        store.replace_file(b"{}")
    assert sorted(os.listdir(workspace)) == [".hooks.json.lock", "hooks.json"]


def test_who_waits_too_long_for_the_lock_is_told(
    store: HookStore, open_store: Callable[[], HookStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process, or another thread, that holds the lock costs a deadline and no change."""
    monkeypatch.setattr(hook_store_files, "LOCK_SECONDS", 0.05)
    holder = open_store()
    for held in (holder._file, store._file, holder._state):
        with held.locked(), pytest.raises(StoreBusy, match="being edited by others"):
            store.create("error", LS, True)
    assert ids(store) == []


def test_turns_come_in_order_and_are_given_up() -> None:
    """Who asked first is first; one that waited in vain is passed over, and the lock is not lost."""
    turns, order = hook_store_files.Turns(), list[int]()
    assert turns.take(0)
    assert not turns.take(0.01)

    def wait(number: int) -> None:
        assert turns.take(30)
        order.append(number)
        turns.give()

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        while len(turns._waiting) <= number:
            threading.Event().wait(0.001)
    turns.give()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]
    assert turns.take(0)


def test_leftovers_of_a_killed_writer_do_not_matter(store: HookStore, workspace: Path) -> None:
    """A half-written temporary file is removed, never used."""
    (workspace / ".hooks.json.new").write_text("{")
    store.create("error", LS, True)
    assert sorted(os.listdir(workspace)) == [".hooks.json.lock", "hooks.json"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"hooks": [[1]]}', '{"hooks": 5, "next": 1}'])
def test_a_damaged_state_costs_no_hook(
    store: HookStore, workspace: Path, tmp_path: Path, open_store: Callable[[], HookStore], damage: str
) -> None:
    """Ids are given anew in file order."""
    write(workspace, by_hand("ls", "true"))
    store.snapshot()
    (kept,) = (tmp_path / "state").glob("*.json")
    kept.write_text(damage)
    assert ids(open_store()) == ["hook_01", "hook_02"]


def test_a_state_that_cannot_be_written_is_survived(
    store: HookStore, workspace: Path, tmp_path: Path
) -> None:
    """Hooks are listed and edited all the same."""
    (tmp_path / "state").write_text("in the way")
    write(workspace, by_hand("ls"))
    assert ids(store) == ["hook_01"]
    assert store.create("error", LS, True).id == "hook_02"


@pytest.mark.parametrize("is_there_first", [True, False])
def test_an_id_is_not_given_twice_without_a_state(
    store: HookStore, workspace: Path, tmp_path: Path, is_there_first: bool
) -> None:
    """While the store lives it knows itself which ids it gave, also where the state is old or lost."""
    state = tmp_path / "state"
    if is_there_first:
        store.create("error", LS, True)
        shutil.rmtree(state)
    state.write_text("in the way")
    names = [store.create("error", LS, True).id for _ in range(3)]
    store.delete(names[-1])
    assert store.create("error", LS, True).id not in names
    write(workspace, by_hand("ls", "true"))
    first = ids(store)
    write(workspace, by_hand("true"))
    assert ids(store) == first[1:]
    state.unlink()
    assert store.create("error", LS, True).id not in [*names, *first]


def test_a_copy_goes_with_an_edit_that_failed(
    store: HookStore, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a file that cannot be written nor a copy that cannot leaves anything beside the broken one."""
    broken = write(workspace, "{")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    for module, name in ((os, "rename"), (shutil, "copyfileobj")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(StoreUnusable, match="no space left"):
                store.replace_file(b"{}")
        assert [path.name for path in workspace.glob("hooks.json*")] == ["hooks.json"]
    assert (workspace / "hooks.json").read_bytes() == broken


def test_a_folder_that_cannot_be_synced_fails_no_edit(
    store: HookStore, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is replaced by then, and that is what is told."""
    open_it = os.open

    def refusing(path: str, flags: int, *mode: int) -> int:
        if flags & os.O_DIRECTORY:
            raise OSError(errno.EMFILE, "too many open files")
        return open_it(path, flags, *mode)

    monkeypatch.setattr(os, "open", refusing)
    assert store.create("error", LS, True).id == "hook_01"
    assert ids(store) == ["hook_01"]


def test_many_threads_lose_nothing(store: HookStore, workspace: Path) -> None:
    """Edits from eight threads are all there in the end, and a reader meets nothing but whole files."""
    stop, seen = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            if (workspace / "hooks.json").exists():
                seen.append(len(prx.parse((workspace / "hooks.json").read_bytes(), "f").specs))

    def edit(number: int) -> None:
        for _ in range(3):
            name = store.create("error", {"command": "true", "args": [str(number)]}, True).id
            store.replace(name, "tool_call", {"command": "true"}, True)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    stop.set()
    reader.join()
    assert [hook.event for hook in store.snapshot().hooks] == ["tool_call"] * 24
    assert len(set(ids(store))) == 24
    assert seen == sorted(seen)
