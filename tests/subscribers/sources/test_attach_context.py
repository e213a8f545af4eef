"""The environments of attached agents: what is kept, by whom it can be read, and when it goes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from subscribers.sources import attach_context as contexts
from subscribers.sources.attach_context import Contexts, decode_environment, encode_environment, load, save


def files(folder: Path) -> list[str]:
    """What is kept."""
    return sorted(os.listdir(folder / contexts.DIRECTORY))


def test_what_is_saved_can_be_loaded_by_its_id_alone(tmp_path: Path) -> None:
    """Names and values come back as they were, bytes that are no UTF-8 too; the file is private."""
    environment = {"HOME": "/home/user", "EMPTY": "", "ODD": "a=b\udcff", "CLAUDE_ENV_FILE": "/tmp/env"}
    context = save(str(tmp_path), environment)
    path = tmp_path / contexts.DIRECTORY / context
    assert load(str(tmp_path), context) == environment
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    contexts.remove(str(tmp_path), context)
    contexts.remove(str(tmp_path), context)
    assert load(str(tmp_path), context) is None
    assert decode_environment(b"\0=x\0plain\0A=1") == {"A": "1"}


@pytest.mark.parametrize("name", ["", "x", "../" + "a" * 32, "A" * 32, "a" * 33, "a" * 31 + "/", "a" * 31])
def test_what_is_no_id_is_never_looked_up(tmp_path: Path, name: str) -> None:
    """An event may name anything; only an id reaches the file system, and removing one leaves the rest."""
    outside = tmp_path / ("a" * 32)
    outside.write_bytes(b"A=1")
    assert load(str(tmp_path), name) is None
    contexts.remove(str(tmp_path), name)
    assert outside.exists()


def test_what_is_not_a_private_file_is_not_read(tmp_path: Path) -> None:
    """A link, a pipe, a file that others can read and one that is too large hold no environment."""
    context = save(str(tmp_path), {"A": "1"})
    folder = tmp_path / contexts.DIRECTORY
    (folder / context).chmod(0o640)
    (folder / ("b" * 32)).symlink_to(folder / context)
    os.mkfifo(folder / ("c" * 32), 0o600)
    (folder / ("d" * 32)).mkdir()
    large = save(str(tmp_path), {"A": "x" * contexts.ENVIRONMENT_BYTES})
    assert [load(str(tmp_path), name) for name in (context, "b" * 32, "c" * 32, "d" * 32, large)] == [
        None
    ] * 5


def test_the_same_environment_is_kept_once(tmp_path: Path) -> None:
    """However many events an agent sends; another one gets another id; an end removes them all."""
    held = Contexts(str(tmp_path), lambda: 0.0)
    one, other = encode_environment({"A": "1"}), encode_environment({"A": "2"})
    first, again, second = held.hold(one), held.hold(one), held.hold(other)
    assert first == again != second
    assert files(tmp_path) == sorted(filter(None, (first, second)))
    contexts.remove(str(tmp_path), second or "")
    third = held.hold(other)
    assert load(str(tmp_path), third or "") == {"A": "2"}
    assert held.hold(b"") is None
    assert held.hold(b"A=" + b"x" * contexts.ENVIRONMENT_BYTES) is None
    held.close()
    assert files(tmp_path) == []


def test_what_was_left_behind_is_removed(tmp_path: Path) -> None:
    """A process that was killed leaves files; the next one begins without them."""
    save(str(tmp_path), {"SECRET": "x"})
    Contexts(str(tmp_path), lambda: 0.0)
    assert files(tmp_path) == []


def test_environments_are_bounded_in_number_and_age(tmp_path: Path) -> None:
    """The least recently used goes first, and what nobody uses goes in time; then it is saved anew."""
    now = 0.0
    held = Contexts(str(tmp_path), lambda: now)
    used = held.hold(b"N=used")
    for number in range(contexts.KEPT):
        assert held.hold(b"N=used") == used
        held.hold(b"N=%d" % number)
    assert len(files(tmp_path)) == contexts.KEPT
    assert used in files(tmp_path)
    now = contexts.KEPT_SECONDS + 1.0
    held.tidy()
    assert files(tmp_path) == []
    assert held.hold(b"N=used") not in (None, used)
