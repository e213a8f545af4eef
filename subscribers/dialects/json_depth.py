"""How deep a JSON value is nested, and how deep one may be that is to be written again.

The parser takes 1,024 levels, the writer that belongs to it 254: what is read here and written elsewhere, a
few levels deeper, has to be bounded when it is read. It refuses to know what a value means.
"""

from __future__ import annotations

from typing import Any, Final

MAX_DEPTH: Final = 200
"""Objects and arrays within each other, the outermost counted. What we put around it is a few levels more."""


def is_too_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """Whether objects and arrays are nested more than ``most`` levels deep."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        if not level:
            return False
        level = [
            inner
            for found in level
            for inner in (found.values() if isinstance(found, dict) else found)
            if isinstance(inner, (dict, list))
        ]
    return bool(level)
