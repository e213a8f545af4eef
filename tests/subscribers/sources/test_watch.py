"""Watching a file: every kind of edit is reported once the file stands still."""

import os
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from subscribers.sources.watch import GONE_S, SETTLE_S, UNSETTLED_S, FileWatcher, Rest

DEADLINE_S = 30.0  # far more than the second that a report may take: the machine may be busy

A, B = (1,), (2,)


@pytest.fixture(params=[True, False], ids=["notify", "look"])
def notify(request: pytest.FixtureRequest) -> bool:
    """With the kernel's notifications and without."""
    return bool(request.param)


class Reports:
    """What a watcher reports: the file's bytes at each report, None when it is away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: queue.Queue[bytes | None] = queue.Queue()
        self.errors: queue.Queue[Exception] = queue.Queue()

    def take(self) -> None:
        """Called by the watcher."""
        self._found.put(self._path.read_bytes() if self._path.exists() else None)

    def left(self) -> list[bytes | None]:
        """Reports that nobody waited for."""
        return [self._found.get_nowait() for _ in range(self._found.qsize())]

    def wait_for(self, text: bytes | None) -> None:
        """Wait until a report found this."""
        while self._found.get(timeout=DEADLINE_S) != text:
            pass


@contextmanager
def watching(path: Path, notify: bool) -> Iterator[Reports]:
    """A watcher at work, stopped afterwards."""
    reports = Reports(path)
    watcher = FileWatcher(str(path), reports.take, reports.errors.put, notify=notify)
    watcher.start()
    try:
        yield reports
    finally:
        watcher.stop()
    assert reports.errors.empty()


def write_in_place(path: Path) -> None:
    """An editor that truncates and writes."""
    path.write_bytes(b"new")


def replace_by_rename(path: Path) -> None:
    """An editor that writes a temporary file and renames it."""
    temporary = path.with_name(".hooks.json.swp")
    temporary.write_bytes(b"new")
    temporary.rename(path)


def keep_a_backup(path: Path) -> None:
    """An editor that renames the old file away and writes a new one."""
    path.rename(path.with_name("hooks.json~"))
    path.write_bytes(b"new")


def delete_and_create(path: Path) -> None:
    """A program that removes the file before it writes it."""
    path.unlink()
    path.write_bytes(b"new")


def keep_size_and_time(path: Path) -> None:
    """A copy that has the length and the modification time of the old file."""
    before = path.stat()
    path.write_bytes(b"new")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "edit", [write_in_place, replace_by_rename, keep_a_backup, delete_and_create, keep_size_and_time]
)
def test_every_way_to_edit_is_reported(edit: Callable[[Path], None], notify: bool, tmp_path: Path) -> None:
    """However a program writes the file, a report comes in which the new content is there, whole."""
    path = tmp_path / "hooks.json"
    path.write_bytes(b"old")
    with watching(path, notify) as reports:
        edit(path)
        reports.wait_for(b"new")


def test_a_file_may_come_and_go(notify: bool, tmp_path: Path) -> None:
    """Creation and deletion are reported like edits."""
    path = tmp_path / "hooks.json"
    with watching(path, notify) as reports:
        path.write_bytes(b"one")
        reports.wait_for(b"one")
        path.unlink()
        reports.wait_for(None)
        path.write_bytes(b"two")
        reports.wait_for(b"two")


def test_a_change_before_the_start_is_reported(notify: bool, tmp_path: Path) -> None:
    """What happens between construction and start is not lost."""
    path = tmp_path / "hooks.json"
    reports = Reports(path)
    watcher = FileWatcher(str(path), reports.take, reports.errors.put, notify=notify)
    path.write_bytes(b"early")
    watcher.start()
    try:
        reports.wait_for(b"early")
    finally:
        watcher.stop()


def test_an_edit_behind_a_link_is_reported(notify: bool, tmp_path: Path) -> None:
    """When hooks.json is a link, an edit of its target in another folder counts."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "hooks.json"
    target.write_bytes(b"old")
    path = tmp_path / "ws" / "hooks.json"
    path.symlink_to(target)
    with watching(path, notify) as reports:
        target.write_bytes(b"new")
        reports.wait_for(b"new")


