"""What a subscriber lost, told as it is noticed.

Decides what is worth a line: events missed, by topic; frames that were no events; a bus that was away.
Pure: counters go in, lines come out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Loss(NamedTuple):
    """One line of news: its machine-readable ``code``, the text, and the numbers in it."""

    code: str
    text: str
    fields: dict[str, Any]


class Losses:
    """Compares a subscriber's counters (see :attr:`broker.client.Subscriber.stats`) with those before."""

    def __init__(self) -> None:
        self._missed = 0
        self._away = 0
        self._gaps: dict[str, int] = {}
        self._refused: dict[str, int] = {}

    def news(self, stats: Mapping[str, Any]) -> Iterator[Loss]:
        """What is new since the last call."""
        if stats["away"] > self._away:
            self._away = stats["away"]
            yield Loss("away", "the bus was away and is back", {})
        if stats["missed"] != self._missed:
            yield from self._missing(stats["missed"], stats["gaps"])
        for reason, count in stats["refused"].items():
            new = count - self._refused.get(reason, 0)
            if new > 0:
                self._refused[reason] = count
                text = f"passed over {new:,} {_plural('frame', new)} that {_was(new)} no event ({reason})"
                yield Loss("refused", text, {"reason": reason, "count": new})

    def _missing(self, missed: int, gaps: Mapping[str, int]) -> Iterator[Loss]:
        new = missed - self._missed
        for topic, count in gaps.items():
            more = count - self._gaps.get(topic, 0)
            self._gaps[topic] = count
            new -= more
            if more > 0:
                text = f"missed {more:,} {_plural('event', more)} of {topic}"
                yield Loss("missed", text, {"topic": topic, "count": more})
        self._missed = missed
        if new > 0:  # more topics than the report names
            text = f"missed {new:,} {_plural('event', new)} of further topics"
            yield Loss("missed", text, {"topic": None, "count": new})


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
