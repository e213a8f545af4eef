"""Tells the bus and the log of runs that are over; one that nobody asked about a moment later.

An event's copy may come before the ask about it, so that a run is only called observed when no ask has
claimed it for a second. Decides that moment. Refuses to know what a report says.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from broker.logs import get_logger
from broker.protocol.errors import shown
from broker.protocol.events import Event

from ..dialects.codex_result_values import Judged
from ..dialects.codex_spec import CodexHandler
from ..hooks.outcome import Outcome
from .codex_reports import run_reports
from .codex_round import Round
from .reports import DEAD_LETTER_TOPIC

CLAIM_S: Final = 1.0
"""Seconds that a run waits for an ask to claim it before it is reported as observed."""

WAITING: Final = 4_096
"""Runs that may wait for that; beyond it they are counted and not reported."""

ERROR_CHARACTERS: Final = 300

log = get_logger("subscribers.codex")

Publish = Callable[[str, dict[str, Any], Event], None]
"""Publishes a report: topic, payload and the event that it is about. Raises nothing."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over. ``round`` None: nobody was to wait for it. ``at`` is now, of a steady clock."""

    handler: CodexHandler
    event: Event
    outcome: Outcome
    judged: Judged
    waited_s: float
    round: Round | None
    tool_use: str | None = None
    at: float = field(default_factory=time.monotonic)


class Teller:
    """Reports runs. Thread-safe. ``dropped`` counts runs of which nothing was told."""

    def __init__(self, publish: Publish) -> None:
        self.dropped = 0
        self._publish = publish
        self._waiting: deque[Ended] = deque()

    def add(self, ended: Ended) -> None:
        """Tell of a run: now, if somebody asked or nobody was to; else later."""
        if ended.round is None or ended.round.claimed:
            self._tell(ended)
        elif len(self._waiting) < WAITING:
            self._waiting.append(ended)
        else:
            self.dropped += 1

    def tick(self, now: float) -> None:
        """Tell of what has waited long enough; to be called now and then, by one thread."""
        while self._waiting and now - self._waiting[0].at >= CLAIM_S:
            self._tell(self._waiting.popleft())

    def _tell(self, ended: Ended) -> None:
        is_asked = ended.round is not None and ended.round.claimed
        try:
            for topic, report in run_reports(
                ended.handler,
                ended.event,
                ended.outcome,
                ended.judged,
                ended.waited_s,
                is_asked=is_asked,
                tool_use_id=ended.tool_use,
            ):
                if topic == DEAD_LETTER_TOPIC:
                    self._log(ended, report)
                self._publish(topic, report, ended.event)
        except Exception as error:  # the next reports are not to suffer for this one
            log.error(
                "a run could not be reported", handler=ended.handler.key, error=shown(error, ERROR_CHARACTERS)
            )

    def _log(self, ended: Ended, report: dict[str, Any]) -> None:
        facts = {name: report[name] for name in ("hook", "command", "status", "exit_code", "path")}
        why = "; ".join(ended.judged.errors) or report["reason"]
        log.warning("a hook failed", **facts, on=ended.handler.event, reason=why)
