"""The handlers of one round that are waited for, and what they come to together.

Decides the order of answers, what a handler counts as that is not done in time, that a session hears at its
safe points what asynchronous handlers have said, and how often in a row a turn may be kept from ending.
Refuses to know how handlers are run and who asks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from broker.logs import get_logger
from broker.protocol.decisions import Answer
from broker.protocol.events import Event

from ..dialects.codex_merge import Finished, answers
from ..dialects.codex_profiles import Profile
from ..dialects.codex_result import Terms, judge, refuse
from ..dialects.codex_result_values import Effects, Judged
from ..hooks.outcome import NOTHING, Outcome
from .codex_reports import answer_name
from .codex_round import Round, Verdict
from .codex_selection import Chosen, Selection
from .codex_sessions import Sessions

SAFE_POINTS: Final = frozenset({"tool_call", "user_prompt"})
"""Events at which a session hears what asynchronous handlers have said: after a tool, before a prompt."""

log = get_logger("subscribers.codex")


class Work:
    """The synchronous handlers ``chosen`` of one event, ``name`` on the bus. Thread-safe."""

    def __init__(
        self,
        found: Round,
        event: Event,
        name: str,
        selection: Selection,
        chosen: Sequence[Chosen],
        sessions: Sessions,
    ) -> None:
        self.round = found
        self.event = event
        self.selection = selection
        self._name = name
        self._chosen = chosen
        self._sessions = sessions
        self._lock = threading.Lock()
        self._done: dict[int, tuple[Judged, float]] = {}
        self._began = time.monotonic()

    def hear(self, place: int, judged: Judged) -> bool:
        """The handler at ``place`` is done; whether it was the last."""
        with self._lock:
            self._done[place] = (judged, time.monotonic())
            return len(self._done) == len(self._chosen)

    def verdict(self) -> Verdict:
        """What the handlers come to that are done; the others are too late."""
        with self._lock:
            done = dict(self._done)
        found: list[Answer] = []
        if self._name in SAFE_POINTS and self.round.claimed:
            found += self._sessions.take(self.selection.session)
        by_profile: dict[str, list[tuple[Chosen, Finished]]] = {}
        for place, chosen in enumerate(self._chosen):
            judged, at = done.get(place) or (self._too_late(chosen), time.monotonic())
            run = Finished(answer_name(chosen.handler), judged, at)
            by_profile.setdefault(chosen.profile.name, []).append((chosen, run))
        for runs in by_profile.values():
            first = runs[0][0]
            event, profile = first.handler.event, first.profile
            finished = self._capped(event, profile, [run for _, run in runs])
            found += answers(event, profile, finished, tool_name=first.tool)
        return Verdict(tuple(found))

    def _too_late(self, chosen: Chosen) -> Judged:
        """What a handler comes to that is not done yet: as one whose time is over, by its own policy."""
        handler = chosen.handler
        if handler.kind == "refusal":
            return refuse(handler.event, chosen.profile, handler.command)
        seconds = time.monotonic() - self._began
        outcome = Outcome("timeout", None, None, seconds, NOTHING, NOTHING)
        terms = Terms(on_failure=handler.on_failure, strict=self.selection.strict)
        return judge(handler.event, chosen.profile, outcome, terms)

    def _capped(self, event: str, profile: Profile, runs: list[Finished]) -> list[Finished]:
        """The runs, or what they come to when a turn was kept from ending as often as its profile allows."""
        most = profile.stop_continuations
        if most is None or profile.exit_two.get(event) != "continue" or not self.round.claimed:
            return runs
        session = self.selection.session
        if not any(run.judged.effects.verdict == "deny" for run in runs):
            self._sessions.let_end(session, event)
            return runs
        if self._sessions.continued(session, event) <= most:
            return runs
        self._sessions.let_end(session, event)
        log.warning("a turn ends although hooks go on", session=session, on=event, times=most)
        told = f"{event} hooks have kept the turn from ending {most} times in a row: it ends now"
        first, *others = [run._replace(judged=replace(run.judged, effects=Effects())) for run in runs]
        return [first._replace(judged=replace(first.judged, effects=Effects(warnings=(told,)))), *others]
