"""Every sentence of the page has a test that shows it, and the page still has every sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.prx import page
from tests.conformance.prx.sentences import FILES, SENTENCES, Sentence

ROOT = Path(__file__).parents[3]
IDS = [f"{number:03}-{sentence.says.replace(' ', '-')}" for number, sentence in enumerate(SENTENCES)]


@pytest.mark.parametrize("sentence", SENTENCES, ids=IDS)
def test_the_tests_of_a_sentence_exist(sentence: Sentence) -> None:
    """What a sentence is shown by is a test of this project."""
    for shown in sentence.shown_by:
        file, _, name = shown.partition("::")
        text = (ROOT / FILES[file]).read_text()
        assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), shown


@pytest.mark.parametrize("sentence", SENTENCES, ids=IDS)
def test_the_page_still_says_it(sentence: Sentence, pages: Path) -> None:
    """The sentence stands on the page as it did when its tests were written."""
    assert sentence.digest in {page.digest(found) for found in page.sentences(page.find(pages))}


def test_no_sentence_of_the_page_is_left_out(pages: Path) -> None:
    """Whatever the page says in words has its row, in the page's order."""
    said = [page.digest(found) for found in page.sentences(page.find(pages))]
    assert said == [sentence.digest for sentence in SENTENCES]


def test_every_sentence_that_states_something_is_shown() -> None:
    """Only headings, labels, lead-ins and references to other pages need no test."""
    bare = {sentence.says for sentence in SENTENCES if not sentence.shown_by}
    words = ("heading", "head of", "lead-in", "label", "title", "related pages")
    assert [says for says in bare if not says.startswith(words)] == []
