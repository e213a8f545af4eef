"""Which hooks of a role an event goes through, in which order, and what their edits come to.

The law, each sentence held by a property test:

* Order: the custom hooks of phase ``before``, the core, the custom hooks of phase ``after``. Within a phase
  the lower priority comes first, and of equal ones the one that was registered first, whatever it is written
  in.
* An agent may ask for one half. ``before`` ends with the core, ``after`` begins behind it; the two halves,
  one after the other, are the whole.
* Filters hold where they mean something: ``tools`` for the two events of a tool, ``eventTypes`` for
  ``event``. What has no name passes no filter; a hook without a filter sees it.
* Each hook sees what its predecessors have left. What a hook does with it counts only if it came to its end:
  one that failed, or was late, is passed over with its edit, and the next one is asked.
* The edit of a hook is what it set last of. Of two that set the same key the later one has set it; a key that
  is in the end as it was is nobody's. So the answers never contradict one another, and the bus's merge of
  them is what the chain came to.
* No hook can use up the time of those behind it: each gets its own limit, and at most an equal share of the
  time that is left. The core takes no time and is never left out.

Pure: it runs nothing and measures no time. Who walks along it runs the hooks and says what came of each.
Sources: the rolebox page, "执行顺序要点", "过滤器与阶段" and the table of handlers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from broker.protocol.decisions import Answer

from .module_hook import ModuleReturn

Phase: TypeAlias = Literal["before", "after"]

TOOL_EVENTS: Final = frozenset({"tool.execute.before", "tool.execute.after"})
"""Events that ``filter.tools`` is about."""

OTHER_EVENT: Final = "event"
"""The event that ``filter.eventTypes`` is about."""

CORE_NAME: Final = "rolebox"
"""Who stands in a decision for what the core has added."""

LABEL_CHARACTERS: Final = 128
"""First characters of a hook's label."""

MARGIN_S: Final = 0.05
"""Seconds at the end of an ask's time that are kept for the way back, where there are that many to spare."""

MARGIN_SHARE: Final = 0.1
"""Largest share of the time that is left which the way back may take."""


class Happening(NamedTuple):
    """What filters look at: the rolebox name of an event, the tool's name, and the type of an ``event``."""

    event: str
    tool: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One hook of a role as a link of the chain. ``id`` is that of its module hook.

    ``tools`` and ``event_types`` are its filters, None where it has none. ``timeout_s``: what it may take.
    """

    id: str
    name: str
    role: str
    events: frozenset[str]
    phase: Phase = "after"
    priority: float = 50
    tools: frozenset[str] | None = None
    event_types: frozenset[str] | None = None
    timeout_s: float = 5.0

    @property
    def label(self) -> str:
        """Its name in a decision: with its role's, because two roles may have hooks of one name."""
        return f"{self.role}:{self.name}"[:LABEL_CHARACTERS]

    def is_for(self, happening: Happening) -> bool:
        """Whether it listens to this, and its filters let it through."""
        event, tool, kind = happening
        if event not in self.events:
            return False
        if event in TOOL_EVENTS:
            return self.tools is None or tool in self.tools
        if event == OTHER_EVENT:
            return self.event_types is None or kind in self.event_types
        return True


def ordered(links: Iterable[Link]) -> tuple[Link, ...]:
    """In the order in which they are asked; given in that of their registration."""
    return tuple(sorted(links, key=lambda link: (link.phase == "after", link.priority)))


class Subject(NamedTuple):
    """What may be edited: ``value``, which is the ask's ``input`` itself, or what stands there under ``key``.

    ``shape``: what an edit has to be; None: nobody edits.
    """

    value: Any
    input: Mapping[str, Any]
    key: str | None = None
    shape: type[dict[str, Any]] | type[list[Any]] | None = None


NO_SUBJECT: Final = Subject(None, {})
"""Of events that nobody edits."""


class Turn(NamedTuple):
    """Whom to ask now, for how many seconds at most, and what there is to edit as it is by now."""

    link: Link
    allowance_s: float
    value: Any


class Core(NamedTuple):
    """It is the core's turn: add to what there is with :meth:`Walk.append`, or do nothing."""


CORE: Final = Core()


