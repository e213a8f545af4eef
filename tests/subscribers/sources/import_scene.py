"""Records and stores of imports, for the tests of stores."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subscribers.sources.import_files import Contents
from subscribers.sources.import_index import ImportRecord, SnapshotFile, import_id
from subscribers.sources.import_store import ImportStore

KEY = "claude:user"


def contents(text: str = "a") -> dict[str, Contents]:
    """The files of a snapshot."""
    return {
        "hooks.json": Contents(f'{{"hooks": {{}}, "n": "{text}"}}\n'.encode(), False),
        "files/run.sh": Contents(f"#!/bin/sh\necho {text}\n".encode(), True),
        "files/below/lib.sh": Contents(text.encode(), False),
    }


def record(
    files: Mapping[str, Contents], path: str = "/h/.claude/settings.json", **changes: Any
) -> ImportRecord:
    """The record of an import of these files."""
    told = {
        name: SnapshotFile(each.sha256, len(each.content), each.executable) for name, each in files.items()
    }
    known: dict[str, Any] = {
        "id": import_id(KEY, path),
        "key": KEY,
        "scope": "user",
        "profile": "claude",
        "path": path,
        "enabled": True,
        "snapshot": hashlib.sha256(repr(sorted(told.items())).encode()).hexdigest(),
        "files": told,
        "external": {"/bin/x": None, "/bin/y": "0" * 64},
        "handlers": 2,
        "skipped": 1,
        "fingerprint": "f" * 64,
        "imported_at": "2026-11-30T12:00:00Z",
    }
    return ImportRecord(**{**known, **changes})


def stored(folder: Path, text: str = "a", now: float = 0.0, **changes: Any) -> ImportRecord:
    """An import put into the store in ``folder``."""
    files = contents(text)
    made = record(files, **changes)
    store = ImportStore(str(folder), "user")
    with store.locked():
        store.put(made, files, now)
    return made
