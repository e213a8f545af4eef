"""From the paths that somebody names to files explained: folders are gone through, files recognised.

It decides what a path stands for, and what is said of one that stands for nothing. It refuses to know any
kind of file beyond the table of :mod:`.inspect_kinds`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import Explained, ExplainedFile, Handler, faulted
from . import discover
from .hook_source import Content
from .inspect_files import unreadable
from .inspect_finding import LOOKED_AT
from .inspect_kinds import KINDS, Kind, because_named, recognise, supported
from .inspect_world import World, not_loaded

DIALECT_SAYS: Final = "--dialect says so"
SETTINGS_SAY: Final = "your settings say so"


class Place(NamedTuple):
    """A path to look at, absolute. ``trusted``: the user named it, or it is the user's own.

    ``dialect`` is what it is taken for where somebody has said so; None: what it looks like.
    """

    path: str
    trusted: bool
    dialect: str | None = None


def inspect(places: Iterable[Place], dialect: str | None, world: World) -> list[ExplainedFile]:
    """Explain every file that the places stand for, each once, in order. Raises nothing on their account.

    One that lies in a place which is trusted and in another that is not is trusted.

    ``dialect`` is what every file is taken for, and all that is looked for in a folder; None: what each is.
    """
    found: dict[str, ExplainedFile] = {}
    for place in places:
        if place.dialect is not None and dialect not in (None, place.dialect):
            continue
        for file in _files_of(place, dialect, world):
            if file.path not in found or (file.trusted and not found[file.path].trusted):
                found[file.path] = file
    return _without_doubles(list(found.values()))


def _files_of(place: Place, asked: str | None, world: World) -> Iterator[ExplainedFile]:
    dialect = place.dialect or asked
    kinds = [kind for kind in KINDS if dialect in (None, kind.name)]
    if not os.path.isdir(place.path):
        says = DIALECT_SAYS if place.dialect is None else SETTINGS_SAY
        yield _explained(place.path, place.trusted, kinds[0] if dialect is not None else None, says, world)
        return
    for kind in kinds:
        found = kind.find(place.path)
        for path in found.paths:
            yield _as(kind, because_named(kind, path), path, place.trusted, world)
        for remark in found.remarks:
            explained = Explained((), (remark,), refused=False)
            because = "files of this kind are looked for there"
            yield ExplainedFile(remark.path, kind.name, because, place.path, place.trusted, explained)


def _explained(path: str, trusted: bool, kind: Kind | None, says: str, world: World) -> ExplainedFile:
    """A file that was named; ``says``: who says of which kind it is, where somebody does."""
    if kind is not None:
        return _as(kind, says, path, trusted, world)
    reading = discover.read(path, LOOKED_AT)
    known = recognise(path, reading.text if isinstance(reading, Content) else b"")
    if known is not None:
        return _as(*known, path, trusted, world)
    if not isinstance(reading, Content):
        return ExplainedFile(path, None, "", os.path.dirname(path), trusted, unreadable(path, reading))
    hint = f"there are {supported()}; --dialect says what a file is"
    said = Diagnostic("error", "unknown_file", path, None, None, None, "nobody knows this kind of file", hint)
    return ExplainedFile(path, None, "", os.path.dirname(path), trusted, Explained((), (said,), refused=True))


def _as(kind: Kind, because: str, path: str, trusted: bool, world: World) -> ExplainedFile:
    """A file taken for one of a kind."""
    reading = kind.read(path)
    workspace = kind.workspace(path)
    if isinstance(reading, Content):
        here = world if trusted else replace(world, load=not_loaded)
        explained = kind.explain(reading.text, path, workspace, here)
    else:
        explained = unreadable(path, reading)
    handlers = tuple(replace(handler, trusted=trusted) for handler in explained.handlers)
    return ExplainedFile(path, kind.name, because, workspace, trusted, replace(explained, handlers=handlers))


def _without_doubles(files: list[ExplainedFile]) -> list[ExplainedFile]:
    """The files, with the plugins refused whose name another plugin of their workspace has."""
    owners: dict[tuple[str, str], str] = {}
    return [
        replace(
            file,
            explained=replace(
                file.explained,
                handlers=tuple(_owned(handler, file, owners) for handler in file.explained.handlers),
            ),
        )
        for file in files
    ]


def _owned(handler: Handler, file: ExplainedFile, owners: dict[tuple[str, str], str]) -> Handler:
    if handler.runtime != "wasm" or handler.status != "ok":
        return handler
    owner = owners.setdefault((file.workspace, handler.name), file.path)
    if owner == file.path:
        return handler
    message = f"{owner} has this name already: the plugin is not loaded"
    said = Diagnostic(
        "error", "duplicate_name", file.path, None, None, "plugin.name", message, "give it another name"
    )
    return faulted(handler, "refused", said)
