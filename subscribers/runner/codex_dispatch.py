"""One event of the Codex family end to end: select, run all together, judge, answer, report.

    ask or copy -> round -> handlers, each on a thread -> judged -> merged in order -> answers -> reports

Decides that handlers start together, how long each may take, what is answered when time is short, and that
the answer comes before the reports. Every handler that found no room is counted and told. Knows no socket:
asks and events come in as values.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from broker.logs import get_logger
from broker.protocol.decisions import Answer
from broker.protocol.errors import BusError, shown
from broker.protocol.events import Event

from ..dialects.codex_events import BY_CANONICAL
from ..dialects.codex_result import Terms, judge, refuse
from ..dialects.codex_result_values import Context, Effects, Entry, Judged
from ..dialects.codex_spill import within_limits
from ..hooks.outcome import Outcome
from ..hooks.role_phase import is_second_phase
from ..runtimes.deadlines import Deadlines
from ..runtimes.pool import RunPool
from ..sources.attach_context import load as load_context
from ..sources.codex_documents import Documents
from ..sources.codex_layers import REMOTE
from .asking import Ask
from .codex_interruptions import Interruptions
from .codex_invocation import Scene, folder_of
from .codex_reports import answer_name, run_status
from .codex_round import Round, Rounds, Verdict
from .codex_runs import Runs
from .codex_selection import Chosen, Selection, select
from .codex_sessions import Sessions
from .codex_spill_files import SpillFiles
from .codex_telling import Ended, Teller
from .codex_work import Work
from .views import lifecycle_event

MARGIN_S: Final = 0.1
"""Seconds before an ask's deadline at which its handlers' time is over, so that the answer is in time."""

MARGIN_SHARE: Final = 0.25
"""Largest share of an ask's time that goes to that."""

LOAD_SECONDS: Final = 2.0
LOAD_SHARE: Final = 0.5
"""How long, and for which share of its time, an event waits for changed files; then the last ones hold."""

INLINE_BYTES: Final = 65_536
"""Largest payload that is taken apart at once; a larger one is by a thread, so that it holds up nobody.

So is one that comes when hook files have changed, which may take long to read."""

SESSION_EVENTS: Final = frozenset({"session_start", "session_end", "user_prompt"})
"""Events that say something of a session, whether or not they start a handler."""

TOLD_SESSIONS: Final = 4_096
"""Sessions of remote workspaces that are told that nothing runs."""

ERROR_CHARACTERS: Final = 300
LATE: Final = "its turn came when nobody waited for it any more"
OVER: Final = "its session is over"
NO_ROOM: Final = "too many runs are under way and waiting"

log = get_logger("subscribers.codex")


