"""What a store of hooks gives and refuses, as values: hooks, snapshots, entity tags, errors.

Pure. It decides what makes two states of a hook, or of its file, the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import orjson

from ..dialects.prx_edit import Action, FileRefused
from ..dialects.prx_ids import Known
from ..hooks.diagnostics import Diagnostic

ABSENT: Final = '"absent"'
"""The entity tag of a file that is not there."""

TOO_LARGE: Final = '"too-large"'
"""The entity tag of a file that has more bytes than are read."""

ANY: Final = "*"
"""Stands for whatever is there; without a file that is no hooks, which can be expected as well."""


class HookMissing(Exception):
    """There is no hook of this id."""


class StaleEdit(Exception):
    """The edit was made for another state of the hook or the file than the one that is there."""


class StoreUnusable(Exception):
    """The file cannot be read or written: a ``code``, and a ``hint`` what to do."""

    def __init__(self, code: str, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


class FileBroken(FileRefused):
    """The file cannot be edited as it is. ``etag`` is its entity tag, for who replaces all of it."""

    def __init__(self, diagnostics: Sequence[Diagnostic], etag: str) -> None:
        super().__init__(diagnostics)
        self.etag = etag


class Hook(NamedTuple):
    """One hook as programs see it; ``action`` has the documented fields that the file has."""

    id: str
    event: str
    action: dict[str, Any]
    enabled: bool
    created_at: str
    updated_at: str

    @property
    def etag(self) -> str:
        """An entity tag of this state of the hook."""
        return _etag(orjson.dumps(self._asdict(), option=orjson.OPT_SORT_KEYS))


class Snapshot(NamedTuple):
    """All hooks at one moment, in file order, and the entity tag of the file."""

    hooks: tuple[Hook, ...]
    etag: str


def hook_of(action: Action, known: Known) -> Hook:
    """An action of the file with who it is."""
    return Hook(known.id, action.event, action.documented, action.enabled, known.created_at, known.updated_at)


def expect(expected: Collection[str] | None, *tags: str) -> None:
    """Raise :class:`StaleEdit` unless one of the ``tags`` was expected; None expects nothing."""
    if expected is not None and ANY not in expected and not set(expected) & set(tags):
        raise StaleEdit("it was changed since; read it again and decide anew")


def file_etag(text: bytes | None) -> str:
    """The entity tag of a file's text; None: there is no file."""
    return ABSENT if text is None else _etag(text)


def _etag(text: bytes) -> str:
    return f'"{hashlib.sha256(text).hexdigest()[:32]}"'
