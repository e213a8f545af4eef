"""The hook command of an attached agent, as an agent starts it, against a socket of the test's own."""

from __future__ import annotations

import ast
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from broker.cli.main import main
from subscribers.hooks.withheld import WITHHELD
from subscribers.runner.hook_socket_frames import ABSENT, Reply, Request, RequestReader, decode_request
from subscribers.shim import hook_command
from tests.integration.command import COMMAND

SHIM = str(Path(hook_command.__file__).with_name("prxbus_hook.py"))
SECONDS = 40.0
BUILT_IN = {"_signal", "_socket", "posix", "sys", "time"}

Ran = subprocess.CompletedProcess[bytes]


def hook(
    bus: Path,
    payload: bytes = b"{}",
    *,
    seconds: float = 30,
    policy: str = "open",
    env: Mapping[str, str] | None = None,
) -> Ran:
    """Run the command to its end in the directory ``bus``, with ``env`` in its environment."""
    return subprocess.run(
        [sys.executable, "-I", "-S", SHIM, "claude", str(bus / "hook.sock"), str(seconds), policy],
        input=payload,
        capture_output=True,
        cwd=bus,
        env={"PATH": "/bin", **(env or {})},
        timeout=SECONDS,
        check=False,
    )


@contextmanager
def listening(bus: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """Somebody at the socket, who deals with one connection by ``answer``."""

    def serve() -> None:
        link, _ = listener.accept()
        with link:
            answer(link)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(bus / "hook.sock"))
        listener.listen()
        listener.settimeout(SECONDS)
        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join(SECONDS)


def read(link: socket.socket) -> Request:
    """The request that arrives."""
    reader = RequestReader()
    while True:
        request = reader.feed(link.recv(65_536))
        if request is not None:
            return request


def spooled(bus: Path) -> list[Request]:
    """What waits for a bus, in order."""
    folder = bus / "hook-spool"
    return [decode_request((folder / name).read_bytes()) for name in sorted(os.listdir(folder))]


def test_it_imports_only_what_is_built_in() -> None:
    """Anything else would cost an agent time at each of its events."""
    tree = ast.parse(Path(SHIM).read_text() + Path(hook_command.__file__).read_text())
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert named | {str(n.module) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)} == BUILT_IN


def test_the_payload_goes_there_and_the_answer_comes_back(runtime_dir: Path) -> None:
    """Bytes of any size, the directory and the environment without our secrets; then what was said."""
    got: list[Request] = []

    def answer(link: socket.socket) -> None:
        got.append(read(link))
        link.sendall(Reply(2, b'{"a":1}' * 20_000, b"no\xff").encode())

    payload = b'{"tool_input":"\xff' + b"x" * 5_000_000
    secrets = dict.fromkeys(WITHHELD, "hidden")
    with listening(runtime_dir, answer):
        done = hook(runtime_dir, payload, policy="closed", env={**secrets, "CLAUDE_ENV_FILE": "/tmp/env"})
    assert (done.returncode, done.stdout, done.stderr) == (2, b'{"a":1}' * 20_000, b"no\xff")
    (request,) = got
    assert (request.dialect, request.closed, request.payload) == ("claude", True, payload)
    assert request.directory == str(runtime_dir)
    assert 20.0 < request.seconds <= 30.0
    variables = request.environment.split(b"\0")
    assert b"CLAUDE_ENV_FILE=/tmp/env" in variables
    assert b"hidden" not in request.environment
    assert tuple(name.decode() for name in hook_command.SECRETS) == WITHHELD


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("policy,status,said", [("open", 0, b""), ("closed", 2, b"no bus answers at ")])
def test_without_a_bus_it_ends_at_once_and_keeps_the_event(
    runtime_dir: Path, policy: str, status: int, said: bytes, heard: bool
) -> None:
    """Nobody listens, or who does says so: the agent goes on, or is blocked where that was wanted.

    The event waits without the environment.
    """

    def answer(link: socket.socket) -> None:
        read(link)
        link.sendall(ABSENT.encode())

    with listening(runtime_dir, answer) if heard else nullcontext():
        done = hook(runtime_dir, b'{"n":1}', policy=policy, env={"SECRET": "x"})
    assert (done.returncode, done.stdout) == (status, b"")
    assert said in done.stderr
    if policy != "other":
        (request,) = spooled(runtime_dir)
        assert (request.payload, request.environment, request.directory) == (
            b'{"n":1}',
            b"",
            str(runtime_dir),
        )


def test_a_directory_that_is_not_ours_alone_gets_nothing(runtime_dir: Path) -> None:
    """Who could put a socket there would get the environment: it counts as no bus, and nothing is kept."""
    runtime_dir.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(runtime_dir / "hook.sock"))
        listener.listen()
        assert hook(runtime_dir, policy="closed").returncode == 2
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert os.listdir(runtime_dir) == ["hook.sock"]


