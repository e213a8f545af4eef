"""The plan of an import: exactly what would be copied and run, and the fingerprint by which it is confirmed.

A plan is made from a draft and from what was found of the files that it names. Decides which handlers keep
within the limits, what the generated hook file says, and what the fingerprint covers: everything that the
plan says, and nothing else. It refuses to read or write anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from .import_draft import Draft, DraftHandler, Skipped, Text, filled
from .import_paths import External

MAX_FILES: Final = 256
"""Copied files of one import."""
FILE_BYTES: Final = 1_048_576
"""Bytes of a copied file."""
TOTAL_BYTES: Final = 16_777_216
"""Bytes of all copied files of one import."""

HOOKS_NAME: Final = "hooks.json"
"""The generated hook file of a snapshot."""

WRITTEN: Final = "written to"
"""The state of a file that a hook's output goes to."""

SKIPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "unsupported_event": "the agent's profile has no such event",
        "unsupported_type": "`http`, `mcp_tool`, `prompt` and `agent` handlers, and types that nobody knows",
        "unsupported_field": "a `shell` that does not run here",
        "invalid": "the profile would not run it; the reason is its own",
        "own_entry": "it is the entry of `prxbus attach`",
        "disabled": "Codex's record switches this handler off",
        "all_disabled": "`disableAllHooks`, or Codex's feature switch: the agent runs no hooks",
        "dynamic_path": "which file is meant is only known when the command runs",
        "wildcard": "a pattern in a path",
        "escapes": "`..` in a path into the hooks folder",
        "too_deep": "more than 8 folders below the hooks folder",
        "missing": "there is no such file in the hooks folder",
        "link": "the file, or a folder on the way to it, is a link",
        "not_a_file": "a folder, a pipe or a device",
        "unreadable": "no permission, or another error of the system",
        "too_large": "a file of more than 1 MiB, or with it more than 16 MiB in all",
        "too_many_files": "with it there would be more than 256 files",
        "too_many_handlers": "beyond the first 2,048 of a source",
    }
)
"""Why something is not imported, by code."""

Disposition: TypeAlias = Literal["import", "update", "unchanged", "empty"]
"""What confirming would do. ``empty``: there is nothing to import."""


class FileFact(NamedTuple):
    """A file as it was found. ``mentions`` are other files of its hooks folder that its text names.

    ``reaches_back``: its text names a hooks folder by its path, so it may read from there, not from the copy.
    """

    size: int
    sha256: str
    executable: bool
    mentions: tuple[str, ...] = ()
    reaches_back: bool = False


class FileFault(NamedTuple):
    """Why a file cannot be copied, or was not read."""

    code: str
    reason: str


Found: TypeAlias = FileFact | FileFault


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose hooks these are, and where: ``key`` names the source, ``profile`` says whose rules hold.

    ``warnings`` are about the source as a whole.
    """

    key: str
    agent: str
    scope: str
    path: str
    profile: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Previous:
    """What is imported of the source now."""

    snapshot: str
    external: Mapping[str, str | None]
    enabled: bool


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that is copied: from ``path`` to ``name`` in the snapshot. ``why``: the copy that names it."""

    path: str
    name: str
    size: int
    sha256: str
    executable: bool
    why: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedExternal:
    """A file that stays. ``path`` None: relative to where the hook runs. ``sha256`` None: not read."""

    shown: str
    path: str | None
    sha256: str | None
    state: str


