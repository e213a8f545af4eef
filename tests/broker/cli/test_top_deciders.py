"""The deciders that ``top`` shows, worked out from their reports."""

from __future__ import annotations

from typing import Any

from broker.cli.top_deciders import Deciders
from broker.cli.top_view import Watch


def decider(**changed: Any) -> dict[str, Any]:
    """A decider's row of the status report."""
    about = {"name": "guards", "pid": 7, "priority": 0, "failure": "open", "patterns": []}
    return {**about, "asked": 0, "answered": 0, "failed": 0, "too_late": 0, "reported_s": 0.0, **changed}


def test_a_deciders_rate_is_of_the_time_between_its_reports() -> None:
    """A report that is seen twice changes nothing; one that is gone is forgotten."""
    deciders = Deciders()
    deciders.report([decider(asked=100)], 10.0)
    assert deciders.rows[0].per_second is None
    deciders.report([decider(asked=300, reported_s=0.5)], 12.5)
    assert deciders.rows[0][4:6] == (100.0, 300)
    deciders.report([decider(asked=300, reported_s=1.5)], 13.5)
    assert deciders.rows[0].per_second == 100.0
    deciders.report([], 14.0)
    assert deciders.rows == []
    deciders.report([decider(asked=400)], 15.0)
    assert deciders.rows[0].per_second is None


def test_a_decider_that_has_not_reported_has_no_rate() -> None:
    """Another release may leave out anything."""
    deciders = Deciders()
    for now in (1.0, 2.0):
        deciders.report([{"name": "n", "pid": 1, "reported_s": None}], now)
    assert deciders.rows[0]._asdict() == {
        "name": "n",
        "pid": 1,
        "priority": 0,
        "failure": "?",
        "per_second": None,
        "asked": 0,
        "answered": 0,
        "failed": 0,
        "too_late": 0,
        "reported_s": None,
    }


def test_deciders_stand_in_their_declared_order() -> None:
    """By priority, then by name."""
    deciders = Deciders()
    deciders.report([decider(name="b"), decider(name="a"), decider(name="z", priority=-1)], 0.0)
    assert [row.name for row in deciders.rows] == ["z", "a", "b"]


def test_the_view_has_deciders_and_asks() -> None:
    """Both come from the last report of the broker, and stay when there is none."""
    watch = Watch(0.0)
    assert (watch.view(1.0).deciders, watch.view(1.0).asks) == ([], {})
    watch.report({"deciders": [decider(asked=3)], "asks": {"under_way": 1}}, 2.0)
    watch.report(None, 3.0, "no bus answers")
    view = watch.view(3.0)
    assert [row.asked for row in view.deciders] == [3]
    assert view.asks == {"under_way": 1}
