"""Publisher and Subscriber against a real broker: nothing lost to a late start, everything counted."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.client import Event, Publisher, Subscriber, handling, spool
from broker.protocol.errors import (
    BusUnreachable,
    ClaimExpired,
    ClosedError,
    ForkedError,
    LimitExceeded,
    QueueFull,
    RuntimeDirError,
    SchemaError,
    SpoolFull,
    TopicError,
)
from broker.protocol.limits import PAYLOAD_BYTES
from broker.testing import running_broker
from tests.integration.waiting import until

TOPIC = "prx.lifecycle.tool_call"


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


def take(subscriber: Subscriber, count: int, seconds: float = 20.0) -> list[Event]:
    """The next ``count`` events."""
    events: list[Event] = []
    deadline = time.monotonic() + seconds
    while len(events) < count:
        assert time.monotonic() < deadline, f"{len(events)} of {count} events came; {subscriber.stats}"
        events += subscriber.batch(count - len(events), timeout=0.5)
    return events


def test_an_event_arrives_with_everything_that_was_said(bus: str) -> None:
    """Topic, payload, session, source, depth, cause, time and id come out as they went in."""
    with Subscriber(["prx.lifecycle.*"], name="audit", runtime_dir=bus) as events:
        with Publisher("my-agent/1.0", runtime_dir=bus) as agent:
            before = time.time_ns()
            assert agent.publish(
                TOPIC, {"tool": "Bash", "success": True}, session_id="s1", depth=2, caused_by="x"
            )
            (event,) = take(events, 1)
        assert (event.topic, event.payload) == (TOPIC, {"tool": "Bash", "success": True})
        assert (event.session_id, event.source, event.depth, event.caused_by) == (
            "s1",
            "my-agent/1.0",
            2,
            "x",
        )
        assert before <= event.time_ns <= time.time_ns()
        assert event.id.endswith(f":{TOPIC}:1")


def test_patterns_decide_who_gets_what(bus: str) -> None:
    """Exact, trailing and middle stars deliver exactly what they match, in order."""
    topics = ["prx.a", "prx.a.error", "prx.ab.error", "prx.a.b.error", "prxx.a"]
    with Publisher("me", runtime_dir=bus) as agent:
        for pattern, expected in {
            "prx.a": ["prx.a"],
            "prx.*": topics[:4],
            "prx.*.error": ["prx.a.error", "prx.ab.error"],
            "*": topics,
        }.items():
            with Subscriber([pattern], runtime_dir=bus) as events:
                for topic in topics:
                    agent.publish(topic, {})
                assert [event.topic for event in take(events, len(expected))] == expected


def test_overlapping_patterns_deliver_once(bus: str) -> None:
    """An event that several patterns of one subscriber match comes once."""
    with (
        Subscriber(["prx.*", "prx.a.*", "*"], runtime_dir=bus) as events,
        Publisher("me", runtime_dir=bus) as agent,
    ):
        agent.publish("prx.a.b", {"n": 1})
        agent.publish("prx.a.b", {"n": 2})
        assert [event.payload["n"] for event in take(events, 2)] == [1, 2]


def test_nothing_is_lost_to_a_fresh_publisher_or_subscriber(bus: str) -> None:
    """Events published right after either constructor returned arrive, thirty times over."""
    with Subscriber(["prx.x"], runtime_dir=bus) as old:
        for number in range(30):
            with Publisher("me", runtime_dir=bus) as agent:
                assert agent.ready
                agent.publish("prx.x", {"n": number})
        assert [event.payload["n"] for event in take(old, 30)] == list(range(30))
    with Publisher("me", runtime_dir=bus) as agent:
        for number in range(30):
            with Subscriber(["prx.y"], runtime_dir=bus) as fresh:
                agent.publish("prx.y", {"n": number})
                assert take(fresh, 1)[0].payload == {"n": number}


def test_a_burst_arrives_in_order(bus: str) -> None:
    """What publish() took arrives, in order; what it did not take is counted."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        taken: list[int] = []
        got: list[int] = []
        for start in range(0, 20_000, 500):
            taken += [n for n in range(start, start + 500) if agent.publish("prx.x", {"n": n})]
            got += [event.payload["n"] for event in take(events, len(taken) - len(got))]
        assert got == taken
        assert len(taken) + agent.stats["dropped_full"] == 20_000
        assert events.stats["missed"] == 0


