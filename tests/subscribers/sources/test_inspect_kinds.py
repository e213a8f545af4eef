"""Which kind of file something is: by its name, else by what stands in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.sources.inspect_kinds import KINDS, recognise, supported

NAMED = [
    ("/w/hooks.json", "prx", "its name is hooks.json"),
    ("/w/plugins/a/plugin.toml", "prx-plugin", "its name is plugin.toml"),
    ("/w/.prxbus/config.toml", "prxbus", "its name is .prxbus/config.toml"),
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
        ".prxbus/config.toml",
    ]
    for name in paths:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [(path, kind.workspace(path)) for kind in KINDS for path in kind.find(str(tmp_path))]
    assert found == [(str(tmp_path / name), str(tmp_path)) for name in paths]
    assert [path for kind in KINDS for path in kind.find(str(tmp_path / "nothing"))] == []


def test_every_kind_is_named_in_the_list_of_what_is_supported() -> None:
    """The list for people has every row of the table."""
    assert all(f"{kind.file} ({kind.name})" in supported() for kind in KINDS)
    assert len({kind.name for kind in KINDS}) == len(KINDS)
