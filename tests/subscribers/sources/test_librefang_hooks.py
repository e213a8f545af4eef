"""The hooks of a home over time: what each scan puts in force, and what it says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from subscribers.sources.librefang_hooks import HomeHooks, Scan
from subscribers.sources.resolve import Resolved
from tests.integration.waiting import until

GOOD = "name: {name}\nevents: [agent:end]\ncommand: /bin/sh\n"


class Home:
    """A home, and what its scans said."""

    def __init__(self, path: Path, *, follows: bool = False) -> None:
        self.path = path
        self.scans: list[Scan] = []
        self.errors: list[Exception] = []
        (path / "hooks").mkdir(exist_ok=True)
        self.hooks = HomeHooks(str(path), self.scans.append, self.errors.append, follows=follows)

    def write(self, name: str, text: str = GOOD) -> Path:
        """A hook of that name."""
        file = self.path / "hooks" / name / "HOOK.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.format(name=name))
        return file

    @property
    def names(self) -> list[str | None]:
        """The hooks in force."""
        return [spec.name for spec in self.hooks.plan.specs]

    def scan(self) -> tuple[list[str], list[str], list[str], list[str]]:
        """Scan: the folders added, changed and removed, and the codes of what is new to say."""
        found = self.hooks.load()
        assert self.scans[-1] is found
        return (
            [Path(state.path).parent.name for state in found.added],
            [Path(state.path).parent.name for state in found.changed],
            [Path(path).parent.name for path in found.removed],
            [diagnostic.code for diagnostic in found.diagnostics],
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home(tmp_path)


def test_a_scan_puts_in_force_what_is_there(home: Home) -> None:
    """Hooks are in the order of their folders, each with its program and its own folder."""
    home.write("z-hook")
    home.write("a-hook")
    assert home.scan() == (["a-hook", "z-hook"], [], [], [])
    assert home.names == ["a-hook", "z-hook"]
    assert (home.hooks.count, home.scans[-1].hooks) == (2, 2)
    found = home.hooks.resolve(home.hooks.plan.specs[0])
    assert found == Resolved("/bin/sh", str(home.path / "hooks" / "a-hook"))


def test_a_rescan_tells_what_was_added_changed_and_removed(home: Home) -> None:
    """What did not change is not mentioned; an old plan that is in use stays as it was."""
    home.write("stays")
    home.write("changes")
    gone = home.write("goes")
    home.scan()
    plan = home.hooks.plan
    home.write("comes")
    home.write("changes", GOOD.replace("agent:end", "agent:start"))
    gone.unlink()
    assert home.scan() == (["comes"], ["changes"], ["goes"], ["no_hook_file"])
    assert home.names == ["changes", "comes", "stays"]
    assert [spec.name for spec in plan.specs] == ["changes", "goes", "stays"]
    assert home.scan() == ([], [], [], [])


def test_a_file_that_breaks_keeps_its_last_good_hook_and_says_so(home: Home) -> None:
    """No other is concerned; corrected, it is in force again; unchanged, it is not mentioned again."""
    home.write("other")
    home.write("breaks")
    home.scan()
    home.write("breaks", "name: [\n")
    assert home.scan() == ([], [], [], ["kept_last_good", "not_yaml"])
    assert home.names == ["breaks", "other"]
    assert "SIGHUP" in str(home.scans[-1].diagnostics[0].hint)
    assert home.scan() == ([], [], [], [])
    home.write("breaks", GOOD.replace("agent:end", "session:end"))
    assert home.scan() == ([], ["breaks"], [], [])


def test_a_file_that_never_was_good_has_no_hook(home: Home) -> None:
    """Its siblings run, and it runs as soon as it is good."""
    home.write("good")
    home.write("bad", "events: []\n")
    added, _, _, codes = home.scan()
    assert (added, home.names) == (["good"], ["good"])
    assert codes[0] == "no_hooks_run"
    home.write("bad")
    assert home.scan() == (["bad"], [], [], [])


def test_a_folder_that_goes_takes_its_hook_along(home: Home) -> None:
    """Also one that broke before; and with the whole folder everything goes."""
    file = home.write("a")
    home.scan()
    file.write_text("name: [\n")
    home.scan()
    file.unlink()
    file.parent.rmdir()
    assert home.scan() == ([], [], ["a"], [])
    home.write("b")
    home.scan()
    (home.path / "hooks").rename(home.path / "elsewhere")
    assert home.scan() == ([], [], ["b"], [])


def test_a_scan_that_fails_changes_nothing(home: Home) -> None:
    """The last set stays in force, and an error says why."""
    home.write("a")
    home.scan()
    (home.path / "hooks").rename(home.path / "elsewhere")
    (home.path / "hooks").write_text("no folder")
    assert home.scan() == ([], [], [], ["scan_failed"])
    assert home.scans[-1].failed
    assert (home.names, home.scans[-1].hooks) == (["a"], 1)


def test_two_hooks_may_have_the_same_name(home: Home) -> None:
    """They are told apart by their files, also where runs are counted."""
    home.write("a", GOOD.replace("{name}", "same"))
    home.write("b", GOOD.replace("{name}", "same"))
    home.scan()
    assert home.names == ["same", "same"]
    assert len({spec.key for spec in home.hooks.plan.specs}) == 2


def test_a_link_without_a_file_is_no_hook(home: Home) -> None:
    """There is nothing to read, so there is nothing in force."""
    (home.path / "hooks" / "a").mkdir()
    (home.path / "hooks" / "a" / "HOOK.yaml").symlink_to("/nowhere")
    assert home.scan() == ([], [], [], [])


def test_a_program_that_is_missing_is_said_until_it_is_there(home: Home) -> None:
    """The hook is in force: its program may come. Each scan looks again, and only news are told."""
    file = home.write("a", GOOD.replace("/bin/sh", "./run.sh"))
    assert home.scan() == (["a"], [], [], ["missing_command"])
    assert home.scan() == ([], [], [], [])
    (file.parent / "run.sh").write_text("#!/bin/sh\n")
    assert home.scan() == ([], [], [], ["not_executable"])
    (file.parent / "run.sh").chmod(0o755)
    assert home.scan() == ([], [], [], [])


@contextmanager
def following(home: Home) -> Iterator[None]:
    """Follow the home meanwhile."""
    home.hooks.load()
    home.hooks.start()
    try:
        yield
    finally:
        home.hooks.stop()


def test_a_home_can_be_followed(tmp_path: Path) -> None:
    """An edit, a new hook and a removal are in force soon, without being asked for."""
    home = Home(tmp_path, follows=True)
    file = home.write("a")
    with following(home):
        home.write("b")
        until(lambda: home.names == ["a", "b"], "the new hook")
        file.unlink()
        until(lambda: home.names == ["b"], "the removal")
    assert home.errors == []


def test_a_follower_survives_what_fails(tmp_path: Path) -> None:
    """What a listener raises is told, and the next change is followed."""
    home = Home(tmp_path, follows=True)
    home.hooks.load()
    broken = threading.Event()

    def fail(scan: Scan) -> None:
        if not broken.is_set():
            broken.set()
            raise RuntimeError("listener")

    home.hooks = HomeHooks(str(tmp_path), fail, home.errors.append, follows=True)
    home.hooks.start()
    try:
        home.write("a")
        until(lambda: home.errors, "the failure")
        home.write("b")
        until(lambda: home.names == ["a", "b"], "the next change")
    finally:
        home.hooks.stop()


def test_a_home_that_is_not_followed_changes_when_asked(home: Home) -> None:
    """start and stop do nothing then."""
    with following(home):
        home.write("a")
    assert home.names == []
    assert home.scan()[0] == ["a"]
