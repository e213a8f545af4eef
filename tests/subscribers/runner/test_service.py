"""What every subscriber process does around what it serves."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest

from broker.logs import get_logger
from broker.protocol.errors import BusError, BusUnreachable, QueueFull, RuntimeDirError
from subscribers.runner import service

LOG = get_logger("test")


@pytest.mark.parametrize(
    "error, code",
    [
        (None, 0),
        (BusUnreachable("no bus"), 3),
        (RuntimeDirError("not ours"), 1),
        (FileNotFoundError("gone"), 1),
        (QueueFull("full"), 6),
    ],
)
def test_the_exit_code_says_how_it_went(error: Exception | None, code: int) -> None:
    """No bus is told apart from other failures, and a process may have refusals of its own."""

    def serve() -> None:
        if error is not None:
            raise error

    options = service.parser("test_service").parse_args([])
    assert service.run(options, serve, LOG, {QueueFull: 6}) == code


def test_the_first_kind_counts() -> None:
    """What a process says of a kind of errors goes before what holds for all."""

    def serve() -> None:
        raise BusUnreachable("no bus")

    options = service.parser("test_service").parse_args(["--log-level", "error"])
    assert service.run(options, serve, LOG, {BusError: 9}) == 9


def test_what_nobody_expects_is_raised() -> None:
    """A fault of ours is no failure of the bus."""

    def serve() -> None:
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        service.run(service.parser("test_service").parse_args([]), serve, LOG)


def test_common_options_have_one_default() -> None:
    """Draining and enclosing are the same everywhere."""
    parser = service.parser("test_service")
    service.add_drain(parser)
    service.add_sandbox(parser)
    options = parser.parse_args([])
    assert (options.drain_seconds, options.sandbox, options.sandbox_processes) == (5.0, "none", 256)
    assert (options.runtime_dir, options.lifeline) == (None, False)


def test_signals_are_heeded() -> None:
    """To end, and to look again; nothing else happens."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    try:
        for number, expected in zip(numbers, ((True, False), (True, False), (False, True)), strict=True):
            stop, rescan = threading.Event(), threading.Event()
            service.heed_signals(stop, rescan)
            signal.raise_signal(number)
            assert (stop.is_set(), rescan.is_set()) == expected
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def test_a_process_says_that_it_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    """One line of JSON, with who it is and what it serves."""
    service.say_ready("roles", hooks=2)
    told = capsys.readouterr().out
    assert told.endswith("\n")
    assert json.loads(told) == {"ready": True, "name": "roles", "pid": os.getpid(), "hooks": 2}