def test_many_threads_may_publish(bus: str) -> None:
    """Numbers stay gap-free when eight threads publish at once."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        threads = [
            threading.Thread(target=lambda: [agent.publish("prx.x", {}) for _ in range(100)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numbers = [event.sequence for event in take(events, 800)]
        assert sorted(numbers) == list(range(1, 801))
        assert events.stats["missed"] == 0


def test_a_broken_off_loop_loses_nothing(bus: str) -> None:
    """Events that a loop did not see before its break come first in the next one."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        for number in range(50):
            agent.publish("prx.x", {"n": number})
        seen = []
        for stop in (3, 20, 49):
            for event in events:
                seen.append(event.payload["n"])
                if seen[-1] >= stop:
                    break
        assert seen == list(range(50))


def test_closing_from_another_thread_ends_the_loop(bus: str) -> None:
    """A loop that waits for events ends when the subscriber is closed elsewhere."""
    events = Subscriber(["prx.x"], runtime_dir=bus)
    thread = threading.Thread(target=lambda: list(events))
    thread.start()
    events.close()
    thread.join(5)
    assert not thread.is_alive()
    with pytest.raises(ClosedError):
        events.batch()


@pytest.mark.parametrize("size", [PAYLOAD_BYTES - 1, PAYLOAD_BYTES, PAYLOAD_BYTES + 1, 3_000_000])
def test_payloads_of_every_size_arrive_whole(bus: str, size: int) -> None:
    """Up to 65,536 bytes in the frame, above that by claim check."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        body = b'{"a":"' + b"x" * (size - 8) + b'"}'
        assert agent.publish("prx.x", body)
        (event,) = take(events, 1)
        assert event.payload_bytes == body
        assert (event.claim is not None) == (size > PAYLOAD_BYTES) == (agent.stats["claims"] == 1)


def test_a_claim_whose_file_is_gone_says_so(bus: str) -> None:
    """An expired claim is an error with a name when the payload is asked for; the event itself arrives."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        agent.publish("prx.x", {"a": "x" * 70_000})
        (event,) = take(events, 1)
        assert event.claim is not None
        Path(bus, "spool", event.claim.reference).unlink()
        with pytest.raises(ClaimExpired, match="no longer there"):
            _ = event.payload


def claims(bus: str) -> list[str]:
    """The claims in the spool."""
    return [name for name in os.listdir(f"{bus}/spool") if not name.startswith(".")]


def test_a_full_spool_refuses_young_claims_and_gives_up_old_ones(bus: str) -> None:
    """Beyond its capacity the oldest claim goes, but none of the last seconds: those are a refusal."""
    with Publisher("me", runtime_dir=bus) as agent:
        agent.publish_acknowledged("prx.y", {})  # the welcome, with the broker's own limits, is here
        agent._spool.capacity = 150_000
        agent.publish("prx.x", {"a": "x" * 100_000})
        with pytest.raises(SpoolFull, match="it holds 100,008 of at most 150,000 bytes"):
            agent.publish("prx.x", {"a": "x" * 100_000})
        (first,) = claims(bus)
        os.utime(f"{bus}/spool/{first}", (time.time() - 60,) * 2)
        assert agent.publish("prx.x", {"a": "x" * 100_000})
        assert len(claims(bus)) == 1
        assert claims(bus) != [first]
        assert agent.stats["claims"] == 2


