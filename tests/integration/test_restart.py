"""Brokers that die, subscribers that stop: clients come back by themselves, and every loss is counted."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.client import Publisher, Subscriber
from broker.client.tool import Tool
from broker.testing import running_broker
from tests.integration.waiting import until


class Broker:
    """A broker that can be killed and started again in the same directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it; returns when it is ready."""
        command = [sys.executable, "-P", "-m", "broker", "--runtime-dir", str(self.directory), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], 40)[0], "the broker is not ready"
        assert self.process.stdout.readline()

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.end()

    def end(self) -> None:
        """Wait for its end."""
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.wait(40)
        self.process.stdout.close()
        self.process = None


@pytest.fixture
def broker(runtime_dir: Path) -> Iterator[Broker]:
    """A broker; ended in order."""
    made = Broker(runtime_dir)
    yield made
    if made.process is not None:
        made.process.terminate()
        made.end()


class Reader:
    """A subscriber with a thread that reads it; ``got`` counts what came."""

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        self.got: list[tuple[str, str, int]] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with suppress(Exception):
            for event in self.subscriber:
                self.got.append((event.publisher, event.topic, event.sequence))

    @property
    def account(self) -> int:
        """Received and missed together."""
        return len(self.got) + int(self.subscriber.stats["missed"])

    def close(self) -> None:
        """End both."""
        self.subscriber.close()
        self._thread.join(20)


def test_after_a_kill_sent_is_received_plus_counted_gap(broker: Broker) -> None:
    """kill -9 under load and a new broker: clients resume by themselves, in order; accounts close."""
    directory = broker.directory
    readers = [Reader(Subscriber(["prx.*"], name=f"reader-{n}", runtime_dir=directory)) for n in range(2)]
    agents = [Publisher(f"agent-{n}", runtime_dir=directory, on_absent="raise") for n in range(2)]
    pause = threading.Event()
    try:
        for second in range(6):
            for step in range(100):
                for agent in agents:
                    agent.publish(f"prx.t{step % 2}", {"step": step})
                    if second >= 3:
                        agent.publish("prx.new", {"step": step})  # first used after the kill
                pause.wait(0.002)
            if second == 2:
                broker.kill()
            if second == 3:
                broker.start()
                until(lambda: all(r.subscriber.stats["away"] for r in readers), "the subscribers to notice")
        sent = sum(agent.stats["published"] for agent in agents)
        assert sent + sum(agent.stats["dropped_full"] for agent in agents) == 6 * 200 + 3 * 200
        until(lambda: all(reader.account == sent for reader in readers), f"the accounts of {sent} to close")
        for reader in readers:
            assert len(set(reader.got)) == len(reader.got), "an event came twice"
            assert reader.got != []
            last: dict[tuple[str, str], int] = {}
            for publisher, topic, sequence in reader.got:
                assert sequence > last.get((publisher, topic), 0), "order was not kept"
                last[publisher, topic] = sequence
            assert sum(sequence for (_, topic), sequence in last.items() if topic == "prx.t0") > 0
    finally:
        for reader in readers:
            reader.close()
        for agent in agents:
            agent.close()


def test_a_subscriber_that_is_busy_does_not_go_deaf(broker: Broker) -> None:
    """While its application handles an event, a subscriber renews its subscriptions with the new broker."""
    with (
        Subscriber(["prx.x"], runtime_dir=broker.directory) as events,
        Publisher("agent", runtime_dir=broker.directory) as agent,
    ):
        agent.publish("prx.x", {"n": 0})
        (event,) = events.batch(timeout=20)
        assert event.payload == {"n": 0}
        broker.kill()  # from here to the next batch() nobody asks for events
        broker.start()

        def heard() -> bool:
            with Tool("test", runtime_dir=broker.directory) as tool:
                return tool.publish("prx.x", {"n": 1}).matching == 1

        until(heard, "the busy subscriber to be registered again")
        until(lambda: _forwarded(broker) > 0, "events to pass")
        agent.publish("prx.x", {"n": 2})
        got: list[int] = []
        deadline = time.monotonic() + 40
        while 2 not in got:
            assert time.monotonic() < deadline, f"only {got} came"
            got += [event.payload["n"] for event in events.batch(timeout=0.2)]


def _forwarded(broker: Broker) -> int:
    with Tool("test", runtime_dir=broker.directory) as tool:
        return int(tool.request("status").body["status"]["forwarded"]["frames_out"])


def test_a_thousand_patterns_survive_a_restart(broker: Broker) -> None:
    """Every one of 1,000 patterns of one subscriber is alive at first and after a restart."""
    topics = [f"prx.space{n % 40}.t{n}" for n in range(1_000)]
    with (
        Subscriber(topics, runtime_dir=broker.directory) as events,
        Publisher("agent", runtime_dir=broker.directory) as agent,
    ):
        for turn in range(2):
            seen: list[str] = []
            for start in range(0, 1_000, 250):
                for topic in topics[start : start + 250]:
                    assert agent.publish(topic, {"turn": turn})
                deadline = time.monotonic() + 40
                while len(seen) < start + 250:
                    assert time.monotonic() < deadline, f"{len(seen)} of {start + 250} in turn {turn}"
                    seen += [event.topic for event in events.batch(timeout=0.2)]
            assert seen == topics
            if turn == 0:
                broker.kill()
                broker.start()
                until(
                    lambda: events.batch(timeout=0.1) == [] and events.stats["away"] == 1, "the new welcome"
                )
        assert events.stats["missed"] == 0


STOPPABLE = """
import sys, time, orjson
from broker.client import Subscriber
events = Subscriber(["prx.*"], name="stopped-one", runtime_dir=sys.argv[1])
print("ready", flush=True)
got = 0
while True:
    got += len(events.batch(timeout=0.2))
    print(orjson.dumps({"got": got, **events.stats}).decode(), flush=True)
