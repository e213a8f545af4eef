"""Closing beacons are said again, a few times and within bounds."""

from broker.client.core.accounting import CLOSED_SWEEPS, SWEEP_SECONDS
from broker.control.echoes import ECHO_SECONDS, Echoes


def test_a_frame_is_said_again_at_each_of_its_times() -> None:
    """Once for each pause, counted from when it came, and then never more."""
    echoes = Echoes()
    echoes.add(b"one", 100.0)
    echoes.add(b"two", 101.0)
    assert (len(echoes), echoes.held) == (6, 18)
    assert echoes.due(101.9) == []
    assert echoes.due(102.0) == [b"one"]
    assert echoes.due(109.0) == [b"two", b"one", b"two"]
    assert echoes.due(500.0) == [b"one", b"two"]
    assert (len(echoes), echoes.held, echoes.due(900.0)) == (0, 0, [])


def test_the_memory_is_bounded_and_what_does_not_fit_is_counted() -> None:
    """Neither frames nor bytes grow beyond their bounds."""
    few = Echoes(frames=4)
    few.add(b"one", 0.0)
    few.add(b"two", 0.0)
    assert (len(few), few.dropped) == (4, 2)
    small = Echoes(capacity=7)
    small.add(b"one", 0.0)
    assert (small.held, small.dropped) == (6, 1)


def test_subscribers_remember_a_closed_publisher_longer_than_it_is_repeated() -> None:
    """An echo must not look like a publisher that was never heard."""
    assert max(ECHO_SECONDS) * 2 < CLOSED_SWEEPS * SWEEP_SECONDS
