"""A workspace's hooks: loaded, followed, swapped in one step, and everything said that is to be said."""

import json
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects import prx
from subscribers.sources.hook_source import SourceState
from subscribers.sources.resolve import Resolved
from subscribers.sources.workspace_hooks import WorkspaceHooks

DEADLINE_S = 30.0

Start = Callable[..., WorkspaceHooks]


@pytest.fixture
def updates() -> "queue.Queue[SourceState]":
    """The states that were reported."""
    return queue.Queue()


@pytest.fixture
def start(tmp_path: Path, updates: "queue.Queue[SourceState]") -> Iterator[Start]:
    """A function that opens the hooks of the test's workspace; they are stopped afterwards."""
    opened = []
    errors: list[Exception] = []

    def open_hooks(**options: Any) -> WorkspaceHooks:
        options.setdefault("on_update", updates.put)
        hooks = WorkspaceHooks(str(tmp_path), prx, "/nonexistent/bin", on_error=errors.append, **options)
        opened.append(hooks)
        return hooks

    yield open_hooks
    for hooks in opened:
        hooks.stop()
    assert errors == []


def write(folder: Path, *commands: str, event: str = "error") -> None:
    """A hooks.json with these commands for one event, written as careful programs do."""
    text = json.dumps({"hooks": {event: [{"command": command} for command in commands]}})
    temporary = folder / "hooks.json.new"
    temporary.write_text(text)
    temporary.rename(folder / "hooks.json")


def commands(hooks: WorkspaceHooks, event: str = "error") -> list[str]:
    """What an event would start now."""
    return [spec.command for spec in hooks.plan.for_event(event)]


def test_before_the_first_look_nothing_is_in_force(tmp_path: Path, start: Start) -> None:
    """A workspace that was not loaded has an empty plan."""
    write(tmp_path, "sh")
    hooks = start()
    assert (len(hooks.plan), hooks.state.status) == (0, "unread")
    assert hooks.path == str(tmp_path / "hooks.json")


def test_loading_fills_the_plan_and_tells_once(
    tmp_path: Path, start: Start, updates: "queue.Queue[SourceState]"
) -> None:
    """The first load reports its state; a second one of the same file has nothing to say."""
    write(tmp_path, "sh", "true")
    hooks = start()
    assert hooks.load() is hooks.state
    assert commands(hooks) == ["sh", "true"]
    hooks.load()
    assert updates.get_nowait() is hooks.state
    assert updates.empty()


def test_what_cannot_run_here_is_said_and_stays_in_the_plan(tmp_path: Path, start: Start) -> None:
    """A missing program is a diagnostic at load; the decision is made when the event comes."""
    write(tmp_path, "no-such-program-here")
    hooks = start()
    (said,) = hooks.load().diagnostics
    assert (said.severity, said.code, said.line) == ("warning", "missing_command", 1)
    assert commands(hooks) == ["no-such-program-here"]


def test_a_spec_is_resolved_in_the_workspace(tmp_path: Path, start: Start) -> None:
    """The program and folder of a run are found from this workspace, at that moment."""
    write(tmp_path, "./late.sh")
    hooks = start()
    hooks.load()
    (tmp_path / "late.sh").write_text("#!/bin/sh\n")
    (tmp_path / "late.sh").chmod(0o755)
    expected = Resolved(str(tmp_path / "late.sh"), str(tmp_path))
    assert hooks.resolve(hooks.plan.specs[0]) == expected


def test_a_workspace_without_a_file_has_no_hooks(start: Start) -> None:
    """No hooks.json is information, not an error."""
    state = start().load()
    assert (state.status, [d.severity for d in state.diagnostics]) == ("absent", ["info"])


def test_a_broken_file_at_start_runs_nothing_and_says_so(tmp_path: Path, start: Start) -> None:
    """Invalid at start: no hooks, an error that says it, and the place of the fault."""
    (tmp_path / "hooks.json").write_text('{"hooks": {\n"error": [}')
    hooks = start()
    state = hooks.load()
    assert (state.status, len(hooks.plan)) == ("refused", 0)
    assert [(d.severity, d.code, d.line) for d in state.diagnostics] == [
        ("error", "no_hooks_run", None),
        ("error", "not_json", 2),
    ]


@pytest.mark.parametrize("notify", [True, False])
def test_edits_take_effect_and_mistakes_do_not(
    notify: bool, tmp_path: Path, start: Start, updates: "queue.Queue[SourceState]"
) -> None:
    """Followed through a life: edit, half-written file, correction, deletion, return."""
    write(tmp_path, "sh")
    hooks = start(notify=notify)
    hooks.load()
    hooks.start()
    assert updates.get(timeout=DEADLINE_S).status == "good"

    write(tmp_path, "sh", "true")
    assert updates.get(timeout=DEADLINE_S).status == "good"
    assert commands(hooks) == ["sh", "true"]

    whole = (tmp_path / "hooks.json").read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "half").rename(tmp_path / "hooks.json")
    kept = updates.get(timeout=DEADLINE_S)
    assert (kept.status, kept.diagnostics[0].code) == ("kept", "kept_last_good")
    assert commands(hooks) == ["sh", "true"]

    write(tmp_path, "false")
    assert updates.get(timeout=DEADLINE_S).status == "good"
    assert commands(hooks) == ["false"]

    (tmp_path / "hooks.json").unlink()
    assert updates.get(timeout=DEADLINE_S).diagnostics[0].code == "file_deleted"
    assert commands(hooks) == []

    write(tmp_path, "sh")
    assert updates.get(timeout=DEADLINE_S).status == "good"
    assert commands(hooks) == ["sh"]
    assert updates.empty()


def test_an_event_in_progress_keeps_its_plan(tmp_path: Path, start: Start) -> None:
    """Whoever took the plan before an edit still has the old set, complete."""
    write(tmp_path, "sh", "true")
    hooks = start()
    hooks.load()
    taken = hooks.plan
    write(tmp_path, "false")
    hooks.load()
    assert [spec.command for spec in taken.for_event("error")] == ["sh", "true"]
    assert commands(hooks) == ["false"]


def test_a_reader_sees_one_set_or_the_other(tmp_path: Path, start: Start) -> None:
    """While sets of different sizes are swapped, no reader ever sees a mixture."""
    write(tmp_path, *["a"] * 5)
    hooks = start()
    hooks.load()
    mixtures = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            found = hooks.plan.for_event("error")
            if [spec.command for spec in found] not in (["a"] * 5, ["b"] * 9):
                mixtures.append(found)

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(50):
        write(tmp_path, *(["a"] * 5 if number % 2 else ["b"] * 9))
        hooks.load()
    done.set()
    reader.join()
    assert mixtures == []


def test_a_listener_may_load_again(tmp_path: Path, start: Start) -> None:
    """Loading from within a report is answered with the state that is being reported."""
    write(tmp_path, "sh")
    seen: list[bool] = []
    opened: list[WorkspaceHooks] = []
    opened.append(start(on_update=lambda state: seen.append(opened[0].load() is state)))
    opened[0].load()
    assert seen == [True]