class Walk:
    """One event's way along the chain: :meth:`turn` says whose turn it is, :meth:`heard` what came of it.

    ``links`` are in order (:func:`ordered`) and of the session's roles. ``deadline`` is the time at which
    nobody waits any more, on the clock that :meth:`turn` is told; None: nobody does, and only the hooks' own
    limits count. It may be set later. ``asked`` counts the hooks that had their turn, ``unasked`` those that
    found no time left.
    """

    __slots__ = ("_by", "_left", "_subject", "asked", "deadline", "unasked", "value")

    def __init__(
        self,
        links: Sequence[Link],
        happening: Happening,
        phase: Phase | None,
        subject: Subject,
        deadline: float | None,
    ) -> None:
        self.deadline = deadline
        self.value = subject.value
        self.asked = 0
        self.unasked = 0
        self._subject = subject
        self._by: dict[str, str] = {}  # key, or "" for the whole -> the label of who has set it last
        wanted = [link for link in links if link.is_for(happening)]
        before: list[Link | Core] = [link for link in wanted if link.phase == "before"]
        after: list[Link | Core] = [link for link in wanted if link.phase == "after"]
        if phase == "after":
            self._left = after
        else:
            self._left = [*before, CORE] if phase == "before" else [*before, CORE, *after]
        self._left.reverse()

    @property
    def has_hooks(self) -> bool:
        """Whether a hook is still to be asked."""
        return any(isinstance(each, Link) for each in self._left)

    def turn(self, now: float) -> Turn | Core | None:
        """Whose turn it is at the time ``now``; None when all have had theirs, or no time is left."""
        left_s = None
        if self.deadline is not None:
            left_s = self.deadline - now
            left_s -= min(MARGIN_S, left_s * MARGIN_SHARE)
            if left_s <= 0:
                kept: list[Link | Core] = [each for each in self._left if isinstance(each, Core)]
                self.unasked += len(self._left) - len(kept)
                self._left = kept
        if not self._left:
            return None
        step = self._left[-1]
        if isinstance(step, Core):
            self._left.pop()
            return step
        if left_s is None:
            return Turn(step, step.timeout_s, self.value)
        hooks = sum(isinstance(each, Link) for each in self._left)
        return Turn(step, min(step.timeout_s, left_s / hooks), self.value)

    def heard(self, said: ModuleReturn) -> None:
        """Take what came of the last turn."""
        link = self._left.pop()
        assert isinstance(link, Link)
        self.asked += 1
        shape = self._subject.shape
        if said.status == "ok" and shape is not None and isinstance(said.edit, shape):
            self._set(said.edit, link.label)

    def append(self, elements: Sequence[str]) -> None:
        """The core's elements, behind those that there are."""
        if elements:
            self._set([*self.value, *elements], CORE_NAME)

    def answers(self) -> list[Answer]:
        """What the edits come to: of each that has set something in the end, what it has set."""
        before, after = self._subject.value, self.value
        changed = [name for name in self._by if _differs(name, before, after)]
        found: dict[str, dict[str, Any]] = {}
        for name in changed:
            whole = found.setdefault(self._by[name], dict(self._subject.input))
            if name == _WHOLE:
                whole[self._subject.key or ""] = after
            elif name in after:
                whole[name] = after[name]
            else:
                del whole[name]
        return [Answer(label, updated_input=whole) for label, whole in found.items()]

    def _set(self, value: Any, label: str) -> None:
        """``label`` has made ``value`` of what there was. Who sets last comes last."""
        before, self.value = self.value, value
        names = [_WHOLE] if self._subject.key is not None else [*{**before, **value}]
        for name in names:
            if _differs(name, before, value):
                self._by.pop(name, None)
                self._by[name] = label


_WHOLE: Final = "\0whole"
"""Stands for all of a value that is set as a whole."""


def _differs(name: str, before: Any, after: Any) -> bool:
    if name == _WHOLE:
        return not same(before, after)
    if (name in before) != (name in after):
        return True
    return name in before and not same(before[name], after[name])


def same(one: Any, other: Any) -> bool:
    """Whether two values are one to JSON, where ``true`` is no number and ``1.0`` is ``1``."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (type(one) is bool) is (type(other) is bool) and bool(one == other)
