"""One ask about a tool's result, from the event to the reply and what is told of it afterwards.

Decides what is answered when handlers fail or time is over, and that the reply comes first: records
are made and published behind it. Knows no socket: asks come in as values.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from broker.logs import get_logger
from broker.protocol.decisions import Answer
from broker.protocol.errors import BusError
from broker.protocol.events import Event

from ..hooks.transform_chain import Handler, Walk
from ..runtimes.pool import RunPool
from .asking import Ask
from .transform_reports import RUN_TOPIC, TRANSFORM_TOPIC, failure_report, record
from .transform_steps import Question, Step, question

NAMED: Final = 5
"""Handlers that are named in the reason of a failure."""

log = get_logger("subscribers.transform")

Publish = Callable[[str, dict[str, Any], Event], None]
"""Publishes a report: topic, payload and the event that it is about. Raises nothing."""


class Chain(Protocol):
    """The handlers in force, which may change between two asks."""

    def in_force(self) -> AbstractContextManager[tuple[Handler[Step], ...]]:
        """The handlers of now; they can be asked within the block, whatever is loaded meanwhile."""


class Asks:
    """Answers asks, each in a thread of ``pool``.

    ``outcomes`` counts asks: ``replaced``; ``passed``, nobody had a text; ``failed``, nobody had one and a
    handler failed; ``unreadable``; ``dropped``, no room; ``cancelled``; ``late``, nobody waited any more.
    ``refusal`` set: nothing is run, for this reason.
    """

    def __init__(self, chain: Chain, pool: RunPool, publish: Publish) -> None:
        self.refusal: str | None = None
        self.outcomes: dict[str, int] = {}
        self._chain = chain
        self._pool = pool
        self._publish = publish
        self._lock = threading.Lock()

    def take(self, ask: Ask) -> None:
        """Have an ask answered soon; returns at once. The asks of one session do not fill all threads."""
        arrived = time.monotonic()
        event = ask.event
        if not self._pool.submit(event.session_id or "", lambda: self._answer(ask, arrived), event.inline):
            self._count("dropped")
            ask.fail("too many results are being transformed at once")

    def _answer(self, ask: Ask, arrived: float) -> None:
        if ask.cancelled:
            self._count("cancelled")
            return
        if self.refusal is not None:
            self._count("failed")
            ask.fail(self.refusal)
            return
        with self._chain.in_force() as handlers:
            if handlers:
                self._walk(ask, handlers, arrived)
            else:
                self._count("passed")
                ask.reply([])

    def _walk(self, ask: Ask, handlers: tuple[Handler[Step], ...], arrived: float) -> None:
        try:
            asked = question(ask.event)
        except Exception as error:  # anybody may publish anything; an error's words may repeat it
            self._count("unreadable")
            code = error.code if isinstance(error, BusError) else type(error).__name__
            ask.fail(f"the result cannot be read: {code}")
            log.error("a result cannot be read", id=ask.event.id, error=code)
            return
        if asked is None:
            self._count("passed")
            ask.reply([])
            return
        walk: Walk[Step] = Walk(handlers, asked.result, ask.deadline)
        reports: list[dict[str, Any]] = []
        while not ask.cancelled and (turn := walk.turn(time.monotonic())) is not None:
            began = time.monotonic()
            said = turn.handler.what.ask(asked, turn.allowance_s)
            failed = len(walk.skipped)
            walk.heard(said)
            if len(walk.skipped) > failed:
                fault, took = walk.skipped[-1].fault, time.monotonic() - began
                who = turn.handler.what.who
                reports.append(failure_report(who, fault, ask.event.id, took, began - arrived))
        delivered = self._reply(ask, walk)
        self._tell(ask.event, asked, walk, reports, time.monotonic() - arrived, delivered=delivered)

    def _reply(self, ask: Ask, walk: Walk[Step]) -> bool:
        """Say what came of it; whether a replacement has reached somebody who waits."""
        if ask.cancelled:
            self._count("cancelled")
        elif walk.value is not None and walk.by is not None:
            try:
                taken = ask.reply([Answer(walk.by.name, output=walk.value)])
            except Exception as error:  # the spool may have no room for a large one
                self._count("failed")
                log.error("a replacement could not be sent", handler=walk.by.name, error=type(error).__name__)
                ask.fail(f"the replacement of {walk.by.name} could not be sent")
                return False
            self._count("replaced" if taken else "late")
            return taken
        elif walk.skipped or walk.unasked:
            names = ", ".join(skipped.handler for skipped in walk.skipped[:NAMED])
            self._count("failed")
            ask.fail(f"{len(walk.skipped)} failed ({names}), {walk.unasked} were not asked")
        else:
            self._count("passed")
            ask.reply([])
        return False

    def _tell(
        self,
        event: Event,
        asked: Question,
        walk: Walk[Step],
        reports: list[dict[str, Any]],
        took_s: float,
        *,
        delivered: bool,
    ) -> None:
        for report in reports:
            log.warning(
                "a transform failed and was skipped",
                **{name: report[name] for name in ("hook", "path", "event_id", "status", "reason")},
                tool=asked.result.tool_name,
            )
            self._publish(RUN_TOPIC, report, event)
        if walk.value is not None and walk.by is not None:
            skipped = [each.handler for each in walk.skipped]
            written = record(
                walk.by.what.who,
                asked.result,
                event.id,
                walk.value,
                delivered=delivered,
                duration_s=took_s,
                passed=walk.passed,
                skipped=skipped,
            )
            self._publish(TRANSFORM_TOPIC, written, event)

    def _count(self, outcome: str) -> None:
        with self._lock:
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
