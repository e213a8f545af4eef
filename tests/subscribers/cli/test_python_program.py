"""Whether prxbus up has a process for Python handlers, and what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.cli.exits import UsageError
from subscribers.cli.python_program import (
    handler_paths,
    has_handlers,
    named_path,
    of_handlers,
    python_program,
)
from subscribers.config.schema import Handlers, Settings


def settings(**values: Any) -> Settings:
    """Settings with these of handlers; installed packages are left out."""
    return Settings(handlers=Handlers(**{"installed": False, **values}))


def test_there_is_a_process_where_there_may_be_handlers(tmp_path: Path) -> None:
    """A workspace with the folder, or a named path; not without, and not where it is switched off."""
    workspace = str(tmp_path)
    assert not has_handlers(settings(), None)
    assert python_program(settings(), "/run", workspace) is None
    (tmp_path / ".prxbus" / "handlers").mkdir(parents=True)
    program = python_program(settings(calls=3), "/run", workspace)
    assert program is not None
    assert (program.name, program.rank) == ("python", 1)
    assert program.argv[-2:] == ("--workspace", workspace)
    assert program.argv[7:9] == ("--calls", "3")
    assert not has_handlers(settings(enabled=False), workspace)
    named = python_program(settings(path="/a:/b", installed=True), "/run", None)
    assert named is not None
    assert named.argv[-5:] == ("--installed", "--handlers", "/a", "--handlers", "/b")


def test_named_paths_become_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute, in order; what is missing, or cannot be written so, is refused by name."""
    (tmp_path / "one.py").touch()
    (tmp_path / "a:b").touch()
    monkeypatch.chdir(tmp_path)
    assert named_path(None) is None
    told = named_path(["one.py", str(tmp_path)])
    assert told == f"{tmp_path}/one.py:{tmp_path}"
    assert handler_paths(settings(path=told)) == (f"{tmp_path}/one.py", str(tmp_path))
    for path, says in (("two.py", "there is no such file"), ("a:b", "cannot be named here")):
        with pytest.raises(UsageError, match=says):
            named_path([path])


@pytest.mark.parametrize(
    "handlers,refused,says",
    [
        (1, 0, ", 1 Python handler"),
        (2, 1, ", 2 Python handlers (1 file refused, see above)"),
        (0, 2, ", 0 Python handlers (2 files refused, see above)"),
    ],
)
def test_the_ready_line_counts_them(handlers: int, refused: int, says: str) -> None:
    """In words, with the files that could not be loaded."""
    assert of_handlers(handlers, refused) == says
