"""Calls under way, as another process sees them."""

from __future__ import annotations

import os

from subscribers.runtimes.python_board import SLOTS, TEXT_BYTES, Board, Underway, create


def test_another_reader_of_the_memory_sees_what_is_noted() -> None:
    """Who, what and until when, from the moment it is put to the moment it is taken."""
    descriptor = create()
    ours, theirs = Board(descriptor), Board(descriptor)
    os.close(descriptor)
    slot = ours.put(5_000_000_000, b"a.py:f", b"id:x:1")
    assert theirs.under_way() == [Underway(5_000_000_000, "a.py:f", "id:x:1")]
    ours.take(slot)
    assert theirs.under_way() == []
    ours.close()
    theirs.close()


def test_what_finds_no_place_is_not_seen_and_does_no_harm() -> None:
    """Beyond the last slot a call has no place; places come back; a text that is too long is cut."""
    descriptor = create()
    board = Board(descriptor)
    os.close(descriptor)
    slots = [board.put(1, b"h", b"%d" % number) for number in range(SLOTS)]
    assert sorted(slots) == list(range(SLOTS))
    assert board.put(1, b"h", b"more") == -1
    board.take(-1)
    assert len(board.under_way()) == SLOTS
    board.take(slots[3])
    assert board.put(1, b"h" * 1_000, b"x") == slots[3]
    assert {len(call.handler) for call in board.under_way()} == {1, TEXT_BYTES}
    board.close()
