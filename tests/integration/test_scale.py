"""A thousand of each: nobody who joins or is there loses an event."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broker.client import Publisher, Subscriber
from broker.testing import running_broker

THOUSAND = 1_000


@pytest.mark.timeout(300)
def test_a_thousand_fresh_publishers_and_subscribers_lose_nothing(runtime_dir: Path) -> None:
    """Each publishes or receives one event right after its constructor returned; all of them arrive."""
    with running_broker(runtime_dir) as bus:
        with Subscriber(["prx.fresh"], runtime_dir=bus) as events:
            for number in range(THOUSAND):
                with Publisher("fresh", runtime_dir=bus, on_absent="raise") as agent:
                    assert agent.publish("prx.fresh", {"n": number})
            got: list[int] = []
            deadline = time.monotonic() + 30
            while len(got) < THOUSAND and time.monotonic() < deadline:
                got += [event.payload["n"] for event in events.batch(timeout=0.5)]
            assert got == list(range(THOUSAND))
        with Publisher("agent", runtime_dir=bus, on_absent="raise") as agent:
            for number in range(THOUSAND):
                with Subscriber(["prx.fresh"], runtime_dir=bus) as fresh:
                    assert agent.publish("prx.fresh", {"n": number})
                    (event,) = fresh.batch(timeout=20)
                    assert event.payload == {"n": number}


CROWD = """
import sys, time
from broker.client import Publisher, Subscriber
bus, part, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
events = [Subscriber([f"prx.crowd.t{part}_{n}"], name=f"s{n}", runtime_dir=bus, wait=30) for n in range(each)]
agents = [Publisher(f"p{n}", runtime_dir=bus, on_absent="block", block_seconds=60) for n in range(each)]
print("connected", flush=True)
sys.stdin.readline()  # everybody is connected
for n, agent in enumerate(agents):
    assert agent.publish(f"prx.crowd.t{part}_{n}", {"n": n})
lost = 0
for n, subscriber in enumerate(events):
    batch = subscriber.batch(timeout=30)
    lost += [event.payload["n"] for event in batch] != [n]
print(lost, flush=True)
for client in agents + events:
    client.close()
"""


@pytest.mark.timeout(300)
def test_a_thousand_publishers_and_subscribers_at_once_lose_nothing(runtime_dir: Path) -> None:
    """With 1,000 publishers and 1,000 subscribers connected, every one of 1,000 events arrives."""
    parts = 4
    with running_broker(runtime_dir) as bus:
        crowd = [
            subprocess.Popen(
                [sys.executable, "-c", CROWD, bus, str(part), str(THOUSAND // parts)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            )
            for part in range(parts)
        ]
        try:
            for process in crowd:
                assert process.stdout is not None
                assert process.stdout.readline() == b"connected\n"
            for process in crowd:
                assert process.stdin is not None
                process.stdin.write(b"go\n")
                process.stdin.flush()
            outputs = [process.communicate(timeout=200)[0] for process in crowd]
            assert outputs == [b"0\n"] * parts
        finally:
            for process in crowd:
                process.kill()
                process.wait()
                for stream in (process.stdin, process.stdout):
                    if stream is not None:
                        stream.close()
