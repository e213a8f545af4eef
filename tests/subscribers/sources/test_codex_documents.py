"""Hook files as they are now: taken in at the next event, the last good content kept, limits shared."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subscribers.config.hook_files import HookFile
from subscribers.dialects.codex_profiles import BITFUN
from subscribers.hooks.diagnostics import Diagnostic
from subscribers.sources.codex_documents import Configured, Documents, Places, Snapshot
from subscribers.sources.codex_guards import GuardRecord
from subscribers.sources.codex_layers import WARNING, Switches


class Machine:
    """Hook files in a folder, and everything that was told of them."""

    def __init__(self, root: Path) -> None:
        self.config, self.workspace = root / "config", root / "workspace"
        self.configured: Configured | None = Configured(Switches())
        self.slow: Callable[[], Configured | None] | None = None
        self.snapshots: list[Snapshot] = []
        self.told: list[Diagnostic] = []
        environ = {"XDG_CONFIG_HOME": str(root / "xdg")}
        self.bitfun = root / "xdg" / "bitfun" / "config"
        self.settings = self.config / "prxbus.toml"
        places = Places(str(self.config), str(self.workspace), (str(self.settings),))
        self.documents = Documents(places, self._configured, self._changed, environ)

    def _configured(self) -> Configured | None:
        return self.configured if self.slow is None else self.slow()

    def _changed(self, snapshot: Snapshot, fresh: tuple[Diagnostic, ...]) -> None:
        self.snapshots.append(snapshot)
        self.told += fresh

    def write(self, folder: Path, document: Any, *, aged: bool = True) -> Path:
        """A hook file; one that is ``aged`` was written a while ago."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "hooks.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        if aged:
            os.utime(path, (1, 1))
        return path

    def switch(self, switches: Switches, *files: HookFile) -> None:
        """Another configuration."""
        self.configured = Configured(switches, files)
        self.config.mkdir(exist_ok=True)
        self.settings.write_text(f"# {switches} {files}")

    def commands(self) -> list[str]:
        """What is in force for an event that comes now."""
        return [handler.command for handler in self.documents.current().handlers]

    def codes(self) -> list[str]:
        """The codes of all that was told since the last time."""
        told, self.told = self.told, []
        return [each.code for each in told]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without any hook file."""
    return Machine(tmp_path)


def of(*commands: str) -> dict[str, Any]:
    """A document with these commands."""
    handlers = [{"type": "command", "command": command} for command in commands]
    return {"hooks": {"Stop": [{"hooks": handlers}]}}


def test_a_change_counts_from_the_next_event_on(machine: Machine) -> None:
    """A file that comes, changes and goes is seen at the next look; a snapshot in use never changes."""
    assert machine.commands() == []
    machine.write(machine.config, of("a"))
    before = machine.documents.current()
    assert [handler.command for handler in before.handlers] == ["a"]
    machine.write(machine.config, of("b", "c"))
    assert machine.commands() == ["b", "c"]
    assert [handler.command for handler in before.handlers] == ["a"]
    assert [handler.order for handler in machine.documents.current().handlers] == [0, 1]
    (machine.config / "hooks.json").unlink()
    assert machine.commands() == []
    assert machine.codes() == ["file_deleted"]


def test_an_edit_within_the_clocks_grain_is_seen(machine: Machine) -> None:
    """A file of the same size and times as one that was just written is read once more."""
    path = machine.write(machine.config, of("a"), aged=False)
    assert machine.commands() == ["a"]
    times = os.stat(path)
    path.write_text(json.dumps(of("b")))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert machine.commands() == ["b"]


def test_nothing_new_is_no_new_snapshot(machine: Machine) -> None:
    """What was read before is not put together again, nor told again, also when somebody asks to look."""
    machine.write(machine.config, of("a"))
    machine.documents.current()
    machine.documents.look_again()
    assert machine.documents.current() is machine.documents.look_again()
    assert len(machine.snapshots) == 1
    assert machine.documents.signature() == machine.documents.signature()


def test_a_broken_file_keeps_its_last_good_content(machine: Machine) -> None:
    """It is said that it does; a file that never was good has none, and harms no other."""
    machine.write(machine.config, of("a"))
    assert machine.commands() == ["a"]
    machine.write(machine.config, "{")
    assert machine.commands() == ["a"]
    assert machine.codes() == ["kept_last_good", "not_json", "upstream_refuses"]
    machine.write(machine.config, of("b"))
    assert machine.commands() == ["b"]
    machine.switch(Switches(project=True))
    machine.write(machine.workspace / ".prxbus", '{"PreToolUse": []}')
    assert machine.commands() == ["b"]
    states = {state.layer.name: state.status for state in machine.documents.current().states}
    assert states == {"user": "good", "project": "refused"}
    machine.write(machine.config, of("b"))
    (machine.config / "hooks.json").unlink()
    (machine.config / "hooks.json").mkdir()
    assert machine.commands() == ["b"]
    assert "not_a_file" in machine.codes()


def test_a_large_change_delays_an_event_for_as_long_as_it_allows(machine: Machine) -> None:
    """What was in force before still is; reading goes on beside it, once, and counts when it is done."""
    machine.write(machine.config, of("a"))
    assert machine.commands() == ["a"]
    go, reading = threading.Event(), threading.Event()

    def slow() -> Configured | None:
        reading.set()
        assert go.wait(30)
        return machine.configured

    machine.slow = slow
    machine.write(machine.config, of("b"))
    for _ in range(2):
        assert [each.command for each in machine.documents.current(within=0.01).handlers] == ["a"]
    assert reading.is_set()
    go.set()
    assert [each.command for each in machine.documents.current(within=30).handlers] == ["b"]
    machine.slow = None
    assert machine.commands() == ["b"]


def test_whoever_waits_for_a_change_hears_that_it_failed(machine: Machine) -> None:
    """As whoever reads it alone does."""

    def broken() -> Configured | None:
        raise ZeroDivisionError

    machine.slow = broken
    for within in (30.0, None):
        with pytest.raises(ZeroDivisionError):
            machine.documents.current(within)


def test_a_file_that_is_named_twice_is_in_force_once(machine: Machine) -> None:
    """By its own name or that of a link, and it is said; what keeps it in force when it breaks stays, too."""
    path = machine.write(machine.config, of("a"))
    link = machine.config / "link.json"
    link.symlink_to(path)
    for name in (path, link):
        machine.switch(Switches(), HookFile(str(name), "codex", False))
        assert machine.commands() == ["a"]
        assert "it is a file that runs already, and runs once: user" in machine.told[-1].message
        assert machine.documents.current().layers[str(path)].off is None
    path.write_text("{")
    assert machine.commands() == ["a"]
    assert "kept_last_good" in machine.codes()


def test_switches_count_from_the_next_event_on(machine: Machine) -> None:
    """Off is off at once and said, with the page's warning; a faulty configuration changes nothing."""
    machine.write(machine.config, of("u"))
    machine.write(machine.workspace / ".prxbus", of("p"))
    assert machine.commands() == ["u"]
    assert [(each.code, each.hint) for each in machine.told] == [("switched_off", WARNING)]
    machine.switch(Switches(project=True))
    assert machine.commands() == ["u", "p"]
    assert machine.codes()[-1] == "project_hooks"
    machine.configured = None
    machine.settings.write_text("#")
    assert machine.commands() == ["u", "p"]
    machine.switch(Switches(enabled=False, project=True))
    assert machine.commands() == []
    machine.switch(Switches())
    machine.write(machine.config, "{")
    assert machine.commands() == [], "what was switched off has no last good content"


