"""What TOML may not be handed to the parser: a key of endless parts.

It decides that from the text alone, in linear time. It refuses to know what a document means.
"""

from __future__ import annotations

import re
from typing import Final

MAX_KEY_PARTS: Final = 32
"""The parser remembers each beginning of a dotted key: one of 100 KB took over 14 GB of memory."""

_STRING_OR_COMMENT: Final = re.compile(
    rb'''"""(?:\\.|[^\\])*?(?:"""|\Z)|\'{3}.*?(?:\'{3}|\Z)'''
    rb"""|"(?:\\.|[^"\\\n])*"?|\'[^\'\n]*\'?|#[^\n]*""",
    re.DOTALL,
)
"""Unterminated ones too: whatever the text, it is gone through once."""

_LONG_KEY: Final = re.compile(rb"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]++[ \t]*+\.[ \t]*+){%d}" % MAX_KEY_PARTS)


def has_endless_key(text: bytes) -> bool:
    """Whether a key in ``text`` has more than :data:`MAX_KEY_PARTS` parts."""
    return _LONG_KEY.search(_STRING_OR_COMMENT.sub(b"s", text)) is not None
