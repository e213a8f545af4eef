"""Where a bus lives, and which directories are not trusted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.places import (
    SOCKET_PATH_BYTES,
    Endpoints,
    check_directory,
    endpoints,
    runtime_directory,
    spool_directory,
)
from broker.protocol.errors import RuntimeDirError


@pytest.mark.parametrize(
    "given_path,environ,expected",
    [
        ("/a/b/../c/", {"PRXBUS_RUNTIME_DIR": "/x"}, "/a/c"),
        (None, {"PRXBUS_RUNTIME_DIR": "/x", "XDG_RUNTIME_DIR": "/y"}, "/x"),
        (None, {"PRXBUS_RUNTIME_DIR": "", "XDG_RUNTIME_DIR": "/y"}, "/y/prxbus"),
        (None, {"XDG_RUNTIME_DIR": "y", "TMPDIR": "/t"}, f"/t/prxbus-{os.geteuid()}"),
        (None, {}, f"/tmp/prxbus-{os.geteuid()}"),
        ("here", {}, f"{os.getcwd()}/here"),
        (Path("/a"), {}, "/a"),
    ],
)
def test_the_directory_comes_from_the_first_source(
    given_path: str | Path | None, environ: dict[str, str], expected: str
) -> None:
    """Argument, variable, session directory, temporary directory, in this order, as an absolute path."""
    assert runtime_directory(given_path, environ) == expected


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an environment given, that of the process counts."""
    monkeypatch.setenv("PRXBUS_RUNTIME_DIR", "/somewhere")
    assert runtime_directory() == "/somewhere"


@pytest.mark.parametrize("path", ["", "/a\0b"])
def test_an_impossible_path_is_refused(path: str) -> None:
    """An empty path and one with a NUL are refused."""
    with pytest.raises(RuntimeDirError):
        runtime_directory(path, {})


def test_four_sockets_and_a_spool() -> None:
    """The sockets and the spool lie in the directory under fixed names."""
    assert endpoints("/a") == Endpoints(
        "ipc:///a/ingress.sock", "ipc:///a/egress.sock", "ipc:///a/control.sock", "ipc:///a/lanes.sock"
    )
    assert endpoints("/").ingress == "ipc:///ingress.sock"
    assert spool_directory("/a") == "/a/spool"


def test_a_path_too_long_for_ipc_is_refused() -> None:
    """The longest path that fits is taken; one byte more is refused with the numbers and a way out."""
    longest = "/" + "x" * (SOCKET_PATH_BYTES - len("/ingress.sock") - 1)
    assert len(endpoints(longest).ingress.removeprefix("ipc://")) == SOCKET_PATH_BYTES
    with pytest.raises(RuntimeDirError, match=f"108 bytes, {SOCKET_PATH_BYTES} are possible.*--runtime-dir"):
        endpoints(longest + "x")
    with pytest.raises(RuntimeDirError, match="too long"):
        endpoints("/" + "ä" * 60)


def test_a_path_that_is_not_utf8_is_refused() -> None:
    """A name that cannot be part of a ZeroMQ address is refused."""
    with pytest.raises(RuntimeDirError, match="UTF-8"):
        endpoints("/a\udcff")


def test_a_missing_directory_is_made_private(tmp_path: Path) -> None:
    """It is made with its parents and mode 0700 whatever the umask, and found from then on."""
    path = str(tmp_path / "a" / "b")
    assert not check_directory(path)
    before = os.umask(0o277)
    try:
        assert check_directory(str(tmp_path / "c"), create=True)
    finally:
        os.umask(before)
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700
    assert check_directory(path, create=True)
    assert check_directory(path, create=True)
    assert check_directory(path + "/")


@pytest.mark.parametrize("mode", [0o777, 0o710, 0o701, 0o1777])
def test_a_directory_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    """Any bit for group or others is refused, with the command that takes it away."""
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(RuntimeDirError, match=f"mode {mode:04o}.*chmod 700"):
        check_directory(str(path), create=True)


def test_a_link_is_refused(tmp_path: Path) -> None:
    """A link is refused even to a directory that would do, and also when a slash follows it."""
    target = tmp_path / "target"
    target.mkdir(0o700)
    (tmp_path / "link").symlink_to(target)
    for path in (f"{tmp_path}/link", f"{tmp_path}/link/"):
        with pytest.raises(RuntimeDirError, match="is a link"):
            check_directory(path)


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    """A file in its place is refused; so is a path below a file."""
    (tmp_path / "file").touch()
    for create in (False, True):
        with pytest.raises(RuntimeDirError, match="is not a directory"):
            check_directory(str(tmp_path / "file"), create)
    with pytest.raises(RuntimeDirError, match="cannot be used"):
        check_directory(str(tmp_path / "file" / "below"), create=True)


def test_the_directory_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that another user owns is refused, naming both users."""
    owner = tmp_path.stat().st_uid
    tmp_path.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(RuntimeDirError, match=rf"user {owner}, not to us \({owner + 1}\)"):
        check_directory(str(tmp_path))


def test_it_is_cheap_to_import() -> None:
    """Looking up the directory imports nothing heavy: every command passes here."""
    heavy = {"structlog", "logging", "pathlib", "tempfile", "zmq", "msgpack", "asyncio"}
    code = "import sys; before = set(sys.modules); import broker.places; print(*set(sys.modules) - before)"
    run = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=30, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert not heavy & set(run.stdout.split())
