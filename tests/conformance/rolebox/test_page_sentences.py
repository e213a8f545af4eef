"""Every sentence of the page has a test that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.prx.page import digest, sentences
from tests.conformance.rolebox import page
from tests.conformance.rolebox.sentences import FILES, SENTENCES
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
