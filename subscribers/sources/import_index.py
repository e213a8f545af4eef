"""The index of a store of imports: its records, and what makes one believable.

Decides which text is an index and which records of it hold. A text that is no index, or an index with one
record that contradicts itself, is corrupt: nothing of it is used, and :func:`read_index` says why. It refuses
to know where the index lies and what is in a snapshot.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple, cast

import orjson

from ..hooks.import_plan import HOOKS_NAME, MAX_FILES, TOTAL_BYTES
from .import_places import SCOPES, Scope

SCHEMA: Final = 1
INDEX_BYTES: Final = 16_777_216
MAX_IMPORTS: Final = 256
"""Imports in one store."""
FOLDERS: Final = ("files", "user")
"""Folders of a snapshot: of the source's own hooks folder, and of the user's where a project uses it."""

PROFILES: Final = frozenset({"claude", "codex"})

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_ID: Final = re.compile(r"[a-z][a-z0-9-]{0,79}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class IndexCorrupt(Exception):
    """An index cannot be believed. ``kept`` are the records of it that hold all the same."""

    def __init__(self, reason: str, kept: tuple[ImportRecord, ...] = ()) -> None:
        super().__init__(reason)
        self.kept = kept


class SnapshotFile(NamedTuple):
    """What one file of a snapshot has to be: the SHA-256 of its bytes, their number, and its exec bit."""

    sha256: str
    size: int
    executable: bool


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """One import. ``key`` and ``path`` name its source, ``profile`` says whose rules its hooks follow.

    ``snapshot`` is the digest of what was copied and the name of the folder that it lies in, ``files`` are
    the files there. ``external`` are files that stayed where they are, with the digest they had; None: not
    known. ``fingerprint`` is that of the plan that was confirmed, ``imported_at`` an RFC 3339 time.
    """

    id: str
    key: str
    scope: Scope
    profile: str
    path: str
    enabled: bool
    snapshot: str
    files: Mapping[str, SnapshotFile]
    external: Mapping[str, str | None]
    handlers: int
    skipped: int
    fingerprint: str
    imported_at: str


class Retired(NamedTuple):
    """A snapshot that an update replaced, kept for runs that began before; ``at``: seconds since 1970."""

    id: str
    snapshot: str
    at: float


class Index(NamedTuple):
    """What a store holds. Records are in the order of their ids."""

    records: tuple[ImportRecord, ...] = ()
    retired: tuple[Retired, ...] = ()

    def find(self, name: str) -> ImportRecord | None:
        """The record of an id."""
        return next((record for record in self.records if record.id == name), None)

    def with_record(self, record: ImportRecord) -> Index:
        """The index with ``record`` in place of the one of its id."""
        others = [each for each in self.records if each.id != record.id]
        return self._replace(records=tuple(sorted([*others, record], key=lambda each: each.id)))

    def without(self, name: str) -> Index:
        """The index without everything of an id."""
        return Index(
            tuple(each for each in self.records if each.id != name),
            tuple(each for each in self.retired if each.id != name),
        )


def import_id(key: str, path: str) -> str:
    """The id of what is imported from a source: readable, and the same whenever it is imported again."""
    readable = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")[:60]
    source = f"{key}\x00{path}".encode()
    return f"{readable}-{hashlib.sha256(source).hexdigest()[:8]}"


def write_index(index: Index) -> bytes:
    """The text of an index."""
    document = {
        "schema": SCHEMA,
        "imports": [_plain(record) for record in index.records],
        "retired": [each._asdict() for each in index.retired],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def read_index(text: bytes, scope: Scope) -> Index:
    """The index that ``text`` is, of a store of ``scope``. Raises :class:`IndexCorrupt`."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise IndexCorrupt(f"it is not JSON: {error.msg}, line {error.lineno}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise IndexCorrupt(f"it is no index of schema {SCHEMA}")
    rows = document.get("imports")
    if not isinstance(rows, list) or len(rows) > MAX_IMPORTS:
        raise IndexCorrupt(f"`imports` is no list of at most {MAX_IMPORTS}")
    faults = [f"unknown key {key!r}" for key in document if key not in ("schema", "imports", "retired")]
    records: list[ImportRecord] = []
    for number, row in enumerate(rows):
        try:
            records.append(_record(row, scope))
        except _Fault as fault:
            faults.append(f"imports[{number}]: {fault}")
    doubles = {each.id for each in records if sum(other.id == each.id for other in records) > 1}
    faults += [f"two imports are called {name}" for name in sorted(doubles)]
    records = [each for each in records if each.id not in doubles]
    records.sort(key=lambda each: each.id)
    try:
        retired = tuple(map(_retired, _list(document, "retired")))
    except _Fault as fault:
        faults.append(str(fault))
        retired = ()
    if faults:
        raise IndexCorrupt("; ".join(faults[:3]), tuple(records))
    return Index(tuple(records), retired)


