"""Edits of files at their bounds: large ones, full ones, deep ones. What is written can be read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects import prx, prx_rules
from subscribers.sources.hook_store import EditRefused, HookMissing, HookStore

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
    data = json.dumps(document).encode()
    (workspace / "hooks.json").write_bytes(data)
    return data


def filled(free: int, *actions: dict[str, Any]) -> dict[str, Any]:
    """A file of these actions with ``free`` bytes less than the largest."""
    document: dict[str, Any] = {"hooks": {"error": list(actions)}, "note": ""}
    document["note"] = "x" * (prx.MAX_FILE_BYTES - free - len(json.dumps(document)))
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
