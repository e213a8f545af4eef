"""What the control plane asks of its surroundings, as values.

The server performs them in order and knows nothing of why.
"""

from __future__ import annotations

from typing import NamedTuple


class Send(NamedTuple):
    """Hand ``data`` to ``peer`` without waiting; a peer that cannot be reached is reported as gone."""

    peer: bytes
    data: bytes


class Inject(NamedTuple):
    """Put ``frame`` into the data plane without waiting, then report what came of it.

    ``peer`` asked for it with number ``request`` (0: wants no reply). ``topic`` is None for a
    frame that is not an event. ``retain``: keep it as the topic's last value if it went in.
    """

    frame: bytes
    peer: bytes
    request: int = 0
    topic: str | None = None
    retain: bool = False


class Watch(NamedTuple):
    """Report ``peer`` as gone when the process ``pid`` of this machine ends."""

    peer: bytes
    pid: int


class Forget(NamedTuple):
    """Watch ``peer`` no longer."""

    peer: bytes


class Measure(NamedTuple):
    """Ask the proxy for its counters, unless that is under way."""


Action = Send | Inject | Watch | Forget | Measure
