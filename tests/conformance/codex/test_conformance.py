"""Every case of the Codex contract passes, or says why it does not apply, and the page lists all of them."""

from __future__ import annotations

import pytest

from tests.conformance.codex.cases import CASES
from tests.conformance.codex.conformance import PAGE, Case, ids, page
from tests.conformance.shown import not_tests

CHECKED = [case for case in CASES if case.check is not None]
ELSEWHERE = [case for case in CASES if case.shown_by]


@pytest.mark.parametrize("case", CHECKED, ids=[case.id for case in CHECKED])
def test_a_case_passes(case: Case) -> None:
    """What upstream asserts holds here."""
    assert case.check is not None
    case.check()


@pytest.mark.parametrize("case", ELSEWHERE, ids=[case.id for case in ELSEWHERE])
def test_a_case_is_shown_by_tests_that_exist(case: Case) -> None:
    """A case that a test elsewhere shows names a test of this project."""
    assert not_tests(case.shown_by, {}) == []


def test_every_case_is_listed_once_and_in_order() -> None:
    """No id is left out, made up, or listed twice."""
    assert [case.id for case in CASES] == ids()


def test_every_case_has_one_status() -> None:
    """A case is shown, here or elsewhere or both, or it does not apply, for a reason."""
    shown = {case.id for case in CASES if case.check is not None or case.shown_by}
    assert shown.symmetric_difference(case.id for case in CASES if case.not_applicable) == set(ids())


def test_the_page_is_up_to_date() -> None:
    """The page in this folder is what the tables say; `python -m tests.conformance.codex.write` writes it."""
    assert PAGE.read_text() == page(CASES)
