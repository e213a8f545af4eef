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
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final, Protocol

import orjson

from broker.logs import get_logger
from broker.protocol.errors import BusError, shown
from broker.protocol.events import Event
from broker.protocol.topics import LIFECYCLE

from ..hooks.module_hook import ModuleCall, ModuleReturn
from ..hooks.role_chain import Core, Turn, Walk
from ..hooks.role_sessions import Scope, whose
from .asking import Ask
from .roles_core import ENDS, RolesCore
from .roles_lanes import Lanes, Place
from .roles_memory import Memory
from .roles_rounds import Ran, Result, Round, Rounds
from .roles_set import NOTHING, RoleSet
from .roles_telling import Publish, tell
from .roles_view import GUARDED, NAMES_A_ROLE, SYSTEM, Seen, rolebox_event, see
from .views import lifecycle_event

FUNCTIONS_TOPIC: Final = "prx.rolebox.functions"
"""Asked for the functions of a session, and to activate or deactivate some."""

RESULT_TOPIC: Final = f"{LIFECYCLE}tool_result"
"""Asked with a tool's raw output, which only transforms may see; its copy is an event without it."""

CLAIM_S: Final = 0.25
"""Seconds that an event's copy waits for the ask that it may belong to, where the ask makes a difference."""

HELD: Final = 1_024
"""Copies that may wait so; one more is handled at once."""

EVENT_S: Final = 60.0
"""Seconds that all hooks of an event may take together where nobody waits: its session goes on then."""

SAID: Final = 1_024
"""Remarks about sessions that are made once."""

REMEMBERED: Final = ENDS | NAMES_A_ROLE | {"user_prompt"}
"""Events that say something of a session, whether or not a hook listens."""

ERROR_CHARACTERS: Final = 300
NO_ROOM: Final = "too many events of its session wait"
LATE: Final = "its turn came when nobody waited for it any more"

log = get_logger("subscribers.roles")