"""


def test_a_stopped_subscriber_costs_the_others_nothing_and_counts_its_loss(broker: Broker) -> None:
    """Others receive everything; the stopped one's loss is in status, by name and count, when it returns."""
    directory = broker.directory
    command = [sys.executable, "-c", STOPPABLE, str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    reader = Reader(Subscriber(["prx.*"], name="other", runtime_dir=directory))
    agent = Publisher("agent", runtime_dir=directory)
    lines: list[dict[str, Any]] = []
    drain = threading.Thread(target=lambda: lines.extend(orjson.loads(line) for line in process.stdout or ()))
    drain.start()
    body = b'{"text":"' + b"x" * 8_200 + b'"}'  # too large to share a frame
    total = 10_000
    try:
        process.send_signal(signal.SIGSTOP)
        for number in range(total):
            while not agent.publish("prx.x", body) or number - len(reader.got) > 1_000:
                threading.Event().wait(0.001)
        sent = agent.stats["published"]
        until(lambda: len(reader.got) == sent, "the other one to have everything")
        assert reader.subscriber.stats["missed"] == 0
        process.send_signal(signal.SIGCONT)
        until(
            lambda: lines and lines[-1]["got"] + lines[-1]["missed"] == sent and lines[-1]["missed"] > 0,
            "the stopped one's account to close",
        )

        def reported() -> dict[str, Any]:
            with Tool("test", runtime_dir=directory) as tool:
                subscribers = tool.request("status").body["status"]["subscribers"]
            return next((each for each in subscribers if each["name"] == "stopped-one"), {})

        until(lambda: reported().get("missed") == lines[-1]["missed"], "the loss in status")
        assert reported()["gaps"] == {"prx.x": lines[-1]["missed"]}
    finally:
        process.kill()
        process.wait()
        drain.join(20)
        process.stdout.close()
        reader.close()
        agent.close()


def test_a_drain_loses_nothing_and_holds_publishers(broker: Broker) -> None:
    """SIGTERM under load: what publish() took arrives, the rest is counted, the broker exits 0."""
    directory = broker.directory
    reader = Reader(Subscriber(["prx.x"], runtime_dir=directory))
    agent = Publisher("agent", runtime_dir=directory)
    stop = threading.Event()

    def load() -> None:
        while not stop.is_set():
            agent.publish("prx.x", {})
            stop.wait(0.0005)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        until(lambda: len(reader.got) > 200, "some events")
        assert broker.process is not None
        broker.process.terminate()
        assert broker.process.wait(40) == 0
        until(lambda: agent.stats["dropped_absent"] > 0, "the publisher to be held")
        stop.set()
        thread.join()
        sent = agent.stats["published"]
        until(lambda: len(reader.got) == sent, f"all {sent} events ({len(reader.got)} came)")
        broker.end()
        broker.start()
        until(lambda: agent.publish("prx.x", {}), "the publisher to be released")
        until(lambda: len(reader.got) == agent.stats["published"], "events through the new broker")
        assert reader.subscriber.stats["missed"] == 0
    finally:
        stop.set()
        thread.join()
        reader.close()
        agent.close()


def test_a_killed_publisher_is_listed_as_unknown_not_as_zero(runtime_dir: Path) -> None:
    """What a publisher killed with -9 never reported is not known: status names it."""
    program = (
        "import os, signal, sys\n"
        "from broker.client import Publisher\n"
        "bus = Publisher('doomed', runtime_dir=sys.argv[1])\n"
        "bus.publish_acknowledged('prx.x', {})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with running_broker(runtime_dir) as directory:
        subprocess.run([sys.executable, "-c", program, directory], check=False, timeout=30)

        def lost() -> list[str]:
            with Tool("test", runtime_dir=directory) as tool:
                return [each["name"] for each in tool.request("status").body["status"]["lost_publishers"]]

        until(lambda: lost() == ["doomed"], "the loss to be listed")
        assert os.path.exists(directory)
