"""An event of a session, the hooks of its role one after another, and what becomes of their edits.

    ask or copy -> round -> lane of its session -> walk: hook, hook, core, hook -> answers -> reports

Decides that events of one session are handled in their order, that what is to be remembered is stored before
anybody is told, and that the reply comes before the reports. The thread that brings a result takes the next
step itself: nothing is handed over. Knows no socket and no process: asks, events and results come in as
values, and reports go out through a function.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

import orjson

from broker.logs import get_logger
from broker.protocol.decisions import Answer
from broker.protocol.errors import BusError, shown
from broker.protocol.events import Event
from broker.protocol.topics import LIFECYCLE

from ..hooks.module_hook import ModuleCall, ModuleReturn
from ..hooks.role_chain import CORE_NAME, Core, Turn, Walk
from ..hooks.role_functions import RoleFunctions, element, on_message, requested
from ..hooks.role_sessions import ROLE_CHARACTERS, Scope, whose
from .reports import reports
from .roles_lanes import Lanes, Place
from .roles_memory import Memory
from .roles_reports import log_failure, outcome_of, spec_of
from .roles_rounds import Ask, Ran, Result, Round, Rounds
from .roles_set import NOTHING, InForce, RoleSet
from .roles_view import MESSAGE, NAMES_A_ROLE, SYSTEM, TOOL_BEFORE, Seen, rolebox_event, see, session_of
from .views import lifecycle_event

FUNCTIONS_TOPIC: Final = "prx.rolebox.functions"
"""Asked for the functions of a session, and to activate or deactivate some."""

RESULT_TOPIC: Final = f"{LIFECYCLE}tool_result"
"""Asked with a tool's raw output, which only transforms may see; its copy is an event without it."""

PROMPT_TOPIC: Final = f"{LIFECYCLE}system_transform"

CLAIM_S: Final = 0.5
"""Seconds that the copy of an event waits for the ask that it may belong to, where that matters."""

EVENT_S: Final = 60.0
"""Seconds that all hooks of an event may take together where nobody waits: its session goes on then."""

HELD: Final = 4_096
"""Copies, and reports of what nobody has asked about yet, that may wait so."""

SAID: Final = 1_024
"""Remarks about sessions that are made once."""

GUARDED: Final = frozenset({TOOL_BEFORE, SYSTEM})
"""Events whose hooks may edit: of no use where nobody asks."""

ENDS: Final = frozenset({"session_end", "session_reset"})
"""Events behind which nothing waits for their session any more."""

REMEMBERED: Final = ENDS | NAMES_A_ROLE | {"user_prompt"}
"""Events that say something of a session, whether or not a hook listens."""

ERROR_CHARACTERS: Final = 300
NO_ROOM: Final = "too many events of its session wait"
LATE: Final = "its turn came when nobody waited for it any more"

log = get_logger("subscribers.roles")

Publish = Callable[[str, dict[str, Any], Event], None]
"""Has a report published soon: topic, payload and the event that it is about. Raises nothing."""


class Hosts(Protocol):
    """Where modules run."""

    def call(self, hook_id: str, call: ModuleCall, done: Callable[[ModuleReturn], None], /) -> None:
        """Call a handler; ``done`` is told once what came of it, in this thread or in another."""


class _Call:
    """One call under way. ``said`` is there if it was answered at once, in the thread that makes it."""

    __slots__ = ("_maker", "_resume", "said")

    def __init__(self, resume: Callable[[ModuleReturn], None]) -> None:
        self._resume = resume
        self._maker = 0
        self.said: ModuleReturn | None = None

    def make(self, hosts: Hosts, hook_id: str, call: ModuleCall) -> ModuleReturn | None:
        """Make it. None: what comes of it comes later, and this thread is not to touch its round again."""
        self._maker = threading.get_ident()
        hosts.call(hook_id, call, self.done)
        self._maker = 0
        return self.said

    def done(self, said: ModuleReturn) -> None:
        """What came of it."""
        if self._maker == threading.get_ident():
            self.said = said
        else:
            self._resume(said)