def test_a_full_disk_is_a_refusal_that_leaves_nothing(bus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fills up in the middle of a payload, publish says so and the half file is removed."""

    class FullDisk:
        """A file whose disk is full after the first write."""

        def __init__(self, descriptor: int, *_: Any, **__: Any) -> None:
            self.descriptor = descriptor

        def __enter__(self) -> FullDisk:
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self.descriptor)

        def write(self, data: memoryview) -> int:
            if len(data) > 50_000:
                return os.write(self.descriptor, data[:50_000])
            raise OSError(errno.ENOSPC, "No space left on device")

    with Publisher("me", runtime_dir=bus) as agent:
        monkeypatch.setattr(spool, "open", FullDisk, raising=False)
        with pytest.raises(SpoolFull, match="no space left on its disk; make room there, or publish with"):
            agent.publish("prx.x", {"a": "x" * 90_000})
        assert claims(bus) == []
        assert agent.publish("prx.x", {"a": "small events still go"})


@pytest.mark.parametrize(
    "topic, payload, options, error, words",
    [
        ("prx.*", {}, {}, TopicError, r"'\*' is for patterns, not for topics \(position 4\)"),
        ("agent:start", {}, {}, TopicError, "did you mean 'agent.start'"),
        ("prx.x", b"{'a': 1}", {}, SchemaError, "payload is not JSON"),
        ("prx.x", {"a": [1, float("nan")]}, {}, SchemaError, r"payload.a\[1\] is nan, which JSON cannot say"),
        ("prx.x", {"a": object()}, {}, SchemaError, "payload cannot be written as JSON"),
        ("prx.x", b"[1]", {}, SchemaError, "payload is of type list, not an object"),
        ("prx.x", [1], {}, SchemaError, "a dict or the bytes of a JSON object is expected"),
        ("prx.x", None, {}, SchemaError, "payload is null"),
        (TOPIC, {"success": "yes"}, {}, SchemaError, "success"),
        ("prx.x", {"a": "x" * 65_529}, {}, LimitExceeded, "65,537 bytes of JSON is larger than 65,536"),
        ("prx.x", {}, {"session_id": "s" * 257}, LimitExceeded, "at most 256 bytes, not 257 bytes"),
        ("prx.x", {}, {"session_id": 7}, LimitExceeded, "session id must be a string"),
        ("prx.x", {}, {"caused_by": "c" * 400}, LimitExceeded, "caused_by must be an event id"),
        ("prx.x", {}, {"depth": -1}, LimitExceeded, "depth must be a whole number from 0 up, not -1"),
        ("prx.x", {}, {"depth": True}, LimitExceeded, "depth must be a whole number"),
    ],
)
def test_refusals_raise_say_what_is_wrong_and_take_no_number(
    bus: str, topic: str, payload: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Each bad input is refused by name, publishes nothing, and the next event is number 1."""
    with (
        Subscriber(["*"], runtime_dir=bus) as events,
        Publisher("me", runtime_dir=bus, oversize="reject") as agent,
    ):
        with pytest.raises(error, match=words):
            agent.publish(topic, payload, **options)
        agent.publish("prx.x", {})
        (event,) = take(events, 1)
        assert (event.sequence, agent.stats["published"]) == (1, 1)


@pytest.mark.parametrize("depth", [8, 9, 300])
def test_depth_eight_is_dropped_silently_and_counted(bus: str, depth: int) -> None:
    """Too deep an event raises nothing, arrives nowhere, takes no number and is counted."""
    with Subscriber(["*"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        assert agent.publish("prx.x", {}, depth=depth) is False
        assert agent.publish("prx.x", {}, depth=7) is True
        (event,) = take(events, 1)
        assert (event.depth, event.sequence, agent.stats["over_depth"]) == (7, 1, 1)


def test_a_chain_of_handlers_ends_at_depth_seven(bus: str) -> None:
    """A handler that answers every event with another one stops by itself after eight events."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        agent.publish("prx.x", {})
        seen = []
        while agent.stats["over_depth"] == 0:
            (event,) = take(events, 1)
            seen.append(event)
            with handling(event):
                agent.publish("prx.x", {})
        assert [event.depth for event in seen] == list(range(8))
        assert [event.caused_by for event in seen[1:]] == [event.id for event in seen[:-1]]


def test_the_environment_hands_depth_and_cause_down(bus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PRXBUS_DEPTH and PRXBUS_CAUSE are a floor for what this process publishes; malformed counts as 7."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events:
        for value, expected in [("3", 3), ("x", 7), ("-1", 7), ("0", 0)]:
            monkeypatch.setenv("PRXBUS_DEPTH", value)
            monkeypatch.setenv("PRXBUS_CAUSE", "the-cause")
            with Publisher("me", runtime_dir=bus) as agent:
                agent.publish("prx.x", {}, depth=0)
                (event,) = take(events, 1)
                assert (event.depth, event.caused_by) == (expected, "the-cause")
        monkeypatch.setenv("PRXBUS_DEPTH", "8")
        with Publisher("me", runtime_dir=bus) as agent:
            assert agent.publish("prx.x", {}) is False


def test_retained_values_come_first(bus: str) -> None:
    """A subscriber that asks gets the last value of each retained topic before anything else, once."""
    with Publisher("me", runtime_dir=bus) as agent:
        for number in range(3):
            agent.publish("prx.state", {"n": number}, retain=True)
        agent.publish("prx.other", {"n": 9}, retain=True)
        assert agent.publish_acknowledged("prx.plain", {}) == 0  # the broker has handled all before it
        with Subscriber(["prx.*"], last=True, runtime_dir=bus) as events:
            agent.publish("prx.state", {"n": 3})
            first = take(events, 3)
            assert {(event.topic, event.payload["n"]) for event in first[:2]} == {
                ("prx.state", 2),
                ("prx.other", 9),
            }
            assert first[2].payload == {"n": 3}
        with Subscriber(["prx.*"], runtime_dir=bus) as events:
            assert events.batch(timeout=0.05) == []


def test_an_acknowledged_publish_says_how_many_listen(bus: str) -> None:
    """The broker counts the subscribers whose patterns match."""
    with Publisher("me", runtime_dir=bus) as agent:
        assert agent.publish_acknowledged("prx.z", {}) == 0
        with Subscriber(["prx.*"], runtime_dir=bus) as one, Subscriber(["prx.x"], runtime_dir=bus) as two:
            with Subscriber(["prx.y"], runtime_dir=bus):
                assert agent.publish_acknowledged("prx.x", {"n": 1}) == 2
            assert take(one, 1)[0].payload == take(two, 1)[0].payload == {"n": 1}


def test_without_a_bus_a_publisher_drops_and_counts_until_one_appears(runtime_dir: Path) -> None:
    """The constructor returns within its 200 ms; drops are counted; a bus that appears is used."""
    with Publisher("me", runtime_dir=runtime_dir) as agent:
        assert not agent.ready
        assert agent.publish("prx.x", {}) is False
        assert agent.stats["dropped_absent"] == 1
        with running_broker(runtime_dir), Subscriber(["prx.x"], runtime_dir=runtime_dir) as events:
            until(lambda: agent.publish("prx.x", {"n": 1}), "the publisher to find the bus")
            (event,) = take(events, 1)
            assert event.sequence == 1


def test_without_a_bus_raise_and_block_raise(runtime_dir: Path) -> None:
    """on_absent="raise" and "block" raise BusUnreachable with what to do; so does a Subscriber."""
    with pytest.raises(BusUnreachable, match="start one with 'prxbus up'"):
        Publisher("me", runtime_dir=runtime_dir, on_absent="raise")
    with pytest.raises(BusUnreachable, match=r"within 0\.3 s"):
        Publisher("me", runtime_dir=runtime_dir, on_absent="block", block_seconds=0.3)
    with pytest.raises(BusUnreachable, match="no bus answers in"):
        Subscriber(["*"], runtime_dir=runtime_dir)


def test_a_subscriber_can_wait_for_a_bus(runtime_dir: Path) -> None:
    """With wait= the constructor returns once a bus has appeared."""
    got: list[Subscriber] = []
    thread = threading.Thread(target=lambda: got.append(Subscriber(["*"], runtime_dir=runtime_dir, wait=20)))
    thread.start()
    with running_broker(runtime_dir):
        thread.join(20)
        assert got
        got[0].close()


def test_a_full_queue_is_counted_or_raised(bus: str) -> None:
    """With the broker stopped, drop counts, raise raises at once and block after its deadline."""
    pid = int(Path(bus, "lock").read_text().split()[0])
    with (
        Publisher("drop", runtime_dir=bus) as drop,
        Publisher("raise", runtime_dir=bus, on_full="raise") as raising,
        Publisher("block", runtime_dir=bus, on_full="block", block_seconds=0.2) as block,
    ):
        os.kill(pid, signal.SIGSTOP)
        try:
            body = b'{"a":"' + b"x" * 60_000 + b'"}'
            taken = sum(drop.publish("prx.x", body) for _ in range(3_000))
            assert 500 <= taken < 3_000
            assert drop.stats == {**drop.stats, "published": taken, "dropped_full": 3_000 - taken}
            for agent in (raising, block):
                with pytest.raises(QueueFull, match="the queue to the broker is full"):  # noqa: PT012
                    for _ in range(3_000):
                        agent.publish("prx.x", body)
                assert agent.stats["dropped_full"] == 1
        finally:
            os.kill(pid, signal.SIGCONT)


def test_after_close_and_after_fork_every_call_says_so(bus: str) -> None:
    """A closed client raises ClosedError; a forked child that uses the parent's gets ForkedError."""
    agent, events = Publisher("me", runtime_dir=bus), Subscriber(["prx.x"], runtime_dir=bus)
    child = os.fork()
    if child == 0:
        code = 0
        for call in (lambda: agent.publish("prx.x", {}), lambda: events.batch(timeout=0)):
            try:
                call()
                code = 1
            except ForkedError:
                pass
        agent.close()
        events.close()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    agent.publish("prx.x", {"n": 1})
    assert take(events, 1)[0].payload == {"n": 1}  # the parent's clients are undisturbed
    agent.close()
    agent.close()
    events.close()
    with pytest.raises(ClosedError):
        agent.publish("prx.x", {})
    with pytest.raises(ClosedError):
        agent.publish_acknowledged("prx.x", {})


def test_a_process_that_just_ends_loses_nothing(bus: str) -> None:
    """Events of a program that neither closes nor waits arrive: they are flushed at exit."""
    program = (
        "from broker.client import Publisher\n"
        f"bus = Publisher('script', runtime_dir={bus!r})\n"
        "assert all(bus.publish('prx.x', {'n': n}) for n in range(500))\n"
    )
    with Subscriber(["prx.x"], runtime_dir=bus) as events:
        subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
        assert [event.payload["n"] for event in take(events, 500)] == list(range(500))
        until(lambda: events.batch(timeout=0.01) == [] and events.stats["missed"] == 0, "a clean account")


def test_a_directory_that_others_could_write_is_refused(runtime_dir: Path) -> None:
    """A client does not connect in a directory that somebody else could have filled."""
    runtime_dir.chmod(0o777)
    with pytest.raises(RuntimeDirError, match="chmod 700"):
        Publisher("me", runtime_dir=runtime_dir)
    with pytest.raises(RuntimeDirError, match="chmod 700"):
        Subscriber(["*"], runtime_dir=runtime_dir)


def test_names_and_choices_are_checked(bus: str) -> None:
    """Impossible options are refused by name before anything is opened."""
    with pytest.raises(LimitExceeded, match="source must be a string of 1 to 128 bytes"):
        Publisher("s" * 129, runtime_dir=bus)
    with pytest.raises(ValueError, match="on_full must be one of drop, block, raise"):
        Publisher("me", runtime_dir=bus, on_full="wait")  # type: ignore[arg-type]
    with pytest.raises(LimitExceeded, match="name must be a string of 1 to 128 bytes"):
        Subscriber(["*"], name="", runtime_dir=bus)
    with pytest.raises(LimitExceeded, match="1,001 patterns are more than the 1,000"):
        Subscriber([f"prx.t{n}" for n in range(1_001)], runtime_dir=bus)
    with pytest.raises(TopicError, match="position 8"):
        Subscriber(["prx.life*"], runtime_dir=bus)


def test_lag_grows_while_nobody_reads(bus: str) -> None:
    """A subscriber whose application is elsewhere reports how long events have waited; reading ends it."""
    with (
        Publisher("agent", runtime_dir=bus, on_absent="block") as agent,
        Subscriber(["prx.x"], runtime_dir=bus) as events,
    ):
        agent.publish("prx.x", {})
        until(lambda: events.stats["lag_ms"] > 1_000, "a lag that grows unread")

        def prompt() -> bool:
            events.batch(timeout=0.1)
            agent.publish("prx.x", {})
            return len(events.batch(timeout=20)) > 0 and events.stats["lag_ms"] < 1_000

        until(prompt, "an event that was read at once")
