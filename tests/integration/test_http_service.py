"""The HTTP API as a process on a real bus: hooks that run, events in and out, status, metrics, its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from broker.client import Answer, Publisher, Subscriber
from broker.client.decider import Ask
from broker.testing import running_broker
from tests.integration.ask_scene import decider
from tests.integration.command import prxbus
from tests.integration.http_scene import SECONDS, Served, served, write_hooks
from tests.integration.shell_scene import shell
from tests.integration.waiting import until

PRINT = {
    "command": "/bin/sh",
    "args": ["-c", 'cat "$ZERO_HOOK_PAYLOAD_FILE"; echo "$PRXBUS_DEPTH" >&2; exit 3'],
}


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def api(bus: str, tmp_path: Path, workspace: Path) -> Iterator[Served]:
    """A service on the bus and the workspace."""
    with served(bus, tmp_path, workspace) as found:
        yield found


class Stream:
    """An open event stream, read line by line."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self.lines = answer.iter_lines()
        assert next(self.lines) == ": ready"
        assert next(self.lines) == ""

    def message(self) -> dict[str, str]:
        """The fields of the next message."""
        fields: dict[str, str] = {}
        for line in self.lines:
            if not line:
                if fields:
                    return fields
                continue
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        return fields


def test_the_token_is_private_and_kept(bus: str, tmp_path: Path, workspace: Path) -> None:
    """The file is 0600 and the same after a restart; the environment stands above it."""
    with served(bus, tmp_path, workspace) as api:
        path = Path(api.said["http_token_file"])
        assert path == Path(bus) / "http-token"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        token = path.read_text()
        assert api.client.get("/api/hooks").status_code == 200
    own = {"PRXBUS_API_TOKEN": "a-token-of-my-own-0123"}
    with served(bus, tmp_path, workspace, environ=own) as api:
        assert api.said["http_token_file"] is None
        assert api.client.get("/api/hooks").status_code == 200
        wrong = httpx2.get(f"{api.address}/api/hooks", headers={"Authorization": f"Bearer {token.strip()}"})
        assert wrong.status_code == 401
    assert path.read_text() == token


def test_a_hook_made_by_the_api_runs(bus: str, tmp_path: Path, workspace: Path, api: Served) -> None:
    """The runtime takes it from the file within moments; disabled by a toggle, it runs no more."""
    seen = workspace / "seen"
    action = {"command": "/bin/sh", "args": ["-c", 'echo "$ZERO_HOOK_EVENT" >> seen']}
    with (
        shell(bus, workspace) as runner,
        Publisher("agent", runtime_dir=bus, on_absent="raise") as agent,
        Subscriber(["prx.hooks.run"], runtime_dir=bus) as reports,
    ):
        made = api.client.post("/api/hooks", json={"event": "turn_complete", "action": action}).json()
        until(lambda: runner.log.read_text().count('"hooks":1'), "the runner to take the hook")
        agent.publish("prx.lifecycle.turn_complete", {})
        (report,) = reports.batch(timeout=SECONDS)
        assert report.payload["status"] == "ok"
        assert seen.read_text() == "turn_complete\n"
        toggled = api.client.patch(f"/api/hooks/{made['id']}/toggle")
        assert toggled.json() == {"id": "hook_01", "enabled": False}
        until(lambda: runner.log.read_text().count('"hooks":0') == 2, "the runner to drop the hook")
        until(lambda: api.metric("prxbus_hook_runs_total", subscriber="shell", status="ok") == 1, "the count")
        assert api.metric("prxbus_hook_run_duration_seconds_count", event="turn_complete", status="ok") == 1
        assert api.metric("prxbus_hook_queue_depth", subscriber="shell") == 0
        assert api.metric("prxbus_drops_total", cause="hook_queue_full") == 0


def test_a_test_run_is_a_real_run(workspace: Path, api: Served) -> None:
    """The hook gets the sample on its channels and its clean environment; the outcome comes back."""
    write_hooks(workspace, error=[{**PRINT, "enabled": False}], tool_call=[{"command": "no-such-program"}])
    first, second = api.client.get("/api/hooks").json()["hooks"]
    told = api.client.post(f"/api/hooks/{first['id']}/test").json()
    assert (told["status"], told["exit_code"], told["stderr"]) == ("failed", 3, "1\n")
    assert json.loads(told["stdout"]) == told["envelope"]
    assert told["envelope"]["payload"].keys() == {"component", "message"}
    told = api.client.post(f"/api/hooks/{second['id']}/test").json()
    assert (told["status"], told["exit_code"]) == ("not_started", None)
    assert "no-such-program" in told["reason"]
    slow = {"event": "error", "action": {"command": "sleep", "args": ["600"], "timeout_ms": 200}}
    made = api.client.post("/api/hooks", json=slow).json()
    assert api.client.post(f"/api/hooks/{made['id']}/test").json()["status"] == "timeout"


