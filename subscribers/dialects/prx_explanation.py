"""A PRX ``hooks.json`` explained: every action that stands in it, also those that will not run, and why.

What a file means is the reader's (:mod:`.prx_file`): an action runs exactly when the reader made a spec of
it. This adds the actions that it left out, with the remarks that belong to each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import HANDLERS, Explained, Handler, Status, TimeoutFrom
from ..hooks.spec import HookSpec
from . import prx_rules as rules
from .explaining import by_place
from .findings import Findings, field_name
from .json_positions import Lines, Path, Spot, scan
from .json_text import BYTE_ORDER_MARK, read_json
from .prx_file import event_name, parse
from .prx_values import timeout_ms

DEAD_EVENTS: Final = frozenset({"unknown_event", "misplaced_event"})
"""Remarks on an event after which none of its actions will ever be started."""


class _Action(NamedTuple):
    """An action as it stands in the file: its place, that of its event, and its number within the event."""

    where: Path
    list_where: Path
    event: str
    number: int
    value: object

    @property
    def id(self) -> str:
        """What the reader calls the spec that it makes of an action."""
        return f"{self.event}#{self.number}"


def explain(text: bytes, path: str) -> Explained:
    """Explain a ``hooks.json``. Raises nothing; ``path`` is how diagnostics name the file."""
    parsed = parse(text, path)
    if parsed.refused:
        return Explained((), parsed.diagnostics, refused=True)
    text = text.removeprefix(BYTE_ORDER_MARK)
    root = read_json(text)
    actions = list(islice(_actions(root), HANDLERS + 1))
    more = actions[HANDLERS:]
    actions = actions[:HANDLERS]
    spots, _ = scan(text, {action.where for action in actions}, 0)
    specs = {spec.id: spec for spec in parsed.specs}
    places = [field_name(where) for action in actions for where in (action.where, action.list_where)]
    said, others = by_place(parsed.diagnostics, places)
    reading = _Explaining(root, spots, Lines(text), said)
    handlers = tuple(reading.handler(action, specs.get(action.id)) for action in actions)
    if more:
        message = f"actions beyond the first {HANDLERS} are not listed; none of them runs"
        others = (*others, Diagnostic("error", "more_handlers", path, None, None, None, message, None))
    return Explained(handlers, others, refused=False)


def _actions(root: Mapping[str, Any]) -> Iterator[_Action]:
    """Every action, in file order; those of an event outside of ``hooks`` come last."""
    hooks = root.get("hooks") or {}
    lists: list[tuple[Path, object]] = [(("hooks", key), value) for key, value in hooks.items()]
    lists += [((key,), value) for key, value in root.items() if event_name(key) in rules.PAGE_EVENTS]
    counts: dict[str, int] = {}
    for where, value in lists:
        if isinstance(value, list):
            event = event_name(str(where[-1]))
            first = counts.get(event, 0)
            counts[event] = first + len(value)
            for index, action in enumerate(value):
                yield _Action((*where, index), where, event, first + index, action)


class _Explaining:
    """The actions of one file, one after the other."""

    def __init__(
        self,
        root: Mapping[str, Any],
        spots: Mapping[Path, Spot],
        lines: Lines,
        said: Mapping[str, list[Diagnostic]],
    ) -> None:
        self._file_timeout = _milliseconds(root.get("timeout_ms"))
        self._spots = spots
        self._lines = lines
        self._said = said
        self._beyond: tuple[Path, Diagnostic] | None = None

    def handler(self, action: _Action, spec: HookSpec | None) -> Handler:
        """The handler that an action is."""
        event_said = self._said[field_name(action.list_where)]
        said = (*event_said, *self._of_action(action))
        value = action.value if isinstance(action.value, dict) else {}
        command, args = value.get("command"), value.get("args")
        timeout_s, timeout_from = self._timeout(value, spec)
        status = _status(spec, said)
        return Handler(
            event=action.event,
            index=action.number,
            name=action.id,
            runtime="shell",
            status=status,
            topics=() if status == "dead" else (LIFECYCLE + action.event,),
            command=command if isinstance(command, str) else None,
            args=tuple(arg for arg in args if isinstance(arg, str)) if isinstance(args, list) else (),
            timeout_s=timeout_s,
            timeout_from=timeout_from,
            line=self._lines.locate(self._spots[action.where].value)[0],
            diagnostics=said,
            spec=spec,
        )

    def _of_action(self, action: _Action) -> list[Diagnostic]:
        """What is said of an action; of those beyond the limit the first one's remark holds for all."""
        said = self._said[field_name(action.where)]
        beyond = next((d for d in said if d.code == "too_many_actions"), None)
        if beyond is not None:
            self._beyond = (action.list_where, beyond)
        elif self._beyond is not None and self._beyond[0] == action.list_where:
            return [*said, self._beyond[1]]
        return said

    def _timeout(
        self, value: Mapping[str, object], spec: HookSpec | None
    ) -> tuple[float | None, TimeoutFrom | None]:
        """The time that an action has; of one whose own is no time, nothing is known."""
        origin: TimeoutFrom = "default" if self._file_timeout is None else "file"
        number: int | None = self._file_timeout or rules.DEFAULT_TIMEOUT_MS
        if value.get("timeout_ms") is not None:
            origin, number = "own", _milliseconds(value["timeout_ms"])
        if spec is not None:
            return spec.timeout_s, origin
        return (None, None) if number is None else (number / 1_000, origin)


def _milliseconds(value: object) -> int | None:
    """A timeout as the reader takes it; None where it takes none."""
    return None if value is None else timeout_ms(value, (), Findings(rules.CODES), otherwise=" ")


def _status(spec: HookSpec | None, said: tuple[Diagnostic, ...]) -> Status:
    if spec is not None:
        return "ok"
    codes = {diagnostic.code for diagnostic in said}
    if codes & DEAD_EVENTS:
        return "dead"
    is_faulty = any(diagnostic.severity == "error" for diagnostic in said)
    return "skipped" if "disabled" in codes and not is_faulty else "refused"
