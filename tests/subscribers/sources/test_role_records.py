"""What was accepted of a role: kept, and read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from subscribers.sources import role_records
from subscribers.sources.record_files import RecordUnusable
from subscribers.sources.role_records import RoleRecord, RoleRecords

AT = "2026-01-02T03:04:05Z"


@pytest.fixture
def records(tmp_path: Path) -> RoleRecords:
    """Records of nobody else."""
    return RoleRecords(str(tmp_path / "state" / "roles"))


@pytest.fixture
def role(tmp_path: Path) -> Path:
    """A role's directory."""
    (tmp_path / "coder").mkdir()
    return tmp_path / "coder"


def test_a_record_is_read_again(records: RoleRecords, role: Path, tmp_path: Path) -> None:
    """Also by a link to the role; a second one takes its place; another role has none."""
    assert records.read(str(role)) is None
    records.write(str(role), AT, "prxbus1-a", {"a.js": "f:1"})
    records.write(str(role), AT, "prxbus1-b", {"a.js": "f:2"})
    (tmp_path / "alias").symlink_to(role)
    expected = RoleRecord(str(role.resolve()), AT, "prxbus1-b", {"a.js": "f:2"})
    assert records.read(str(tmp_path / "alias")) == expected
    assert records.read(str(tmp_path)) is None
    assert Path(records.path_of(str(role))).stat().st_mode & 0o777 == 0o600


def test_the_records_lie_in_the_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside those of workspaces."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert RoleRecords().folder == f"{tmp_path}/prxbus/roles"


BROKEN: list[tuple[str, Callable[[dict[str, object]], object]]] = [
    ("no JSON", lambda _: None),
    ("a list", lambda document: [document]),
    ("another version", lambda document: document | {"version": 2}),
    ("no hash", lambda document: document | {"hash": None}),
    ("no files", lambda document: document | {"files": ["a.js"]}),
    ("odd files", lambda document: document | {"files": {"a.js": 1}}),
    ("another role", lambda document: document | {"directory": "/other"}),
]


@pytest.mark.parametrize("what,change", BROKEN, ids=[name for name, _ in BROKEN])
def test_what_is_no_record_of_the_role_is_refused(
    records: RoleRecords, role: Path, what: str, change: Callable[[dict[str, object]], object]
) -> None:
    """It says so, and is replaced by the next one that is written."""
    records.write(str(role), AT, "prxbus1-a", {})
    path = Path(records.path_of(str(role)))
    path.write_text("{" if what == "no JSON" else json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(RecordUnusable, match="is no record of this role"):
        records.read(str(role))
    records.write(str(role), AT, "prxbus1-a", {})
    assert records.read(str(role)) is not None


def test_a_record_that_is_too_large_is_not_written(
    records: RoleRecords, role: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not be read again."""
    monkeypatch.setattr(role_records, "RECORD_BYTES", 10)
    with pytest.raises(RecordUnusable, match="would have"):
        records.write(str(role), AT, "prxbus1-a", {})
    assert records.read(str(role)) is None