def is_snapshot_name(name: str) -> bool:
    """Whether ``name`` can be that of a file in a snapshot: relative, and nothing leads out of it."""
    path = PurePosixPath(name)
    parts = path.parts
    if name == HOOKS_NAME:
        return True
    is_plain = "\0" not in name and str(path) == name and ".." not in parts
    return is_plain and len(parts) > 1 and parts[0] in FOLDERS and "__pycache__" not in parts


class _Fault(ValueError):
    """One row does not hold."""


def _plain(record: ImportRecord) -> dict[str, Any]:
    plain = {name: getattr(record, name) for name in ImportRecord.__slots__}
    plain["files"] = {name: file._asdict() for name, file in sorted(record.files.items())}
    plain["external"] = dict(sorted(record.external.items()))
    return plain


def _record(row: Any, scope: Scope) -> ImportRecord:
    if not isinstance(row, dict):
        raise _Fault("it is no object")
    if set(row) != set(ImportRecord.__slots__):
        odd = sorted(set(row) ^ set(ImportRecord.__slots__))
        raise _Fault(f"it lacks, or has besides, {', '.join(map(repr, odd[:3]))}")
    key, path = _text(row, "key"), _text(row, "path")
    files = {name: _file(name, value) for name, value in _object(row, "files").items()}
    _check_files(files)
    record = ImportRecord(
        id=_text(row, "id", _ID),
        key=key,
        scope=cast("Scope", _choice(row, "scope", SCOPES)),
        profile=_choice(row, "profile", PROFILES),
        path=path,
        enabled=_flag(row, "enabled"),
        snapshot=_text(row, "snapshot", _DIGEST),
        files=files,
        external={name: _digest_or_none(value) for name, value in _object(row, "external").items()},
        handlers=_count(row, "handlers"),
        skipped=_count(row, "skipped"),
        fingerprint=_text(row, "fingerprint", _DIGEST),
        imported_at=_text(row, "imported_at", _TIME),
    )
    if record.scope != scope:
        raise _Fault(f"its scope is {record.scope!r}, that of the store {scope!r}")
    if record.id != import_id(key, path):
        raise _Fault("its id is not that of its source")
    return record


def _check_files(files: Mapping[str, SnapshotFile]) -> None:
    copied = [file.size for name, file in files.items() if name != HOOKS_NAME]
    if HOOKS_NAME not in files:
        raise _Fault(f"it has no {HOOKS_NAME}")
    if len(copied) > MAX_FILES or sum(copied) > TOTAL_BYTES:
        raise _Fault("it has more files, or larger ones, than an import can have")


def _file(name: str, value: Any) -> SnapshotFile:
    if not is_snapshot_name(name):
        raise _Fault(f"{name!r} is no name of a file in a snapshot")
    if not isinstance(value, dict) or set(value) != set(SnapshotFile._fields):
        raise _Fault(f"files[{name!r}] is not what a file has")
    size = _count(value, "size")
    return SnapshotFile(_text(value, "sha256", _DIGEST), size, _flag(value, "executable"))


def _retired(row: Any) -> Retired:
    if not isinstance(row, dict) or set(row) != set(Retired._fields):
        raise _Fault("`retired` has a row that is none")
    at = row["at"]
    if not isinstance(at, int | float) or isinstance(at, bool):
        raise _Fault("`retired` has a time that is none")
    return Retired(_text(row, "id", _ID), _text(row, "snapshot", _DIGEST), float(at))


def _text(row: Mapping[str, Any], name: str, pattern: re.Pattern[str] | None = None) -> str:
    value = row[name]
    if not isinstance(value, str) or not value or (pattern is not None and not pattern.fullmatch(value)):
        raise _Fault(f"{name!r} is not what it has to be")
    return value


def _choice(row: Mapping[str, Any], name: str, choices: Iterable[str]) -> str:
    value = _text(row, name)
    if value not in choices:
        raise _Fault(f"{name!r} is {value!r}")
    return value


def _flag(row: Mapping[str, Any], name: str) -> bool:
    value = row[name]
    if not isinstance(value, bool):
        raise _Fault(f"{name!r} is neither true nor false")
    return value


def _count(row: Mapping[str, Any], name: str) -> int:
    value = row[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _Fault(f"{name!r} is no count")
    return value


def _object(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = row[name]
    if not isinstance(value, dict):
        raise _Fault(f"{name!r} is no object")
    return value


def _list(row: Mapping[str, Any], name: str) -> list[Any]:
    value = row.get(name, [])
    if not isinstance(value, list):
        raise _Fault(f"{name!r} is no list")
    return value


def _digest_or_none(value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and _DIGEST.fullmatch(value)):
        raise _Fault("`external` has a digest that is none")
    return value
