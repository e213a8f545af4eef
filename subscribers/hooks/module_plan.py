"""Which module hooks are wanted, which are in force, and who is to blame when the process of theirs ends.

    plan.want(hooks)                    -> what to load and what to unload
    plan.to_load(), plan.switched()     a fresh process is to load everything, and takes over
    plan.loading / loaded / refused / quarantined               what the process says of a hook
    plan.blame(begun, now, reason)      -> who is quarantined because a part of it is gone
    plan.ended(begun, now, reason)      -> the same when all of it is gone, and when to start another
    plan.standing(hook_id, handler)     -> whether a call can be made now, later, or not

The rules:

* What is equal stays. What has vanished is unloaded, once. What is new or has changed is loaded; while a
  changed hook is being loaded, and if it is refused, the one before stays in force.
* A hook that was refused or quarantined is not tried again until it is another: its module or config changed.
* When a process ends, everything that it was busy with is suspected: hooks that were being loaded, and hooks
  whose handlers had begun. A single suspect is guilty. Of several each gets a strike, and a second strike
  within :data:`STRIKE_S` is as good as guilt.
* The process is started again at once; if nobody was found guilty, and it ends again within half a minute,
  after pauses that double up to five seconds.

Decides that and nothing else. Pure: times are seconds of one monotonic clock, and what is to be sent is
returned. Refuses to know processes, languages and what a handler does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from .module_hook import Handler, ModuleHook
from .restarts import Restarts

STRIKE_S: Final = 600.0
"""Seconds after which a strike is forgotten."""

StateName: TypeAlias = Literal["loading", "loaded", "refused", "quarantined"]


class State(NamedTuple):
    """How a wanted hook stands.

    ``handlers`` are the documented names of those that can be called now: also while a changed hook is being
    loaded or was refused, when the one before is still in force (``kept``). ``reason`` says why it is refused
    or quarantined, or that ``onLoad`` threw; ``detail`` is the trace that belongs to it.
    """

    name: StateName
    handlers: tuple[str, ...] = ()
    reason: str | None = None
    detail: str | None = None
    kept: bool = False


class Change(NamedTuple):
    """What a process is to do. ``unload`` comes first."""

    load: tuple[ModuleHook, ...]
    unload: tuple[str, ...]


class Standing(NamedTuple):
    """Whether a call can be made. ``reason`` stands beside ``absent`` and ``lost``."""

    name: Literal["now", "later", "absent", "lost"]
    reason: str | None = None


_NOW: Final = Standing("now")
_LATER: Final = Standing("later")
_LOADING: Final = State("loading")


@dataclass(slots=True)
class _Entry:
    """One id. ``told`` are the loads that the process has not answered yet, in order; None: it is unloaded
    again right behind it.
    """

    wanted: ModuleHook | None
    state: State = _LOADING
    told: deque[ModuleHook | None] = field(default_factory=deque)
    in_force: ModuleHook | None = None
    handlers: tuple[str, ...] = ()
    problem: tuple[str | None, str | None] = (None, None)
    is_loading: bool = False
    strikes: list[float] = field(default_factory=list)

    @property
    def is_awaited(self) -> bool:
        """Whether the process has still to answer what is wanted now."""
        return bool(self.told) and self.told[-1] is not None

    def forget(self) -> None:
        """Nothing is in force any more."""
        self.in_force, self.handlers = None, ()
        self.state = self.state._replace(handlers=(), kept=False)


class ModulePlan:
    """The hooks of one process, and of those that come after it."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._restarts = Restarts()

    # -- what is wanted -----------------------------------------------------------------------

    def want(self, hooks: Iterable[ModuleHook]) -> Change:
        """Want exactly these from now on; of two with one id the last."""
        wanted = {hook.id: hook for hook in hooks}
        unload = [key for key in self._entries if key not in wanted and self._drop(key)]
        return Change(tuple(hook for hook in wanted.values() if self._take(hook)), tuple(unload))

    def _drop(self, hook_id: str) -> bool:
        """Want it no longer; whether the process has, or will have, something to unload."""
        entry = self._entries[hook_id]
        if entry.wanted is None:
            return False
        has_some = bool(entry.told) or entry.in_force is not None
        entry.wanted = None
        entry.forget()
        entry.told = deque([None] * len(entry.told))
        return has_some

    def _take(self, hook: ModuleHook) -> bool:
        """Want this hook; whether it has to be loaded."""
        entry = self._entries.setdefault(hook.id, _Entry(None))
        if entry.wanted == hook:
            return False
        entry.wanted = hook
        entry.strikes.clear()
        if entry.in_force == hook and not entry.told:  # back to what is still in force
            entry.state = self._loaded(entry)
            return False
        entry.told.append(hook)
        entry.state = State("loading", entry.handlers, kept=entry.in_force is not None)
        return True

    def to_load(self) -> tuple[ModuleHook, ...]:
        """What a fresh process is to load. From now on that is the one that says what is loaded."""
        found = []
        for entry in self._entries.values():
            entry.told.clear()
            entry.is_loading = False
            if entry.wanted is not None and entry.state.name not in ("refused", "quarantined"):
                entry.told.append(entry.wanted)
                found.append(entry.wanted)
        self._tidy()
        return tuple(found)

    def switched(self) -> None:
        """The fresh process alone serves from now on: what it has not loaded is not in force."""
        for entry in self._entries.values():
            if entry.is_awaited or entry.state.kept:
                entry.forget()
            if entry.is_awaited:
                entry.state = _LOADING

    # -- what the process says ----------------------------------------------------------------

    def loading(self, hook_id: str) -> None:
        """The hook's code begins to run."""
        entry = self._entries.get(hook_id)
        if entry is not None and entry.told:
            entry.is_loading = True

    def loaded(self, hook_id: str, handlers: Sequence[str], problem: str | None, detail: str | None) -> bool:
        """It is in force. Returns whether its state is another one now."""
        entry = self._answered(hook_id)
        if entry is None:
            return False
        hook, entry.is_loading = entry.told.popleft(), False
        if hook is None:
            self._tidy()
            return False
        entry.in_force, entry.handlers, entry.problem = hook, tuple(handlers), (problem, detail)
        if entry.told:
            entry.state = entry.state._replace(handlers=entry.handlers, kept=True)
            return False
        entry.state = self._loaded(entry)
        return True

    def refused(self, hook_id: str, error: str, detail: str | None) -> bool:
        """It cannot be loaded; what was in force before it still is. Returns whether that is its state."""
        entry = self._answered(hook_id)
        if entry is None:
            return False
        hook, entry.is_loading = entry.told.popleft(), False
        if hook is None or entry.told:
            self._tidy()
            return False
        entry.state = State("refused", entry.handlers, error, detail, entry.in_force is not None)
        return True

    def quarantined(self, hook_id: str, reason: str) -> bool:
        """It is in force no longer, and not to be tried again. Returns whether that is its state now."""
        entry = self._entries.get(hook_id)
        if entry is None or entry.wanted is None or entry.state.name == "quarantined":
            return False
        guilty = entry.in_force or (entry.told[0] if entry.told else entry.wanted)
        entry.forget()
        if guilty != entry.wanted:  # what comes after it is another, and may do better
            return False
        entry.told = deque([None] * len(entry.told))
        entry.is_loading = False
        entry.state = State("quarantined", reason=reason)
        return True

    # -- blame --------------------------------------------------------------------------------

    def started(self, now: float) -> None:
        """A process was started."""
        self._restarts.started(now)

    def ended(
        self, begun: Iterable[str], now: float, reason: str, *, serving: bool = False
    ) -> tuple[float, tuple[str, ...]]:
        """The process that said what is loaded is gone, with handlers of these hooks under way.

        ``serving``: the one before it still serves. Returns when to start the next one, and which hooks are
        newly out of the game.
        """
        loading = [hook_id for hook_id, entry in self._entries.items() if entry.is_loading]
        guilty = self.blame(begun, now, reason, loading)
        for entry in self._entries.values():
            entry.told.clear()
            entry.is_loading = False
            if not serving:
                entry.forget()
                if entry.state.name == "loaded":
                    entry.state = _LOADING
        self._tidy()
        if guilty:  # what ended it is not loaded by the next one
            return now, guilty
        return self._restarts.ended(now), guilty

    def blame(
        self, begun: Iterable[str], now: float, reason: str, loading: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Find the guilty among hooks whose handlers had begun and hooks that were being loaded."""
        suspects = dict.fromkeys([*loading, *begun])
        if len(suspects) == 1:
            return tuple(hook_id for hook_id in suspects if self._condemn(hook_id, loading, reason))
        return tuple(hook_id for hook_id in suspects if self.strike(hook_id, now, reason, loading))

    def strike(self, hook_id: str, now: float, reason: str, loading: Sequence[str] = ()) -> bool:
        """Note a strike; whether the hook is out of the game for it."""
        entry = self._entries.get(hook_id)
        if entry is None:
            return False
        entry.strikes = [time for time in entry.strikes if now - time < STRIKE_S]
        entry.strikes.append(now)
        return len(entry.strikes) > 1 and self._condemn(hook_id, loading, f"{reason}, for the second time")

    def _condemn(self, hook_id: str, loading: Sequence[str], reason: str) -> bool:
        if hook_id in loading:
            return self.refused(hook_id, f"while it was being loaded, {reason}", None)
        return self.quarantined(hook_id, reason)

    # -- questions ----------------------------------------------------------------------------

    def standing(self, hook_id: str, handler: Handler) -> Standing:
        """Whether this handler can be called."""
        entry = self._entries.get(hook_id)
        if entry is None or entry.wanted is None:
            return Standing("absent", "the hook is not loaded")
        if entry.in_force is not None:
            if handler in entry.handlers:
                return _NOW
            return Standing("absent", f"its module has no {handler}")
        if entry.state.name == "quarantined":
            return Standing("lost", f"it is quarantined: {entry.state.reason}")
        if entry.state.name == "refused":
            return Standing("absent", f"it was refused: {entry.state.reason}")
        return _LATER

    def states(self) -> Mapping[str, State]:
        """How every wanted hook stands."""
        return {key: entry.state for key, entry in self._entries.items() if entry.wanted is not None}

    def state(self, hook_id: str) -> State | None:
        """How one stands; None for one that is not wanted."""
        entry = self._entries.get(hook_id)
        return None if entry is None or entry.wanted is None else entry.state

    @property
    def is_settled(self) -> bool:
        """Whether nothing that is wanted is still to be loaded."""
        return not any(entry.is_awaited or entry.state.name == "loading" for entry in self._wanted())

    # -- within -------------------------------------------------------------------------------

    def _wanted(self) -> list[_Entry]:
        return [entry for entry in self._entries.values() if entry.wanted is not None]

    def _answered(self, hook_id: str) -> _Entry | None:
        """The entry to which an answer belongs; None if nobody asked."""
        entry = self._entries.get(hook_id)
        return entry if entry is not None and entry.told else None

    def _tidy(self) -> None:
        """Forget what is not wanted and will not be heard of."""
        over = [key for key, entry in self._entries.items() if entry.wanted is None and not entry.told]
        for key in over:
            del self._entries[key]

    @staticmethod
    def _loaded(entry: _Entry) -> State:
        return State("loaded", entry.handlers, *entry.problem)
