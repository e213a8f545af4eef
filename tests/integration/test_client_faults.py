"""Forks, signals, threads and forgetfulness: what real programs do to a client."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.client import Publisher, Subscriber
from broker.client.tool import Tool
from broker.testing import running_broker
from tests.integration.waiting import until


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


CHILDREN = """
import multiprocessing, sys
from broker.client import Publisher

def work(bus):
    agent = Publisher("child", runtime_dir=bus, on_absent="raise")
    for number in range(200):
        assert agent.publish("prx.x", {"n": number, "text": "x" * 2_000})

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    children = [context.Process(target=work, args=(sys.argv[1],)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_lose_nothing(bus: str, tmp_path: Path, method: str) -> None:
    """Children that end without closing, as multiprocessing ends them, flush what they published."""
    assert method in multiprocessing.get_all_start_methods()
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    with Subscriber(["prx.x"], runtime_dir=bus) as events:
        done = threading.Event()

        def run() -> None:
            subprocess.run([sys.executable, script, bus, method], check=True, timeout=50)
            done.set()

        thread = threading.Thread(target=run)
        thread.start()
        got = 0
        deadline = time.monotonic() + 50
        while got < 600 and time.monotonic() < deadline:
            got += len(events.batch(timeout=0.2))
        thread.join(50)
        assert (done.is_set(), got, events.stats["missed"]) == (True, 600, 0)


SIGNALLED = """
import os, signal, sys, threading
from broker.client import Publisher, Subscriber
bus, what = sys.argv[1:]
agent = Publisher("me", runtime_dir=bus, on_absent="raise")
events = Subscriber(["prx.x"], runtime_dir=bus)
count = 0

def handler(*_):
    global count
    count += 1
    if what == "subscriber":
        events.close()
    elif what == "close" and count > 20:
        agent.close()
    else:
        agent.publish("prx.x", {"n": count}, retain=count % 2 == 0)

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.01)
if what == "subscriber":
    for event in events:
        pass
else:
    try:
        while what == "close" or count < 60:
            agent.publish("prx.x", {}, retain=True)
    except Exception as error:
        print(type(error).__name__)
signal.setitimer(signal.ITIMER_REAL, 0)
print("ended")
"""


@pytest.mark.parametrize(
    "what, said", [("subscriber", "ended"), ("publish", "ended"), ("close", "ClosedError\nended")]
)
def test_a_signal_handler_may_publish_and_close(bus: str, what: str, said: str) -> None:
    """A handler that interrupts its own client does not wait for it for ever."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", SIGNALLED, bus, what],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr


def test_numbers_stay_unique_when_threads_meet_a_full_queue(bus: str) -> None:
    """Many threads on fresh topics while the broker stands still: no number twice, and the count is true."""
    pid = int(Path(bus, "lock").read_text().split()[0])
    accepted: list[int] = []
    seen: set[str] = set()
    received = 0
    with Subscriber(["prx.*"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        topics = [f"prx.t{n}" for n in range(200)]

        def work(offset: int) -> None:
            taken = 0
            for turn in range(3_000):
                taken += agent.publish(topics[(turn // 15 + offset) % 200], b'{"a":"' + b"x" * 900 + b'"}')
            accepted.append(taken)

        threads = [threading.Thread(target=work, args=(n // 2,)) for n in range(4)]
        for thread in threads:
            thread.start()
        pause = threading.Event()
        while any(thread.is_alive() for thread in threads):
            os.kill(pid, signal.SIGSTOP)
            pause.wait(0.03)
            os.kill(pid, signal.SIGCONT)
            for event in events.batch(timeout=0.05):
                assert event.id not in seen
                seen.add(event.id)
                received += 1
        for thread in threads:
            thread.join()
        assert sum(accepted) == agent.stats["published"]
        deadline = time.monotonic() + 40
        while received + events.stats["missed"] != sum(accepted):
            assert time.monotonic() < deadline, (received, events.stats, agent.stats)
            for event in events.batch(timeout=0.2):
                assert event.id not in seen
                seen.add(event.id)
                received += 1


def test_a_client_that_nobody_holds_is_closed_with_a_warning(bus: str) -> None:
    """Forgetting to close costs a warning and no thread or descriptor for the rest of the process."""

    def held() -> tuple[int, int]:
        return threading.active_count(), len(os.listdir("/proc/self/fd"))

    with Publisher("first", runtime_dir=bus):  # opens what all clients share
        before = held()
        with pytest.warns(ResourceWarning, match="was not closed"):  # noqa: PT031
            for _ in range(10):
                Publisher("me", runtime_dir=bus)
                Subscriber(["prx.x"], runtime_dir=bus)
            gc.collect()
        until(lambda: held() <= before, "threads and descriptors to go")


@pytest.mark.parametrize("value", [object(), {"n": 2**70}, None])
def test_a_faulty_report_is_reported_and_ends_nothing(bus: str, value: object) -> None:
    """Whatever the caller's report function does, events come and the broker hears of the fault."""

    def report() -> dict[str, object]:
        if value is None:
            raise RuntimeError("no report today")
        return value  # type: ignore[return-value]

    with (
        Subscriber(["prx.x"], name="faulty", runtime_dir=bus, report=report) as events,
        Publisher("me", runtime_dir=bus) as agent,
    ):
        agent.publish("prx.x", {})
        assert len(events.batch(timeout=20)) == 1

        def told() -> bool:
            with Tool("test", runtime_dir=bus) as tool:
                (subscriber,) = tool.request("status").body["status"]["subscribers"]
            return bool(subscriber.get("report_errors"))

        until(told, "the fault in status")


def test_closing_beside_a_restarting_broker_ends_the_iteration_cleanly(runtime_dir: Path) -> None:
    """Threads in ``for event in events`` end without an exception, whenever they are closed."""
    failures: list[BaseException] = []

    def read(events: Subscriber) -> None:
        try:
            for _ in events:
                pass
        except BaseException as error:
            failures.append(error)

    opened = []
    with running_broker(runtime_dir) as bus:
        for _ in range(6):
            events = Subscriber(["prx.x"], runtime_dir=bus)
            thread = threading.Thread(target=read, args=(events,))
            thread.start()
            opened.append((events, thread))
    with running_broker(runtime_dir):
        pause = threading.Event()
        for events, thread in opened:
            pause.wait(0.02)
            events.close()
            thread.join(20)
            assert not thread.is_alive()
    assert failures == []
