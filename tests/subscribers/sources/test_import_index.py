"""What makes the index of a store believable."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.import_plan import FILE_BYTES, MAX_FILES
from subscribers.sources.import_index import (
    MAX_IMPORTS,
    Index,
    IndexCorrupt,
    Retired,
    import_id,
    is_snapshot_name,
    read_index,
    write_index,
)
from tests.subscribers.sources.import_scene import contents, record

FIRST = record(contents("a"))
SECOND = record(contents("b"), path="/h/.claude/other.json", enabled=False)
INDEX = Index((FIRST, SECOND), (Retired(FIRST.id, "0" * 64, 1.5),))
Change = Callable[[dict[str, Any]], object]


def test_an_index_is_read_as_it_was_written() -> None:
    """Every record and every retired snapshot comes back."""
    found = read_index(write_index(INDEX), "user")
    assert found == Index(tuple(sorted(INDEX.records, key=lambda each: each.id)), INDEX.retired)
    assert found.find(SECOND.id) == SECOND
    assert found.find("x") is None
    assert found.without(FIRST.id) == Index((SECOND,), ())


CHANGES: dict[str, Change] = {
    "schema": lambda d: d.update(schema=2),
    "no list": lambda d: d.update(imports={}),
    "too many": lambda d: d.update(imports=[d["imports"][0]] * (MAX_IMPORTS + 1)),
    "unknown key": lambda d: d.update(more=1),
    "no object": lambda d: d["imports"].append(7),
    "a key less": lambda d: d["imports"][0].pop("enabled"),
    "a key more": lambda d: d["imports"][0].update(more=1),
    "id of another source": lambda d: d["imports"][0].update(id="claude-user-00000000"),
    "id that escapes": lambda d: d["imports"][0].update(id="../x"),
    "scope": lambda d: d["imports"][0].update(scope="project"),
    "no scope": lambda d: d["imports"][0].update(scope="all"),
    "profile": lambda d: d["imports"][0].update(profile="bitfun"),
    "snapshot": lambda d: d["imports"][0].update(snapshot="../../x"),
    "enabled": lambda d: d["imports"][0].update(enabled="yes"),
    "count": lambda d: d["imports"][0].update(handlers=-1),
    "count of truth": lambda d: d["imports"][0].update(handlers=True),
    "time": lambda d: d["imports"][0].update(imported_at="today"),
    "path": lambda d: d["imports"][0].update(path=""),
    "files": lambda d: d["imports"][0].update(files=[]),
    "no hooks.json": lambda d: d["imports"][0]["files"].pop("hooks.json"),
    "a name that escapes": lambda d: d["imports"][0]["files"].update(
        {"files/../../x": d["imports"][0]["files"]["hooks.json"]}
    ),
    "a file without size": lambda d: d["imports"][0]["files"]["hooks.json"].pop("size"),
    "a file of no kind": lambda d: d["imports"][0]["files"].update({"files/x": 1}),
    "too many files": lambda d: d["imports"][0]["files"].update(
        {f"files/{n}": d["imports"][0]["files"]["hooks.json"] for n in range(MAX_FILES + 1)}
    ),
    "too large": lambda d: d["imports"][0]["files"].update(
        {f"files/{n}": {"sha256": "0" * 64, "size": FILE_BYTES, "executable": False} for n in range(17)}
    ),
    "external": lambda d: d["imports"][0].update(external={"/x": "0"}),
    "the same twice": lambda d: d["imports"].append(d["imports"][0]),
    "retired of no kind": lambda d: d.update(retired=3),
    "retired without a time": lambda d: d["retired"].append({"id": "a", "snapshot": "0" * 64, "at": None}),
    "retired by half": lambda d: d["retired"].append({"id": "a"}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_index_that_contradicts_itself_is_corrupt(what: str) -> None:
    """Also one that is well-formed: each rule that a record has to keep is checked, and the rest is kept."""
    document = json.loads(write_index(INDEX))
    CHANGES[what](document)
    with pytest.raises(IndexCorrupt) as caught:
        read_index(json.dumps(document).encode(), "user")
    assert str(caught.value)
    assert all(each in (FIRST, SECOND) for each in caught.value.kept)
    if document.get("schema") == 1 and isinstance(document["imports"], list) and what != "too many":
        assert SECOND in caught.value.kept


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff", b'{"schema": 1}'])
def test_a_text_that_is_no_index_is_corrupt(text: bytes) -> None:
    """Whatever the file holds, reading it ends with a reason."""
    with pytest.raises(IndexCorrupt):
        read_index(text, "user")


@given(st.binary(max_size=40), st.integers(0, 1_000), st.integers(0, 40))
def test_damage_is_noticed_or_harmless(noise: bytes, at: int, length: int) -> None:
    """Bytes overwritten anywhere give an index of valid records, or the error; nothing else is raised."""
    text = write_index(INDEX)
    damaged = text[:at] + noise + text[at + length :]
    try:
        found = read_index(damaged, "user")
    except IndexCorrupt:
        return
    assert all(each.id == import_id(each.key, each.path) for each in found.records)


@pytest.mark.parametrize(
    "name,can_be",
    [
        ("hooks.json", True),
        ("files/a", True),
        ("user/a/b c", True),
        ("files", False),
        ("other/a", False),
        ("/files/a", False),
        ("files/../a", False),
        ("files//a", False),
        ("files/a/", False),
        ("files/./a", False),
        ("files/__pycache__/a", False),
        ("files/a\0", False),
        ("", False),
    ],
)
def test_names_of_files_stay_in_their_snapshot(name: str, can_be: bool) -> None:
    """A name is relative, plain, and in one of the two folders of copies."""
    assert is_snapshot_name(name) is can_be


def test_an_id_is_readable_and_belongs_to_one_file() -> None:
    """The same source has the same id; the same key with another file has another."""
    one, other = import_id("codex:project@..", "/a"), import_id("codex:project@..", "/b")
    assert one == import_id("codex:project@..", "/a")
    assert one.startswith("codex-project-")
    assert one != other
