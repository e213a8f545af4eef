"""Programs started by the C library while the interpreter goes on."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from subscribers.runtimes.posix_start import Starter

SH = b"/bin/sh"


@pytest.fixture
def streams() -> Iterator[tuple[int, int, int, int]]:
    """Standard input, output and error for a child, and the end from which its output can be read."""
    empty, (reading, writing) = os.open("/dev/null", os.O_RDONLY), os.pipe()
    try:
        yield empty, writing, writing, reading
    finally:
        for descriptor in (empty, reading, writing):
            os.close(descriptor)


def said(
    starter: Starter, script: bytes, streams: tuple[int, int, int, int], **env: bytes
) -> tuple[int, bytes]:
    """Exit code and output of a shell script."""
    environment = {name.encode(): value for name, value in env.items()}
    pid = starter.start([SH, b"-c", script], {b"PATH": b"/usr/bin:/bin", **environment}, streams[:3])
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.set_blocking(streams[3], False)
    try:
        return code, os.read(streams[3], 65_536)
    except BlockingIOError:
        return code, b""


def test_a_program_gets_its_arguments_its_environment_and_nothing_else(
    streams: tuple[int, int, int, int],
) -> None:
    """Only what is named is there: two variables, an empty input, the directory that we are in."""
    code, output = said(
        Starter(),
        b'echo "$ONE $PWD"; wc -l </proc/self/fd/0; tr -cd "\\0" </proc/$$/environ | wc -c',
        streams,
        ONE=b"1",
    )
    assert code == 0
    one, given, variables = output.split(b"\n")[:3]
    assert one == b"1 " + os.fsencode(os.getcwd())
    assert int(given) == 0
    assert int(variables) == 2  # PATH and ONE


def test_a_program_has_a_group_of_its_own_and_hears_signals(streams: tuple[int, int, int, int]) -> None:
    """Its group is its pid, and SIGPIPE ends it although Python ignores that signal."""
    starter = Starter()
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
    code, output = said(starter, b"echo $$ $(ps -o pgid= -p $$)", streams)
    pid, group = output.split()
    assert pid == group
    assert code == 0
    assert said(starter, b"kill -PIPE $$; echo alive", streams) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize(
    "program, code", [("missing", errno.ENOENT), ("folder", errno.EACCES), ("text", errno.ENOEXEC)]
)
def test_what_cannot_be_executed_is_an_error_with_its_number(
    program: str, code: int, tmp_path: Path, streams: tuple[int, int, int, int]
) -> None:
    """The caller hears what exec said, and no child is left."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("no program\n")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(OSError, match=program) as caught:
        Starter().start([os.fsencode(tmp_path / program)], {}, streams[:3])
    assert caught.value.errno == code


@pytest.mark.parametrize(
    "argv, env",
    [([b"a\0b"], {}), ([b"x"], {b"A": b"1\0"}), ([b"x"], {b"": b"1"}), ([b"x"], {b"A=B": b"1"})],
)
def test_what_cannot_be_passed_is_refused(
    argv: list[bytes], env: dict[bytes, bytes], streams: tuple[int, int, int, int]
) -> None:
    """NUL anywhere, and a variable without a name or with an equals sign in it."""
    with pytest.raises(ValueError, match=r"null byte|variable name"):
        Starter().start(argv, env, streams[:3])


def test_other_threads_go_on_while_a_program_is_started(streams: tuple[int, int, int, int]) -> None:
    """Hundreds of starts from many threads at once all succeed, each with its own child."""
    starter, pids, lock = Starter(), [], threading.Lock()

    def start() -> None:
        for _ in range(20):
            pid = starter.start([b"/bin/true"], {}, streams[:3])
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            with lock:
                pids.append((pid, code))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(pids) == 160
    assert all(code == 0 for _, code in pids)
