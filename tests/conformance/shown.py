"""What the tables of all pages have in common: a sentence, and the tests that show it to be true.

The pages are not ours to ship. A sentence is named by the beginning of its SHA-256 and by words of our own. A
heading or a label states nothing, so nothing is shown for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]

SILENT: Final = ("heading", "head of", "label", "lead-in", "related pages", "title")
"""How our words for that begin which states nothing."""


class Sentence(NamedTuple):
    """One sentence: the first eight digits of its digest, what it says, and what shows it."""

    digest: str
    says: str
    shown_by: tuple[str, ...]


def ids(sentences: Sequence[Sentence]) -> list[str]:
    """A name for each, in their order."""
    return [f"{number:03}-{sentence.says.replace(' ', '-')}" for number, sentence in enumerate(sentences)]


def not_tests(shown: Iterable[str], files: Mapping[str, str]) -> list[str]:
    """What of ``FILE::name`` is no test of this project; ``files`` has the paths of abbreviated ones."""
    return [each for each in shown if not _is_a_test(each, files)]


def _is_a_test(shown: str, files: Mapping[str, str]) -> bool:
    file, _, name = shown.partition("::")
    path = ROOT / files.get(file, file)
    return path.is_file() and bool(re.search(rf"^(async )?def {name}\(", path.read_text(), re.MULTILINE))


def not_shown(sentences: Iterable[Sentence]) -> list[str]:
    """What states something, and no test shows it."""
    bare = {sentence.says for sentence in sentences if not sentence.shown_by}
    return sorted(says for says in bare if not says.startswith(SILENT))