class RolesDispatcher:
    """The hooks of roles. Thread-safe.

    ``roles`` is what is in force, ``out`` the ids of its hooks that are quarantined, and not called.
    ``outcomes`` counts calls by status, with ``dropped`` for events that found no room and ``unreadable`` for
    those that are none; ``others`` what is no call: ``late`` asks, texts injected ``without_session``.
    """

    def __init__(self, hosts: Hosts, memory: Memory, publish: Publish, scope: Scope = "session") -> None:
        self.outcomes: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self.roles: RoleSet = NOTHING
        self.out: frozenset[str] = frozenset()
        self.lanes: Lanes[Round] = Lanes()
        self._hosts = hosts
        self._memory = memory
        self._publish = publish
        self._scope: Scope = scope
        self._rounds = Rounds()
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._copies: deque[tuple[Event, float]] = deque()
        self._early: deque[tuple[Round, list[Ran], float]] = deque()

    # -- what comes from the bus --------------------------------------------------------------

    def ask(self, ask: Ask) -> None:
        """Have an ask answered soon; waits for no hook, and raises nothing on its account."""
        now = time.monotonic()
        if ask.cancelled or now >= ask.deadline:
            self._note("late")
            return
        event = ask.event
        if event.topic != FUNCTIONS_TOPIC and (event.topic == RESULT_TOPIC or not self._concerns(event)):
            ask.reply(())
            return
        found = self._rounds.begin(event, now, ask)
        if found is not None:
            self._enter(found)

    def event(self, event: Event) -> None:
        """Handle an event that everybody sees, unless it is or was asked about."""
        if not self._concerns(event):
            return  # not remembered either: there may be many
        if event.topic == PROMPT_TOPIC:  # what is put into a prompt that nobody gets would be lost
            with self._lock:
                if len(self._copies) >= HELD:
                    self._copies.popleft()
                    self.outcomes["dropped"] += 1
                self._copies.append((event, time.monotonic()))
            return
        self._observe(event)

    def tick(self, now: float) -> None:
        """Do what waits for asks that have not come; to be called several times a second."""
        copies: list[Event] = []
        told: list[tuple[Round, list[Ran]]] = []
        with self._lock:
            while self._copies and now - self._copies[0][1] >= CLAIM_S:
                copies.append(self._copies.popleft()[0])
            while self._early and now - self._early[0][2] >= CLAIM_S:
                found, ran, _ = self._early.popleft()
                told.append((found, ran))
        for event in copies:
            self._observe(event)
        for found, ran in told:
            self._tell(found, ran)

    def injected(self, hook_id: str, session: str | None, text: str) -> None:
        """A hook has injected a text outside of a call."""
        hook = self.roles.hooks.get(hook_id)
        self._inject(hook, session, (text,))
        self._memory.store()

    # -- parts --------------------------------------------------------------------------------

    def _concerns(self, event: Event) -> bool:
        """Whether a hook may listen to it, or it says something of its session."""
        name = lifecycle_event(event.topic)
        if name is None:
            return False
        listens = rolebox_event(name)
        return name in REMEMBERED or listens in self.roles.listens or listens == SYSTEM

    def _observe(self, event: Event) -> None:
        found = self._rounds.begin(event, time.monotonic())
        if found is not None:
            self._enter(found)

    def _enter(self, found: Round) -> None:
        content = found.event.content
        size = len(content) if isinstance(content, bytes) else 0
        place = self.lanes.enter(found.key, found, size)
        if place is Place.START:
            self._run(found)
        elif place is Place.NO_ROOM:
            self._count("dropped")
            self._rounds.land(found, Result(error=NO_ROOM))

    def _run(self, found: Round | None) -> None:
        """Handle what has its turn, and those behind it, until one has to wait for a hook."""
        while found is not None and self._goes_through(found, self._begin):
            found = self.lanes.leave(found.key)

    def _goes_through(self, found: Round, step: Callable[[Round], bool]) -> bool:
        """Take a step; whether the round is over, also because the step failed."""
        try:
            return step(found)
        except Exception as error:  # anybody may publish anything; the next events are not to suffer for it
            self._count("unreadable")
            why = str(error) if isinstance(error, BusError) else shown(error, ERROR_CHARACTERS)
            log.error("an event could not be handled", id=found.event.id, error=why)
            self._rounds.land(found, Result(error=f"the event cannot be handled: {why[:ERROR_CHARACTERS]}"))
            return True

    def _begin(self, found: Round) -> bool:
        event = found.event
        if event.topic == FUNCTIONS_TOPIC:
            self._functions(found)
            return True
        name = lifecycle_event(event.topic)
        if name is None or not self.roles.named:
            self._rounds.land(found, Result())
            return True
        seen = found.seen = see(name, event)
        places = self._places(seen)
        now = time.monotonic()
        deadline = found.deadline
        if deadline is not None and not found.is_wanted(now):
            self._note("late")
            if seen.happening.event in GUARDED:
                self._rounds.land(found, Result(error=LATE))
                return True
            deadline = None  # it has happened all the same, and its hooks are to know
        if deadline is None:
            deadline = now + EVENT_S
        links = self.roles.links(places)
        if self.out:
            links = tuple(link for link in links if link.id not in self.out)
        found.walk = Walk(links, seen.happening, seen.phase, seen.subject, deadline)
        found.places = places
        return self._advance(found)

    def _places(self, seen: Seen) -> tuple[int, ...]:
        """The roles that the event's session plays."""
        session = seen.session
        record = self._memory.session(session)
        if session is not None and seen.name in NAMES_A_ROLE and (seen.role or seen.agent):
            role = record.role if seen.role is None else seen.role[:ROLE_CHARACTERS]
            agent = record.agent if seen.agent is None else seen.agent[:ROLE_CHARACTERS]
            record = replace(record, role=role, agent=agent)
            self._memory.remember(session, record)
        found = whose(record.role if session is not None else seen.role, self.roles.named, self._scope)
        if found.why is not None:
            self._say_once(found.why)
        return found.roles

    def _advance(self, found: Round) -> bool:
        """Go on until a hook has to be waited for (False), or the round is over (True)."""
        walk, seen = found.walk, found.seen
        assert walk is not None and seen is not None  # noqa: PT018
        while True:
            turn = walk.turn(time.monotonic())
            if turn is None:
                self._finish(found, walk, seen)
                return True
            if isinstance(turn, Core):
                self._core(found, walk, seen)
                continue
            said = self._ask(found, turn, seen)
            if said is None:
                return False
            self._heard(found, turn, walk, seen, said)

    def _ask(self, found: Round, turn: Turn, seen: Seen) -> ModuleReturn | None:
        began = time.monotonic()
        found.waited_s = began - found.arrived
        call = ModuleCall(
            seen.handler, seen.input(turn.value), seen.session, self._agent(seen), turn.allowance_s
        )

        def resume(said: ModuleReturn) -> None:
            def step(found: Round) -> bool:
                walk, seen = found.walk, found.seen
                assert walk is not None and seen is not None  # noqa: PT018
                self._heard(found, turn, walk, seen, said)
                return self._advance(found)

            if self._goes_through(found, step):
                self._run(self.lanes.leave(found.key))

        return _Call(resume).make(self._hosts, turn.link.id, call)

    def _agent(self, seen: Seen) -> str | None:
        return seen.agent if seen.agent is not None else self._memory.session(seen.session).agent

    def _heard(self, found: Round, turn: Turn, walk: Walk, seen: Seen, said: ModuleReturn) -> None:
        said = _sendable(said)
        walk.heard(said)
        hook = self.roles.hooks.get(turn.link.id)
        if said.injected:
            self._inject(hook, seen.session, said.injected)
        if said.status != "absent" and hook is not None:
            self._count(said.status)
            found.ran.append(Ran(hook, seen, said, found.waited_s))

    # -- the core -----------------------------------------------------------------------------

    def _core(self, found: Round, walk: Walk, seen: Seen) -> None:
        """What is done between the phases."""
        session, event = seen.session, seen.happening.event
        if session is None:
            return
        if event == SYSTEM and found.claimed:
            functions = element(self._memory.session(session).functions, self._known(found.places))
            found.flushed = self._memory.look(session)
            walk.append([text for text in (found.flushed, functions) if text is not None])
        elif event == MESSAGE:
            roles = self._known(found.places)
            text = seen.view.get("text")
            if isinstance(text, str) and any(role.does_something for role in roles):
                record = self._memory.session(session)
                functions_now = on_message(record.functions, text, roles)
                self._memory.remember(session, replace(record, functions=functions_now))

    def _known(self, places: tuple[int, ...]) -> list[RoleFunctions]:
        return [self.roles.functions[place] for place in places if place < len(self.roles.functions)]

    def _functions(self, found: Round) -> None:
        """Answer what the functions of a session are, after what is asked for was done."""
        payload = found.event.payload
        session = session_of(found.event, payload)
        record = self._memory.session(session)
        state = requested(record.functions, _names(payload, "activate"), _names(payload, "deactivate"))
        if session is not None and state != record.functions:
            self._memory.remember(session, replace(record, functions=state))
            self._memory.store()
        told = {"active": list(state.active), "locked": list(state.locked)}
        self._rounds.land(found, Result([Answer(CORE_NAME, output=told)]))

    def _inject(self, hook: InForce | None, session: str | None, texts: tuple[str, ...]) -> None:
        name = "a hook" if hook is None else hook.link.name
        if session is None:
            self.others["without_session"] += len(texts)
            log.warning("a text was injected without a session, and is lost", hook=name)
            return
        for text in texts:
            if not self._memory.add(session, _whole(text)):
                log.warning("a text finds no room and is lost", hook=name, session=session)

    # -- the end ------------------------------------------------------------------------------

    def _finish(self, found: Round, walk: Walk, seen: Seen) -> None:
        """First store, then reply, then tell."""
        session, ran, flushed = seen.session, found.ran, found.flushed
        if walk.unasked:
            self.others["unasked"] += walk.unasked
            log.warning("hooks were not asked, for want of time", id=found.event.id, hooks=walk.unasked)
        self._memory.store()
        is_delivered = self._rounds.land(found, Result(walk.answers()))
        if session is not None:
            if flushed is not None and is_delivered:
                self._memory.delivered(session, flushed)
            if seen.name in ENDS:
                self._memory.forget(session, for_good=seen.name == "session_end")
            self._memory.store()
        if seen.happening.event not in GUARDED or found.claimed:
            self._tell(found, ran)
        elif ran:
            self._hold(found, ran)

    def _hold(self, found: Round, ran: list[Ran]) -> None:
        """An ask may still come for it."""
        with self._lock:
            is_full = len(self._early) >= HELD
            if not is_full:
                self._early.append((found, ran, time.monotonic()))
        if is_full:
            self._tell(found, ran)

    def _tell(self, found: Round, ran: list[Ran]) -> None:
        for hook, seen, said, waited_s in ran:
            is_ignored = seen.happening.event in GUARDED and not found.claimed
            outcome = outcome_of(said, is_ignored=is_ignored)
            if said.status != "ok":
                log_failure(hook, seen, said)
            for topic, payload in reports(spec_of(hook, seen), found.event, outcome, waited_s):
                self._publish(topic, payload, found.event)

    # -- counting -----------------------------------------------------------------------------

    def counters(self) -> Mapping[str, Any]:
        """What the broker's status shows of this process."""
        with self._lock:
            outcomes, others = dict(self.outcomes), dict(self.others)
        return {
            "runs": outcomes,
            "runs_now": self.lanes.running,
            "runs_waiting": self.lanes.waiting,
            "runs_dropped": outcomes.get("dropped", 0),
            **others,
            **self._memory.counters(),
        }

    def _say_once(self, what: str) -> None:
        with self._lock:
            if what in self._said or len(self._said) >= SAID:
                return
            self._said.add(what)
        log.warning(what)

    def _count(self, outcome: str) -> None:
        with self._lock:
            self.outcomes[outcome] += 1

    def _note(self, what: str) -> None:
        with self._lock:
            self.others[what] += 1


def _sendable(said: ModuleReturn) -> ModuleReturn:
    """What came of a call, which has failed if its edit is nothing that can be handed on."""
    if said.edit is None:
        return said
    try:
        orjson.dumps(said.edit)
    except orjson.JSONEncodeError as error:
        return said._replace(status="failed", edit=None, error=f"its edit cannot be handed on: {error}")
    return said


def _whole(text: str) -> str:
    """A text that can be sent: halves of characters are replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _names(payload: Mapping[str, Any], key: str) -> list[str]:
    value = payload.get(key)
    if not isinstance(value, list):
        return []
    return [name for name in value if isinstance(name, str) and 0 < len(name) <= ROLE_CHARACTERS]
