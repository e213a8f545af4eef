"""What strangers send and what becomes of the disk costs a hook its run, never the runner its life."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.client import Publisher
from broker.client.tool import Tool
from broker.protocol.envelope import Claim, encode_event
from tests.integration.raw_bus import peers_of, running
from tests.integration.service_scene import Runner
from tests.integration.shell_scene import Monitor, hooks, sh, shell
from tests.integration.waiting import until

TOPIC = "prx.lifecycle.tool_call"
STRANGER = bytes(range(16))
DEEP = b'{"a":' * 1_000 + b"1" + b"}" * 1_000
DEEPEST = b'{"a":' * 1_024 + b"null" + b"}" * 1_024
"""As deep as the decoder goes, so that it no longer fits inside a letter."""

COMPLETE = b'{"tool":"x","arguments":{},"success":true,"output":"","duration_ms":1,"session":"s","cwd":"/",'
"""The beginning of a payload that has every field, so that its bytes reach the hook as they are."""


class Scene:
    """A bus with one good hook for tool calls, a monitor, and a stranger without a client's checks."""

    def __init__(self, bus: str, runner: Runner, monitor: Monitor, send: Any) -> None:
        self.bus = bus
        self.runner = runner
        self.monitor = monitor
        self._send = send
        self._sequence = 0
        self._good = 0

    def send(self, payload: bytes | Claim) -> None:
        """A frame with this payload, whatever it is."""
        self._sequence += 1
        self._send(
            encode_event(TOPIC, STRANGER, self._sequence, 1, payload, session_id="s", source="stranger")
        )

    def works(self, reports: int) -> None:
        """Fail unless a good event still runs its hook; ``reports`` others came before that one's."""
        with Publisher("agent", runtime_dir=self.bus, on_absent="raise") as agent:
            agent.publish(TOPIC, {"tool": "Bash"})
        self._good += 1
        assert self.monitor.runs(reports + self._good)[-1]["status"] == "ok", self.runner.log.read_text()
        assert self.runner.process.poll() is None

    def status(self) -> dict[str, Any]:
        """What the hook runner last told of itself."""
        with Tool("test", runtime_dir=self.bus) as tool:
            subscribers = tool.request("status").body["status"]["subscribers"]
        return next((each for each in subscribers if each["name"] == "shell"), {})


@contextmanager
def scene(runtime_dir: Path, tmp_path: Path, script: str = "exit 0") -> Iterator[Scene]:
    """A scene, ended in order: the runner must end with 0."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    hooks(workspace, tool_call=[sh(script)])
    with running(runtime_dir) as broker, peers_of(broker) as peers:
        monitor = Monitor(str(runtime_dir))
        try:
            with shell(str(runtime_dir), workspace) as runner:
                stranger = peers.publisher()
                yield Scene(str(runtime_dir), runner, monitor, stranger.send)
        finally:
            monitor.events.close()


@pytest.fixture
def at(runtime_dir: Path, tmp_path: Path) -> Iterator[Scene]:
    """A scene whose hook does nothing, well."""
    with scene(runtime_dir, tmp_path) as made:
        yield made


def test_payloads_that_are_no_json_object_cost_their_own_runs_only(at: Scene) -> None:
    """Each is reported with its bytes, counted as unreadable, and the hook of the next event runs."""
    bad = [b"", b"{", b"\xff", b"1", b"[1]", b"null", b"1,2", b"[" * 1_024 + b"]" * 1_024, b"[" * 20_000]
    for number, payload in enumerate(bad, 1):
        at.send(payload)
        letter = at.monitor.wait("prx.hooks.dead_letter", number)[-1]
        assert "its payload cannot be had" in letter["reason"]
        assert letter["payload_bytes"] == len(payload)
        if "payload" in letter:
            assert json.loads(payload) == letter["payload"]
        else:
            assert base64.b64decode(letter["payload_base64"]) == payload
    at.works(len(bad))
    until(lambda: at.status().get("runs") == {"unreadable": len(bad), "ok": 1}, "the counters")


def test_payloads_of_any_depth_reach_the_hook_or_are_reported(at: Scene) -> None:
    """A complete payload passes as it is; what is too deep to be written anew costs its own run."""
    deep = {COMPLETE + DEEPEST[1:]: "ok", DEEPEST: "not_started", b'{"output":' + DEEP + b"}": "ok"}
    for payload in deep:
        at.send(payload)
    runs = {run["event_id"][-1]: run["status"] for run in at.monitor.runs(len(deep))}
    assert runs == {str(number): status for number, status in enumerate(deep.values(), 1)}
    at.works(len(deep))


def test_a_failed_run_of_the_deepest_payload_is_a_dead_letter(runtime_dir: Path, tmp_path: Path) -> None:
    """A letter carries as bytes what would be too deep inside it."""
    with scene(runtime_dir, tmp_path, "exit 3") as at:
        payload = COMPLETE + DEEPEST[1:]
        at.send(payload)
        (letter,) = at.monitor.wait("prx.hooks.dead_letter", 1)
    assert letter["status"] == "failed"
    assert letter["payload_bytes"] == len(payload)
    assert base64.b64decode(letter["payload_base64"]) == payload


@pytest.mark.parametrize("kind", ["pipe", "directory", "link", "other size", "nothing"])
def test_a_claim_that_is_no_file_costs_its_own_run_only(at: Scene, kind: str) -> None:
    """A pipe in the spool keeps nobody waiting, a directory raises nothing, a link is not followed."""
    path = Path(at.bus, "spool", "evil-1")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "other size":
        with path.open("wb") as file:
            file.truncate(2**40)
    at.send(Claim(100_000, bytes(32), "evil-1", b"{"))
    (letter,) = at.monitor.wait("prx.hooks.dead_letter", 1)
    assert "evil-1" in letter["reason"]
    assert letter["payload_bytes"] is None
    at.works(1)


def stores(runner: Runner) -> list[Path]:
    """The payload stores that the runner holds open and that are there."""
    folder = Path(f"/proc/{runner.process.pid}/fd")
    targets = [Path(os.readlink(each)) for each in folder.iterdir() if each.is_symlink()]
    return [target for target in targets if "prxbus-payloads" in str(target) and target.is_dir()]


def test_a_payload_store_that_is_removed_is_made_again(at: Scene) -> None:
    """After a logout took the store away, the next run has its payload file as ever."""
    at.works(0)
    (store,) = stores(at.runner)
    shutil.rmtree(store)
    at.works(0)
    (new,) = stores(at.runner)
    assert new != store
    assert new.stat().st_mode & 0o777 == 0o700
    assert at.runner.logged("the payload files' store was removed and is made again")


def test_a_spool_that_is_removed_comes_back(at: Scene) -> None:
    """Large payloads are refused until the broker's next sweep, and travel again after it."""
    spool = Path(at.bus, "spool")
    shutil.rmtree(spool.resolve())
    until(spool.is_dir, "the spool")
    with Publisher("agent", runtime_dir=at.bus, on_absent="raise") as agent:
        agent.publish(TOPIC, {"output": "x" * 100_000})
    assert at.monitor.runs(1)[0]["status"] == "ok"


def test_a_workspace_below_a_deleted_directory_is_named(tmp_path: Path) -> None:
    """The error of a relative path says which path, why, and what to do."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    done = subprocess.run(
        [
            *("/bin/sh", "-c", script, "sh", str(gone)),
            *(sys.executable, "-P", "-m", "subscribers.runner.shell_service", "--workspace", "."),
        ],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "workspace '.' cannot be found: the current directory was deleted" in done.stderr