@dataclass(frozen=True, slots=True)
class PlannedHandler:
    """One handler as it would run: ``command`` and ``args`` hold the paths of the copies."""

    event: str
    group: int
    index: int
    matcher: Any
    command: str
    args: tuple[str, ...] | None
    source_command: str
    source_args: tuple[str, ...] | None
    command_windows: str | None
    timeout_s: float
    fields: Mapping[str, Any]
    copied: tuple[str, ...]
    external: tuple[PlannedExternal, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that confirming an import would do."""

    source: Origin
    import_id: str
    disposition: Disposition
    enabled: bool
    replaces: str | None
    snapshot: str
    folder: str
    handlers: tuple[PlannedHandler, ...]
    files: tuple[PlannedFile, ...]
    skipped: tuple[Skipped, ...]
    hooks: bytes = field(repr=False)

    def document(self) -> dict[str, Any]:
        """The plan as plain data, without its fingerprint."""
        plain = asdict(self)
        plain["hooks"] = hashlib.sha256(self.hooks).hexdigest()
        return plain

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that the plan says: two plans have the same one exactly if they are equal."""
        return hashlib.sha256(canonical(self.document())).hexdigest()

    @property
    def external(self) -> dict[str, str | None]:
        """The digests of the files that stay where they are, by path."""
        found = (each for handler in self.handlers for each in handler.external)
        return {each.path: each.sha256 for each in found if each.path is not None and each.state != WRITTEN}


def canonical(value: Any) -> bytes:
    """Plain data as bytes: the same for the same data, whatever the order of keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def wanted(drafted: Draft) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths of the files that a draft would copy, and of those that stay, each once and in order."""
    copied = (each.path for handler in drafted.handlers for each in handler.copied)
    kept = (each for handler in drafted.handlers for each in handler.external if not each.is_output)
    return tuple(dict.fromkeys(copied)), tuple(
        dict.fromkeys(each.path for each in kept if each.path is not None)
    )


def plan(
    drafted: Draft,
    found: Mapping[str, Found],
    names: Mapping[str, str],
    source: Origin,
    import_id: str,
    root: str,
    previous: Previous | None,
) -> Plan:
    """The plan for a draft.

    ``found`` has every path that :func:`wanted` names, and every one that those mention; ``names`` says what
    the latter are called in the snapshot. ``root`` is the folder in which snapshots of this import lie.
    """
    files: dict[str, PlannedFile] = {}
    kept: list[tuple[DraftHandler, tuple[str, ...], tuple[str, ...]]] = []
    skipped = list(drafted.skipped)
    for handler in drafted.handlers:
        taken, notes, fault = _files_of(handler, found, names)
        fault = fault or _beyond_limits({**files, **taken})
        if fault is not None:
            place = (handler.event, handler.group, handler.index, handler.source_command)
            skipped.append(Skipped(fault.code, fault.reason, *place))
            continue
        for path, file in taken.items():
            if (
                path not in files or file.why is None
            ):  # a command that names it counts before a file that does
                files[path] = file
        kept.append((handler, tuple(sorted(file.name for file in taken.values())), notes))
    listed = tuple(sorted(files.values(), key=lambda each: each.name))
    snapshot = _snapshot([handler for handler, _, _ in kept], listed, source.profile)
    folder = f"{root}/{snapshot}"
    handlers = tuple(_planned(handler, copied, notes, found, folder) for handler, copied, notes in kept)
    made = Plan(
        source=source,
        import_id=import_id,
        disposition="import" if previous is None else "update",
        enabled=True if previous is None else previous.enabled,
        replaces=None if previous is None else previous.snapshot,
        snapshot=snapshot,
        folder=folder,
        handlers=handlers,
        files=listed,
        skipped=tuple(skipped),
        hooks=_hooks([handler for handler, _, _ in kept], folder),
    )
    return _disposed(made, previous)


def _disposed(made: Plan, previous: Previous | None) -> Plan:
    if not made.handlers:
        return replace(made, disposition="empty")
    if previous is not None and (previous.snapshot, dict(previous.external)) == (
        made.snapshot,
        made.external,
    ):
        return replace(made, disposition="unchanged")
    return made


def _files_of(
    handler: DraftHandler, found: Mapping[str, Found], names: Mapping[str, str]
) -> tuple[dict[str, PlannedFile], tuple[str, ...], FileFault | None]:
    """The files that a handler brings along, notes about those that it cannot, or why it is left out."""
    taken: dict[str, PlannedFile] = {}
    notes: list[str] = []
    queue: list[tuple[str, str, str | None]] = [(each.path, each.name, None) for each in handler.copied]
    while queue:
        path, name, why = queue.pop(0)
        if path in taken:
            continue
        fact = found[path]
        if isinstance(fact, FileFault):
            if why is None:
                return {}, (), FileFault(fact.code, f"{path}: {fact.reason}")
            notes.append(f"{path}, which {why} names, is not copied: {fact.reason}")
            continue
        taken[path] = PlannedFile(path, name, fact.size, fact.sha256, fact.executable, why)
        queue += [(each, names[each], name) for each in fact.mentions if each in names]
        if fact.reaches_back:
            notes.append(f"{name} names the hooks folder by its path: what it reads there is not the copy")
    return taken, (*handler.notes, *dict.fromkeys(notes)), None


def _beyond_limits(files: Mapping[str, PlannedFile]) -> FileFault | None:
    """Why these are too many files for one import."""
    if len(files) > MAX_FILES:
        return FileFault("too_many_files", f"with its files the import would have more than {MAX_FILES}")
    if sum(file.size for file in files.values()) > TOTAL_BYTES:
        return FileFault("too_large", f"with its files the import would have more than {TOTAL_BYTES:,} bytes")
    return None


def _planned(
    handler: DraftHandler,
    copied: tuple[str, ...],
    notes: tuple[str, ...],
    found: Mapping[str, Found],
    folder: str,
) -> PlannedHandler:
    windows = handler.fields.get("commandWindows", handler.fields.get("command_windows"))
    args = handler.args
    return PlannedHandler(
        event=handler.event,
        group=handler.group,
        index=handler.index,
        matcher=handler.matcher,
        command=filled(handler.command, folder, quoted=args is None),
        args=None if args is None else tuple(filled(each, folder, quoted=False) for each in args),
        source_command=handler.source_command,
        source_args=handler.source_args,
        command_windows=windows if isinstance(windows, str) else None,
        timeout_s=handler.timeout_s,
        fields=handler.fields,
        copied=copied,
        external=tuple(_external(each, found) for each in handler.external),
        notes=notes,
    )


def _external(each: External, found: Mapping[str, Found]) -> PlannedExternal:
    if each.path is None:
        return PlannedExternal(each.shown, None, None, "relative to where the hook runs")
    if each.is_output:
        return PlannedExternal(each.shown, each.path, None, WRITTEN)
    fact = found[each.path]
    if isinstance(fact, FileFault):
        return PlannedExternal(each.shown, each.path, None, f"{fact.code}: {fact.reason}")
    return PlannedExternal(each.shown, each.path, fact.sha256, "present")


def _snapshot(handlers: Sequence[DraftHandler], files: Sequence[PlannedFile], profile: str) -> str:
    """The digest of what is copied, wherever that will lie."""
    rows = [
        [*_place(each), _plain(each.command), None if each.args is None else list(map(_plain, each.args))]
        for each in handlers
    ]
    copied = [[file.name, file.sha256, file.executable] for file in files]
    return hashlib.sha256(canonical(["prxbus import", 1, profile, rows, copied])).hexdigest()


def _place(handler: DraftHandler) -> list[Any]:
    rest = {key: value for key, value in handler.fields.items() if key not in ("command", "args")}
    return [handler.event, handler.group, handler.has_matcher, handler.matcher, rest]


def _plain(text: Text) -> list[Any]:
    return [piece if isinstance(piece, str) else [piece.name] for piece in text]


def _hooks(handlers: Sequence[DraftHandler], folder: str) -> bytes:
    """The generated hook file; handlers of one group of the source stay in one group."""
    events: dict[str, list[dict[str, Any]]] = {}
    last: tuple[str, int] | None = None
    for handler in handlers:
        groups = events.setdefault(handler.event, [])
        if last != (handler.event, handler.group):
            matcher = {"matcher": handler.matcher} if handler.has_matcher else {}
            groups.append({**matcher, "hooks": []})
            last = (handler.event, handler.group)
        groups[-1]["hooks"].append(_written(handler, folder))
    return json.dumps({"hooks": events}, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def _written(handler: DraftHandler, folder: str) -> dict[str, Any]:
    written = {**handler.fields, "command": filled(handler.command, folder, quoted=handler.args is None)}
    if handler.args is not None:
        written["args"] = [filled(each, folder, quoted=False) for each in handler.args]
    return written