def test_a_folder_that_is_missing_is_waited_for(tmp_path: Path) -> None:
    """Where there is nothing to be notified about, looking finds the folder and the file once they come."""
    path = tmp_path / "later" / "hooks.json"
    reports = Reports(path)
    watcher = FileWatcher(str(path), reports.take, reports.errors.put)
    assert watcher.mode == "notify"
    watcher.start()
    try:
        path.parent.mkdir()
        path.write_bytes(b"there")
        reports.wait_for(b"there")
    finally:
        watcher.stop()


def test_without_room_for_a_watch_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the kernel gives no watch, the mode changes and edits are still found."""

    def no_room(*_: object, **__: object) -> Iterator[object]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("watchfiles.watch", no_room)
    path = tmp_path / "hooks.json"
    reports = Reports(path)
    watcher = FileWatcher(str(path), reports.take, reports.errors.put)
    watcher.start()
    try:
        path.write_bytes(b"new")
        reports.wait_for(b"new")
        assert watcher.mode == "look"
    finally:
        watcher.stop()


def test_a_folder_that_is_replaced_is_followed(notify: bool, tmp_path: Path) -> None:
    """A new folder under the old name is watched as the old one was."""
    path = tmp_path / "ws" / "hooks.json"
    path.parent.mkdir()
    path.write_bytes(b"old")
    with watching(path, notify) as reports:
        path.parent.rename(tmp_path / "moved")
        path.parent.mkdir()
        path.write_bytes(b"new")
        reports.wait_for(b"new")


def test_other_files_are_not_reported(tmp_path: Path) -> None:
    """Changes of neighbours cause no report: every report finds the file itself changed."""
    path = tmp_path / "hooks.json"
    found: queue.Queue[bool] = queue.Queue()
    watcher = FileWatcher(str(path), lambda: found.put(path.exists()), lambda error: None)
    watcher.start()
    try:
        for number in range(100):
            (tmp_path / f"hooks.json.{number}").write_bytes(b"x")
        path.write_bytes(b"{}")
        assert found.get(timeout=DEADLINE_S)
    finally:
        watcher.stop()
    assert all(found.get() for _ in range(found.qsize()))


def test_an_error_of_the_listener_does_not_end_the_watch(notify: bool, tmp_path: Path) -> None:
    """What the callback raises goes to on_error, and the next change is reported all the same."""
    path = tmp_path / "hooks.json"
    errors: queue.Queue[Exception] = queue.Queue()

    def failing() -> None:
        raise ValueError(path.read_bytes().decode())

    watcher = FileWatcher(str(path), failing, errors.put, notify=notify)
    watcher.start()
    try:
        for text in ("one", "two"):
            path.write_bytes(text.encode())
            while str(errors.get(timeout=DEADLINE_S)) != text:
                pass
    finally:
        watcher.stop()


def test_a_watcher_that_never_started_can_be_stopped(tmp_path: Path) -> None:
    """Stopping twice, or before the start, does no harm."""
    watcher = FileWatcher(str(tmp_path / "hooks.json"), lambda: None, lambda error: None)
    watcher.stop()
    watcher.stop()


def test_a_stopped_watcher_reports_nothing_more(notify: bool, tmp_path: Path) -> None:
    """Stopping in the middle of an unsettled change ends the thread without a report."""
    path = tmp_path / "hooks.json"
    reports = Reports(path)
    watcher = FileWatcher(str(path), reports.take, reports.errors.put, notify=notify)
    watcher.start()
    path.write_bytes(b"old")
    reports.wait_for(b"old")
    watcher.stop()
    path.write_bytes(b"new")
    assert b"new" not in reports.left()


def test_a_file_that_stands_still_is_at_rest() -> None:
    """Two equal looks in a row mean rest, whatever came before."""
    rest = Rest(A)
    assert [rest.look(B), rest.look(A), rest.look(A)] == [False, False, True]
    assert rest.seen == A


def test_a_file_that_is_away_gets_more_time() -> None:
    """A missing file is waited for longer than a present one, so an editor can put it back."""
    rest = Rest(None)
    assert rest.pause == GONE_S > SETTLE_S
    assert not rest.look(A)
    assert rest.pause == SETTLE_S
    assert rest.look(A)


def test_a_file_that_never_stands_still_is_reported_at_last() -> None:
    """After two seconds of change the file is reported as it is."""
    rest = Rest(A)
    looks = 2
    while not rest.look((looks,)):
        looks += 1
        assert looks < 1_000
    assert looks - 1 == pytest.approx(UNSETTLED_S / SETTLE_S, abs=1)
