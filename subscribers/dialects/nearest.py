"""The known name that somebody probably meant.

It decides by spelling alone: case, dashes and underscores do not count, then similarity does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_CUTOFF: Final = 0.6
_CHARACTERS: Final = 64


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is spelled most like ``name``, or None when none comes near."""
    from difflib import get_close_matches  # 10 ms of imports that only a mistake needs

    by_spelling = {_squash(candidate): candidate for candidate in known}
    found = get_close_matches(_squash(name[:_CHARACTERS]), by_spelling, n=1, cutoff=_CUTOFF)
    return by_spelling[found[0]] if found else None


def _squash(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
