"""A capture keeps the beginning and the end of a stream, and counts the rest."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.outcome import NOTHING, Captured
from subscribers.runtimes.capture import Capture


def _captured(limit: int, *chunks: bytes) -> Captured:
    capture = Capture(limit)
    for chunk in chunks:
        capture.add(chunk)
    return capture.captured()


def test_what_fits_is_kept_whole_in_the_head() -> None:
    """A stream of exactly the limit is not cut."""
    assert _captured(6, b"abc", b"def") == Captured(b"abcdef", b"", 6)


def test_silence_is_one_shared_value() -> None:
    """A stream without a byte costs nothing to report."""
    assert _captured(6, b"") is NOTHING


@pytest.mark.parametrize(
    "limit,expected",
    [
        (6, Captured(b"012", b"789", 10)),
        (5, Captured(b"012", b"89", 10)),
        (1, Captured(b"0", b"", 10)),
        (0, Captured(b"", b"", 10)),
    ],
)
def test_beyond_the_limit_head_and_tail_share_it(limit: int, expected: Captured) -> None:
    """The head gets the odd byte, and a limit of 0 keeps nothing but the count."""
    assert _captured(limit, b"0123456789") == expected
    assert _captured(limit, *(b"%d" % digit for digit in range(10))) == expected


def test_memory_stays_flat() -> None:
    """A stream of 100 MB needs no more memory than two limits and a chunk."""
    capture = Capture(65_536)
    chunk = b"x" * 65_536
    for _ in range(1_600):
        capture.add(chunk)
    held = sum(sys.getsizeof(getattr(capture, name)) for name in ("_head", "_tail"))
    assert held < 4 * 65_536
    assert capture.captured().total == 1_600 * 65_536


@given(limit=st.integers(0, 20), chunks=st.lists(st.binary(max_size=30), max_size=10))
def test_head_and_tail_are_the_ends_of_the_stream(limit: int, chunks: list[bytes]) -> None:
    """Law: however a stream is chopped, what is kept is its beginning and its end, within the limit."""
    stream = b"".join(chunks)
    kept = _captured(limit, *chunks)
    assert kept.total == len(stream)
    assert stream.startswith(kept.head)
    assert stream.endswith(kept.tail)
    assert len(kept.head) + len(kept.tail) == min(limit, len(stream))
    assert kept.truncated == (len(stream) > limit)
