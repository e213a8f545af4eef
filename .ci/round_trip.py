"""One event from `prxbus pub` to `prxbus tap`, through a broker of its own.

Usage: round_trip.py [--up]. Uses the prxbus of the interpreter that runs it, so that an installed wheel is
tried and not a checkout. The broker is `python -m broker`, which the base install has; with --up it is
`prxbus up` on a workspace with one PRX hook, whose run must be reported as well.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PRXBUS = str(Path(sys.executable).parent / "prxbus")
TOPIC = "prx.lifecycle.tool_call"
PAYLOAD = {"tool": "Bash", "success": True, "output": "round trip"}
DEADLINE_S = 60.0


def main(*, up: bool) -> None:
    """Run the round trip; any exception is a failure."""
    with tempfile.TemporaryDirectory(prefix="pxb", dir="/tmp") as scratch:
        runtime_dir, workspace = Path(scratch, "bus"), Path(scratch, "workspace")
        workspace.mkdir()
        broker = [sys.executable, "-P", "-m", "broker", "--runtime-dir", str(runtime_dir)]
        if up:
            _write_hook(workspace)
            broker = [
                PRXBUS,
                "up",
                "--http",
                "0",
                "--workspace",
                str(workspace),
                "--runtime-dir",
                str(runtime_dir),
            ]
        environment = {**os.environ, "PRXBUS_RUNTIME_DIR": str(runtime_dir)}
        with _running(broker, environment) as bus:
            _until("the bus answers", lambda: _prxbus(environment, "status", "--json").returncode == 0, bus)
            _check_event(_round_trip(environment, TOPIC, bus))
            if up:
                _check_run(_round_trip(environment, "prx.hooks.run", bus))
            bus.send_signal(signal.SIGTERM)
            status = bus.wait(DEADLINE_S)
            if status != 0:
                raise SystemExit(f"the bus ended with {status} after SIGTERM")
    print("round trip done")


def _write_hook(workspace: Path) -> None:
    """A PRX hook file whose only action does nothing, successfully."""
    hooks = {"hooks": {"tool_call": [{"command": "/bin/true"}]}}
    (workspace / "hooks.json").write_text(json.dumps(hooks))


def _round_trip(environment: dict[str, str], topic: str, bus: subprocess.Popen[bytes]) -> dict[str, object]:
    """Tap ``topic`` for one event while publishing a tool call again and again; the event that came."""
    command = [PRXBUS, "tap", topic, "--count", "1", "--timeout", "20", "--json"]
    print("+", *command, "&", flush=True)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as tap:
        # Publishing until the tap has ended waits for its subscription without guessing how long that takes.
        _until("the tap gets an event", lambda: _publish(environment) and tap.poll() is not None, bus)
        output, _ = tap.communicate(timeout=DEADLINE_S)
    if tap.returncode != 0:
        raise SystemExit(f"tap ended with {tap.returncode}")
    event = json.loads(output)
    if not isinstance(event, dict) or event["topic"] != topic:
        raise SystemExit(f"tap printed {output!r}")
    return event


def _publish(environment: dict[str, str]) -> bool:
    """Publish the tool call once, acknowledged by the broker."""
    run = _prxbus(environment, "pub", TOPIC, json.dumps(PAYLOAD), "--session", "ci")
    if run.returncode != 0:
        raise SystemExit(f"pub ended with {run.returncode}: {run.stderr.decode()}")
    return True


def _check_event(event: dict[str, object]) -> None:
    """The event that came out is the event that went in."""
    if event["payload"] != PAYLOAD or event["session_id"] != "ci":
        raise SystemExit(f"sent {PAYLOAD} in session 'ci', got {event}")


def _check_run(event: dict[str, object]) -> None:
    """The hook of the workspace has run and succeeded."""
    payload = event["payload"]
    if not isinstance(payload, dict) or payload.get("status") != "ok":
        raise SystemExit(f"the hook's run was reported as {event}")


def _prxbus(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run one verb to its end."""
    return subprocess.run(
        [PRXBUS, *arguments], env=environment, capture_output=True, timeout=DEADLINE_S, check=False
    )


@contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The process of ``command``, ended in every case."""
    print("+", *command, "&", flush=True)
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def _until(what: str, holds: Callable[[], bool], bus: subprocess.Popen[bytes]) -> None:
    """Ask until it holds; each question runs a process, so this needs no pause."""
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        if bus.poll() is not None:
            raise SystemExit(f"the bus ended with {bus.returncode}, before this held: {what}")
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {DEADLINE_S:.0f} s: {what}")


if __name__ == "__main__":
    main(up="--up" in sys.argv[1:])
