"""What roles remember outlives the process, and no damage of its file ends one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from broker.logs import configure
from subscribers.hooks.role_functions import FunctionState
from subscribers.hooks.role_pending import Waiting
from subscribers.hooks.role_sessions import Kept, SessionRecord
from subscribers.runner.roles_memory import Memory
from subscribers.runner.roles_store import RolesStore, open_store

STATE = FunctionState(("plan", "review"), ("review",), (("review", (("focus", "care"),)),), greeted=True)
RECORD = SessionRecord("coder", "bob", STATE)


@pytest.fixture
def logged() -> Iterator[StringIO]:
    """What is logged."""
    stream = StringIO()
    configure("info", json=True, stream=stream)
    yield stream
    configure()


def test_what_was_written_is_there_for_the_next_process(tmp_path: Path) -> None:
    """Texts to the last character, and sessions with all that is known; what was deleted is gone."""
    path = str(tmp_path / "roles.db")
    store = RolesStore(path)
    texts = [Waiting("a", "one\ntwo \U0001f600 \ud800", 3.0), Waiting("b", "x", 4.0)]
    store.write(texts, [Kept("a", RECORD), Kept("b", RECORD)])
    store.write([Waiting("b", None, 0.0)], [Kept("b", None)])
    again = RolesStore(path)
    assert again.pending() == texts[:1]
    assert again.sessions() == [Kept("a", RECORD)]
    assert Path(path).stat().st_mode & 0o777 == 0o600
    store.close()
    again.close()


@pytest.mark.parametrize("content", [b"no database at all" * 100, None])
def test_a_damaged_file_is_put_aside_and_begun_anew(tmp_path: Path, content: bytes | None) -> None:
    """Nothing is lost for good, and what comes is stored; also in a file of another version's."""
    path = tmp_path / "roles.db"
    if content is None:
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE pending (x)")
        other.close()
    else:
        path.write_bytes(content)
    store = open_store(str(path))
    assert store is not None
    assert store.pending() == []
    store.write([Waiting("a", "x", 1.0)], [])
    assert store.pending() == [Waiting("a", "x", 1.0)]
    store.close()
    assert (tmp_path / "roles.db.damaged").exists()


def test_where_there_can_be_no_file_there_is_none(tmp_path: Path, logged: StringIO) -> None:
    """Roles go on without it, and that is said."""
    assert open_store(str(tmp_path / "none" / "roles.db")) is None
    assert logged.getvalue().count("will not survive this process") == 1


def test_a_session_that_is_not_understood_is_forgotten_and_what_cannot_be_stored_is_said_once(
    tmp_path: Path, logged: StringIO
) -> None:
    """The others are there; and memory goes on without its file."""
    path = str(tmp_path / "roles.db")
    store = RolesStore(path)
    store.write([], [Kept("a", RECORD)])
    with sqlite3.connect(path) as other:
        other.execute("INSERT INTO sessions VALUES ('b', '{}', 1.0)")
        other.execute("INSERT INTO sessions VALUES ('c', 'no json', 1.0)")
    other.close()
    assert store.sessions() == [Kept("a", RECORD)]
    memory = Memory(store)
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE pending")
    other.close()
    for _ in range(2):
        assert memory.add("a", "text")
        memory.store()
    assert memory.look("a") == "text\ntext"
    memory.close()
    assert logged.getvalue().count("cannot be stored") == 1


def test_without_a_file_memory_is_for_this_process() -> None:
    """A session that ends is forgotten; one that begins anew keeps its role."""
    memory = Memory(None)
    facts: dict[str, Any] = {"pending": 1, "pending_dropped": 0, "pending_expired": 0, "sessions": 1}
    memory.remember("a", RECORD)
    memory.add("a", "text")
    memory.store()
    assert memory.counters() == facts
    memory.forget("a", for_good=False)
    assert memory.session("a") == SessionRecord("coder", "bob")
    assert memory.look("a") is None
    memory.forget("a", for_good=True)
    assert memory.session("a") == SessionRecord()
    memory.close()


ROWS = """
INSERT INTO pending VALUES ('a', 'no bytes', 1.0), ('b', x'ff', 1.0), (x'63', x'63', 1.0);
INSERT INTO pending VALUES ('d', x'64', 'no time');
INSERT INTO sessions VALUES ('b', '[null,null,[1],[],[],true]', 1.0), ('c', '[1,null,[],[],[],true]', 1.0);
INSERT INTO sessions VALUES ('d', '[null,null,[],[],[["n",[["k",1]]]],true]', 1.0), ('e', 7, 1.0);
INSERT INTO sessions VALUES (x'66', '[null,null,[],[],[],true]', 1.0);
"""


def test_rows_of_another_kind_are_left_out(tmp_path: Path) -> None:
    """Whoever wrote them: the process begins with those that it understands."""
    path = str(tmp_path / "roles.db")
    store = RolesStore(path)
    store.write([Waiting("z", "text", 1.0)], [Kept("a", RECORD)])
    other = sqlite3.connect(path)
    other.executescript(ROWS)
    other.close()
    assert store.pending() == [Waiting("z", "text", 1.0)]
    assert store.sessions() == [Kept("a", RECORD)]
    store.close()


def test_a_damaged_page_far_within_is_found_when_the_file_is_opened(tmp_path: Path) -> None:
    """Not when it is read later, which would end the process again and again."""
    path = tmp_path / "roles.db"
    store = RolesStore(str(path))
    store.write([Waiting(f"s{number}", "x" * 9_000, 1.0) for number in range(40)], [])
    store.close()
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    path.write_bytes(content)
    again = open_store(str(path))
    assert again is not None
    assert again.pending() == []
    assert (tmp_path / "roles.db.damaged").read_bytes() == content
    again.close()


def test_a_full_disk_is_no_damage(tmp_path: Path, logged: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the file holds is still there when there is room again."""
    path = str(tmp_path / "roles.db")
    store = RolesStore(path)
    store.write([Waiting("a", "x", 1.0)], [])
    store.close()
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def connect(*_: Any, **__: Any) -> None:
        raise full

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", connect)
        assert open_store(path) is None
    assert "will not survive this process" in logged.getvalue()
    again = open_store(path)
    assert again is not None
    assert again.pending() == [Waiting("a", "x", 1.0)]
    again.close()
