"""What was trusted of a workspace: its record as bytes, and how what is there now differs from it.

Decides what counts as a change, and which of them do not matter while a bus runs: a PRX ``hooks.json`` is
reloaded as its page says, and may name other programs then. Refuses to know where records and files lie.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

VERSION: Final = 1
FILES: Final = 2_000
"""Files of one workspace that a record holds at most."""

PATH_LENGTH: Final = 4_096
"""Longest path in a record, in characters."""

RECORD_BYTES: Final = 1_048_576
"""Largest record, in bytes."""

Role: TypeAlias = Literal["prx", "config", "hooks", "handlers", "plugin", "command"]
"""What a file is to a workspace: a PRX ``hooks.json``, ``.prxbus/config.toml``, a hook file of the Codex
family, something below ``.prxbus/handlers``, a plugin's manifest or component, or what a command names."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class NotARecord(ValueError):
    """The bytes are no record; the text says why."""


@dataclass(frozen=True, slots=True)
class Record:
    """What somebody has trusted: the SHA-256 of each file, by its path relative to ``workspace``.

    ``workspace`` is the real, absolute path. ``recorded_at`` is RFC 3339 in UTC.
    """

    workspace: str
    recorded_at: str
    files: Mapping[str, str]


class Changes(NamedTuple):
    """The paths that differ from a record, sorted."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether everything is as it was recorded."""
        return not (self.changed or self.added or self.removed)

    def told(self) -> Iterator[str]:
        """Each path, with what became of it where it did not merely change."""
        yield from self.changed
        yield from (f"{path} (added)" for path in self.added)
        yield from (f"{path} (removed)" for path in self.removed)


def compare(recorded: Mapping[str, str], found: Mapping[str, str]) -> Changes:
    """How ``found`` differs from what was recorded; both map paths to digests."""
    return Changes(
        tuple(sorted(path for path in recorded if path in found and found[path] != recorded[path])),
        tuple(sorted(found.keys() - recorded.keys())),
        tuple(sorted(recorded.keys() - found.keys())),
    )


def while_running(changes: Changes, roles: Mapping[str, Role], prx: str) -> Changes:
    """Those of the changes that end the trust in a workspace whose hooks run already.

    ``roles`` are those of all files that are or were there; ``prx`` is the path of its PRX ``hooks.json``.
    That file may change, come and go, and with it what commands name.
    """

    def free(path: str) -> bool:
        return path == prx or roles.get(path) == "command"

    return Changes(
        tuple(path for path in changes.changed if path != prx),
        tuple(path for path in changes.added if not free(path)),
        tuple(path for path in changes.removed if not free(path)),
    )


def encode(record: Record) -> bytes:
    """The record as JSON. Raises :class:`NotARecord` when it would be larger than one may be."""
    if len(record.files) > FILES:
        raise NotARecord(f"there are {len(record.files):,} files; a record holds {FILES:,}")
    document = {
        "version": VERSION,
        "workspace": record.workspace,
        "recorded_at": record.recorded_at,
        "files": dict(record.files),
    }
    text = json.dumps(document, indent=2, sort_keys=True).encode() + b"\n"
    if len(text) > RECORD_BYTES:
        raise NotARecord(f"the record would have {len(text):,} bytes; it may have {RECORD_BYTES:,}")
    return text


def decode(text: bytes) -> Record:
    """Read a record. Raises :class:`NotARecord`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise NotARecord("it is not JSON") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise NotARecord(f"it is no record of version {VERSION}")
    workspace, at, files = (document.get(name) for name in ("workspace", "recorded_at", "files"))
    if not isinstance(workspace, str) or not isinstance(at, str) or not isinstance(files, dict):
        raise NotARecord("it lacks the workspace, the time or the files")
    if len(files) > FILES or not all(_is_entry(path, digest) for path, digest in files.items()):
        raise NotARecord("its files are not paths with their SHA-256")
    return Record(workspace, at, files)


def _is_entry(path: str, digest: Any) -> bool:
    is_below = 0 < len(path) <= PATH_LENGTH and not path.startswith("/") and ".." not in path.split("/")
    return is_below and isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None
