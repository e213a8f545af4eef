"""The ``agents`` process by itself: it outlives its broker, takes no other's socket, and ends in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from broker.testing import running_broker
from subscribers.runner.agent_probe import Sent, ask_status, send_command
from subscribers.shim import hook_command
from tests.integration.waiting import until

SHIM = str(Path(hook_command.__file__).with_name("prxbus_hook.py"))
PAYLOAD = b'{"hook_event_name":"Stop","session_id":"s"}'
SECONDS = 40.0


@contextmanager
def service(bus: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process, killed at the end if it is still there."""
    command = (
        sys.executable,
        "-P",
        "-m",
        "subscribers.runner.hook_socket_service",
        "--runtime-dir",
        str(bus),
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(bus: Path) -> Sent:
    """What an agent's hook command gets that is set to block without an answer."""
    command = (sys.executable, "-I", "-S", SHIM, "claude", str(bus / "hook.sock"), "20", "closed")
    return send_command(command, PAYLOAD, os.environ)


def test_it_answers_as_long_as_there_is_a_bus(runtime_dir: Path) -> None:
    """While the broker is away the hook command keeps events; the next one gets them, and is asked again."""
    socket = str(runtime_dir / "hook.sock")
    with service(runtime_dir) as process:
        assert process.stdout is not None
        with running_broker(runtime_dir):
            ready = orjson.loads(process.stdout.readline())
            assert (ready["hook_socket"], ready["pid"]) == (socket, process.pid)
            assert ask(runtime_dir).failed is None
            os.unlink(socket)
            until(lambda: ask(runtime_dir).failed is None, "the socket to be made again")
            (runtime_dir / "aside").touch()
            os.replace(runtime_dir / "aside", socket)
            until(lambda: ask(runtime_dir).failed is None, "the socket to be made in the place of a file")
            with service(runtime_dir) as second:
                assert second.wait(SECONDS) == 4
        spool = runtime_dir / "hook-spool"
        until(lambda: ask(runtime_dir).failed, "the broker to be missed")
        assert "no bus answers" in (ask(runtime_dir).failed or "")
        assert len(os.listdir(spool)) >= 2
        with running_broker(runtime_dir):
            until(lambda: ask(runtime_dir).failed is None, "an answer of the next broker")
            said = ask_status(socket)
            assert (said["answered"], said["failed"], said["delivered"]) != (0, 0, 0)
            until(lambda: not os.listdir(spool), "the events that were kept to be published")
            assert len(os.listdir(runtime_dir / "agent-contexts")) == 1
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
    assert not os.path.exists(socket)
    assert os.listdir(runtime_dir / "agent-contexts") == []
    assert "no bus answers" in (ask(runtime_dir).failed or "")
