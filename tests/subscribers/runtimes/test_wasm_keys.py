"""What a plugin keeps: bounded, its own, and there again after a restart."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subscribers.runtimes.wasm_keys import (
    ENTRY_BYTES,
    KEY_BYTES,
    LISTED_BYTES,
    VALUE_BYTES,
    KeysRefused,
    KeyValues,
)


def test_what_was_kept_is_there_after_a_restart(tmp_path: Path) -> None:
    """Any bytes under any text; the file is this user's alone."""
    path = tmp_path / "state" / "audit.sqlite3"
    kept = KeyValues(str(path), 1 << 20)
    kept.set("zähler", bytes(range(256)))
    kept.set("", b"")
    used = kept.used
    kept.close()
    again = KeyValues(str(path), 1 << 20)
    assert again.get("zähler") == bytes(range(256))
    assert again.get("") == b""
    assert again.get("other") is None
    assert again.used == used
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    again.close()


def test_keys_are_listed_by_prefix_in_order_and_wildcards_are_letters(tmp_path: Path) -> None:
    """A prefix is bytes: a percent sign or an underscore means itself."""
    kept = KeyValues(str(tmp_path / "k"), 1 << 20)
    for key in ("b", "a%", "a_", "ab", "ä"):
        kept.set(key, b"")
    assert kept.keys("") == ["a%", "a_", "ab", "b", "ä"]
    assert kept.keys("a") == ["a%", "a_", "ab"]
    assert kept.keys("a_") == ["a_"]
    assert kept.keys("ä") == ["ä"]
    kept.close()


def test_there_is_room_for_so_much_and_no_more(tmp_path: Path) -> None:
    """What does not fit is refused and costs nothing that was there; removing makes room."""
    kept = KeyValues(str(tmp_path / "k"), 1_000)
    kept.set("a", b"x" * (1_000 - ENTRY_BYTES - 1))
    with pytest.raises(KeysRefused, match="1000 bytes"):
        kept.set("b", b"")
    with pytest.raises(KeysRefused):
        kept.set("a", b"x" * 1_000)
    assert kept.get("a") == b"x" * (1_000 - ENTRY_BYTES - 1)
    kept.set("a", b"")
    kept.set("b", b"x")
    assert kept.delete("b")
    assert not kept.delete("b")
    assert kept.used == 1 + ENTRY_BYTES
    with pytest.raises(KeysRefused, match=f"at most {KEY_BYTES} bytes"):
        kept.set("k" * (KEY_BYTES + 1), b"")
    kept.close()


def test_values_and_lists_have_their_bounds(tmp_path: Path) -> None:
    """One value, and all keys that are listed at once, are bounded; a longer prefix lists fewer."""
    kept = KeyValues(str(tmp_path / "k"), 1 << 30)
    kept.set("v", b"x" * VALUE_BYTES)
    with pytest.raises(KeysRefused, match=f"a value has at most {VALUE_BYTES} bytes"):
        kept.set("v", b"x" * (VALUE_BYTES + 1))
    assert kept.get("v") == b"x" * VALUE_BYTES
    most = LISTED_BYTES // (KEY_BYTES + ENTRY_BYTES)
    for number in range(most):
        kept.set(f"k{number:0{KEY_BYTES - 1}}", b"")
    assert len(kept.keys("k")) == most
    kept.set("k" + "9" * (KEY_BYTES - 1), b"")
    with pytest.raises(KeysRefused, match="more keys begin so than can be listed at once"):
        kept.keys("")
    assert kept.keys("k9") == ["k" + "9" * (KEY_BYTES - 1)]
    kept.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.sets(st.text(max_size=3), max_size=20), st.text(max_size=2))
def test_a_prefix_is_one_of_text(tmp_path: Path, keys: set[str], prefix: str) -> None:
    """Whatever the characters, the keys listed are those that begin with the prefix, in byte order."""
    path = tmp_path / "law"
    path.unlink(missing_ok=True)
    kept = KeyValues(str(path), 1 << 20)
    for key in keys:
        kept.set(key, b"")
    wanted = sorted((key for key in keys if key.startswith(prefix)), key=str.encode)
    assert kept.keys(prefix) == wanted
    kept.close()


def test_a_broken_file_is_put_aside(tmp_path: Path) -> None:
    """The plugin goes on with nothing, and what was there can be looked at."""
    path = tmp_path / "k"
    path.write_bytes(b"this is no database, whatever else it may be" * 40)
    kept = KeyValues(str(path), 1_000)
    assert kept.put_aside == f"{path}.broken"
    assert kept.keys("") == []
    assert (tmp_path / "k.broken").read_bytes().startswith(b"this is no database")
    kept.close()


def test_a_file_that_cannot_be_had_is_an_error(tmp_path: Path) -> None:
    """A folder of that name is no broken file: nothing is moved."""
    (tmp_path / "k").mkdir()
    with pytest.raises(OSError, match="directory"):
        KeyValues(str(tmp_path / "k"), 1_000)
    assert (tmp_path / "k").is_dir()


def test_a_file_that_another_process_holds_is_not_broken(tmp_path: Path) -> None:
    """Busy is an error; the file stays where it is."""
    path = str(tmp_path / "k")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE x (y)")
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(sqlite3.OperationalError):
            KeyValues(path, 1_000)
        assert not (tmp_path / "k.broken").exists()
    finally:
        holder.close()


KEYS = st.text(max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=80)), max_size=30))
def test_it_is_a_dictionary_with_a_bound(tmp_path: Path, steps: list[tuple[str, bytes | None]]) -> None:
    """Against a dict: the same content after any steps, the size counted right and never over the bound."""
    path = tmp_path / "law"
    path.unlink(missing_ok=True)
    kept = KeyValues(str(path), 600)
    model: dict[str, bytes] = {}

    def size(content: dict[str, bytes]) -> int:
        return sum(len(key.encode()) + len(value) + ENTRY_BYTES for key, value in content.items())

    for key, value in steps:
        if value is None:
            assert kept.delete(key) == (model.pop(key, None) is not None)
            continue
        if size({**model, key: value}) > 600:
            with pytest.raises(KeysRefused):
                kept.set(key, value)
        else:
            kept.set(key, value)
            model[key] = value
    assert {key: kept.get(key) for key in kept.keys("")} == model
    assert kept.used == size(model)
    kept.close()
