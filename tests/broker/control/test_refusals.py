"""What can be made out of a message that is no message."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.control.bounds import REASONS
from broker.control.refusals import Refusals, explain, read_head
from broker.protocol.envelope import VERSION
from broker.protocol.errors import DecodeError, TopicError, VersionMismatch


@given(st.binary(max_size=100))
def test_any_bytes_have_a_head_of_some_kind(data: bytes) -> None:
    """Version and request of any bytes are None and 0, or numbers in their range."""
    version, request = read_head(data)
    assert version is None or -(2**31) < version < 2**31
    assert 0 <= request < 2**63


@pytest.mark.parametrize(
    "data,head",
    [
        (b"", (None, 0)),
        (b"\xc1", (None, 0)),
        (msgpack.packb(7), (None, 0)),
        (msgpack.packb([9, "hello", 3, {}]), (9, 3)),
        (msgpack.packb([9, "hello", 3, {}])[:-1] + b"\xc1\xc1", (9, 3)),
        (msgpack.packb([9]), (9, 0)),
        (b"\x94\x09\xc1", (9, 0)),
        (msgpack.packb(["9", "hello", 3, {}]), (None, 3)),
        (msgpack.packb([2**40, "hello", -3, {}]), (None, 0)),
        (msgpack.packb([9, "hello", "3", {}]), (9, 0)),
    ],
)
def test_version_and_request_are_read_as_far_as_possible(data: bytes, head: tuple[int | None, int]) -> None:
    """A message that breaks off or is otherwise malformed still tells what stands before the fault."""
    assert read_head(data) == head


def test_another_version_is_the_better_explanation() -> None:
    """A malformed message of another version is refused for its version, with both numbers."""
    malformed = DecodeError("control", "odd")
    assert explain(malformed, None) is malformed
    assert explain(malformed, VERSION) is malformed
    better = explain(malformed, 9)
    assert isinstance(better, VersionMismatch)
    assert "9" in str(better)
    assert str(VERSION) in str(better)
    assert explain(better, 7) is better


def test_refusals_are_counted_by_reason() -> None:
    """Decode errors count under their reason, others under their code."""
    refusals = Refusals()
    refusals.count(DecodeError("key", "x"))
    refusals.count(DecodeError("key", "y"))
    refusals.count(TopicError("z"))
    assert refusals.counts == {"key": 2, "bad_topic": 1}


def test_the_number_of_reasons_is_bounded() -> None:
    """Beyond the bound, new reasons count as other ones."""
    refusals = Refusals()
    for number in range(REASONS + 5):
        refusals.count(DecodeError(f"r{number}", ""))
    assert refusals.counts["other"] == 5
    assert len(refusals.counts) == REASONS + 1
