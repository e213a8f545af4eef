"""When a process that ended is started again."""

from subscribers.hooks.restarts import HEALTHY_SECONDS, LAST_PAUSE, Restarts


def test_the_first_restart_is_at_once_and_pauses_double() -> None:
    """A process that keeps ending is started after 0, 0.1, 0.2 ... and at most 5 seconds."""
    restarts, now, pauses = Restarts(), 0.0, []
    for _ in range(10):
        restarts.started(now)
        due = restarts.ended(now)
        pauses.append(round(due - now, 3))
        now = due
    assert pauses == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, LAST_PAUSE, LAST_PAUSE, LAST_PAUSE]
    assert restarts.count == 10


def test_a_healthy_process_starts_with_a_clean_slate() -> None:
    """Half a minute of work ends the pauses."""
    restarts = Restarts()
    for _ in range(5):
        restarts.started(0.0)
        restarts.ended(0.0)
    restarts.started(1.0)
    assert restarts.ended(1.0 + HEALTHY_SECONDS) == 1.0 + HEALTHY_SECONDS