def test_bitfuns_places_count_with_its_own_switches(machine: Machine) -> None:
    """They are read when that is asked for; its app.json counts from the next event on, faults are told."""
    machine.write(machine.bitfun, of("b"))
    assert machine.commands() == []
    machine.switch(Switches(bitfun=True))
    assert machine.commands() == ["b"]
    (machine.bitfun / "app.json").write_text('{"app": {"hooks": {"enabled": 1}}}')
    assert machine.commands() == []
    assert machine.codes() == ["bad_switches", "switched_off"]


def test_a_failure_policy_of_a_file_is_its_handlers(machine: Machine) -> None:
    """Handlers of a file that was configured to block do so."""
    path = machine.write(machine.config / "more", of("a"))
    machine.switch(Switches(), HookFile(str(path), None, False, "block"))
    (handler,) = machine.documents.current().handlers
    assert (handler.on_failure, handler.profile) == ("block", "codex")


def test_what_fails_closed_is_known_beforehand(machine: Machine) -> None:
    """A failure policy means something where a failure can be a denial, not where it keeps a turn going."""
    events = ("PreToolUse", "UserPromptSubmit", "Stop", "SessionStart")
    groups = {event: [{"hooks": [{"type": "command", "command": "x"}]}] for event in events}
    path = machine.write(machine.workspace / "team", {"hooks": groups})
    machine.switch(Switches(), HookFile(str(path), "claude", False, "block"))
    snapshot = machine.documents.current()
    assert snapshot.closed == {"tool_call_start", "user_prompt", "session_start"}
    assert snapshot.guarded == {str(path): ("PreToolUse", "SessionStart", "UserPromptSubmit")}
    machine.switch(Switches(), HookFile(str(path), "claude", False))
    assert machine.documents.current().closed == frozenset()


