"""Settings files that ``attach`` made, and their folders: what ``detach`` may take away with the last entry.

Decides what is remembered of them, and that a folder goes only while it is empty. Refuses to know what is in
such a file; call it between :func:`attach_files.changing`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Final

from .attach_files import Unwritable, keep_copy
from .discover import Signature, read, signature
from .hook_source import Content
from .hook_store_files import GuardedFile

FILE_NAME: Final = "attach-created.json"
"""In the state directory: by the path of each file the folders that were made for it, innermost first."""

FILE_BYTES: Final = 1_048_576


def remember(path: str, state_dir: str) -> None:
    """The file at ``path`` is about to be made. Raises :class:`Unwritable`."""
    target = os.path.realpath(path)
    folders = []
    folder = os.path.dirname(target)
    while not os.path.isdir(folder):
        folders.append(folder)
        folder = os.path.dirname(folder)
    found = {name: made for name, made in _found(state_dir).items() if os.path.lexists(name)}
    _keep({**found, target: folders}, state_dir)


def forget(path: str, state_dir: str) -> None:
    """The file is somebody else's now. Raises :class:`Unwritable`."""
    found = dict(_found(state_dir))
    if found.pop(os.path.realpath(path), None) is not None:
        _keep(found, state_dir)


def is_made(path: str, state_dir: str) -> bool:
    """Whether ``attach`` made the file."""
    return os.path.realpath(path) in _found(state_dir)


def take_away(path: str, looked: Signature, state_dir: str) -> str | None:
    """Remove a file that :func:`is_made`, if it still is as it ``looked``; returns the copy of what it was.

    Its folders go with it while nothing else is in them. Raises :class:`Unwritable`.
    """
    target = os.path.realpath(path)
    folders = _found(state_dir).get(target, ())
    try:
        copy = keep_copy(path, state_dir)
        if signature(path) != looked:
            raise Unwritable(f"{path} was changed by somebody else meanwhile; nothing was removed")
        os.unlink(target)
    except OSError as error:
        raise Unwritable(f"{path} cannot be removed: {error.strerror}") from None
    forget(path, state_dir)
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            break  # something else is in it
    return copy


def _found(state_dir: str) -> Mapping[str, list[str]]:
    """What is remembered; nothing where the file is not one of ours."""
    content = read(os.path.join(state_dir, FILE_NAME), FILE_BYTES)
    try:
        said = json.loads(content.text) if isinstance(content, Content) else {}
    except ValueError:
        return {}
    rows = said.items() if isinstance(said, dict) else ()
    return {
        path: made
        for path, made in rows
        if isinstance(made, list) and all(isinstance(each, str) for each in made)
    }


def _keep(found: Mapping[str, list[str]], state_dir: str) -> None:
    path = os.path.join(state_dir, FILE_NAME)
    try:
        GuardedFile(path).replace(json.dumps(found).encode(), signature(path))
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror}") from None
