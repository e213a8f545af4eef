"""Records of what was trusted, and what counts as a change."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.trust_record import (
    FILES,
    PATH_LENGTH,
    Changes,
    NotARecord,
    Record,
    Role,
    compare,
    decode,
    encode,
    while_running,
)

AT = "2026-01-02T03:04:05Z"
digests = st.text("0123456789abcdef", min_size=64, max_size=64)
paths = st.from_regex(r"[a-z.ä]{1,9}(/[a-z]{1,9}){0,3}", fullmatch=True).filter(
    lambda path: ".." not in path.split("/")
)
files = st.dictionaries(paths, digests, max_size=8)


@given(files)
def test_a_record_is_read_as_it_was_written(found: Mapping[str, str]) -> None:
    """What was recorded comes back, and then nothing has changed."""
    record = Record("/w", AT, found)
    assert decode(encode(record)) == record
    assert compare(decode(encode(record)).files, found).is_none


@given(files, files)
def test_every_difference_is_told_once(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Each path that differs is changed, added or removed, and no other path is named."""
    changes = compare(before, after)
    differing = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    named = [path for group in changes for path in group]
    assert sorted(named) == sorted(differing)
    assert changes.is_none == (not differing)
    assert len(list(changes.told())) == len(named)


def test_changes_are_told_with_what_became_of_each() -> None:
    """A file that merely changed needs no more words; others do."""
    assert list(Changes(("a",), ("b",), ("c",)).told()) == ["a", "b (added)", "c (removed)"]


ROLES: dict[str, Role] = {"hooks.json": "prx", "run.sh": "command", "x.py": "handlers"}


@pytest.mark.parametrize(
    "changes, left",
    [
        (Changes(changed=("hooks.json",)), Changes()),
        (Changes(added=("hooks.json", "run.sh")), Changes()),
        (Changes(removed=("hooks.json", "run.sh")), Changes()),
        (Changes(changed=("hooks.json", "run.sh")), Changes(changed=("run.sh",))),
        (Changes(("x.py",), ("y.py",), ("x.py",)), Changes(("x.py",), ("y.py",), ("x.py",))),
    ],
)
def test_a_hooks_json_may_change_while_its_hooks_run(changes: Changes, left: Changes) -> None:
    """With it may come and go what commands name; a script that changes, and all else, ends the trust."""
    assert while_running(changes, ROLES, "hooks.json") == left


GOOD = orjson.loads(encode(Record("/w", AT, {"a": "0" * 64})))


@pytest.mark.parametrize(
    "document",
    [
        [],
        {**GOOD, "version": 2},
        {**GOOD, "workspace": 1},
        {**GOOD, "recorded_at": None},
        {**GOOD, "files": []},
        {**GOOD, "files": {"a": 1}},
        {**GOOD, "files": {"a": "0"}},
        {**GOOD, "files": {"/a": "0" * 64}},
        {**GOOD, "files": {"b/../../a": "0" * 64}},
        {**GOOD, "files": {"": "0" * 64}},
        {**GOOD, "files": {"a" * (PATH_LENGTH + 1): "0" * 64}},
        {**GOOD, "files": {f"{n}": "0" * 64 for n in range(FILES + 1)}},
    ],
)
def test_what_is_no_record_is_refused(document: object) -> None:
    """Every part has to be there, in its type, and name only files below the workspace."""
    with pytest.raises(NotARecord):
        decode(orjson.dumps(document))


def test_text_that_is_no_json_is_refused() -> None:
    """Half a record is none, nor is one that is nested without end."""
    for text in (b'{"version":', b"\xff", b"[" * 100_000):
        with pytest.raises(NotARecord, match="JSON"):
            decode(text)


def test_a_record_has_a_largest_size() -> None:
    """Too many files, and too long paths, are refused with both numbers."""
    with pytest.raises(NotARecord, match="2,001 files"):
        encode(Record("/w", AT, {f"{n}": "0" * 64 for n in range(FILES + 1)}))
    with pytest.raises(NotARecord, match="1,048,576"):
        encode(Record("/w", AT, {f"{n:04}{'a' * 1000}": "0" * 64 for n in range(FILES)}))
