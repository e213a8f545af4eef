"""Bounds of the control plane's own tables, each with its unit; what a user meets is in protocol.limits."""

from __future__ import annotations

from typing import Final

PATTERNS_HELD: Final = 200_000
"""Patterns of all subscribers together: about 100 MB of tables."""

MATCHES_CACHED: Final = 10_000
"""Topics whose number of matching subscribers is remembered."""

REPORT_BYTES: Final = 65_536
"""One peer's last report as kept."""

REPORT_NAMES: Final = 64
"""Counters in one report."""

REPORT_ENTRIES: Final = 50
"""Entries kept of a counter that is a map, the largest ones."""

REPORTS_BYTES: Final = 67_108_864
"""All reports together."""

LOST_PUBLISHERS: Final = 256
"""Publishers that ended without a goodbye, the most recent ones."""

STATUS_BYTES: Final = 900_000
"""Rows in one status reply; the rest is counted as omitted. Below CONTROL_BYTES with its frame."""

STATUS_WAITERS: Final = 64
STATUS_WAITERS_EACH: Final = 4
"""Status requests that wait for the next counters of the proxy, in all and of one peer."""

PATTERNS_SHOWN: Final = 20
"""Patterns that status lists of one peer."""

VALUES_BYTES: Final = 524_288
"""Retained frames in one reply; one frame more may go in."""

REASONS: Final = 64
"""Reasons for which refusals are counted apart."""

INBOX_CHARACTERS: Final = 128
"""Longest token of a private inbox."""

RATE_SECONDS: Final = 2.0
"""Span over which rates are averaged."""

DECIDERS_REMEMBERED: Final = 256
"""Deciders that fail closed, died and are not back yet, the most recent ones."""

HEARD_BYTES: Final = 900_000
"""All answers to one ask; what does not fit counts as failed. Below CONTROL_BYTES with its frame."""

LANES_KNOWN: Final = 20_000
"""Lanes that have asked; beyond it those without an ask under way are forgotten."""

LOST_SECONDS: Final = 0.02
"""How long is waited, when a decider's lane has ended, for word of what became of the decider."""
