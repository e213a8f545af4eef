"""rolebox's lock file and its hash: what stands in it, and in which orders the files may have been taken."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.rolebox_lock import (
    MAX_BYTES,
    Locked,
    NotALock,
    digest,
    is_beyond_doubt,
    orders,
    read_lock,
    why_not_comparable,
)

GOOD = Locked("coder", "official", "1.2.0", "sha256-" + "0" * 64)


def test_a_lock_file_has_roles() -> None:
    """Entries that lack something are passed over, further keys too."""
    assert read_lock(
        b"\xef\xbb\xbfversion: 1\nroles:\n  - {role: coder, registry: official, version: 1.2.0, "
        b"installedAt: x, integrity: sha256-"
        + b"0"
        * 64
        + b"}\n  - {role: coder}\n  - {role: '', registry: a, version: b, "
        b"integrity: c}\n  - text\n"
    ) == (GOOD,)
    for text in (b"", b"[]", b"version: 1", b"roles: x"):
        assert read_lock(text) == ()


def test_what_is_no_lock_file_says_why() -> None:
    """The place of the mistake, or the size."""
    with pytest.raises(NotALock, match=r"line 2: not YAML"):
        read_lock(b"roles: [")
    with pytest.raises(NotALock, match=r"more than 1,048,576 bytes"):
        read_lock(b"#" * (MAX_BYTES + 1))


@pytest.mark.parametrize(
    "files,expected",
    [
        ({}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ({"x.txt": b"same"}, "76e090a32815bad2d7e1df3b5965ab6051785fb49463937a9bd9100b94be166f"),
        (
            {"subdir/b.txt": b"world", "a.txt": b"hello"},
            "8db37c46d8cffdd669ddd4ed10751530b49c59c55578f30fae5da8bc71d74d1b",
        ),
    ],
)
def test_the_hash_is_that_of_rolebox(files: dict[str, bytes], expected: str) -> None:
    """Three roles whose hashes are known, their bytes in pieces."""
    first, *_ = orders(list(files))
    assert is_beyond_doubt(files)
    assert digest(first, lambda path: [files[path][:2], files[path][2:]]) == f"sha256-{expected}"


def test_the_hash_takes_path_and_bytes() -> None:
    """With one NUL between them, and nothing else."""
    expected = hashlib.sha256("é\0x".encode()).hexdigest()
    assert digest(["é"], lambda _: [b"x"]) == f"sha256-{expected}"


def test_the_order_of_people_is_tried_first() -> None:
    """Punctuation before digits before letters, case only where nothing else differs."""
    paths = ["_x", ".env", "a", "B", "hooks-a.js", "hooks/a.js", "hooks/B.js", "README.md", "role.yaml", "Z"]
    people, octets = orders(list(reversed(paths)))
    assert people == paths
    assert octets == sorted(paths)
    assert next(orders(["A", "a", "Ab", "aa"])) == ["a", "A", "aa", "Ab"]
    assert list(orders(["é", "a"])) == [["a", "é"]]
    assert not is_beyond_doubt(paths)


@given(st.lists(st.text(alphabet="az09./-", max_size=6), unique=True))
def test_simple_names_have_one_order(paths: list[str]) -> None:
    """What is beyond doubt is the same in every order."""
    assert is_beyond_doubt(paths)
    assert len({tuple(order) for order in orders(paths)}) == 1


def test_only_the_form_of_rolebox_can_be_compared() -> None:
    """Anything else says what it is."""
    assert why_not_comparable(GOOD.integrity) is None
    for other in ("sha256-x", "sha512-" + "0" * 64, "0" * 64):
        assert "is not of the form sha256-" in (why_not_comparable(other) or "")
