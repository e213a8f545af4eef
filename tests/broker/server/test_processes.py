"""The end of processes, noticed at once."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator

import pytest

from broker.server.descriptors import OWN_DESCRIPTORS
from broker.server.processes import ProcessWatch

SLEEPER = [sys.executable, "-S", "-c", "import signal; signal.pause()"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits to be killed."""
    with subprocess.Popen(SLEEPER) as process:
        yield process
        process.kill()


def test_the_end_of_a_process_is_the_end_of_its_peers(sleeper: subprocess.Popen[bytes]) -> None:
    """When a process is killed the descriptor becomes readable and all its peers are named, once."""
    with ProcessWatch(100) as watch:
        assert watch.watch(b"1", sleeper.pid)
        assert watch.watch(b"2", sleeper.pid)
        assert watch.watch(b"me", os.getpid())
        assert watch.ended() == []
        sleeper.kill()
        assert select.select([watch.descriptor], [], [], 20)[0]
        assert set(watch.ended()) == {b"1", b"2"}
        assert watch.ended() == []


def test_a_process_that_has_ended_already_is_said_so() -> None:
    """Watching a process that is no more is answered with false."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    with ProcessWatch(100) as watch:
        assert not watch.watch(b"1", process.pid)
        assert watch.ended() == []


def test_a_forgotten_peer_is_not_named(sleeper: subprocess.Popen[bytes]) -> None:
    """Who is forgotten, or watches another process now, is not named; unknown peers are no error."""
    with ProcessWatch(100) as watch:
        for peer in (b"1", b"2", b"3"):
            watch.watch(peer, sleeper.pid)
        watch.forget(b"1")
        watch.forget(b"9")
        watch.watch(b"2", os.getpid())
        sleeper.kill()
        assert select.select([watch.descriptor], [], [], 20)[0]
        assert watch.ended() == [b"3"]


def test_beyond_the_limit_a_process_is_not_watched(sleeper: subprocess.Popen[bytes]) -> None:
    """Connections keep their descriptors: too many processes are taken as alive and left to their silence."""
    with ProcessWatch(OWN_DESCRIPTORS + 1) as watch:
        assert watch.watch(b"me", os.getpid())
        assert watch.watch(b"1", sleeper.pid)
        sleeper.kill()
        sleeper.wait()
        assert watch.ended() == []


def test_a_refused_watch_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the kernel gives no descriptor the process counts as alive."""

    def refuse(pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with ProcessWatch(100) as watch:
        assert watch.watch(b"1", os.getpid())
        assert watch.ended() == []
