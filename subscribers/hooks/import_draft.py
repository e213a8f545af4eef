"""What of an agent's hooks could be imported, before any file was looked at.

Decides handler by handler: which are left out and why, which files each one names, and what its command
becomes once those are copied. Nothing that is wrong with one handler touches another. What a profile knows
comes in as data, and its reading of one handler as a function. It refuses to know what is on the disk.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from .import_paths import Context, Copied, External, Reference, Refused, Surroundings, refer, refer_argument
from .import_words import NotWords, split_words

MAX_HANDLERS: Final = 2_048
"""Handlers of one source that are looked at."""

COMMAND_BYTES: Final = 65_536
"""Bytes of a command."""


class FileName(NamedTuple):
    """A place in a command where the path of a copied file goes; ``name`` is the file's in the snapshot."""

    name: str


Text: TypeAlias = tuple[str | FileName, ...]
"""A command or an argument, with holes for copied files."""


class Checked(NamedTuple):
    """What a profile makes of one handler: its time limit in seconds, or why it would not run it."""

    timeout_s: float
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What is known of a source's profile.

    ``keys`` are the fields of a command handler. ``check`` reads one handler, given its event and group.
    ``is_own`` tells a handler that is our own entry in an attached agent. ``disabled`` are handlers, by
    event, group and index, that their agent was told not to run. ``all_disabled``: why none of them runs.
    """

    events: frozenset[str]
    types: frozenset[str]
    keys: frozenset[str]
    check: Callable[[str, Mapping[str, Any], Mapping[str, Any]], Checked]
    is_own: Callable[[Mapping[str, Any]], bool]
    disabled: frozenset[tuple[str, int, int]] = frozenset()
    all_disabled: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is not imported: where it stands, its command if it has one, and why.

    ``group`` or ``index`` None: the whole event, or the whole group. ``count``: handlers that this is about.
    """

    code: str
    reason: str
    event: str
    group: int | None = None
    index: int | None = None
    command: str | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class DraftHandler:
    """A handler that could be imported. ``fields`` are all that it keeps, as they were written."""

    event: str
    group: int
    index: int
    matcher: Any
    has_matcher: bool
    source_command: str
    source_args: tuple[str, ...] | None
    command: Text
    args: tuple[Text, ...] | None
    fields: Mapping[str, Any]
    timeout_s: float
    copied: tuple[Copied, ...]
    external: tuple[External, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """What of one source could be imported."""

    handlers: tuple[DraftHandler, ...] = ()
    skipped: tuple[Skipped, ...] = ()


@dataclass(slots=True)
class _Found:
    """What the words of one handler named."""

    copied: list[Copied] = field(default_factory=list)
    external: list[External] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Skip(Exception):
    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def draft(hooks: Any, rules: Rules, around: Surroundings) -> Draft:
    """What could be imported of ``hooks``, the value of a source's ``hooks`` key."""
    if not isinstance(hooks, Mapping):
        return Draft((), (Skipped("invalid", "`hooks` is no object", "hooks"),) if hooks is not None else ())
    kept: list[DraftHandler] = []
    skipped: list[Skipped] = []
    seen = 0
    for event, groups in hooks.items():
        if event == "state":  # Codex's record of trust, no event
            continue
        for item in _handlers(str(event), groups, rules):
            if isinstance(item, Skipped):
                skipped.append(item)
                continue
            seen += 1
            if seen <= MAX_HANDLERS:
                made = _drafted(item, rules, around)
                (skipped if isinstance(made, Skipped) else kept).append(made)  # type: ignore[arg-type]
    if seen > MAX_HANDLERS:
        reason = f"only the first {MAX_HANDLERS:,} handlers are looked at"
        skipped.append(Skipped("too_many_handlers", reason, "hooks", count=seen - MAX_HANDLERS))
    return Draft(tuple(kept), tuple(skipped))


class _Item(NamedTuple):
    event: str
    group: int
    number: int
    inside: Mapping[str, Any]
    handler: Any


def _handlers(event: str, groups: Any, rules: Rules) -> Iterator[_Item | Skipped]:
    """Every handler of an event, or why there is none."""
    if event not in rules.events:
        count = sum(len(g["hooks"]) for g in _groups(groups) if isinstance(g.get("hooks"), list))
        reason = "this event is not known (names are case-sensitive)"
        yield Skipped("unsupported_event", reason, event, count=max(1, count))
        return
    if not isinstance(groups, list):
        yield Skipped("invalid", "the event's value is no list of groups", event)
        return
    for number, group in enumerate(groups):
        handlers = group.get("hooks", []) if isinstance(group, Mapping) else None
        if isinstance(group, Mapping) and "hooks" not in group and "command" in group:
            handlers = None
        if not isinstance(handlers, list):
            yield Skipped("invalid", "this is no group with a list of `hooks`", event, number)
            continue
        for index, handler in enumerate(handlers):
            yield _Item(event, number, index, group, handler)


def _groups(groups: Any) -> list[Mapping[str, Any]]:
    return [each for each in groups if isinstance(each, Mapping)] if isinstance(groups, list) else []


def _drafted(item: _Item, rules: Rules, around: Surroundings) -> DraftHandler | Skipped:
    handler = item.handler if isinstance(item.handler, Mapping) else {}
    command = handler.get("command")
    try:
        return _kept(item, rules, around)
    except _Skip as skip:
        shown = command if isinstance(command, str) else None
        return Skipped(skip.code, str(skip), item.event, item.group, item.number, shown)


def _kept(item: _Item, rules: Rules, around: Surroundings) -> DraftHandler:
    handler, place = item.handler, (item.event, item.group, item.number)
    command = _command(handler, rules)
    if rules.all_disabled is not None:
        raise _Skip("all_disabled", rules.all_disabled)
    if place in rules.disabled:
        raise _Skip("disabled", "the agent was told not to run it")
    found = _Found()
    args = handler.get("args")
    if args is not None and not (isinstance(args, list) and all(isinstance(each, str) for each in args)):
        raise _Skip("invalid", "`args` is no list of texts")
    unknown = [key for key in handler if key not in rules.keys]
    unknown += [key for key in item.inside if key not in ("matcher", "hooks")]
    if unknown:
        shown = ", ".join(map(repr, sorted(unknown)))
        found.notes.append(f"left out, because no handler has it: {shown}")
    if args is None:
        holes: Text = _rewritten(command, around, found)
        arguments = None
    else:
        holes = _argument(command, around, found)
        arguments = tuple(_argument(each, around, found) for each in args)
    checked = rules.check(item.event, item.inside, handler)
    if checked.fault is not None:
        raise _Skip("invalid", checked.fault)
    return DraftHandler(
        *place,
        matcher=item.inside.get("matcher"),
        has_matcher="matcher" in item.inside,
        source_command=command,
        source_args=None if args is None else tuple(args),
        command=holes,
        args=arguments,
        fields={key: value for key, value in handler.items() if key in rules.keys},
        timeout_s=checked.timeout_s,
        copied=tuple(dict.fromkeys(found.copied)),
        external=tuple(dict.fromkeys(found.external)),
        notes=tuple(dict.fromkeys(found.notes)),
    )


def _command(handler: Any, rules: Rules) -> str:
    """The command of a handler that runs one."""
    if not isinstance(handler, Mapping):
        raise _Skip("invalid", "the handler is no object")
    if rules.is_own(handler):
        raise _Skip("own_entry", "it is the entry of `prxbus attach`, which asks this very bus")
    kind = handler.get("type")
    if kind != "command":
        known = isinstance(kind, str) and kind in rules.types
        raise _Skip(
            "unsupported_type",
            f"only handlers of type 'command' are imported, this is {kind!r}"
            if known
            else f"{kind!r} is no type of handler",
        )
    command = handler.get("command")
    if not isinstance(command, str) or not command.strip():
        raise _Skip("invalid", "it has no command")
    if len(command.encode()) > COMMAND_BYTES or "\0" in command:
        raise _Skip("invalid", f"the command has more than {COMMAND_BYTES:,} bytes, or a NUL")
    if handler.get("shell") not in (None, "bash"):
        raise _Skip("unsupported_field", f"`shell` is {handler['shell']!r}, which does not run here")
    return command


def _rewritten(command: str, around: Surroundings, found: _Found) -> Text:
    """A shell command with a hole for each copied file."""
    try:
        words = split_words(command)
    except NotWords as error:
        raise _Skip("invalid", f"no shell can read the command: {error}") from None
    context = Context()
    pieces: list[str | FileName] = []
    done = 0
    for word in words.words:
        reference = _noted(refer(word, around, context), around, found)
        if reference is not None:
            pieces += [command[done : word.start] + reference.prefix, FileName(reference.name)]
            done = word.end
    if ".claude/hooks" in words.opaque or ".codex/hooks" in words.opaque:
        raise _Skip("dynamic_path", "a here-document names the hooks folder")
    pieces.append(command[done:])
    return tuple(piece for piece in pieces if piece)


def _argument(text: str, around: Surroundings, found: _Found) -> Text:
    """An argument that no shell reads, or a hole and what stands before it."""
    reference = _noted(refer_argument(text, around), around, found)
    if reference is None:
        return (text,)
    return tuple(piece for piece in (reference.prefix, FileName(reference.name)) if piece)


def _noted(reference: Reference, around: Surroundings, found: _Found) -> Copied | None:
    """Keep what a word named; the file to put in its place, if there is one."""
    if isinstance(reference, Refused):
        raise _Skip(reference.code, reference.reason)
    if isinstance(reference, External):
        found.external.append(reference)
    if not isinstance(reference, Copied):
        return None
    found.copied.append(reference._replace(prefix="", is_loose=False))
    if reference.is_loose and around.cwd is None:
        said = "a relative path: the agent looks for it where it works; the copy is of the user's own file"
        found.notes.append(said)
    return reference


def filled(text: Text, folder: str, *, quoted: bool) -> str:
    """``text`` with the paths of copied files in ``folder`` in its holes, ``quoted`` for a shell."""
    pieces = []
    for piece in text:
        if isinstance(piece, FileName):
            path = f"{folder}/{piece.name}"
            pieces.append(shlex.quote(path) if quoted else path)
        else:
            pieces.append(piece)
    return "".join(pieces)


def named_files(texts: Sequence[Text]) -> frozenset[str]:
    """The names of the files that have holes in ``texts``."""
    return frozenset(piece.name for text in texts for piece in text if isinstance(piece, FileName))
