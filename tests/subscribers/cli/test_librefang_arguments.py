"""What prxbus up decides about a LibreFang home before it starts anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.cli.exits import UsageError
from subscribers.cli.librefang_arguments import librefang_arguments, librefang_home, of_home
from subscribers.config.schema import LibreFang, Settings


def settings(**values: Any) -> Settings:
    """Settings with these of LibreFang."""
    return Settings(librefang=LibreFang(**values))


def test_a_home_that_is_there_is_used(tmp_path: Path) -> None:
    """Whoever named it."""
    assert librefang_home(settings(home=str(tmp_path)), {"LIBREFANG_HOME": "/nowhere"}) == str(tmp_path)
    assert librefang_home(settings(), {"LIBREFANG_HOME": str(tmp_path)}) == str(tmp_path)


def test_it_can_be_left_out(tmp_path: Path) -> None:
    """A setting switches it off, whoever names a home."""
    assert librefang_home(settings(enabled=False, home=str(tmp_path)), {"LIBREFANG_HOME": "/"}) is None


def test_a_home_that_was_named_and_is_missing_is_an_error(tmp_path: Path) -> None:
    """A file of that name too."""
    (tmp_path / "file").write_text("")
    for name in ("nowhere", "file"):
        with pytest.raises(UsageError, match="is not a directory; create it, or name another"):
            librefang_home(settings(home=str(tmp_path / name)), {})


def test_a_variable_that_names_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """It is LibreFang's own and may be set before there is a home: the bus runs."""
    assert librefang_home(settings(), {"LIBREFANG_HOME": "/nowhere/at/all"}) is None
    assert "LIBREFANG_HOME names '/nowhere/at/all', which is not a directory" in capsys.readouterr().err


def test_a_relative_home_in_a_deleted_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says how to name it instead."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="the current directory was deleted"):
        librefang_home(settings(home="mine"), {})


def test_the_subscriber_is_told_home_and_reload() -> None:
    """Nothing where there is no home."""
    assert librefang_arguments(settings(), None) == ()
    told = librefang_arguments(settings(reload="watch"), "/h")
    assert told == ("--librefang-home", "/h", "--librefang-reload", "watch")


@pytest.mark.parametrize(
    "count,words", [(0, "0 LibreFang hooks"), (1, "1 LibreFang hook"), (2, "2 LibreFang hooks")]
)
def test_the_ready_line_counts_hooks(count: int, words: str) -> None:
    """One, or several."""
    assert of_home({"home": "/h", "hooks": count}) == f"; {words} of /h"
