"""Puts one event to the hooks of some roles without a bus, in hosts that are started for it.

The chain's law decides the order, the edits and the time of each hook, as in the process of roles; all roles
that are named have the event. What a hook injects stands in its output, what it logs in that of its file.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from broker.protocol.decisions import Answer
from broker.protocol.events import Event

from ..dialects.rolebox_file import read_role
from ..dialects.rolebox_rules import NAME as DIALECT
from ..dialects.rolebox_spec import RoleHook
from ..hooks.firing import Fired, FiredFile, match
from ..hooks.module_hook import ModuleCall, ModuleReturn
from ..hooks.module_plan import State
from ..hooks.outcome import Captured, Outcome
from ..hooks.role_chain import OTHER_EVENT, Core, Link, Walk
from ..hooks.withheld import without_secrets
from ..runtimes.node_program import find_node
from ..sources.hook_source import Content
from ..sources.inspect_world import World
from ..sources.role_directories import load_role, read_role_file
from .roles_hosts import RolesHosts, languages
from .roles_reports import outcome_of
from .roles_set import RoleSet, link_of, role_set
from .roles_view import Seen, see
from .views import lifecycle_event

LOAD_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 3.0
"""What a call may take beyond its timeout until it is told of."""

FILTERED: Final = "its filter does not let this payload through"
OTHER_PHASE: Final = "it is of the other phase than the one that is asked for"
OTHERS: Final = "it is for the events without a handler of their own"
NO_ANSWER: Final = "nothing was heard of it"


def select(files: Sequence[FiredFile], event: Event, here: World) -> list[FiredFile]:
    """The files, with those hooks of roles matched that would be called; nothing is started.

    Filters, the phase and an agent's own events count, of which the topics of a handler know nothing.
    """
    name = lifecycle_event(event.topic)
    return [
        _selected(file, see(name, event), event.topic, here)
        if name is not None and file.file.dialect == DIALECT
        else file
        for file in files
    ]


def _selected(file: FiredFile, seen: Seen, topic: str, here: World) -> FiredFile:
    reading = read_role_file(file.file.path)
    content = reading.text if isinstance(reading, Content) else b""
    role = read_role(content, file.file.path, without_secrets(here.environ))
    named: dict[tuple[str, str], list[RoleHook]] = defaultdict(list)
    for hook in role.hooks:
        for listens in hook.events:
            named[hook.name, listens].append(hook)
    fired = []
    for each in file.fired:
        hooks = [] if each.handler.status == "refused" else named[each.handler.name, each.handler.event]
        fired.append(_considered(each, hooks.pop(0), seen, topic) if hooks else each)
    return replace(file, fired=tuple(fired))


def _considered(fired: Fired, hook: RoleHook, seen: Seen, topic: str) -> Fired:
    """What the event means to the hook, of which ``fired`` is one of the events that it listens to."""
    handler = fired.handler
    if seen.happening.event != handler.event:
        is_wide = handler.event == OTHER_EVENT and hook.event_types is None
        return replace(fired, reason=OTHERS) if is_wide else fired
    kept_out = _kept_out(hook, seen)
    if kept_out is not None:
        return replace(fired, matched=False, reason=kept_out)
    (matched,) = match([replace(handler, topics=(topic,))], topic)
    return replace(matched, handler=handler)


def _kept_out(hook: RoleHook, seen: Seen) -> str | None:
    if not link_of(hook, "", "", 0).is_for(seen.happening):
        return FILTERED
    return OTHER_PHASE if seen.phase not in (None, hook.phase) else None


def call(files: Sequence[FiredFile], event: Event, here: World) -> list[FiredFile]:
    """Call every hook of the files that the event is for; other files are as they were.

    Whom a filter or the phase keeps out has been taken out before, by :func:`select`.
    """
    wanted = [file for file in files if file.file.dialect == DIALECT and any(map(_is_due, file.fired))]
    name = lifecycle_event(event.topic)
    if not wanted or name is None:
        return list(files)
    settings = here.configured(wanted[0].file.workspace).settings.roles
    node = find_node(settings.node, here.environ)
    environ = without_secrets(here.environ)
    roles = [load_role(os.path.dirname(file.file.path), languages(node), environ) for file in wanted]
    trials = [role_set([role], settings.timeout) for role in roles]
    trial = _Trial(role_set(roles, settings.timeout), see(name, event))
    hosts = RolesHosts(
        node, workers=settings.workers, memory_mb=settings.memory_mb, on_log=trial.log, on_inject=trial.inject
    )
    try:
        hosts.load(trial.roles.modules)
        hosts.settle(LOAD_SECONDS)
        trial.states = hosts.states()
        trial.walk(hosts)
    finally:
        hosts.close(CLOSE_SECONDS)
    done = {id(file): trial.told(file, roles) for file, roles in zip(wanted, trials, strict=True)}
    return [done.get(id(file), file) for file in files]


def _is_due(fired: Fired) -> bool:
    return fired.reason is None


class _Trial:
    """One event on its way along the hooks of some roles."""

    def __init__(self, roles: RoleSet, seen: Seen) -> None:
        self.roles = roles
        self.states: Mapping[str, State] = {}
        self._seen = seen
        self._said: dict[str, ModuleReturn] = {}
        self._answers: dict[str, Answer] = {}
        self._injected: dict[str, list[str]] = defaultdict(list)
        self._printed: dict[str, list[str]] = defaultdict(list)

    def walk(self, hosts: RolesHosts) -> None:
        """Go to the end."""
        seen, places = self._seen, tuple(range(len(self.roles.named)))
        if not places:
            return
        walk = Walk(self.roles.links(places), seen.happening, seen.phase, seen.subject, None)
        while (turn := walk.turn(time.monotonic())) is not None:
            if isinstance(turn, Core):
                continue
            asked = ModuleCall(
                seen.handler, seen.input(turn.value), seen.session, seen.agent, turn.allowance_s
            )
            said = _waited_for(hosts, turn.link.id, asked)
            self._said[turn.link.id] = said
            walk.heard(said)
        self._answers = {answer.handler: answer for answer in walk.answers()}

    def told(self, file: FiredFile, roles: RoleSet) -> FiredFile:
        """What became of the hooks of one file, those of the role in ``roles``."""
        event = self._seen.happening.event
        links: dict[str, list[Link]] = defaultdict(list)
        for hook in roles.hooks.values():
            if event in hook.link.events:
                links[hook.link.name].append(hook.link)
        fired = []
        for each in file.fired:
            is_of_event = each.handler.event == event and each.handler.status == "ok"
            named = links[each.handler.name] if is_of_event else []
            link = named.pop(0) if named else None
            fired.append(self._fired(each, link) if link is not None and _is_due(each) else each)
        printed = [line for hook_id in roles.hooks for line in self._printed[hook_id]]
        return replace(file, fired=tuple(fired), printed="".join(f"{line}\n" for line in printed))

    def _fired(self, fired: Fired, link: Link) -> Fired:
        state, said = self.states.get(link.id), self._said.get(link.id)
        if state is not None and state.name != "loaded":
            return replace(fired, outcome=Outcome.not_started(state.reason or f"its module is {state.name}"))
        if said is None:
            return replace(fired, outcome=Outcome.not_started(NO_ANSWER))
        if said.status == "absent":
            return replace(fired, reason=said.error)
        injected = "\n".join((*said.injected, *self._injected[link.id])).encode("utf-8", "backslashreplace")
        outcome = replace(outcome_of(said, is_ignored=False), stdout=Captured(injected, b"", len(injected)))
        return replace(fired, outcome=outcome, answer=self._answers.pop(link.label, None))

    # -- what the hosts say -------------------------------------------------------------------

    def log(self, hook_id: str, level: str, message: str, fields: Mapping[str, Any], /) -> None:
        """A hook has logged something."""
        hook = self.roles.hooks.get(hook_id)
        name = "" if hook is None else hook.link.name
        more = f" {orjson.dumps(fields, default=repr).decode()}" if fields else ""
        self._printed[hook_id].append(f"hook:{name} | {level.upper()} | {message}{more}")

    def inject(self, hook_id: str, _session: str | None, text: str, /) -> None:
        """A hook has injected a text after its end."""
        self._injected[hook_id].append(text)


def _waited_for(hosts: RolesHosts, hook_id: str, asked: ModuleCall) -> ModuleReturn:
    """What came of a call."""
    found: list[ModuleReturn] = []
    is_there = threading.Event()

    def done(said: ModuleReturn) -> None:
        found.append(said)
        is_there.set()

    hosts.call(hook_id, asked, done)
    is_there.wait(asked.timeout_s + ANSWER_SECONDS)
    return found[0] if found else ModuleReturn("lost", error=NO_ANSWER)
