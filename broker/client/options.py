"""What a Publisher can be told to do, and how long it waits for what.

Decides the words and the times; knows nothing of how they are carried out.
"""

from __future__ import annotations

from typing import Final, Literal

OnFull = Literal["drop", "block", "raise"]
OnAbsent = Literal["drop", "block", "raise"]
Oversize = Literal["claim", "reject"]

ABSENT_SECONDS: Final = 0.2
"""How long the constructor waits for a bus with ``on_absent="drop"``."""

RAISE_SECONDS: Final = 3.0
"""How long ``on_absent="raise"`` waits for a bus whose sockets are there; without sockets not at all."""

BLOCK_SECONDS: Final = 5.0
"""How long ``on_full="block"`` waits for room, and ``on_absent`` other than drop for a bus."""

RETAIN_SECONDS: Final = 5.0
"""How long the broker may take to confirm a retained event before it counts as unanswered."""

POLL_MS: Final = 10
"""Longest single wait for the broker's prefixes: the link's thread may have taken the descriptor's edge."""

ROOM_SECONDS: Final = 0.002
"""Pause between two tries with ``on_full="block"``."""


def check_options(on_full: str, on_absent: str, oversize: str) -> None:
    """Raise ValueError for a word that is none of those above."""
    for name, value, words in (
        ("on_full", on_full, ("drop", "block", "raise")),
        ("on_absent", on_absent, ("drop", "block", "raise")),
        ("oversize", oversize, ("claim", "reject")),
    ):
        if value not in words:
            raise ValueError(f"{name} must be one of {', '.join(words)}, not {value!r}")