class CodexDispatcher:
    """The Codex family's hooks. Thread-safe. ``workspace`` is the folder that was named, None for none.

    ``pool`` runs what is waited for, ``background`` asynchronous handlers, by session; ``preparing`` takes
    large payloads apart. ``outcomes`` counts runs by the status that is reported of them, with
    ``dropped`` for those that found no room and ``unreadable`` for events that are none; ``others`` what is
    no run: what came too ``late``, and events of ``remote`` workspaces.
    """

    def __init__(
        self,
        documents: Documents,
        runs: Runs,
        teller: Teller,
        *,
        pool: RunPool,
        background: RunPool,
        preparing: RunPool,
        deadlines: Deadlines,
        spill: SpillFiles,
        workspace: str | None,
        runtime_dir: str,
        environ: Mapping[str, str],
    ) -> None:
        self.outcomes: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self.sessions = Sessions()
        self._documents = documents
        self._runs = runs
        self._teller = teller
        self._pool = pool
        self._background = background
        self._preparing = preparing
        self._deadlines = deadlines
        self._spill = spill
        self._workspace = workspace
        self._runtime_dir = runtime_dir
        self._environ = environ
        self._home = environ.get("HOME") or "/"
        self._rounds = Rounds()
        self._interruptions = Interruptions()
        self._lock = threading.Lock()
        self._told: set[str] = set()

    # -- what comes from the bus --------------------------------------------------------------

    def ask(self, ask: Ask) -> None:
        """Have an ask answered soon; waits for no handler, and raises nothing on its account."""
        event = ask.event
        now = time.monotonic()
        if ask.cancelled or now >= ask.deadline:
            self._note("late")
            return
        margin = min(MARGIN_S, MARGIN_SHARE * (ask.deadline - now))
        found, is_new = self._rounds.begin(event.id, ask.deadline - margin)
        if not found.claim(ask):
            return
        if is_new:
            self._begin(found, event)
        elif found.deadline is None:
            found.deadline = ask.deadline - margin
        if found.verdict is None:
            left = max(0.0, ask.deadline - margin / 2 - now)
            deadline = self._deadlines.arm(left, partial(self._hurry, found, ask))
            found.then(partial(self._deadlines.disarm, deadline))

    def event(self, event: Event) -> None:
        """Run what an event starts that nobody may have asked about. Raises nothing on its account."""
        name = lifecycle_event(event.topic)
        if name not in SESSION_EVENTS and name not in self._documents.current().topics:
            return  # not remembered either: there may be many
        found, is_new = self._rounds.begin(event.id, None)
        if is_new:
            self._begin(found, event)

    # -- parts --------------------------------------------------------------------------------

    def _begin(self, found: Round, event: Event) -> None:
        """Start an event's handlers, soon."""
        data = event.inline
        if data and len(data) <= INLINE_BYTES and self._documents.is_current():
            self._start_safely(found, event)
        elif not self._preparing.submit(
            event.session_id or "", partial(self._start_safely, found, event), data
        ):
            self._count("dropped")
            found.land(Verdict(error=NO_ROOM))

    def _start_safely(self, found: Round, event: Event) -> None:
        try:
            self._start(found, event)
        except Exception as error:  # anybody may publish anything; the next events are not to suffer for it
            self._count("unreadable")
            why = str(error) if isinstance(error, BusError | ValueError) else shown(error, ERROR_CHARACTERS)
            log.error("an event could not be handled", id=event.id, error=why)
            found.land(Verdict(error=f"the event cannot be read: {why[:ERROR_CHARACTERS]}"))

    def _start(self, found: Round, event: Event) -> None:
        name = lifecycle_event(event.topic)
        snapshot = self._documents.current(self._patience(found))
        if name is None or name not in BY_CANONICAL or not snapshot.handlers or is_second_phase(event):
            found.land(Verdict())
            return
        selection = select(snapshot, name, event, self._workspace, self._home)
        if name == "session_end":
            self.sessions.end(selection.session)
            self._interruptions.end(selection.session)
        elif name in SESSION_EVENTS:
            self.sessions.began(selection.session)
        if selection.remote is not None:
            found.land(Verdict(self._remote(selection)))
            return
        if not selection.chosen:
            found.land(Work(found, event, name, selection, (), self.sessions).verdict())
            return
        scene = self._scene(event, selection)
        sync = [each for each in selection.chosen if not each.handler.is_async]
        work = Work(found, event, name, selection, sync, self.sessions)
        found.runs(work.verdict)
        arrived = time.monotonic()
        for place, each in enumerate(sync):
            job = partial(self._job, work, place, each, scene, arrived)
            if not self._pool.submit(each.handler.key, job, each.body):
                self._done(work, place, each, Outcome.not_started(NO_ROOM), 0.0)
        for each in selection.chosen:
            if each.handler.is_async:
                self._start_async(each, event, scene, selection, arrived)
        if not sync:
            found.land(work.verdict())

    def _patience(self, found: Round) -> float:
        """Seconds that an event waits for hook files that have changed; its handlers keep a share."""
        if found.deadline is None:
            return LOAD_SECONDS
        left = found.deadline - time.monotonic()
        return min(LOAD_SECONDS, max(0.0, left * LOAD_SHARE))

    def _scene(self, event: Event, selection: Selection) -> Scene:
        context = event.payload.get("agent_context")
        own = load_context(self._runtime_dir, context) if isinstance(context, str) else None
        environ = self._environ if own is None else own
        return Scene(
            environ=environ,
            cwd=folder_of(selection.cwd, self._workspace, environ),
            workspace=self._workspace,
            runtime_dir=self._runtime_dir,
            event_id=event.id,
            depth=event.depth,
            is_agents=own is not None,
        )

    def _remote(self, selection: Selection) -> Sequence[Answer]:
        """Nothing runs; a session is told so once."""
        self._note("remote")
        with self._lock:
            if selection.session in self._told or len(self._told) >= TOLD_SESSIONS:
                return ()
            self._told.add(selection.session)
        log.warning("no hooks run", session=selection.session, cwd=selection.remote, reason=REMOTE)
        return (Answer("prxbus", system_message=f"no hooks run for {selection.remote}: {REMOTE}"),)

    def _job(self, work: Work, place: int, chosen: Chosen, scene: Scene, arrived: float) -> None:
        now = time.monotonic()
        found = work.round
        if not found.is_wanted(now):
            self._note("late")
            self._done(work, place, chosen, Outcome.not_started(LATE), now - arrived)
            return
        timeout_s = chosen.handler.timeout_s
        if found.deadline is not None:
            timeout_s = min(timeout_s, max(0.01, found.deadline - now))
        if chosen.handler.kind == "refusal":
            outcome = Outcome.not_started(chosen.handler.command)
        else:
            outcome = self._runs.run(chosen, scene, timeout_s)
        self._done(work, place, chosen, outcome, now - arrived)

    def _done(self, work: Work, place: int, chosen: Chosen, outcome: Outcome, waited_s: float) -> None:
        selection = work.selection
        judged = self._judged(chosen, outcome, selection)
        if work.hear(place, judged):
            work.round.land(work.verdict())
        self._count("dropped" if outcome.reason is NO_ROOM else run_status(outcome, judged))
        self._teller.add(
            Ended(chosen.handler, work.event, outcome, judged, waited_s, work.round, selection.tool_use)
        )

    def _judged(self, chosen: Chosen, outcome: Outcome, selection: Selection) -> Judged:
        """What a run comes to, with every text as long as the model may read it."""
        handler, profile = chosen.handler, chosen.profile
        terms = Terms(
            is_async=handler.is_async,
            context_limit=handler.context_limit,
            timeout_s=handler.timeout_s if outcome.duration_s >= handler.timeout_s else None,
            on_failure=handler.on_failure,
            strict=selection.strict,
        )
        if handler.kind == "refusal":
            return refuse(handler.event, profile, handler.command)
        try:
            judged = judge(handler.event, profile, outcome, terms)
            return replace(judged, effects=self._fitting(judged.effects, chosen, selection.session))
        except Exception as error:  # a handler may print anything; that is told, and the others go on
            log.error("a result cannot be judged", handler=handler.key, error=shown(error, ERROR_CHARACTERS))
            return Judged("failed", (Entry("error", f"its result cannot be read: {type(error).__name__}"),))

    def _fitting(self, effects: Effects, chosen: Chosen, session: str) -> Effects:
        return within_limits(effects, chosen.profile, partial(self._save, session))

    def _save(self, session: str, text: str) -> str | None:
        path = self._spill.path(session)
        try:
            self._spill.save(path, text)
        except OSError as error:
            log.error("a long text could not be saved", path=path, error=error.strerror)
            return None
        return path

    def _hurry(self, found: Round, ask: Ask) -> None:
        if found.hurry(ask):
            self._note("late")

    # -- asynchronous handlers ----------------------------------------------------------------

    def _start_async(
        self, chosen: Chosen, event: Event, scene: Scene, selection: Selection, arrived: float
    ) -> None:
        session = selection.session
        held = self._interruptions.hold(session)

        def job() -> None:
            waited_s = time.monotonic() - arrived
            if held.is_over:
                outcome = Outcome.not_started(OVER)
            else:
                outcome = self._runs.run(chosen, scene, chosen.handler.timeout_s, held.descriptor)
            self._interruptions.release(session, held)
            self._end_async(chosen, event, outcome, waited_s, selection)

        if not self._background.submit(session, job, chosen.body):
            self._interruptions.release(session, held)
            self._end_async(chosen, event, Outcome.not_started(NO_ROOM), 0.0, selection)

    def _end_async(
        self, chosen: Chosen, event: Event, outcome: Outcome, waited_s: float, selection: Selection
    ) -> None:
        handler, session = chosen.handler, selection.session
        judged = self._judged(chosen, outcome, selection)
        said = judged.effects
        text = outcome.stderr.text().strip()
        if handler.rewakes and outcome.exit_code == 2 and text:
            said = self._fitting(Effects(contexts=(Context(text),)), chosen, session)
        if said.contexts or said.warnings:
            contexts = tuple(context.text for context in said.contexts)
            message = "\n".join(said.warnings) or None
            self.sessions.keep(
                session, Answer(answer_name(handler), contexts=contexts, system_message=message)
            )
        self._count("dropped" if outcome.reason is NO_ROOM else run_status(outcome, judged))
        self._teller.add(Ended(handler, event, outcome, judged, waited_s, None, selection.tool_use))

    def _count(self, status: str) -> None:
        with self._lock:
            self.outcomes[status] += 1

    def _note(self, what: str) -> None:
        with self._lock:
            self.others[what] += 1
