"""Edits of files at their bounds: large ones, full ones, deep ones. What is written can be read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects import prx, prx_edit, prx_ids, prx_rules
from subscribers.sources.hook_store import EditRefused, FileRefused, HookMissing, HookStore
from subscribers.sources.hook_store_state import StateFile

NOW = 1_774_080_000.0


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def store(workspace: Path, tmp_path: Path) -> HookStore:
    """The workspace's store."""
    return HookStore(str(workspace), str(tmp_path / "state"), "/usr/bin", now=lambda: NOW)


def write(workspace: Path, document: Any) -> bytes:
    """Save a hooks.json; its bytes."""
    data = json.dumps(document, separators=(",", ":")).encode()
    (workspace / "hooks.json").write_bytes(data)
    return data


def filled(free: int, *actions: dict[str, Any]) -> dict[str, Any]:
    """A file of these actions with ``free`` bytes less than the largest."""
    document: dict[str, Any] = {"hooks": {"error": list(actions)}, "note": ""}
    document["note"] = "x" * (prx.MAX_FILE_BYTES - free - len(json.dumps(document, separators=(",", ":"))))
    return document


def test_a_toggle_that_does_not_fit_is_refused(store: HookStore, workspace: Path) -> None:
    """The file is then what it was, and is listed as before."""
    before = write(workspace, filled(20, {"command": "ls"}, {"command": "true"}))
    with pytest.raises(EditRefused, match=f"more than {prx.MAX_FILE_BYTES}"):
        store.toggle("hook_01")
    assert (workspace / "hooks.json").read_bytes() == before
    assert [hook.enabled for hook in store.snapshot().hooks] == [True, True]


def test_a_toggle_goes_before_what_is_kept_of_others(store: HookStore, workspace: Path) -> None:
    """Where ids and times of all hooks find no room, those of this one alone are written."""
    actions = [{"command": "ls"}] * 100
    write(workspace, filled(200, *actions))
    assert not store.toggle("hook_07").enabled
    text = (workspace / "hooks.json").read_bytes()
    assert len(text) <= prx.MAX_FILE_BYTES
    written = json.loads(text)["hooks"]["error"]
    assert [index for index, action in enumerate(written) if action != {"command": "ls"}] == [6]
    assert [hook.id for hook in store.snapshot().hooks] == [f"hook_{n:02d}" for n in range(1, 101)]


def test_a_delete_is_never_refused_for_want_of_room(store: HookStore, workspace: Path) -> None:
    """It writes no ids then, and the others keep theirs, equal ones too."""
    write(workspace, filled(20, *[{"command": "ls"}] * 4))
    store.delete("hook_02")
    assert json.loads((workspace / "hooks.json").read_bytes())["hooks"]["error"] == [{"command": "ls"}] * 3
    assert [hook.id for hook in store.snapshot().hooks] == ["hook_01", "hook_03", "hook_04"]
    with pytest.raises(HookMissing):
        store.get("hook_02")


def test_a_file_of_too_many_actions_can_be_thinned_out(store: HookStore, workspace: Path) -> None:
    """The number of actions that run keeps nobody from switching one off or deleting it."""
    write(workspace, {"hooks": {"error": [{"command": "ls"}] * (prx_rules.MAX_ACTIONS + 4)}})
    assert not store.toggle("hook_03").enabled
    store.delete("hook_01")
    assert len(store.snapshot().hooks) == prx_rules.MAX_ACTIONS + 3


@pytest.mark.parametrize("alike", [True, False])
def test_the_largest_file_is_recognised_and_kept(
    store: HookStore, workspace: Path, tmp_path: Path, alike: bool
) -> None:
    """As many actions as can be edited, of long names and commands: ids hold over a change by hand."""
    long = "\x01" * prx_ids.LONGEST
    known = [
        prx_ids.Known("i" * 64, long, long, "d" * 32, "2026-03-21T08:00:00.123456789Z", "t" * 30)
    ] * prx_edit.MAX_LISTED
    state = StateFile(str(tmp_path / "largest"), str(workspace / "hooks.json"))
    with state.locked():
        state.save(prx_ids.Ledger(7, tuple(known)))
    assert state.load() == prx_ids.Ledger(7, tuple(known))
    actions = [
        {"command": "ls", "args": ["" if alike else str(number)]} for number in range(prx_edit.MAX_LISTED)
    ]
    write(workspace, {"hooks": {"error": actions}})
    first = [hook.id for hook in store.snapshot().hooks]
    write(workspace, {"hooks": {"error": [*actions[:500], *actions[501:]]}})
    after = [hook.id for hook in store.snapshot().hooks]
    assert len(set(after)) == len(after) == prx_edit.MAX_LISTED - 1
    assert set(after) <= set(first)
    if not alike:
        assert after == [*first[:500], *first[501:]]


def test_more_than_can_be_edited_is_told_and_replaced(store: HookStore, workspace: Path) -> None:
    """However many there are, nothing is recognised of them; a whole new file puts it right."""
    many: list[dict[str, Any]] = [
        {"error": [{}] * 250_000},
        {f"a{number}": [] for number in range(60_000)},
    ]
    for hooks in many:
        write(workspace, {"hooks": hooks})
        for call in (store.snapshot, lambda: store.toggle("hook_01"), lambda: store.delete("hook_01")):
            with pytest.raises(FileRefused, match=f"are more than {prx_edit.MAX_LISTED}"):
                call()
        snapshot, copy = store.replace_file(b'{"hooks": {"error": [{"command": "ls"}]}}')
        assert len(snapshot.hooks) == 1
        assert copy is not None