def test_a_file_that_fails_closed_and_was_never_good_denies(machine: Machine) -> None:
    """What it guarded is denied until it can be used; where that is not known, all that can be blocked."""
    path = machine.write(machine.workspace / "team", "{")
    machine.switch(Switches(), HookFile(str(path), "codex", False, "block"))
    snapshot = machine.documents.current()
    assert [each.event for each in snapshot.handlers] == [
        "PreToolUse",
        "PermissionRequest",
        "UserPromptSubmit",
    ]
    assert {each.kind for each in snapshot.handlers} == {"refusal"}
    assert all(each.command.startswith(f"{path} fails closed") for each in snapshot.handlers)
    assert "guard_unusable" in machine.codes()
    places = Places(str(machine.config), None, (str(machine.settings),))
    known = {str(path): ("PreToolUse", "Stop", "Unheard")}
    again = Documents(places, lambda: machine.configured, lambda *_: None, {}, known).current()
    assert [each.event for each in again.handlers] == ["PreToolUse"]
    machine.write(machine.workspace / "team", of("a"))
    assert machine.commands() == ["a"]
    machine.write(machine.workspace / "team", "{")
    assert machine.commands() == ["a"], "its last good content is known now"


def test_a_file_that_fails_open_and_was_never_good_does_nothing(machine: Machine) -> None:
    """Only a policy that somebody set denies."""
    path = machine.write(machine.workspace / "team", "{")
    machine.switch(Switches(), HookFile(str(path), "claude", False))
    assert machine.commands() == []


def test_what_is_guarded_is_remembered(tmp_path: Path) -> None:
    """A record is what was written last; none and one that is damaged say nothing."""
    record = GuardRecord(str(tmp_path))
    assert record.read() == {}
    record.write({"/a": ("PreToolUse",)})
    assert record.read() == {"/a": ("PreToolUse",)}
    for damaged in ("", "[]", "{"):
        (tmp_path / "codex-guards.json").write_text(damaged)
        assert record.read() == {}
    record.write({})
    record.write({})
    assert list(tmp_path.iterdir()) == []


def test_what_may_start_something_is_known_beforehand(machine: Machine) -> None:
    """A tool call that failed is published as any other, and is an event of its own for Claude Code."""
    failed = {"hooks": {"PostToolUseFailure": [{"hooks": [{"type": "command", "command": "a"}]}]}}
    path = machine.write(machine.config / "claude", failed)
    machine.switch(Switches(), HookFile(str(path), "claude", False))
    assert machine.documents.current().topics == {"post_tool_use_failure", "tool_call"}
    machine.write(machine.config, of("b"))
    assert "turn_complete" in machine.documents.current().topics


def test_an_entry_that_asks_here_is_not_run_here(machine: Machine) -> None:
    """It would ask about its own asking, without end; the others of its file run."""
    machine.write(
        machine.config, of("prxbus hook --dialect codex", "/opt/x/prxbus hook --dialect codex", "true")
    )
    assert machine.commands() == ["true"]
    assert machine.codes() == ["asks_here"]


def test_handlers_are_counted_over_all_files(machine: Machine) -> None:
    """What a profile looks at in all is shared by its files in their order, as BitFun's page says."""
    machine.write(machine.bitfun, of(*["a"] * (BITFUN.max_handlers - 1)))
    machine.write(machine.workspace / ".bitfun" / "config", of("b", "c"))
    (machine.bitfun / "app.json").write_text('{"app": {"hooks": {"project_hooks_enabled": true}}}')
    machine.switch(Switches(bitfun=True))
    commands = machine.commands()
    assert len(commands) == BITFUN.max_handlers
    assert commands[-2:] == ["a", "b"]
    assert "too_many_handlers" in machine.codes()


def test_strict_gives_upstreams_effect(machine: Machine) -> None:
    """One bad handler costs the file; otherwise it costs itself."""
    bad = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}, {"type": "nonsense"}]}]}}
    machine.write(machine.config, bad)
    assert machine.commands() == ["a"]
    machine.switch(Switches(strict=True))
    machine.documents.current()
    state = machine.documents.snapshot.states[0]
    assert (state.status, state.handlers) == ("kept", 0)


def test_where_nothing_moves_looking_is_cheap(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two changes no file is read."""
    monkeypatch.setattr("subscribers.sources.codex_documents.RACY_NS", -(10**15))  # all of it is old
    machine.write(machine.config, of("a"))
    before = machine.documents.current()
    monkeypatch.setattr("subscribers.sources.codex_documents._read", lambda _layer: pytest.fail("read again"))
    assert machine.documents.current() is before
