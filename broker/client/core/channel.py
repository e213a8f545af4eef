"""What the topics of one namespace are called in a publisher's batches.

Decides which number a topic has in the table of a batch. Knows no event, no socket and no clock.
"""

from __future__ import annotations

from ...protocol.envelope import batch_opening
from ...protocol.limits import BATCH_TOPICS


class Channel:
    """Topics of one namespace under one publisher id: what the events of a batch refer to.

    The table only grows, so that frames of one channel begin alike and a reader knows them again.
    """

    __slots__ = ("_namespace", "_openings", "_publisher", "_source", "topics")

    def __init__(self, namespace: str, publisher: bytes, source: str) -> None:
        self._namespace = namespace
        self._publisher = publisher
        self._source = source
        self._openings: dict[int, bytes] = {}
        self.topics: list[str] = []

    @property
    def full(self) -> bool:
        """Whether another topic needs another channel."""
        return len(self.topics) >= BATCH_TOPICS

    def add(self, topic: str) -> int:
        """Enter ``topic``, which is not there yet; its index."""
        self.topics.append(topic)
        self._openings.clear()
        return len(self.topics) - 1

    def opening(self, depth: int) -> bytes:
        """A batch of this channel up to its events."""
        known = self._openings.get(depth)
        if known is None:
            known = batch_opening(depth, self._namespace, self._publisher, self._source, self.topics)
            self._openings[depth] = known
        return known