def test_the_directory_of_the_bus_is_made_where_it_is_missing(runtime_dir: Path) -> None:
    """An event of an agent that ran before any bus is kept; where no directory can be made, nothing fails."""
    arguments = [sys.executable, "-I", "-S", SHIM, "codex"]
    for folder in (runtime_dir / "new", runtime_dir / "no" / "such"):
        done = subprocess.run(
            [*arguments, str(folder / "hook.sock"), "5", "open"],
            input=b"{}",
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(spooled(runtime_dir / "new")) == 1
    assert (runtime_dir / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("files,size", [(hook_command.SPOOLED_FILES, 1), (1, hook_command.SPOOLED_BYTES)])
def test_the_spool_is_bounded_and_what_has_no_room_is_counted(
    runtime_dir: Path, files: int, size: int
) -> None:
    """In number and in bytes; each event without room is one byte more in a file."""
    folder = runtime_dir / "hook-spool"
    folder.mkdir(mode=0o700)
    for number in range(files):
        with (folder / f"{number}-1").open("wb") as file:
            file.truncate(size)
    assert [hook(runtime_dir).returncode for _ in range(2)] == [0, 0]
    assert (folder / "dropped").read_bytes() == b".."
    assert len(os.listdir(folder)) == files + 1


@pytest.mark.parametrize("policy,status", [("open", 0), ("closed", 2)])
@pytest.mark.parametrize("reply", [None, b"", b"\0\0\0\0\0\0\0\1\0\0\0\1x"])
def test_who_does_not_answer_is_not_waited_for(
    runtime_dir: Path, policy: str, status: int, reply: bytes | None
) -> None:
    """Silence ends with the time, a broken connection at once; the policy says what that means."""
    over = threading.Event()

    def answer(link: socket.socket) -> None:
        read(link)
        if reply is None:
            over.wait(SECONDS)
        else:
            link.sendall(reply)

    with listening(runtime_dir, answer):
        done = hook(runtime_dir, seconds=0.2 if reply is None else 30, policy=policy)
        over.set()
    assert (done.returncode, done.stdout, bool(done.stderr)) == (status, b"", policy == "closed")
    assert not (runtime_dir / "hook-spool").exists()


def test_an_agent_that_never_ends_its_payload_is_not_waited_for(runtime_dir: Path) -> None:
    """The time is the whole command's, also that of reading."""
    arguments = [sys.executable, "-I", "-S", SHIM, "codex", str(runtime_dir / "hook.sock"), "0.2", "closed"]
    ours, theirs = os.pipe()
    try:
        done = subprocess.run(arguments, stdin=ours, capture_output=True, timeout=SECONDS, check=False)
    finally:
        os.close(theirs)
        os.close(ours)
    assert (done.returncode, done.stderr.count(b"no answer within 0.2 s")) == (2, 1)


@pytest.mark.parametrize("policy,status", [("open", 0), ("closed", 2)])
@pytest.mark.parametrize("how", ["exec 0<&-", "cd gone && rmdir ../gone"])
def test_odd_surroundings_are_no_way_around_the_policy(
    runtime_dir: Path, policy: str, status: int, how: str
) -> None:
    """No stdin at all, a directory that was deleted: there is no answer, and so the policy holds."""
    (runtime_dir / "gone").mkdir()
    words = (sys.executable, "-I", "-S", SHIM, "claude", str(runtime_dir / "hook.sock"), "5", policy)
    done = subprocess.run(
        ["sh", "-c", f"{how}; exec {shlex.join(words)}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=runtime_dir,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, b"Traceback" in done.stderr) == (status, b"", False)


@pytest.mark.parametrize("policy,status", [("allow", 0), ("block", 2)])
def test_the_verb_keeps_the_policy_too(runtime_dir: Path, policy: str, status: int) -> None:
    """Without any stdin `prxbus hook` does as the file that an agent has run; nobody sees a traceback."""
    words = (COMMAND, "hook", "--dialect", "claude", "--absent", policy, "--runtime-dir", str(runtime_dir))
    done = subprocess.run(
        ["sh", "-c", f"exec 0<&-; exec {shlex.join(words)}"],
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, b"Traceback" in done.stderr) == (status, b"", False)


def test_a_stdin_that_no_interpreter_takes_blocks_where_that_is_wanted(
    runtime_dir: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A directory: the interpreter ends before anything of ours, and the shell around it says no."""
    where = ["--runtime-dir", str(runtime_dir), "--print-command"]
    assert main(["hook", "--dialect", "claude", "--absent", "block", *where]) == 0
    printed = capsysbinary.readouterr().out.decode()
    done = subprocess.run(
        ["sh", "-c", f"exec < /; {printed}"], capture_output=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_command_that_cannot_be_understood_blocks_where_that_is_wanted(runtime_dir: Path) -> None:
    """What somebody has changed in a settings file is no way around it either."""
    for policy, status in (("open", 0), ("closed", 2)):
        done = hook(runtime_dir, seconds=float("nan"), policy=policy)
        assert (done.returncode, b"Traceback" in done.stderr) == (status, False)
