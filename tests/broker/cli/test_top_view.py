"""What ``top`` shows, worked out from events and status reports."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli import top_view
from broker.cli.top_view import RUN_TOPIC, Watch, percentile
from broker.protocol.envelope import encode_event
from broker.protocol.events import Event, decode_event


def event(topic: str, payload: dict[str, Any] | bytes = b"{}") -> Event:
    """An event of ``topic``, as it comes off the wire."""
    body = payload if isinstance(payload, bytes) else orjson.dumps(payload)
    return decode_event(encode_event(topic, bytes(16), 1, 0, body))


def run(hook: str, status: str = "ok", duration_ms: float = 1.0) -> Event:
    """A hook's report of a run."""
    return event(
        RUN_TOPIC, {"hook": hook, "event": "tool_call", "status": status, "duration_ms": duration_ms}
    )


def subscriber(**changed: Any) -> dict[str, Any]:
    """A subscriber's row of the status report."""
    return {
        "name": "audit",
        "pid": 7,
        "received": 0,
        "missed": 0,
        "lag_ms": 1.0,
        "gaps": {},
        "reported_s": 0.0,
        **changed,
    }


def test_rates_are_of_the_interval_and_totals_of_the_whole_time() -> None:
    """Each view closes an interval; the totals go on."""
    watch = Watch(100.0)
    watch.events([event("a")] * 10 + [event("b")] * 2, 0)
    first = watch.view(102.0)
    assert [(row.topic, row.per_second, row.total) for row in first.topics] == [("a", 5.0, 10), ("b", 1.0, 2)]
    assert (first.per_second, first.total, first.watched_s) == (6.0, 12, 2.0)
    watch.events([event("b")] * 3, 4)
    second = watch.view(103.0)
    assert [(row.topic, row.per_second, row.total) for row in second.topics] == [
        ("b", 3.0, 5),
        ("a", 0.0, 10),
    ]
    assert second.missed == 4


def test_topics_of_similar_rate_do_not_change_places() -> None:
    """Rows are ordered by the magnitude of their rate, then by name, so that the screen stays calm."""
    watch = Watch(0.0)
    watch.events([event("b")] * 9 + [event("a")] * 8 + [event("c")] * 100, 0)
    assert [row.topic for row in watch.view(1.0).topics] == ["c", "a", "b"]


