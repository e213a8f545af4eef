"""The broker as a process: how it starts, what it refuses, how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from broker.protocol.control import encode_message
from broker.protocol.events import decode_event
from broker.version import __version__
from tests.integration.raw_bus import (
    BrokerProcess,
    Peers,
    Zmtp,
    event,
    frame,
    peers_of,
    receive,
    received,
    running,
    undisturbed,
)
from tests.integration.waiting import until

COMMAND = [sys.executable, "-P", "-m", "broker"]
IDLE_BYTES = 40_000_000


@pytest.fixture
def broker(runtime_dir: Path) -> Iterator[BrokerProcess]:
    """A running broker, which the test may end."""
    with running(runtime_dir) as broker:
        yield broker


@pytest.fixture
def peers(broker: BrokerProcess) -> Iterator[Peers]:
    """Honest peers."""
    with peers_of(broker) as peers:
        yield peers


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A broker that is expected to end by itself."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_ready_line_comes_when_everything_works(broker: BrokerProcess, peers: Peers) -> None:
    """With --json one line tells directory, pid and epoch; publishing and subscribing work from then on."""
    assert broker.ready.pop("ready") is True
    assert broker.ready.pop("pid") == broker.process.pid
    assert broker.ready.pop("runtime_dir") == str(broker.directory)
    assert re.fullmatch("[0-9a-f]{32}", broker.ready.pop("epoch"))
    assert broker.ready == {}
    publisher, subscriber = peers.publisher(), peers.subscriber(b"a.b\0")
    publisher.send(event("a.b", 1))
    assert len(received(subscriber, 1)) == 1


def test_the_ready_line_is_readable_without_json(runtime_dir: Path) -> None:
    """A person reads release, directory and pid; logs go to stderr as JSON when that is no terminal."""
    environment = {**os.environ, "PRXBUS_RUNTIME_DIR": str(runtime_dir)}
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()
        rest, errors = process.communicate(timeout=30)
    assert line == f"prxbus broker {__version__} is ready in {runtime_dir} (pid {process.pid})\n"
    assert rest == ""
    assert json.loads(errors.splitlines()[0])["event"] == "ready"
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_in_order_when_asked(broker: BrokerProcess, number: int) -> None:
    """Each of the three signals drains: exit code 0, no socket left, the directory free for the next."""
    assert broker.stop(number) == 0
    left = sorted(path.name for path in broker.directory.iterdir())
    assert left == ["lock", "stderr"]
    broker.start()
    broker.wait_ready()
    assert broker.stop() == 0


def test_a_hangup_is_ignored_below_nohup(runtime_dir: Path) -> None:
    """A broker that was started with SIGHUP ignored lives on when its terminal goes."""
    with running(runtime_dir, shell="trap '' HUP") as broker, peers_of(broker) as peers:
        broker.process.send_signal(signal.SIGHUP)
        with undisturbed(peers):
            assert peers.status()["broker"]["draining"] is False
        assert broker.stop() == 0


def test_a_broker_that_is_still_starting_can_be_stopped(runtime_dir: Path) -> None:
    """A signal during the start ends it in order: nothing was announced, nothing is left."""
    with running(runtime_dir) as broker:
        broker.kill()  # so that the next one waits for clients to come back
        (runtime_dir / "egress.sock").unlink()
        broker.start()
        until((runtime_dir / "egress.sock").exists, "the start has begun")
        assert broker.stop() == 0
        assert sorted(path.name for path in runtime_dir.iterdir()) == ["lock", "stderr"]


def test_the_lock_is_released_last(broker: BrokerProcess) -> None:
    """Whoever gets the lock of a broker that drains finds its sockets gone."""
    sockets = [broker.directory / name for name in ("ingress.sock", "egress.sock", "control.sock")]
    assert all(path.exists() for path in sockets)
    with open(broker.directory / "lock", "rb+") as lock:
        broker.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 40
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                assert time.monotonic() < deadline, "the lock was never released"
        assert [path.name for path in sockets if path.exists()] == []
    assert broker.reap() == 0


def test_a_second_broker_is_refused_and_the_first_undisturbed(broker: BrokerProcess, peers: Peers) -> None:
    """On a directory in use a second broker ends with exit code 4 and names the owner."""
    with undisturbed(peers):
        second = run("--runtime-dir", str(broker.directory))
    assert second.returncode == 4
    assert second.stdout == ""
    assert f"pid {broker.process.pid}" in second.stderr
    assert "--runtime-dir" in second.stderr
    assert broker.stop() == 0


def test_a_world_writable_directory_is_refused(runtime_dir: Path) -> None:
    """A directory that others may write to ends the start with exit code 4 and the command that mends it."""
    runtime_dir.chmod(0o777)
    refused = run("--runtime-dir", str(runtime_dir))
    assert refused.returncode == 4
    assert "chmod 700" in refused.stderr
    assert list(runtime_dir.iterdir()) == []


def test_a_path_too_long_for_ipc_is_refused(runtime_dir: Path) -> None:
    """A path that no socket can have is refused before anything is made."""
    refused = run(PRXBUS_RUNTIME_DIR=str(runtime_dir / ("x" * 120)))
    assert refused.returncode == 4
    assert "107 are possible" in refused.stderr
    assert list(runtime_dir.iterdir()) == []


def test_a_file_in_place_of_a_socket_is_refused_and_kept(runtime_dir: Path) -> None:
    """What is no socket is not removed: the start ends and says what is in the way."""
    (runtime_dir / "egress.sock").write_text("precious")
    refused = run("--runtime-dir", str(runtime_dir))
    assert refused.returncode == 4
    assert "is not a socket" in refused.stderr
    assert (runtime_dir / "egress.sock").read_text() == "precious"


@pytest.mark.parametrize(
    "arguments",
    [["--spool-bytes", "0"], ["--claim-seconds", "nan"], ["--claim-seconds", "1e9"], ["--log-level", "loud"]],
)
def test_a_wrong_option_is_a_usage_error(arguments: list[str]) -> None:
    """A value out of its range ends the start with exit code 2."""
    assert run(*arguments).returncode == 2


def test_a_killed_broker_leaves_nothing_in_the_way(broker: BrokerProcess) -> None:
    """After a kill the sockets are stale, and the next broker replaces them."""
    broker.kill()
    assert (broker.directory / "ingress.sock").exists()
    broker.start()
    broker.wait_ready()
    assert broker.stop() == 0


@pytest.mark.parametrize("name", ["egress.sock", "control.sock", "lock"])
def test_a_broker_that_lost_its_place_ends_so_that_another_can_start(
    broker: BrokerProcess, name: str
) -> None:
    """When a socket or the lock is removed, nobody new could reach it: exit code 1, and why in the log."""
    (broker.directory / name).unlink()
    assert broker.reap() == 1
    assert name in broker.log()


def test_a_broker_that_holds_too_much_memory_ends(runtime_dir: Path) -> None:
    """Endless subscriptions exhaust the stated memory, not the machine: it ends, and the next one heals."""
    with running(runtime_dir, "--memory-bytes", "80000000") as broker, peers_of(broker) as peers:
        publisher, subscriber = peers.publisher(), peers.subscriber(b"a.b\0")
        with Zmtp(broker.endpoints.egress, "SUB") as rogue:
            number = 0
            while broker.alive():
                batch = b"".join(frame(b"\x010%0500d" % (number + n)) for n in range(200))
                number += 200
                try:
                    rogue.socket.sendall(batch)
                except OSError:
                    break
        assert broker.reap() == 1
        assert "--memory-bytes" in broker.log()
        broker.start()
        broker.wait_ready()

        def heard() -> bool:
            publisher.send(event("a.b", 1), zmq.NOBLOCK)
            return bool(received(subscriber, 1, 20))

        until(heard, "the pair finds the new broker")


def test_an_idle_broker_is_small(broker: BrokerProcess, peers: Peers) -> None:
    """A broker that has just answered its status holds less than 40 MB."""
    assert peers.status()["broker"]["memory_bytes"] < IDLE_BYTES
    assert broker.memory() < IDLE_BYTES


def test_the_status_tells_what_there_is(broker: BrokerProcess, peers: Peers) -> None:
    """Broker, rates, counters, peers by name and their reports are all in one reply that JSON can hold."""
    publisher, subscriber = peers.publisher(), peers.subscriber(b"a.b\0")
    with (
        peers.register("subscriber", "audit", patterns=["a.*", "b"]) as audit,
        peers.register("publisher", "agent") as agent,
    ):
        for number in range(1, 101):
            publisher.send(event("a.b", number))
        assert len(received(subscriber, 100)) == 100
        audit.send(encode_message("report", counters={"received": 98, "missed": 2, "gaps": {"a.b": 2}}))
        agent.send(encode_message("report", counters={"published": 100}))
        until(lambda: "missed" in peers.status()["subscribers"][0], "the report has come")
        until(lambda: "published" in peers.status()["publishers"][0], "the other one too")
        status = json.loads(json.dumps(peers.status()))
    assert status["broker"]["pid"] == broker.process.pid
    assert status["broker"]["epoch"] == broker.ready["epoch"]
    assert status["broker"]["runtime_dir"] == str(broker.directory)
    assert status["broker"]["max_clients"] > 10
    assert status["broker"]["limits"]["payload"] == 65_536
    assert status["forwarded"]["frames_in"] >= 100
    assert status["forwarded"]["bytes_out"] >= status["forwarded"]["frames_out"] * 20
    assert {peer["name"]: peer["pattern_count"] for peer in status["peers"]} == {"audit": 2, "agent": 0}
    assert status["subscribers"][0]["gaps"] == {"a.b": 2}
    assert status["publishers"][0]["published"] == 100
    assert status["spool"]["files"] == 0
    assert status["omitted"] == {}


def test_the_rates_are_those_of_the_proxy(peers: Peers) -> None:
    """While events flow the rates are above zero, and what nobody asks for is not counted as out."""
    publisher = peers.publisher()
    sequence = 0

    def flowing() -> bool:
        nonlocal sequence
        for _ in range(20):
            sequence += 1
            publisher.send(event("a.b", sequence), zmq.NOBLOCK)
        rates = peers.status()["rates"]
        return bool(rates["in_per_s"] > 10 and rates["bytes_in_per_s"] > 10 * rates["in_per_s"])

    until(flowing, "the rates show the flow")


def test_signals_do_not_reset_the_counters(broker: BrokerProcess, peers: Peers) -> None:
    """A storm of signals, to the process and to each of its threads, loses nothing and resets nothing."""
    publisher, subscriber = peers.publisher(), peers.subscriber(b"a.b\0")
    threads = [int(entry.name) for entry in os.scandir(f"/proc/{broker.process.pid}/task")]
    blocked = {
        thread: int(re.search(r"SigBlk:\s+(\w+)", status_of(broker, thread)).group(1), 16)  # type: ignore[union-attr]
        for thread in threads
    }
    bit = 1 << (signal.SIGUSR1 - 1)
    assert [thread for thread in threads if not blocked[thread] & bit] == [broker.process.pid]
    for number in range(1, 501):
        publisher.send(event("a.b", number))
        broker.process.send_signal(signal.SIGUSR1)
        os.kill(threads[number % len(threads)], signal.SIGUSR1)
    assert len(received(subscriber, 500)) == 500
    assert peers.status()["forwarded"]["frames_in"] >= 500
    assert '"event":"signal"' in broker.log()
    assert broker.stop() == 0


def status_of(broker: BrokerProcess, thread: int) -> str:
    """What the kernel tells of one thread."""
    return Path(f"/proc/{broker.process.pid}/task/{thread}/status").read_text()


def test_a_drain_loses_nothing_that_was_accepted(broker: BrokerProcess, peers: Peers) -> None:
    """Publishers that are asked to hold stop; every event that their sockets accepted arrives."""
    subscriber = peers.subscriber(b"a.b\0")
    accepted = [0, 0]

    def publish(index: int) -> None:
        publisher = peers.publisher()
        with peers.register("publisher", f"p{index}") as control:
            while not control.poll(0):
                try:
                    publisher.send(event("a.b", accepted[index] + 1, b'"' + b"x" * 300 + b'"'), zmq.NOBLOCK)
                    accepted[index] += 1
                except zmq.Again:
                    continue
            assert receive(control).kind == "hold"

    threads = [threading.Thread(target=publish, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
    count = len(received(subscriber, 1_000))
    broker.process.terminate()
    while broker.alive() or subscriber.poll(200):
        count += len(received(subscriber, 10_000, 20))
    for thread in threads:
        thread.join()
    assert broker.reap() == 0
    assert count == sum(accepted)
    assert "did not fall silent" not in broker.log()


def test_a_drain_ends_although_a_publisher_goes_on(broker: BrokerProcess, peers: Peers) -> None:
    """A publisher that does not hold delays the end by a bounded time; the exit code is still 0."""
    publisher = peers.publisher()
    stop = threading.Event()

    def pour() -> None:
        number = 0
        while not stop.wait(0.0005):
            number += 1
            try:
                publisher.send(event("a.b", number), zmq.NOBLOCK)
            except zmq.Again:
                continue

    thread = threading.Thread(target=pour)
    thread.start()
    try:
        assert broker.stop() == 0
    finally:
        stop.set()
        thread.join()
    assert '"event":"ended"' in broker.log()


def test_a_second_request_ends_a_drain_at_once(broker: BrokerProcess, peers: Peers) -> None:
    """Whoever asks twice does not wait for publishers to fall silent."""
    with peers.register("publisher", "p") as control:
        broker.process.terminate()
        assert receive(control).kind == "hold"
        broker.process.terminate()
        assert broker.reap() == 0


def test_a_stopped_subscriber_does_not_keep_the_broker(broker: BrokerProcess, peers: Peers) -> None:
    """With a full queue for a peer that reads nothing the broker still ends in order and in time."""
    code = (
        "import sys, zmq, signal, os; s = zmq.Context().socket(zmq.SUB); s.rcvhwm = 1; s.subscribe(b'0a.b');"
        "s.connect(sys.argv[1]); s.recv(); print('in', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    )
    command = [sys.executable, "-P", "-c", code, broker.endpoints.egress]
    publisher = peers.publisher()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            os.set_blocking(child.stdout.fileno(), False)

            def heard() -> bytes:
                publisher.send(event("a.b", 1))
                return (child.stdout.read() if child.stdout else None) or b""

            until(heard, "the subscriber has heard")
            payload = b'"' + b"x" * 60_000 + b'"'
            for number in range(300):
                publisher.send(event("a.b", number + 2, payload))
            assert broker.stop() == 0
        finally:
            child.kill()


def test_claims_expire_in_the_spool_of_a_running_broker(runtime_dir: Path) -> None:
    """The spool is there and private; a claim older than --claim-seconds is removed from it."""
    with running(runtime_dir, "--claim-seconds", "1", "--spool-bytes", "1000") as broker:
        spool = runtime_dir / "spool"
        assert spool.stat().st_mode & 0o777 == 0o700
        (spool / "claim").write_bytes(b"x" * 10)
        until(lambda: not (spool / "claim").exists(), "the claim expires")
        with peers_of(broker) as peers:
            shown = peers.status()["spool"]
            assert (shown["limit_bytes"], shown["claim_seconds"]) == (1000, 1.0)
            assert peers.status()["broker"]["limits"]["spool_bytes"] == 1000
        assert broker.stop() == 0
        assert not os.path.lexists(spool)


def test_a_reader_of_the_ready_line_may_be_gone(runtime_dir: Path) -> None:
    """A broker whose stdout nobody reads, or whose stderr is closed, works all the same."""
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen([*COMMAND, "--runtime-dir", str(runtime_dir)], stdout=write, stderr=write)
    os.close(write)
    try:
        until((runtime_dir / "control.sock").exists, "it works")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(runtime_dir / "control.sock"))
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def test_frames_arrive_as_they_were_sent(peers: Peers) -> None:
    """At every depth the same bytes come out that went in, in the order of their publisher."""
    publisher, subscriber = peers.publisher(), peers.subscriber(b"a.b\0")
    frames = [event("a.b", number, depth=number % 8) for number in range(1, 200)]
    for sent in frames:
        publisher.send(sent)
    got = received(subscriber, len(frames))
    assert got == frames
    assert decode_event(got[0]).topic == "a.b"
