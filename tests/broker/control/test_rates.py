"""Totals of the proxy, and averages over the last seconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.control.bounds import RATE_SECONDS
from broker.control.rates import Forwarded, Rates


def test_without_two_samples_there_is_no_rate() -> None:
    """Before anything can be compared every rate is zero."""
    rates = Rates()
    assert rates.latest is None
    assert set(rates.per_second().values()) == {0.0}
    rates.observe(Forwarded(5, 5, 5, 5), 1.0)
    assert set(rates.per_second().values()) == {0.0}
    assert rates.latest == Forwarded(5, 5, 5, 5)


def test_a_steady_flow_has_its_rate() -> None:
    """A flow of 10 frames a second in and 20 out is reported as that, over the last seconds only."""
    rates = Rates()
    for second in range(10):
        rates.observe(Forwarded(10 * second, 1_000 * second, 20 * second, 2_000 * second), float(second))
    shown = rates.per_second()
    assert shown == {"in_per_s": 10.0, "bytes_in_per_s": 1000.0, "out_per_s": 20.0, "bytes_out_per_s": 2000.0}


def test_a_flow_that_has_ended_has_no_rate_soon() -> None:
    """When nothing more comes, the rate is zero after the span of the average."""
    rates = Rates()
    rates.observe(Forwarded(), 0.0)
    for second in range(1, 5):
        rates.observe(Forwarded(100, 100, 100, 100), second * RATE_SECONDS)
    assert rates.per_second()["in_per_s"] == 0.0


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1000)), min_size=2, max_size=300))
def test_rates_are_never_negative_and_never_fail(steps: list[tuple[float, int]]) -> None:
    """However often and irregularly the counters are read, rates are numbers from zero up."""
    rates = Rates()
    now, total = 0.0, 0
    for pause, more in steps:
        now, total = now + pause, total + more
        rates.observe(Forwarded(total, total, total, total), now)
        assert all(value >= 0 for value in rates.per_second().values())


def test_reading_often_does_not_shorten_the_average() -> None:
    """A thousand reads within a moment leave the earlier sample in place to compare with."""
    rates = Rates()
    rates.observe(Forwarded(0, 0, 0, 0), 0.0)
    for number in range(1000):
        rates.observe(Forwarded(100, 0, 0, 0), 1.0 + number / 1e6)
    assert rates.per_second()["in_per_s"] == pytest.approx(100, rel=0.01)
