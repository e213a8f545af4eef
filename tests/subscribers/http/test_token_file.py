"""The token's file: made once, private, and refused when it cannot be trusted."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from subscribers.hooks.withheld import API_TOKEN
from subscribers.http.token_file import FILE_NAME, TokenRefused, find_hook_token, find_token


def test_the_first_start_makes_a_private_file(tmp_path: Path) -> None:
    """It has 256 random bits, mode 0600, and later starts find the same; nothing else is left."""
    token, path = find_token(str(tmp_path), {})
    assert path == str(tmp_path / FILE_NAME)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert len(token) == 43
    assert find_token(str(tmp_path), {}) == (token, path)
    assert os.listdir(tmp_path) == [FILE_NAME]


def test_starts_at_one_time_agree(tmp_path: Path) -> None:
    """Whoever is first, all have one token."""
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(find_token(str(tmp_path), {})[0])) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_the_variable_stands_above_the_file(tmp_path: Path) -> None:
    """No file is made then; an empty variable counts as unset."""
    assert find_token(str(tmp_path), {API_TOKEN: "my-own-token-0123456789"}) == (
        "my-own-token-0123456789",
        None,
    )
    assert os.listdir(tmp_path) == []
    assert find_token(str(tmp_path), {API_TOKEN: ""})[1] is not None


@pytest.mark.parametrize(
    "token", ["short", "x" * 513, "with blank 0123456789", "ü" * 20, "tab\t0123456789012345"]
)
def test_what_cannot_be_a_token_is_refused(tmp_path: Path, token: str) -> None:
    """Too short, too long, blanks and other alphabets, from the variable and from the file."""
    with pytest.raises(TokenRefused, match="PRXBUS_API_TOKEN holds no token: it has 16 to 512"):
        find_token(str(tmp_path), {API_TOKEN: token})
    file = tmp_path / FILE_NAME
    file.write_text(token)
    file.chmod(0o600)
    with pytest.raises(TokenRefused, match="http-token holds no token"):
        find_token(str(tmp_path), {})


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """The text says what to do."""
    _, path = find_token(str(tmp_path), {})
    assert path is not None
    os.chmod(path, 0o640)
    with pytest.raises(TokenRefused, match="not this user's alone; remove it, and a new one is made"):
        find_token(str(tmp_path), {})


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    """A link, a folder, a pipe: nothing is followed and nothing waits."""
    path = tmp_path / FILE_NAME
    path.symlink_to("/etc/passwd")
    with pytest.raises(TokenRefused, match="cannot be read"):
        find_token(str(tmp_path), {})
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(TokenRefused, match="not this user's alone"):
        find_token(str(tmp_path), {})


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Nothing is made where there is no runtime directory."""
    with pytest.raises(TokenRefused, match="cannot be made: No such file or directory"):
        find_token(str(tmp_path / "none"), {})


def test_the_token_of_hooks_is_its_own(tmp_path: Path) -> None:
    """Another file in a directory that is made private, another variable; the API's says nothing about it."""
    folder = tmp_path / "state" / "prxbus"
    token, path = find_hook_token(str(folder), {"PRXBUS_API_TOKEN": "a-token-of-the-api-01"})
    assert path == str(folder / "hook-token")
    assert (folder.stat().st_mode & 0o777, Path(path).stat().st_mode & 0o777) == (0o700, 0o600)
    assert find_hook_token(str(folder), {}) == (token, path)
    assert token != find_token(str(folder), {})[0]
    given = {"PRXBUS_HOOK_TOKEN": "a-token-of-hooks-0123"}
    assert find_hook_token(str(folder), given) == ("a-token-of-hooks-0123", None)
    with pytest.raises(TokenRefused, match="cannot be made"):
        find_hook_token(f"{path}/below", {})