class Stage(Enum):
    """How far a round has come."""

    OVER = auto()
    UNDER_WAY = auto()
    RESTING = auto()


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
    those that are none; ``others`` what is no call: ``late`` asks, hooks ``unasked`` for want of time.
    """

    def __init__(self, hosts: Hosts, memory: Memory, publish: Publish, scope: Scope = "session") -> None:
        self.outcomes: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self.roles: RoleSet = NOTHING
        self.out: frozenset[str] = frozenset()
        self.lanes: Lanes[Round] = Lanes()
        self._hosts = hosts
        self._core = RolesCore(memory)
        self._publish = publish
        self._scope: Scope = scope
        self._rounds = Rounds()
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._held: OrderedDict[str, Round] = OrderedDict()

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
            return
        with self._lock:
            held = self._held.pop(event.id, None)
        if held is not None:
            self._go_on(held)

    def event(self, event: Event) -> None:
        """Handle an event that everybody sees, unless it is or was asked about."""
        if not self._concerns(event):
            return  # not remembered either: there may be many
        found = self._rounds.begin(event, time.monotonic())
        if found is not None:
            self._enter(found)

    def tick(self, now: float) -> None:
        """Handle what has waited for an ask that has not come; to be called several times a second."""
        due: list[Round] = []
        with self._lock:
            while self._held and now - next(iter(self._held.values())).arrived >= CLAIM_S:
                due.append(self._held.popitem(last=False)[1])
        for found in due:
            self._go_on(found)

    def injected(self, hook: str, session: str | None, text: str) -> None:
        """The hook of that name has injected a text outside of a call."""
        self._core.inject(hook, session, (text,))
        self._core.store()

    # -- parts --------------------------------------------------------------------------------

    def _concerns(self, event: Event) -> bool:
        """Whether a hook may listen to it, or it says something of its session."""
        name = lifecycle_event(event.topic)
        if name is None:
            return False
        listens = rolebox_event(name)
        return name in REMEMBERED or listens in self.roles.listens or listens == SYSTEM

    def _enter(self, found: Round) -> None:
        place = self.lanes.enter(found.key, found, len(found.event.inline))
        if place is Place.START:
            self._run(found)
        elif place is Place.NO_ROOM:
            self._count("dropped")
            self._rounds.land(found, Result(error=NO_ROOM))

    def _run(self, found: Round | None) -> None:
        """Handle what has its turn, and those behind it, until one has to wait for a hook."""
        while found is not None:
            now_it_is = self._goes_through(found, self._begin)
            if now_it_is is Stage.UNDER_WAY:
                return
            found = self.lanes.leave(found.key) if now_it_is is Stage.OVER else self.lanes.rest()

    def _go_on(self, found: Round) -> None:
        """Handle what has waited to be asked about."""
        if self.lanes.go_on(found.key, found) is Place.START:
            self._run(found)

    def _goes_through(self, found: Round, step: Callable[[Round], Stage]) -> Stage:
        """Take a step; a round is over, too, when one has failed."""
        try:
            return step(found)
        except Exception as error:  # anybody may publish anything; the next events are not to suffer for it
            self._count("unreadable")
            why = str(error) if isinstance(error, BusError) else shown(error, ERROR_CHARACTERS)
            log.error("an event could not be handled", id=found.event.id, error=why)
            self._rounds.land(found, Result(error=f"the event cannot be handled: {why[:ERROR_CHARACTERS]}"))
            return Stage.OVER

    def _begin(self, found: Round) -> Stage:
        if found.seen is not None:  # it has begun, and rested
            return self._start(found)
        event = found.event
        if event.topic == FUNCTIONS_TOPIC:
            answer = self._core.functions(event)
            self._core.store()
            self._rounds.land(found, Result([answer]))
            return Stage.OVER
        name = lifecycle_event(event.topic)
        if name is None or not self.roles.named:
            self._rounds.land(found, Result())
            return Stage.OVER
        found.roles = self.roles
        found.seen = see(name, event)
        found.places = self._places(found, found.seen)
        if found.seen.happening.event in GUARDED and not found.claimed and self._held_back(found):
            return Stage.RESTING
        return self._start(found)

    def _held_back(self, found: Round) -> bool:
        """Wait a moment for the ask about an event whose copy has come first; not if it is there by now."""
        event_id = found.event.id
        with self._lock:
            if len(self._held) >= HELD:
                return False
            self._held[event_id] = found
            if found.claimed:  # an ask that comes from here on finds it there
                del self._held[event_id]
            return not found.claimed

    def _start(self, found: Round) -> Stage:
        seen, now, deadline = found.seen, time.monotonic(), found.deadline
        assert seen is not None
        if deadline is not None and not found.is_wanted(now):
            self._note("late")
            if seen.happening.event in GUARDED:
                self._rounds.land(found, Result(error=LATE))
                return Stage.OVER
            deadline = None  # it has happened all the same, and its hooks are to know
        if deadline is None:
            deadline = now + EVENT_S
        links = found.roles.links(found.places)
        if self.out:
            links = tuple(link for link in links if link.id not in self.out)
        found.walk = Walk(links, seen.happening, seen.phase, seen.subject, deadline)
        return self._advance(found)

    def _places(self, found: Round, seen: Seen) -> tuple[int, ...]:
        """The roles that the event's session plays."""
        named = found.roles.named
        whose_it_is = whose(self._core.role_of(seen, named, self._scope), named, self._scope)
        if whose_it_is.why is not None and (seen.session is not None or seen.role is not None):
            self._say_once(whose_it_is.why)
        return whose_it_is.roles

    def _advance(self, found: Round) -> Stage:
        """Go on until a hook has to be waited for, or the round is over."""
        walk, seen = found.walk, found.seen
        assert walk is not None and seen is not None  # noqa: PT018
        while True:
            turn = walk.turn(time.monotonic())
            if turn is None:
                self._finish(found, walk, seen)
                return Stage.OVER
            if isinstance(turn, Core):
                walk.append(self._core.between(found, seen))
                continue
            said = self._ask(found, turn, seen)
            if said is None:
                return Stage.UNDER_WAY
            self._heard(found, turn, walk, seen, said)

    def _ask(self, found: Round, turn: Turn, seen: Seen) -> ModuleReturn | None:
        began = time.monotonic()
        found.waited_s = began - found.arrived
        event = found.event
        call = ModuleCall(
            seen.handler,
            seen.input(turn.value),
            seen.session,
            self._core.agent_of(seen),
            turn.allowance_s,
            event.depth + 1,
            event.id,
        )

        def resume(said: ModuleReturn) -> None:
            def step(found: Round) -> Stage:
                walk, seen = found.walk, found.seen
                assert walk is not None and seen is not None  # noqa: PT018
                self._heard(found, turn, walk, seen, said)
                return self._advance(found)

            if self._goes_through(found, step) is Stage.OVER:
                self._run(self.lanes.leave(found.key))

        return _Call(resume).make(self._hosts, turn.link.id, call)

    def _heard(self, found: Round, turn: Turn, walk: Walk, seen: Seen, said: ModuleReturn) -> None:
        said = _sendable(said)
        walk.heard(said)
        hook = found.roles.hooks[turn.link.id]
        if said.injected:
            self._core.inject(hook.link.name, seen.session, said.injected)
        if said.status != "absent":
            self._count(said.status)
            found.ran.append(Ran(hook, seen, said, found.waited_s))

    # -- the end ------------------------------------------------------------------------------

    def _finish(self, found: Round, walk: Walk, seen: Seen) -> None:
        """First store, then reply, then tell."""
        ran, flushed = found.ran, found.flushed
        if walk.unasked:
            self._note("unasked", walk.unasked)
            log.warning("hooks were not asked, for want of time", id=found.event.id, hooks=walk.unasked)
        self._core.store()
        is_delivered = self._rounds.land(found, Result(walk.answers()))
        self._core.replied(seen, flushed, is_delivered=is_delivered)
        tell(self._publish, found, ran)

    # -- counting -----------------------------------------------------------------------------

    def counters(self) -> Mapping[str, Any]:
        """What the broker's status shows of this process."""
        with self._lock:
            outcomes, others = dict(self.outcomes), dict(self.others)
        return {
            "runs": outcomes,
            "runs_now": self.lanes.running,
            "runs_waiting": self.lanes.waiting + self.lanes.resting,
            "runs_dropped": outcomes.get("dropped", 0),
            **others,
            **self._core.counters(),
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

    def _note(self, what: str, count: int = 1) -> None:
        with self._lock:
            self.others[what] += count


def _sendable(said: ModuleReturn) -> ModuleReturn:
    """What came of a call, which has failed if its edit is nothing that can be handed on."""
    if said.edit is None:
        return said
    try:
        orjson.dumps(said.edit)
    except orjson.JSONEncodeError as error:
        return said._replace(status="failed", edit=None, error=f"its edit cannot be handed on: {error}")
    return said
