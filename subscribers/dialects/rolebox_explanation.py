"""A ``role.yaml`` explained: every hook with every event that it names, whether that starts it, and why not.

What a file means is the reader's (:mod:`.rolebox_file`): a hook runs exactly when the reader made one of its
entry. Whether its module is there is looked up elsewhere and comes as a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from broker.protocol.catalogue import EVENTS
from broker.protocol.projections import DIALECT_EVENTS, canonical_event
from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import HANDLERS, Explained, Handler, Status, TimeoutFrom
from . import rolebox_rules as rules
from .explaining import by_place
from .python_explanation import matcher as tools_in_words
from .rolebox_foreign import root_of
from .rolebox_reading import Reading
from .rolebox_spec import Role, RoleHook
from .yaml_nodes import Node

_NATIVE: Final = DIALECT_EVENTS[rules.NAME]
_OF_HANDLER: Final = {native: event for event, native in _NATIVE.items() if native in rules.EVENTS}
OTHER_TOPICS: Final = tuple(LIFECYCLE + event for event in EVENTS if event not in _OF_HANDLER.values())
"""Topics of the catalogue that reach ``onEvent``; an agent's own events reach it too."""


class Located(NamedTuple):
    """A hook's module: its file on this machine, None where there is none, and what there is to say of it."""

    path: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


class Timeout(NamedTuple):
    """How long a handler may run, and who says so."""

    seconds: float
    origin: TimeoutFrom


def explain(content: bytes, role: Role, modules: Mapping[int, Located], timeout: Timeout) -> Explained:
    """Explain the role that was read from ``content``. Raises nothing.

    ``modules`` are those of the role's hooks, by their index.
    """
    if role.refused:
        return Explained((), role.diagnostics, refused=not role.foreign)
    entries = list(islice(_entries(content), rules.MAX_HOOKS))
    said, others = by_place(role.diagnostics, [f"hooks.custom[{index}]" for index in range(len(entries))])
    hooks = {hook.index: hook for hook in role.hooks}
    handlers: list[Handler] = []
    counts: dict[str, int] = {}
    for index, entry in enumerate(entries):
        remarks = said[f"hooks.custom[{index}]"]
        entry_of = _Entry(index, entry, hooks.get(index), remarks, modules.get(index, Located(None)), timeout)
        for handler in entry_of.handlers(counts):
            if len(handlers) < HANDLERS:
                handlers.append(handler)
    return Explained(tuple(handlers), others, refused=False)


def topics_of(event: str, event_types: Sequence[str] | None = None) -> tuple[str, ...]:
    """The topics of the bus that reach a hook by an event of rolebox; none for what is no event."""
    if event in _OF_HANDLER:
        return (LIFECYCLE + _OF_HANDLER[event],)
    if event != "event":
        return ()
    if event_types is None:
        return OTHER_TOPICS
    kinds = [kind for kind in event_types if kind not in _NATIVE and kind not in rules.EVENTS]
    return tuple(dict.fromkeys(LIFECYCLE + (canonical_event(rules.NAME, kind) or kind) for kind in kinds))


def _entries(content: bytes) -> Iterator[Node]:
    """The entries of ``hooks.custom``, as the reader takes them."""
    root = root_of(content, "")
    custom = None if isinstance(root, Role) else _value(_value(root, "hooks"), "custom")
    if custom is not None and custom.kind == "list":
        yield from custom.items()


def _value(node: Node | None, name: str) -> Node | None:
    """The value of a key, as the reader takes it."""
    if node is None or node.kind != "mapping":
        return None
    entry = Reading("").entries(node, "").get(name)
    return None if entry is None else entry.value


class _Entry:
    """One entry of the list, with what there is to say about it."""

    def __init__(
        self,
        index: int,
        node: Node,
        hook: RoleHook | None,
        said: Sequence[Diagnostic],
        located: Located,
        timeout: Timeout,
    ) -> None:
        self.index = index
        self.node = node
        self.hook = hook
        self.located = located
        self.timeout = timeout
        items = self.events()
        place = f"hooks.custom[{index}]"
        of_events, of_hook = by_place(said, [f"{place}.events[{number}]" for number in range(len(items))])
        self.said = [tuple(of_events[f"{place}.events[{number}]"]) for number in range(len(items))]
        self.of_hook = (*of_hook, *located.diagnostics)

    def events(self) -> list[Node]:
        node = _value(self.node, "events")
        return node.items()[: rules.MAX_EVENTS] if node is not None and node.kind == "list" else []

    def handlers(self, counts: dict[str, int]) -> Iterator[Handler]:
        """One for each event that is named, and one without any for an entry that names none."""
        written = [(item.text, item.line) for item in self.events()] or [("", self.node.line)]
        for number, (event, line) in enumerate(written):
            own = self.said[number] if number < len(self.said) else ()
            shared = self.of_hook if number == 0 else tuple(filter(self.keeps, self.of_hook))
            index = counts[event] = counts.get(event, -1) + 1
            yield self.handler(event, index, line, own, shared)

    def keeps(self, said: Diagnostic) -> bool:
        """Whether it keeps the hook from running, so that each of its events has to say it."""
        return said.severity == "error" or (self.located.path is None and said in self.located.diagnostics)

    def handler(
        self, event: str, index: int, line: int, own: tuple[Diagnostic, ...], shared: tuple[Diagnostic, ...]
    ) -> Handler:
        hook = self.hook
        module = _value(self.node, "module")
        name = _value(self.node, "name")
        written = "" if module is None else module.text
        return Handler(
            event=event,
            index=index,
            name=hook.name
            if hook is not None
            else (name.text if name is not None and name.text else f"hook#{self.index}"),
            runtime="python" if written.endswith(".py") else "node",
            status=self.status(own),
            topics=topics_of(event, None if hook is None else hook.event_types),
            command=written or None,
            args=() if hook is None else _order(hook),
            matcher=None if hook is None else _matcher(hook, event),
            timeout_s=self.timeout.seconds,
            timeout_from=self.timeout.origin,
            line=line,
            executable=self.located.path,
            diagnostics=(*own, *shared),
        )

    def status(self, own: Sequence[Diagnostic]) -> Status:
        if self.hook is None:
            return "refused"
        if any(diagnostic.code == "unknown_event" for diagnostic in own):
            return "dead"
        if any(diagnostic.severity == "error" for diagnostic in own):
            return "refused"
        return "dead" if self.located.path is None else "ok"


def _order(hook: RoleHook) -> tuple[str, ...]:
    """Where a hook stands among the others of its event."""
    return (f"phase={hook.phase}", f"priority={hook.priority:g}")


def _matcher(hook: RoleHook, event: str) -> str | None:
    """The filter that counts for an event, in words."""
    if event in rules.TOOL_EVENTS:
        return tools_in_words(hook.tools or (), ())
    if event == "event" and hook.event_types is not None:
        return f"eventTypes: {', '.join(hook.event_types)}"
    return None