def test_topics_beyond_the_bound_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher that invents topics does not fill the memory, and nothing is left out of the sum."""
    monkeypatch.setattr(top_view, "TOPICS", 2)
    watch = Watch(0.0)
    watch.events([event(f"t{n}") for n in range(5)], 0)
    view = watch.view(1.0)
    assert sorted(row.topic for row in view.topics) == ["(further topics)", "t0", "t1"]
    assert view.total == 5


def test_a_subscribers_rate_is_of_the_time_between_its_reports() -> None:
    """Reports come when they come: two of them make a rate, and the same one again changes nothing."""
    watch = Watch(0.0)
    watch.report({"subscribers": [subscriber(received=100, reported_s=0.5)]}, 10.0)
    assert watch.view(10.0).subscribers[0].per_second is None
    watch.report({"subscribers": [subscriber(received=300, missed=5, reported_s=0.5)]}, 12.0)
    (row,) = watch.view(12.0).subscribers
    assert (row.per_second, row.lost, row.missed) == (100.0, 5, 5)
    watch.report({"subscribers": [subscriber(received=300, missed=5, reported_s=1.5)]}, 13.0)
    (row,) = watch.view(13.0).subscribers
    assert (row.per_second, row.lost) == (100.0, 5)


def test_a_subscriber_that_has_not_reported_has_no_rate() -> None:
    """Registered is not reported."""
    watch = Watch(0.0)
    for now in (1.0, 2.0):
        watch.report({"subscribers": [{"name": "new", "pid": 1, "reported_s": None}]}, now)
    (row,) = watch.view(2.0).subscribers
    assert (row.per_second, row.reported_s, row.missed) == (None, None, 0)


def test_subscribers_that_missed_most_come_first() -> None:
    """And their largest gaps first."""
    rows = [
        subscriber(name="fine"),
        subscriber(name="poor", missed=9, gaps={"a": 2, "b": 7}),
    ]
    watch = Watch(0.0)
    watch.report({"subscribers": rows}, 1.0)
    shown = watch.view(1.0).subscribers
    assert [row.name for row in shown] == ["poor", "fine"]
    assert list(shown[0].gaps.items()) == [("b", 7), ("a", 2)]


def test_drops_of_publishers_are_summed() -> None:
    """What publishers could not hand over is one number."""
    watch = Watch(0.0)
    rows = [{"dropped_absent": 1, "dropped_full": 2}, {"dropped_full": 4}]
    watch.report({"publishers": rows, "broker": {"pid": 1}}, 1.0)
    view = watch.view(1.0)
    assert (view.publishers, view.dropped, view.broker) == (2, 7, {"pid": 1})


def test_without_an_answer_the_last_report_stays() -> None:
    """What was known is shown, with the reason why it is old; an answer clears the reason."""
    watch = Watch(0.0)
    watch.report({"broker": {"pid": 1}}, 1.0)
    watch.report(None, 2.0, "no bus answers")
    view = watch.view(2.0)
    assert (view.broker, view.problem) == ({"pid": 1}, "no bus answers")
    watch.report({"broker": {"pid": 2}}, 3.0)
    assert watch.view(3.0).problem is None


def test_runs_are_counted_by_hook() -> None:
    """Each run stands in one place, whatever its status; percentiles are of the runs that started."""
    watch = Watch(0.0)
    watch.events([run("h#0", duration_ms=float(n)) for n in range(1, 101)], 0)
    watch.events([run("h#0", "timeout", 500.0), run("h#0", "failed", 1.0)], 0)
    watch.events([run("h#0", "signalled", 2.0), run("h#0", "not_started", 0.0)], 0)
    watch.events([run("a#0", "not_started", 0.0)], 0)
    busy, idle = sorted(watch.view(1.0).hooks, key=lambda row: -row.runs)
    assert (busy.hook, busy.event) == ("h#0", "tool_call")
    assert (busy.runs, busy.ok, busy.failed, busy.timed_out, busy.not_started) == (104, 100, 2, 1, 1)
    assert (busy.p50_ms, busy.p99_ms) == (50.0, 100.0)
    assert (idle.runs, idle.failed, idle.not_started, idle.p50_ms, idle.p99_ms) == (1, 0, 1, None, None)


def test_hooks_beyond_the_bound_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that invents hooks does not fill the memory."""
    monkeypatch.setattr(top_view, "HOOKS", 1)
    watch = Watch(0.0)
    watch.events([run("a"), run("b"), run("c")], 0)
    assert {row.hook: row.runs for row in watch.view(1.0).hooks} == {"a": 1, "(further hooks)": 2}


@given(
    st.dictionaries(
        st.sampled_from(["hook", "event", "status", "duration_ms"]),
        st.none() | st.booleans() | st.integers(0, 9) | st.text() | st.lists(st.integers(0, 1)),
    )
)
def test_a_report_of_a_run_may_hold_anything(payload: dict[str, Any]) -> None:
    """Anyone may publish on the topic of runs: every payload is counted as a run, none is an error."""
    watch = Watch(0.0)
    watch.events([event(RUN_TOPIC, payload), event(RUN_TOPIC, b"no json")], 0)
    (row,) = watch.view(1.0).hooks
    assert row.runs == row.ok + row.failed + row.timed_out + row.not_started == 1


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_is_one_of_the_values(values: list[float], share: float) -> None:
    """By nearest rank: at least that share of the values is not above it."""
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered) - 1e-9


def test_no_values_have_no_percentile() -> None:
    """None is not zero."""
    assert percentile([], 0.5) is None
