"""A system that has no room for a process: the bus waits for better times, and a first start says why not."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from subscribers.runner import supervisor as supervisor_module
from subscribers.runner.supervisor import Child, Program, StartFailed, Supervisor
from tests.integration.test_supervisor import supervise, words, worker
from tests.integration.waiting import until


def failing(what: Callable[..., Any], number: int, times: int, made: list[int]) -> Callable[..., Any]:
    """``what``, of which the next calls fail with errno ``number``, ``times`` times; each is noted."""
    left = [times]

    def call(*arguments: Any, **options: Any) -> Any:
        if left[0]:
            left[0] -= 1
            made.append(number)
            raise OSError(number, os.strerror(number))
        return what(*arguments, **options)

    return call


def second(supervisor: Supervisor) -> Child:
    """The process of rank 1."""
    return next(child for child in supervisor._children if child.program.rank == 1)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EAGAIN, errno.ENOMEM])
@pytest.mark.parametrize("owner, name", [(subprocess, "Popen"), (os, "pidfd_open")])
def test_a_restart_that_the_system_refuses_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int
) -> None:
    """Twice there is no room, the third try succeeds; the other process lives on, nothing is left over."""
    log = tmp_path / "log"
    failures: list[int] = []

    def kill(supervisor: Supervisor, said: Mapping[str, Any]) -> None:
        monkeypatch.setattr(owner, name, failing(getattr(owner, name), number, 2, failures))
        child = second(supervisor)
        os.kill(said["b"]["pid"], signal.SIGKILL)
        until(lambda: len(failures) == 2 and child.process and child.said, "the start after two failures")

    supervise([worker("a", log, 0), worker("b", log, 1)], kill)
    assert words(log).count("a started") == 1
    assert words(log)[-2:] == ["b stopped", "a stopped"]


def test_tries_that_fail_have_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that had worked for long is not started in a tight loop when the system has no room."""
    log = tmp_path / "log"
    failures: list[int] = []
    monkeypatch.setattr("subscribers.hooks.restarts.HEALTHY_SECONDS", 0.3)
    plain = subprocess.Popen

    def kill(_: Supervisor, said: Mapping[str, Any]) -> None:
        monkeypatch.setattr(subprocess, "Popen", failing(plain, errno.EMFILE, 10**9, failures))
        os.kill(said["b"]["pid"], signal.SIGKILL)
        until(lambda: len(failures) >= 4, "four tries")

    began = time.monotonic()
    supervise([worker("b", log, 0)], kill)
    assert len(failures) <= 6
    assert time.monotonic() - began > 0.1 + 0.2


def test_a_real_lack_of_descriptors_ends_nothing(tmp_path: Path) -> None:
    """With no descriptor free the child stays away, and it is back once there are some."""
    log = tmp_path / "log"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def kill(supervisor: Supervisor, said: Mapping[str, Any]) -> None:
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, hard))
        try:
            os.kill(said["b"]["pid"], signal.SIGKILL)
            until(lambda: second(supervisor).restarts.count >= 3, "two failed tries")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        until(lambda: words(log).count("b started") == 2, "the second start")

    supervise([worker("a", log, 0), worker("b", log, 1)], kill)
    assert words(log).count("a started") == 1


@pytest.mark.parametrize("owner, name", [(subprocess, "Popen"), (os, "pidfd_open")])
def test_a_first_start_that_the_system_refuses_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """Before everything is ready it is final, with the system's reason."""
    monkeypatch.setattr(owner, name, failing(getattr(owner, name), errno.EAGAIN, 1, []))
    with pytest.raises(
        StartFailed, match="a could not be started: Resource temporarily unavailable"
    ) as caught:
        Supervisor([worker("a", tmp_path / "log", 0)], lambda _: None, os.environ).run()
    assert (caught.value.name, caught.value.exit_code) == ("a", 1)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The words of a failed start name the file, and what runs already is stopped."""
    log = tmp_path / "log"
    missing = Program("b", ("/nowhere/python",), 1)
    with pytest.raises(
        StartFailed, match="b could not be started: No such file or directory: '/nowhere/python'"
    ):
        Supervisor([worker("a", log, 0), missing], lambda _: None, os.environ).run()
    assert words(log) == ["a started", "a stopped"]


def test_sighup_without_descriptors_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room to look for the terminal, it counts as still there."""
    monkeypatch.setattr(os, "open", failing(os.open, errno.EMFILE, 1, []))
    assert supervisor_module._has_terminal()
    monkeypatch.setattr(os, "open", failing(os.open, errno.ENXIO, 1, []))
    assert not supervisor_module._has_terminal()