def test_a_test_run_does_not_keep_the_service(bus: str, tmp_path: Path, workspace: Path) -> None:
    """Told to stop, it ends the run with its grace and is gone long before the run would be."""
    script = 'echo $$ > started; trap "" TERM; sleep 600; sleep 600'
    write_hooks(workspace, error=[{"command": "/bin/sh", "args": ["-c", script], "timeout_ms": 300_000}])
    started = workspace / "started"
    with served(bus, tmp_path, workspace) as api:

        def try_it() -> None:
            with suppress(httpx2.HTTPError):
                api.client.post("/api/hooks/hook_01/test")

        caller = threading.Thread(target=try_it)
        caller.start()
        until(lambda: started.exists() and started.read_text(), "the run to begin")
    caller.join(SECONDS)
    until(lambda: not Path(f"/proc/{started.read_text().strip()}").exists(), "the run to be gone")


def test_ids_stay_over_hand_edits_that_nobody_asked_about(workspace: Path, api: Served) -> None:
    """The file is followed, so two edits by hand without a call between them confuse no id."""
    write_hooks(workspace, error=[{"command": "ls"}, {"command": "pwd"}])
    assert [h["id"] for h in api.client.get("/api/hooks").json()["hooks"]] == ["hook_01", "hook_02"]
    state = next((workspace.parent / "state").glob("*.json"))
    write_hooks(workspace, error=[{"command": "pwd"}])
    until(lambda: "hook_01" not in state.read_text(), "the first edit to be seen")
    write_hooks(workspace, error=[{"command": "ls"}, {"command": "pwd"}])
    assert [h["id"] for h in api.client.get("/api/hooks").json()["hooks"]] == ["hook_03", "hook_02"]


def test_events_are_published_and_streamed(bus: str, api: Served) -> None:
    """What is posted reaches subscribers and the stream that asked for it, with session, cause and depth."""
    with api.client.stream("GET", "/api/events", params={"pattern": ["prx.lifecycle.*", "prx.b"]}) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        stream = Stream(answer)
        posted = {
            "topic": "prx.lifecycle.tool_call",
            "payload": {"tool": "Bash", "output": "é\n"},
            "session_id": "s1",
            "depth": 2,
            "caused_by": "x:y:1",
        }
        assert api.client.post("/api/events", json={"topic": "prx.a", "payload": {}}).json()["matching"] == 0
        sent = api.client.post("/api/events", json=posted)
        assert sent.status_code == 202
        assert (sent.json()["published"], sent.json()["matching"]) == (1, 1)
        message = stream.message()
        event = json.loads(message["data"])
        assert message["id"] == event["id"] == sent.json()["id"]
        assert {name: event[name] for name in posted} == posted
        assert event["source"] == "http-api"
    until(lambda: api.metric("prxbus_http_streams") == 0, "the stream to be closed")


def test_what_is_too_deep_is_not_sent(api: Served) -> None:
    """Depth 8 is dropped and said, as by every publisher; a loop through curl ends too."""
    answer = api.client.post("/api/events", json={"topic": "prx.a", "payload": {}, "depth": 8})
    assert answer.status_code == 202
    assert answer.json() == {"id": None, "published": 0, "over_depth": 1, "matching": 0}


def test_a_large_event_travels_by_claim_check(bus: str, api: Served) -> None:
    """More than 64 KiB of payload is taken, within the megabyte of a body."""
    with Subscriber(["prx.a"], runtime_dir=bus) as events:
        payload = {"output": "x" * 200_000}
        assert api.client.post("/api/events", json={"topic": "prx.a", "payload": payload}).status_code == 202
        (event,) = events.batch(timeout=SECONDS)
        assert event.payload == payload


