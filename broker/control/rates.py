"""What the proxy has forwarded, and how fast.

Forwarded is not delivered: a frame counts as out when the egress has taken it, whatever a slow
subscriber's queue does with it then. Losses are in the subscribers' own reports.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from .bounds import RATE_SECONDS

_SAMPLES: Final = 64


class Forwarded(NamedTuple):
    """Totals since the broker started."""

    frames_in: int = 0
    bytes_in: int = 0
    frames_out: int = 0
    bytes_out: int = 0


class Rates:
    """The totals of the last seconds. ``latest`` is None before the first ones."""

    def __init__(self) -> None:
        self.latest: Forwarded | None = None
        self._samples: deque[tuple[float, Forwarded]] = deque(maxlen=_SAMPLES)

    def observe(self, totals: Forwarded, now: float) -> None:
        """The proxy's totals at ``now``."""
        self.latest = totals
        samples = self._samples
        while len(samples) > 1 and now - samples[1][0] >= RATE_SECONDS:
            samples.popleft()
        if len(samples) > 1 and samples[-1][0] - samples[-2][0] < RATE_SECONDS / _SAMPLES:
            samples.pop()  # asked again at once: only the newest of such a burst counts
        samples.append((now, totals))

    def per_second(self) -> dict[str, float]:
        """Averages over the last seconds, of frames and of bytes, in and out."""
        names = ("in_per_s", "bytes_in_per_s", "out_per_s", "bytes_out_per_s")
        if len(self._samples) < 2:
            return dict.fromkeys(names, 0.0)
        (start, first), (end, last) = self._samples[0], self._samples[-1]
        span = max(end - start, 1e-3)
        return {
            name: round(max(0, after - before) / span, 1)
            for name, before, after in zip(names, first, last, strict=True)
        }
