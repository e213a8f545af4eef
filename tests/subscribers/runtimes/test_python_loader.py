"""Files of handlers, loaded: fresh, apart from each other, and with faults that point at the user's line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from subscribers.runtimes.python_loader import MAX_BYTES, Loaded, load, load_entry_point, unload

HEAD = "from subscribers.handlers import on, decide, transform\n"
ONE = '@on("x")\ndef one(event, ctx): pass\n'


@pytest.fixture(autouse=True)
def modules_are_forgotten() -> Iterator[None]:
    """No module of a load outlives its test."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("prxbus_handlers_"):
            del sys.modules[name]


def write(path: Path, source: str) -> str:
    """A file with our imports in its first line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + source)
    return str(path)


def test_handlers_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Each with its place; the file itself is what was read."""
    path = write(tmp_path / "two.py", ONE + '@decide("y")\nasync def two(event, ctx): pass\n')
    loaded = load(path)
    assert loaded.error is None
    assert [(each.name, each.path, each.line) for each in loaded.registrations] == [
        ("one", path, 2),
        ("two", path, 4),
    ]
    assert loaded.files == (path,)


def test_each_load_is_fresh(tmp_path: Path) -> None:
    """A second load of the same file has globals of its own; unloading forgets its modules."""
    path = write(tmp_path / "count.py", "seen = []\n" + ONE)
    first, second = load(path), load(path)
    one, two = first.registrations[0].function, second.registrations[0].function
    assert one.__globals__["seen"] is not two.__globals__["seen"]
    assert first.package in sys.modules
    unload(first)
    assert first.package not in sys.modules
    assert one(None, None) is None
    unload(Loaded("x", (), None))


def test_neighbours_are_imported_relatively(tmp_path: Path) -> None:
    """They are part of what was read; what they register is theirs; nothing is written beside them."""
    write(tmp_path / "other.py", "VALUE = 3\n" + ONE.replace("one", "theirs"))
    path = write(tmp_path / "mine.py", "from .other import VALUE\nassert VALUE == 3\n" + ONE)
    loaded = load(path)
    assert [each.name for each in loaded.registrations] == ["one"]
    assert loaded.files == (path, str(tmp_path / "other.py"))
    assert not (tmp_path / "__pycache__").exists()


def test_a_folder_that_is_a_package_is_one_unit(tmp_path: Path) -> None:
    """Everything that its modules register belongs to it."""
    write(tmp_path / "pack" / "__init__.py", "from . import inner\n" + ONE)
    write(tmp_path / "pack" / "inner.py", ONE.replace("one", "deep"))
    loaded = load(str(tmp_path / "pack"))
    assert loaded.error is None
    assert sorted(each.name for each in loaded.registrations) == ["deep", "one"]


@pytest.mark.parametrize(
    "source,code,line,says",
    [
        ("def f(:\n", "syntax_error", 2, "SyntaxError"),
        ("\ndef f():\n    raise KeyError('k')\nf()\n", "cannot_load", 4, "KeyError: 'k'"),
        ("import sys\nsys.exit(3)\n", "cannot_load", 3, "SystemExit: 3"),
        ('@on("tool*")\ndef f(e, c): pass\n', "cannot_load", 2, "did you mean"),
        ('\n@on("x")\ndef f(e): pass\n', "cannot_load", 3, "cannot be called with (event, ctx)"),
        ("raise RecursionError\n", "cannot_load", 2, "RecursionError"),
    ],
)
def test_a_fault_points_at_the_users_line(
    tmp_path: Path, source: str, code: str, line: int, says: str
) -> None:
    """Code, file, line and reason; the traceback begins in the user's file, and nothing stays registered."""
    path = write(tmp_path / "bad.py", source)
    loaded = load(path)
    assert loaded.registrations == ()
    assert loaded.error is not None
    assert (loaded.error.code, loaded.error.path, loaded.error.line) == (code, path, line)
    assert says in loaded.error.message
    assert loaded.package not in sys.modules
    if code == "cannot_load":
        assert loaded.traceback.splitlines()[1].strip().startswith(f'File "{path}", line ')


def test_a_missing_import_says_what_to_do(tmp_path: Path) -> None:
    """A neighbour is to be imported relatively, anything else to be installed."""
    write(tmp_path / "rules_of_mine.py", "")
    near = load(write(tmp_path / "a.py", "import rules_of_mine\n")).error
    far = load(write(tmp_path / "b.py", "import not_there_at_all\n")).error
    assert near is not None
    assert far is not None
    assert near.hint == "a neighbour is imported relatively: write 'from .rules_of_mine import ...'"
    assert (far.hint or "").startswith("install it where prxbus runs")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """Absent, a pipe, a package without a start, and one of more than a mebibyte: each with its code."""
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "large.py").write_text("#" * (MAX_BYTES + 1))
    (tmp_path / "empty").mkdir()
    codes = {}
    for name in ("absent.py", "pipe.py", "large.py", "empty"):
        error = load(str(tmp_path / name)).error
        assert error is not None
        codes[name] = error.code
    assert codes == {
        "absent.py": "unreadable",
        "pipe.py": "not_a_file",
        "large.py": "file_too_large",
        "empty": "unreadable",
    }


def test_an_entry_point_is_loaded_as_any_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handlers and its file are told; one that is not there is a fault with its name."""
    path = write(tmp_path / "installed_handlers_of_a_test.py", ONE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "installed_handlers_of_a_test", raising=False)
    loaded = load_entry_point(EntryPoint("mine", "installed_handlers_of_a_test", "prxbus.handlers"))
    assert [each.name for each in loaded.registrations] == ["one"]
    assert loaded.files == (path,)
    sys.modules.pop("installed_handlers_of_a_test")
    absent = load_entry_point(EntryPoint("gone", "no.such.module", "prxbus.handlers"))
    assert absent.error is not None
    assert (absent.error.path, absent.error.code) == ("gone = no.such.module", "cannot_load")
