"""Which kind of file something is: by its name, else by what stands in it."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.sources.inspect_finding import Finding
from subscribers.sources.inspect_kinds import KINDS, because_named, recognise, supported

NAMED = [
    ("/w/hooks.json", "prx", "its name is hooks.json"),
    ("/w/plugins/a/plugin.toml", "prx-plugin", "its name is plugin.toml"),
    ("/w/.prxbus/config.toml", "prxbus", "its name is .prxbus/config.toml"),
    ("/w/.prxbus/handlers/a.py", "python", "it lies in .prxbus/handlers"),
    ("/r/coder/role.yaml", "rolebox", "its name is role.yaml"),
    ("/h/hooks/a/HOOK.yaml", "librefang", "its name is HOOK.yaml"),
    ("/h/hooks/a/Hook.yml", "librefang", "its name is nearly HOOK.yaml"),
]


@pytest.mark.parametrize("path,name,because", NAMED)
def test_a_name_decides_whatever_is_in_the_file(path: str, name: str, because: str) -> None:
    """A file with the name of a kind is of that kind, and the reason says so."""
    found = recognise(path, b"\xff")
    assert found is not None
    assert (found[0].name, found[1]) == (name, because)


LIKE = [
    ("/w/my.json", b'{"hooks": {"error": []}}', "prx"),
    ("/w/my.toml", b"[plugin]\n[[capabilities]]", "prx-plugin"),
    ("/w/my.json", b'{"hooks": []}', None),
    ("/w/my.json", b"[]", None),
    ("/w/my.json", b"{", None),
    ("/w/my.json", b"[" * 100_000, None),
    ("/w/my.toml", b"[plugin]", None),
    ("/w/my.toml", b"[", None),
    ("/w/my.toml", b"\xff", None),
    ("/w/my.toml", b"a." * 50 + b"b = 1", None),
    ("/w/config.toml", b"", None),
    ("/w/guards.py", b"from subscribers.handlers import on", "python"),
    ("/w/setup.py", b"import os", None),
    ("/w/hooks", b'{"hooks": {}}', None),
    ("/w/run.sh", b"#!/bin/sh", None),
]


@pytest.mark.parametrize("path,text,name", LIKE)
def test_a_name_that_says_nothing_leaves_it_to_the_content(path: str, text: bytes, name: str | None) -> None:
    """Content that looks like a kind makes a file one; anything else is unknown."""
    found = recognise(path, text)
    assert (None if found is None else found[0].name) == name


@given(st.sampled_from(["/w/x.json", "/w/x.toml", "/w/x"]), st.binary())
def test_any_bytes_can_be_looked_at(path: str, text: bytes) -> None:
    """No bytes make it raise."""
    found = recognise(path, text)
    assert found is None or found[0] in KINDS


def test_a_folder_is_searched_by_every_kind(tmp_path: Path) -> None:
    """Each kind finds its files in a workspace, and tells which workspace they belong to."""
    paths = [
        "hooks.json",
        "plugin.toml",
        "plugins/a/plugin.toml",
        "plugins/b/plugin.toml",
        "role.yaml",
        ".prxbus/config.toml",
        ".prxbus/handlers/a.py",
    ]
    for name in paths:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [(path, kind.workspace(path)) for kind in KINDS for path in kind.find(str(tmp_path)).paths]
    assert found == [(str(tmp_path / name), str(tmp_path)) for name in paths]
    assert [kind.find(str(tmp_path / "nothing")) for kind in KINDS] == [Finding(())] * len(KINDS)


def test_a_librefang_home_is_searched_for_its_hooks(tmp_path: Path) -> None:
    """Its hooks are found in order, misspelled ones too, and a folder without one is remarked upon."""
    for name in ("hooks/b/HOOK.yaml", "hooks/a/hook.yml", "hooks/c/run.sh", "HOOK.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (kind,) = [kind for kind in KINDS if kind.name == "librefang"]
    found = kind.find(str(tmp_path))
    paths = [f"{tmp_path}/{name}" for name in ("HOOK.yaml", "hooks/a/hook.yml", "hooks/b/HOOK.yaml")]
    assert found.paths == tuple(paths)
    assert [(d.code, d.path) for d in found.remarks] == [("no_hook_file", f"{tmp_path}/hooks/c")]
    assert [because_named(kind, path).split(" HOOK")[0] for path in paths] == [
        "its name is",
        "its name is nearly",
        "its name is",
    ]
    assert kind.workspace(paths[1]) == f"{tmp_path}/hooks"
    assert kind.workspace(paths[0]) == str(tmp_path)


def test_a_place_that_cannot_be_searched_is_remarked_upon(tmp_path: Path) -> None:
    """A misplaced hook file, and a folder of plugins that is a link, are told as errors of their places."""
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "HOOK.yaml").touch()
    (tmp_path / "plugins").symlink_to(tmp_path)
    remarks = {d.path: d.code for kind in KINDS for d in kind.find(str(tmp_path)).remarks}
    assert remarks == {
        f"{tmp_path}/hooks/HOOK.yaml": "misplaced_file",
        f"{tmp_path}/plugins": "symbolic_link",
    }
    (tmp_path / "hooks" / "HOOK.yaml").unlink()
    (tmp_path / "hooks").rmdir()
    (tmp_path / "hooks").touch()
    assert [d.code for kind in KINDS for d in kind.find(str(tmp_path)).remarks] == ["symbolic_link"]


def test_python_beside_other_files_counts_if_it_imports_what_handlers_do(tmp_path: Path) -> None:
    """Of the files and packages in a folder, those that import subscribers.handlers are taken."""
    (tmp_path / "a.py").write_text("from subscribers.handlers import on\n")
    (tmp_path / "b.py").write_text("import os\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("from . import inner\n")
    (tmp_path / "pack" / "inner.py").write_text("from subscribers.handlers import on\n")
    (kind,) = [kind for kind in KINDS if kind.name == "python"]
    found = kind.find(str(tmp_path))
    assert found == Finding((f"{tmp_path}/a.py", f"{tmp_path}/pack"))
    assert because_named(kind, found.paths[0]) == "it is Python that imports subscribers.handlers"
    assert kind.workspace(found.paths[0]) == str(tmp_path)
    assert kind.find(f"{tmp_path}/pack").paths == (f"{tmp_path}/pack",)


def test_every_kind_is_in_the_readme() -> None:
    """The table of dialects there is this one, in this order."""
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    section = readme.partition("## Seeing what would happen")[2].partition("## HTTP API")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| `[^|]*\|[^|]*\|$", section, re.MULTILINE)
    assert rows == [kind.name for kind in KINDS]


def test_every_kind_is_named_in_the_list_of_what_is_supported() -> None:
    """The list for people has every row of the table."""
    assert all(f"{kind.file} ({kind.name})" in supported() for kind in KINDS)
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_what_is_passed_over_among_handlers_is_told(tmp_path: Path) -> None:
    """Whatever has the name of a file of handlers and cannot be loaded is an error with its reason."""
    folder = tmp_path / ".prxbus" / "handlers"
    (folder / "folder.py").mkdir(parents=True)
    (folder / "package.py").mkdir()
    (folder / "package.py" / "__init__.py").write_text("")
    (folder / "good.py").write_text("")
    (folder / "nowhere.py").symlink_to("missing")
    (folder / "_nowhere.py").symlink_to("missing")
    (folder / "loop.py").symlink_to("loop.py")
    os.mkfifo(folder / "fifo.py")
    kind = next(kind for kind in KINDS if kind.name == "python")
    found = kind.find(str(tmp_path))
    assert [os.path.basename(path) for path in found.paths] == ["good.py", "package.py"]
    assert {os.path.basename(d.path): d.message for d in found.remarks} == {
        "fifo.py": "it is not loaded: it is no regular file",
        "folder.py": "it is not loaded: it is a folder, and no package: it has no __init__.py",
        "loop.py": f"it is not loaded: it cannot be looked at: {os.strerror(errno.ELOOP)}",
        "nowhere.py": "it is not loaded: it is a link that leads nowhere",
    }


def test_a_folder_of_a_librefang_home_without_a_hook_file_is_told(tmp_path: Path) -> None:
    """Beside hooks, or in a home by its name, it is remarked upon; any other folder hooks is no home."""
    kind = next(kind for kind in KINDS if kind.name == "librefang")
    home = tmp_path / ".librefang"
    (home / "hooks" / "empty").mkdir(parents=True)
    assert [(d.code, d.severity) for d in kind.find(str(home)).remarks] == [("no_hook_file", "info")]
    (tmp_path / "hooks" / "useThis").mkdir(parents=True)
    assert kind.find(str(tmp_path)).remarks == ()
    (tmp_path / "hooks" / "real").mkdir()
    (tmp_path / "hooks" / "real" / "HOOK.yaml").write_text("")
    assert [d.path for d in kind.find(str(tmp_path)).remarks] == [f"{tmp_path}/hooks/useThis"]