@pytest.mark.parametrize(
    "body,code,field",
    [
        ({"topic": "prx..a", "payload": {}}, "bad_topic", "topic"),
        ({"topic": "prx.lifecycle.tool_call", "payload": {"tool": 5}}, "bad_payload", "payload.tool"),
        ({"topic": "prx.a", "payload": []}, "wrong_shape", "payload"),
        ({"topic": "prx.a", "payload": {}, "session_id": "s" * 257}, "wrong_shape", "session_id"),
        ({"topic": "prx.a", "payload": {}, "session_id": "é" * 200}, "limit_exceeded", "payload"),
    ],
)
def test_an_event_that_nobody_could_publish_is_refused(
    api: Served, body: dict[str, Any], code: str, field: str
) -> None:
    """422 with the bus's own words and the field."""
    answer = api.client.post("/api/events", json=body)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, code, field)


def test_an_agent_asks_over_http(bus: str, api: Served) -> None:
    """The answer is the object of ``prxbus ask --json``; the event is published under the answer's id."""

    def says(ask: Ask) -> list[Answer]:
        words = ask.event.payload["output"]
        answer = Answer("shorten", output=words[:100_000]) if len(words) > 9 else Answer("g", "deny", words)
        return [answer]

    with (
        decider(bus, says, patterns=("prx.lifecycle.tool_result",)),
        Subscriber(["prx.lifecycle.tool_result"], runtime_dir=bus) as events,
    ):

        def ask(output: str) -> Any:
            payload = {"tool": "cat", "output": output}
            posted = {"topic": "prx.lifecycle.tool_result", "payload": payload, "session_id": "s1"}
            answer = api.client.post("/api/ask", json={**posted, "timeout_s": SECONDS, "depth": 2})
            assert answer.status_code == 200, answer.text
            return answer.json()

        told = ask("secret")
        assert (told["verdict"], told["reason"], told["denied"]) == ("deny", "secret", True)
        (event,) = events.batch(timeout=SECONDS)
        assert (event.id, event.session_id, event.depth) == (told["id"], "s1", 2)
        assert (event.source, event.payload["output_bytes"]) == ("http-ask", 6)
        printed = prxbus("ask", "prx.a", "--json", "--runtime-dir", bus)
        large = ask("x" * 2_000_000)  # it lies in the spool, and so does its answer
        assert large["output"] == {"by": "shorten", "value": "x" * 100_000}
        assert list(large) == list(told)
        assert list(told) == list(orjson.loads(printed.stdout)), printed.stderr
    deep = api.client.post("/api/ask", json={"topic": "prx.a", "payload": {}, "depth": 8}).json()
    assert (deep["id"], deep["heard"], deep["allowed"]) == (None, [], True)


def test_a_bad_pattern_is_refused(api: Served) -> None:
    """Before a stream is opened."""
    answer = api.client.get("/api/events", params={"pattern": "prx.life*"})
    assert (answer.status_code, answer.json()["field"]) == (422, "pattern")
    assert "did you mean" in answer.json()["detail"]


def test_a_slow_client_is_told_what_it_lost(bus: str, tmp_path: Path, workspace: Path, api: Served) -> None:
    """Its queue is bounded, what found no room is counted and told, and another client has everything."""
    with (
        api.client.stream("GET", "/api/events", params={"pattern": "prx.a"}) as slow,
        Publisher("agent", runtime_dir=bus, on_absent="raise", on_full="block") as agent,
        Subscriber(["prx.a"], runtime_dir=bus) as other,
    ):
        stream = Stream(slow)
        count, body = 6_000, {"fill": "x" * 4_000}
        received = 0
        for _ in range(count):
            agent.publish("prx.a", body)
            received += len(other.batch(timeout=0))
        while received < count:
            received += len(other.batch(timeout=SECONDS))
        until(lambda: (api.metric("prxbus_drops_total", cause="stream_queue_full") or 0) > 0, "drops")
        got = dropped = missed = 0
        while got + dropped + missed < count:
            message = stream.message()
            if message.get("event") == "dropped":
                news = json.loads(message["data"])
                dropped, missed = dropped + news["dropped"], missed + news["missed"]
            else:
                got += 1
        assert dropped > 0
        assert got + dropped + missed == count
    until(lambda: api.metric("prxbus_http_streams") == 0, "the stream to be closed")
    assert api.metric("prxbus_drops_total", cause="stream_queue_full") == dropped


def test_streams_are_limited(bus: str, tmp_path: Path, workspace: Path) -> None:
    """One more than the limit is answered 503; a closed one makes room."""
    with served(bus, tmp_path, workspace, "--streams", "1") as api:
        with api.client.stream("GET", "/api/events") as first:
            Stream(first)
            answer = api.client.get("/api/events")
            assert (answer.status_code, answer.json()["code"]) == (503, "too_many_streams")
            assert answer.headers["retry-after"] == "5"
        until(lambda: api.client.get("/api/status").json()["http"]["streams"] == 0, "room")
        with api.client.stream("GET", "/api/events") as second:
            Stream(second)


