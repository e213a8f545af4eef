"""Reports: what a peer may say of itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.control.bounds import REPORT_BYTES, REPORT_ENTRIES, REPORT_NAMES
from broker.control.reports import pack_report, unpack_report
from broker.protocol.errors import BusError, DecodeError, LimitExceeded

VALUES = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
REPORTS = st.dictionaries(
    st.text(max_size=20),
    st.one_of(VALUES, st.dictionaries(st.text(max_size=9), VALUES, max_size=5)),
    max_size=5,
)


@given(REPORTS)
def test_a_report_is_kept_as_it_came(counters: dict[str, Any]) -> None:
    """Numbers and maps of numbers come back as they went in."""
    assert unpack_report(pack_report(counters)) == counters


def test_no_report_is_no_counters() -> None:
    """A peer that has not reported has no counters."""
    assert unpack_report(b"") == {}


@given(
    st.dictionaries(st.one_of(st.text(), st.binary()), st.one_of(st.none(), st.text(), REPORTS), max_size=4)
)
def test_any_map_is_kept_or_refused(counters: dict[Any, Any]) -> None:
    """Whatever a report holds, it is kept within its bound or refused with an error of ours."""
    with suppress(BusError):
        assert len(pack_report(counters)) <= REPORT_BYTES


@pytest.mark.parametrize(
    "counters",
    [
        {"a": "text"},
        {"a": None},
        {"a": True},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": {"b": {}}},
        {b"a": 1},
        {"a": {b"b": 1}},
        {"x" * 321: 1},
    ],
)
def test_other_names_and_values_are_refused(counters: dict[Any, Any]) -> None:
    """A value that is no finite number, or a name that is no short string, is refused."""
    with pytest.raises(DecodeError):
        pack_report(counters)


def test_of_a_long_map_the_largest_entries_stay() -> None:
    """A map with too many entries keeps its largest ones and says how many went."""
    gaps = {f"t{number}": number for number in range(REPORT_ENTRIES + 7)}
    kept = unpack_report(pack_report({"gaps": gaps}))
    assert kept["gaps_omitted"] == 7
    assert kept["gaps"] == {f"t{n}": n for n in range(7, REPORT_ENTRIES + 7)}


def test_too_many_counters_are_refused() -> None:
    """A report with more names than its bound is refused."""
    with pytest.raises(LimitExceeded, match="counters"):
        pack_report({f"n{number}": 1 for number in range(REPORT_NAMES + 1)})


def test_a_report_of_too_many_bytes_is_refused() -> None:
    """Many long maps with long names exceed the bound in bytes and are refused."""
    entries = {f"{n:0>300}": n for n in range(REPORT_ENTRIES)}
    with pytest.raises(LimitExceeded, match="bytes"):
        pack_report({f"n{number}": entries for number in range(REPORT_NAMES)})
