"""Numbers with their units."""

from __future__ import annotations

import pytest

from broker.cli.quantities import count, milliseconds, plural, size, span


@pytest.mark.parametrize(
    "number,text", [(0, "0"), (0.5, "0.5"), (3, "3"), (9.96, "10.0"), (12.4, "12"), (12_345.6, "12,346")]
)
def test_a_count_keeps_small_fractions(number: float, text: str) -> None:
    """A rate below ten a second keeps one decimal; thousands are separated."""
    assert count(number) == text


@pytest.mark.parametrize(
    "number,text",
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (65_536, "64 KiB"),
        (2**20, "1.0 MiB"),
        (2**50, "1,024 TiB"),
    ],
)
def test_a_size_has_a_binary_unit(number: float, text: str) -> None:
    """Sizes are in B, KiB, MiB, GiB and TiB."""
    assert size(number) == text


@pytest.mark.parametrize(
    "seconds,text",
    [
        (0.25, "250 ms"),
        (4.21, "4.2 s"),
        (60, "1 min 0 s"),
        (424.6, "7 min 4 s"),
        (3 * 3600 + 125, "3 h 2 min"),
        (2 * 86_400 + 5 * 3600, "2 d 5 h"),
    ],
)
def test_a_span_has_its_two_largest_units(seconds: float, text: str) -> None:
    """A length of time is shown in the units that matter."""
    assert span(seconds) == text


@pytest.mark.parametrize(
    "number,text",
    [(0, "0.00 ms"), (0.444, "0.44 ms"), (12.34, "12.3 ms"), (812.4, "812 ms"), (12_345, "12 s")],
)
def test_milliseconds_keep_what_matters(number: float, text: str) -> None:
    """Small times keep decimals, large ones become seconds."""
    assert milliseconds(number) == text


def test_plural_counts() -> None:
    """One thing is one thing."""
    assert (plural(1, "event"), plural(0, "event"), plural(1200, "event")) == (
        "1 event",
        "0 events",
        "1,200 events",
    )
