"""The numbers that the processes of ``bench`` share."""

from __future__ import annotations

from pathlib import Path

from broker.cli.bench_board import Board


def test_both_ends_see_the_same_numbers(tmp_path: Path) -> None:
    """What one process writes the other one reads, and the file goes on where it was."""
    path = str(tmp_path / "board")
    with Board(path) as publisher, Board(path) as subscriber:
        assert (publisher.received, subscriber.stopped) == (0, False)
        subscriber.received = 2**40
        publisher.stop()
        assert (publisher.received, subscriber.stopped) == (2**40, True)
    with Board(path) as later:
        assert (later.received, later.stopped) == (2**40, True)
