"""Every sentence of the page has a test that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.prx.page import digest, sentences
from tests.conformance.rolebox import page
from tests.conformance.rolebox.sentences import FILES, SENTENCES, Sentence

ROOT = Path(__file__).parents[3]
IDS = [f"{number:03}-{sentence.says.replace(' ', '-')}" for number, sentence in enumerate(SENTENCES)]


def is_a_test(shown: str) -> bool:
    """Whether ``FILE::name`` is a test of this project."""
    file, _, name = shown.partition("::")
    text = (ROOT / FILES[file]).read_text()
    return re.search(rf"^(async )?def {name}\(", text, re.MULTILINE) is not None


@pytest.mark.parametrize("sentence", SENTENCES, ids=IDS)
def test_the_tests_of_a_sentence_exist(sentence: Sentence) -> None:
    """What a sentence is shown by is a test of this project."""
    assert [shown for shown in sentence.shown_by if not is_a_test(shown)] == []


def test_no_sentence_of_the_page_is_left_out_or_made_up(pages: Path) -> None:
    """Whatever the page says in words has its row, in the page's order."""
    said = [digest(found) for found in sentences(page.find(pages))]
    assert said == [sentence.digest for sentence in SENTENCES]


def test_every_sentence_that_states_something_is_shown() -> None:
    """Only headings, heads of tables and lead-ins need no test."""
    bare = {sentence.says for sentence in SENTENCES if not sentence.shown_by}
    silent = ("heading", "head of", "lead-in", "title")
    assert [says for says in bare if not says.startswith(silent)] == []