def test_streams_end_when_the_service_does(bus: str, tmp_path: Path, workspace: Path) -> None:
    """An open stream does not keep the process: the client sees an orderly end."""
    ended = threading.Event()
    with served(bus, tmp_path, workspace) as api:
        streaming = threading.Event()

        def follow() -> None:
            with httpx2.stream(
                "GET", f"{api.address}/api/events", headers=api.letter, timeout=SECONDS
            ) as answer:
                stream = Stream(answer)
                streaming.set()
                while stream.message():
                    pass
                ended.set()

        follower = threading.Thread(target=follow)
        follower.start()
        assert streaming.wait(SECONDS)
    follower.join(SECONDS)
    assert ended.is_set()


def test_status_and_health_follow_the_broker(runtime_dir: Path, tmp_path: Path, workspace: Path) -> None:
    """With a bus all is well; without one both say so and hooks can still be edited; with it back, again."""
    with running_broker(runtime_dir) as bus, served(bus, tmp_path, workspace) as api:
        until(lambda: httpx2.get(f"{api.address}/healthz").status_code == 200, "health")
        status = api.client.get("/api/status").json()
        assert status["broker"]["broker"]["runtime_dir"] == bus
        assert (status["problem"], status["workspace"], status["hooks"]) == (None, str(workspace), 0)
        assert status["http"]["address"] == api.address
        os.kill(status["broker"]["broker"]["pid"], signal.SIGKILL)
        until(lambda: httpx2.get(f"{api.address}/healthz").status_code == 503, "no health")
        status = api.client.get("/api/status").json()
        assert status["broker"] is None
        assert status["problem"]
        assert api.metric("prxbus_up") == 0
        lost = api.client.post("/api/events", json={"topic": "prx.a", "payload": {}})
        assert (lost.status_code, lost.json()["code"]) == (503, "no_bus")
        body = {"event": "error", "action": {"command": "ls"}}
        assert api.client.post("/api/hooks", json=body).status_code == 201
        with running_broker(runtime_dir):
            until(lambda: httpx2.get(f"{api.address}/healthz").status_code == 200, "health again")


def test_metrics_count_events_in_and_out(bus: str, api: Served) -> None:
    """In by topic as publishers say, out as subscribers say; exact after their last word."""
    with (
        Publisher("agent", runtime_dir=bus, on_absent="raise") as agent,
        Subscriber(["prx.a"], name="reader-7", runtime_dir=bus) as events,
    ):
        for _ in range(250):
            agent.publish("prx.a", {})
        agent.publish("prx.b", {}, depth=8)
        for _ in range(3):
            api.client.post("/api/events", json={"topic": "prx.a", "payload": {}})
        received = 0
        while received < 253:
            received += len(events.batch(timeout=SECONDS))
        until(lambda: api.metric("prxbus_drops_total", cause="too_deep") == 1, "the report of a drop")
        until(lambda: api.metric("prxbus_events_received_total", subscriber="reader") == 253, "what went out")
    until(lambda: api.metric("prxbus_events_published_total", topic="prx.a") == 253, "the last beacons")
    assert api.metric("prxbus_events_published_total", topic="prx.b") is None
    assert api.metric("prxbus_events_missed_total", subscriber="reader") == 0
    assert (api.metric("prxbus_broker_frames_total", direction="in") or 0) > 0
    assert api.metric("prxbus_http_answers_total", status="202") == 3
    assert api.metric("prxbus_up") == 1


def test_a_taken_port_is_told_with_a_way_out(bus: str, tmp_path: Path) -> None:
    """Exit code 4, and the two flags that help."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [
                *(sys.executable, "-P", "-m", "subscribers.runner.http_service"),
                *("--port", str(port), "--runtime-dir", bus),
            ],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 4
    assert f"port {port} of 127.0.0.1 is in use: choose another with --http PORT" in done.stderr
    assert "--no-http" in done.stderr


def test_without_a_bus_it_does_not_start(runtime_dir: Path) -> None:
    """Exit code 3 once its patience is over."""
    program = (
        "import sys; from subscribers.runner import http_service as s; s.BUS_SECONDS = 0.1;"
        f" sys.exit(s.main(['--port', '0', '--runtime-dir', {str(runtime_dir)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 3
    assert "no bus answers" in done.stderr
