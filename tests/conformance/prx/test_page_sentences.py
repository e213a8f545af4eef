"""Every sentence of the page has a test that shows it, and the page still has every sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.prx import page
from tests.conformance.prx.sentences import FILES, SENTENCES
from tests.conformance.shown import Sentence, ids, not_shown, not_tests


@pytest.mark.parametrize("sentence", SENTENCES, ids=ids(SENTENCES))
def test_the_tests_of_a_sentence_exist(sentence: Sentence) -> None:
    """What a sentence is shown by is a test of this project."""
    assert not_tests(sentence.shown_by, FILES) == []


@pytest.mark.parametrize("sentence", SENTENCES, ids=ids(SENTENCES))
def test_the_page_still_says_it(sentence: Sentence, pages: Path) -> None:
    """The sentence stands on the page as it did when its tests were written."""
    assert sentence.digest in {page.digest(found) for found in page.sentences(page.find(pages))}


def test_no_sentence_of_the_page_is_left_out(pages: Path) -> None:
    """Whatever the page says in words has its row, in the page's order."""
    said = [page.digest(found) for found in page.sentences(page.find(pages))]
    assert said == [sentence.digest for sentence in SENTENCES]


def test_every_sentence_that_states_something_is_shown() -> None:
    """Only headings, labels, lead-ins and references to other pages need no test."""
    assert not_shown(SENTENCES) == []
