"""``prxbus up`` in a terminal that is closed."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.integration.waiting import until

PRXBUS = os.path.join(sysconfig.get_path("scripts"), "prxbus")

IN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def up_in_terminal(runtime_dir: Path, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """``prxbus up`` as the leader of a terminal's session, ready; and the terminal's other end."""
    ours, theirs = pty.openpty()
    with log.open("wb") as said:
        command = [
            sys.executable,
            "-c",
            IN_TERMINAL,
            PRXBUS,
            "up",
            "--no-http",
            "--json",
            "--runtime-dir",
            str(runtime_dir),
        ]
        process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=said)
    os.close(theirs)
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 40)[0], log.read_text()
    assert process.stdout.readline(), log.read_text()
    return process, ours


def end(process: subprocess.Popen[bytes]) -> None:
    """Whatever it does, it is gone afterwards."""
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_closed_terminal_drains_the_bus(runtime_dir: Path, tmp_path: Path) -> None:
    """The hangup of a terminal that is gone ends everything in order: exit code 0, no socket left."""
    process, terminal = up_in_terminal(runtime_dir, tmp_path / "log")
    try:
        os.close(terminal)
        assert process.wait(40) == 0, (tmp_path / "log").read_text()
        assert [name for name in os.listdir(runtime_dir) if name.endswith(".sock")] == []
    finally:
        end(process)


def test_a_hangup_with_a_terminal_is_a_request_to_look_again(runtime_dir: Path, tmp_path: Path) -> None:
    """As long as the terminal is there the same signal ends nothing."""
    process, terminal = up_in_terminal(runtime_dir, tmp_path / "log")
    try:
        process.send_signal(signal.SIGHUP)
        sockets = [runtime_dir / name for name in ("ingress.sock", "egress.sock", "control.sock")]
        until(
            lambda: process.poll() is None and all(path.exists() for path in sockets), "the bus to be there"
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0, (tmp_path / "log").read_text()
    finally:
        os.close(terminal)
        end(process)
