"""Every sentence of the page has a test that shows it, and so has every difference of its program."""

from __future__ import annotations

from pathlib import Path

import pytest

from subscribers.dialects.librefang_differences import DIFFERENCES
from tests.conformance.librefang import page
from tests.conformance.librefang.program import ROWS, Row
from tests.conformance.librefang.sentences import DIFFERENCES_SHOWN, FILES, SENTENCES
from tests.conformance.prx.page import digest, sentences
from tests.conformance.shown import Sentence, ids, not_shown, not_tests


@pytest.mark.parametrize("sentence", SENTENCES, ids=ids(SENTENCES))
def test_the_tests_of_a_sentence_exist(sentence: Sentence) -> None:
    """What a sentence is shown by is a test of this project."""
    assert not_tests(sentence.shown_by, FILES) == []


def test_no_sentence_of_the_page_is_left_out_or_made_up(pages: Path) -> None:
    """Whatever the page says in words has its row, in the page's order."""
    said = [digest(found) for found in sentences(page.find(pages))]
    assert said == [sentence.digest for sentence in SENTENCES]


def test_every_sentence_that_states_something_is_shown() -> None:
    """Only headings, heads of tables and lead-ins need no test."""
    assert not_shown(SENTENCES) == []


@pytest.mark.parametrize("number", [difference.number for difference in DIFFERENCES])
def test_every_difference_is_shown(number: str) -> None:
    """A row of the table of differences has tests, and they exist."""
    assert DIFFERENCES_SHOWN[number]
    assert not_tests(DIFFERENCES_SHOWN[number], FILES) == []


@pytest.mark.parametrize("row", ROWS, ids=[row.about.replace(" ", "-") for row in ROWS])
def test_every_behaviour_of_the_program_is_answered(row: Row) -> None:
    """What is known of the program has tests that show ours, the same or another, and they exist."""
    assert row.shown_by
    assert not_tests(row.shown_by, FILES) == []


def test_the_differences_are_numbered_in_order() -> None:
    """L1, L2 and so on, and none is shown that is not in the table."""
    numbers = [difference.number for difference in DIFFERENCES]
    assert numbers == [f"L{number}" for number in range(1, len(numbers) + 1)] == list(DIFFERENCES_SHOWN)
