"""A client written from the wire document alone meets the broker and our own client, both ways."""

from __future__ import annotations

import ast
import hashlib
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import broker.protocol
from broker.client import Event, Publisher, Subscriber
from broker.client.sockets import end_context
from broker.protocol.batches import decode_batch
from broker.protocol.beacons import decode_beacon
from broker.protocol.errors import DecodeError
from broker.protocol.events import decode_event
from tests.integration.stranger_scene import DEADLINE_S, Bus, Program

STRANGER = Path(__file__).with_name("stranger.py")
DOCUMENT = (Path(broker.protocol.__file__).parent / "WIRE.md").read_text()

EXAMPLES = {
    name: bytes.fromhex("".join(line.partition(";")[0] for line in text.splitlines()))
    for name, text in re.findall(r"```hex (\w+)\n(.*?)```", DOCUMENT, re.DOTALL)
    if name != "lane"  # a stream, and no frame
}


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[Bus]:
    """A running broker."""
    running = Bus(runtime_dir, STRANGER)
    try:
        yield running
    finally:
        running.close()
        end_context()


def take(events: Subscriber, count: int) -> list[Event]:
    """That many events, within the deadline."""
    taken: list[Event] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(taken) < count:
        assert time.monotonic() < deadline, f"only {taken}"
        taken += events.batch(timeout=0.1)
    return taken


def await_stats(events: Subscriber, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The statistics of ``events`` once ``condition`` holds for them."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition(events.stats):
        assert time.monotonic() < deadline, events.stats
        events.batch(timeout=0.05)
    return events.stats


def await_counts(listener: Program, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The counts of a stranger once ``condition`` holds for them; it must have no event left to tell."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition(counts := listener.do(do="counts")["counts"]):
        assert time.monotonic() < deadline, counts
    assert isinstance(counts, dict)
    return counts


# -- on paper ---------------------------------------------------------------------------------------


def test_the_stranger_knows_nothing_of_ours() -> None:
    """It imports the standard library, zmq and msgpack only."""
    imports = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else name.name
        for node in ast.walk(ast.parse(STRANGER.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert {name.partition(".")[0] for name in imports} - sys.stdlib_module_names == {"zmq", "msgpack"}


def decoded_by_stranger(frames: list[bytes]) -> list[dict[str, Any]]:
    """What the stranger's decoder makes of ``frames``."""
    text = "\n".join(frame.hex() for frame in frames)
    done = subprocess.run(
        [sys.executable, "-I", str(STRANGER), "decode"],
        input=text,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_stranger_reads_the_examples() -> None:
    """The document's annotated frames hold what their annotations say."""
    event, claim, batch, beacon = decoded_by_stranger(
        [EXAMPLES[name] for name in ("event", "claim", "batch", "beacon")]
    )
    publisher = "18867251edfa00000123456789abcdef"
    tool_call = {
        "topic": "prx.lifecycle.tool_call",
        "depth": 0,
        "id": f"{publisher}:prx.lifecycle.tool_call:1",
        "publisher": publisher,
        "sequence": 1,
        "time": 1_767_225_601_500_000_000,
        "session": "s1",
        "source": "my-agent/1.0",
        "cause": None,
        "payload": '{"tool":"Bash","success":true}',
    }
    assert event == {"kind": "event", "event": tool_call}
    assert claim["event"]["claim"] == {
        "size": 70_000,
        "sha256": "00112233445566778899aabbccddeeff" * 2,
        "file": "0f1e2d3c",
        "head": '{"output":"',
    }
    assert batch["events"][0] == tool_call
    assert batch["events"][1]["topic"] == "prx.lifecycle.turn_complete"
    assert beacon["beacon"] == {
        "publisher": publisher,
        "source": "my-agent/1.0",
        "closing": False,
        "topics": {"prx.lifecycle.tool_call": [1_767_225_601_500_000_000, 1]},
    }


def decoded_by_us(frame: bytes) -> dict[str, Any]:
    """What our decoders make of a frame, as far as it can be compared."""
    name = frame[1:].partition(b"\0")[0]
    try:
        if name.startswith(b"~"):
            return {"kind": "batch", "ids": [event.id for event in decode_batch(frame)]}
        if name.startswith(b"$beacon."):
            return {"kind": "beacon", "topics": dict(decode_beacon(frame).topics)}
        return {"kind": "event", "ids": [decode_event(frame).id]}
    except DecodeError:
        return {"kind": "refused"}


def comparable(found: dict[str, Any]) -> dict[str, Any]:
    """What the stranger found, in the same form."""
    if found["kind"] == "beacon":
        return {"kind": "beacon", "topics": {t: tuple(n) for t, n in found["beacon"]["topics"].items()}}
    if found["kind"] == "refused":
        return {"kind": "refused"}
    return {"kind": found["kind"], "ids": [e["id"] for e in found.get("events", [found.get("event")])]}


def test_the_stranger_takes_and_refuses_what_we_do() -> None:
    """Two decoders written apart agree on thousands of damaged frames."""
    chance = random.Random(2)
    frames = []
    for _ in range(3_000):
        frame = bytearray(chance.choice(list(EXAMPLES.values())))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(frame))
            frame[at : at + chance.choice((0, 1, 1, 1, 2))] = chance.randbytes(chance.choice((0, 1, 1, 1, 2)))
        if not frame[1:].startswith(b"$") or frame[1:].startswith(b"$beacon."):
            frames.append(bytes(frame))
    ours = [decoded_by_us(frame) for frame in frames]
    theirs = [comparable(found) for found in decoded_by_stranger(frames)]
    different = [(f.hex(), a, b) for f, a, b in zip(frames, ours, theirs, strict=True) if a != b]
    assert different == []
    taken = sum(found["kind"] != "refused" for found in ours)
    assert 250 < taken < len(frames) - 250  # both verdicts are well represented


# -- on the bus -------------------------------------------------------------------------------------


def test_strangers_meet_on_the_bus(bus: Bus) -> None:
    """A subscriber and a publisher in another language need nothing of ours but the broker."""
    listener = bus.stranger("listen", "ears", "prx.*", "other")
    sender = bus.stranger("send", "mouth/1.0")
    sent = sender.do(do="event", topic="prx.a.b", payload='{"n":1}', session="s1", cause="c", depth=7)
    sender.do(do="event", topic="elsewhere", payload="{}")
    sender.do(do="event", topic="other", payload="{}")
    event = listener.answer()["event"]
    assert (event["id"], event["time"], event["session"], event["source"]) == (
        sent["id"],
        sent["time"],
        "s1",
        "mouth/1.0",
    )
    assert (event["cause"], event["depth"], event["payload"]) == ("c", 7, '{"n":1}')
    assert listener.answer()["event"]["topic"] == "other"
    sender.leave()
    assert listener.do(do="counts")["counts"]["received"] == 2
    listener.leave()


def test_a_stranger_hears_our_publisher(bus: Bus) -> None:
    """Every field of our events is where the document says, and our last beacon closes the account."""
    listener = bus.stranger("listen", "ears", "prx.lifecycle.*", "a.*.c")
    with Publisher("our-agent/2.0", runtime_dir=bus.directory) as ours:
        for depth in (0, 7):
            ours.publish(
                "prx.lifecycle.tool_call", {"tool": "Bäsh"}, session_id="sß", depth=depth, caused_by="c"
            )
        ours.publish("a.b.c", b"{ }")
        ours.publish("a.b.d", {})
    first, second, third = (listener.answer()["event"] for _ in range(3))
    assert first | {"time": 0, "id": "", "publisher": ""} == {
        "topic": "prx.lifecycle.tool_call",
        "depth": 0,
        "id": "",
        "publisher": "",
        "sequence": 1,
        "time": 0,
        "session": "sß",
        "source": "our-agent/2.0",
        "cause": "c",
        "payload": '{"tool":"Bäsh"}',
    }
    assert first["id"] == f"{first['publisher']}:prx.lifecycle.tool_call:1"
    assert abs(first["time"] - time.time_ns()) < 60e9
    assert (second["depth"], second["sequence"]) == (7, 2)
    assert (third["topic"], third["payload"]) == ("a.b.c", "{ }")
    counts = await_counts(listener, lambda counts: counts["received"] == 3)
    assert (counts["missed"], counts["late"]) == (0, 0)


def test_we_hear_a_stranger(bus: Bus) -> None:
    """Our subscriber delivers what a stranger publishes, whatever encoding of the same values it chose."""
    with Subscriber(["prx.*.b", "other"], name="ours", runtime_dir=bus.directory) as events:
        sender = bus.stranger("send", "mouth/1.0")
        sent = sender.do(do="event", topic="prx.a.b", payload='{"n":1}', session="s1", cause="c", depth=3)
        sender.do(do="event", topic="prx.a.other", payload="{}")
        sender.do(do="event", topic="other", payload="{}")
        first, second = take(events, 2)
        assert (first.id, first.time_ns, first.session_id, first.source, first.caused_by, first.depth) == (
            sent["id"],
            sent["time"],
            "s1",
            "mouth/1.0",
            "c",
            3,
        )
        assert first.payload == {"n": 1}
        assert second.topic == "other"
        sender.leave()
        assert events.stats["missed"] == 0


def test_a_batch_is_delivered_as_ordinary_events(bus: Bus) -> None:
    """Our subscriber delivers a batch's events in their place, those of its topics only, and misses none."""
    wanted = ["prx.lifecycle.tool_call", "prx.lifecycle.turn_complete"]
    with Subscriber(wanted, name="ours", runtime_dir=bus.directory) as events:
        sender = bus.stranger("send", "mouth")
        sender.do(do="event", topic=wanted[0], payload='{"n":1}')
        batch = [
            {"topic": wanted[0], "payload": '{"n":2}', "session": "s1"},
            {"topic": "prx.lifecycle.error", "payload": "{}"},
            {"topic": wanted[1], "payload": '{"n":3}', "cause": "c"},
            {"topic": wanted[0], "payload": '{"n":4}'},
        ]
        assert sender.do(do="batch", events=batch, depth=2) == {"sent": True}
        sender.do(do="event", topic=wanted[0], payload='{"n":5}')
        found = take(events, 5)
        assert [event.payload["n"] for event in found] == [1, 2, 3, 4, 5]
        assert [event.sequence for event in found] == [1, 2, 1, 3, 4]
        assert [event.depth for event in found] == [0, 2, 2, 2, 0]
        assert (found[1].session_id, found[2].caused_by, found[2].source) == ("s1", "c", "mouth")
        sender.leave()
        assert events.stats["missed"] == 0
        assert events.stats["received"] == 5


def test_both_count_the_same_loss(bus: Bus) -> None:
    """What is lost at the head, in the middle and at the tail is counted by us and by the stranger alike."""
    listener = bus.stranger("listen", "ears", "prx.*")
    with Subscriber("prx.*", name="ours", runtime_dir=bus.directory) as events:
        sender = bus.stranger("send", "mouth")
        for _ in range(2):
            sender.do(do="lose", topic="prx.head")
        sender.do(do="event", topic="prx.head", payload="{}")
        sender.do(do="event", topic="prx.middle", payload="{}")
        for _ in range(3):
            sender.do(do="lose", topic="prx.middle")
        sender.do(do="event", topic="prx.middle", payload="{}")
        sender.do(do="event", topic="prx.tail", payload="{}")
        for _ in range(4):
            sender.do(do="lose", topic="prx.tail")
        sender.do(do="lose", topic="prx.never")
        take(events, 4)
        sender.leave()  # with the closing beacon
        gaps = {"prx.head": 2, "prx.middle": 3, "prx.tail": 4, "prx.never": 1}
        stats = await_stats(events, lambda stats: bool(stats["missed"] == 10))
        assert stats["gaps"] == gaps
        assert stats["gaps_by_source"] == {"mouth": 10}
    for _ in range(4):
        listener.answer()
    counts = await_counts(listener, lambda counts: bool(counts["missed"] == 10))
    assert counts["gaps"] == gaps


def test_what_was_published_before_a_join_is_nobody_s_loss(bus: Bus) -> None:
    """Who joins amid a stream counts what it misses from there on, and a new topic from its start."""
    sender = bus.stranger("send", "mouth")
    for _ in range(5):
        sender.do(do="event", topic="prx.old", payload="{}")
    listener = bus.stranger("listen", "ears", "prx.*")
    with Subscriber("prx.*", name="ours", runtime_dir=bus.directory) as events:
        sender.do(do="lose", topic="prx.new")
        sender.do(do="event", topic="prx.new", payload="{}")
        sender.do(do="event", topic="prx.old", payload="{}")
        assert [event.sequence for event in take(events, 2)] == [2, 6]
        assert [listener.answer()["event"]["sequence"] for _ in range(2)] == [2, 6]
        sender.do(do="beacon")
        assert await_stats(events, lambda stats: bool(stats["missed"]))["gaps"] == {"prx.new": 1}
        counts = await_counts(listener, lambda counts: bool(counts["missed"]))
        assert counts["gaps"] == {"prx.new": 1}
        sender.do(do="lose", topic="prx.old")
        sender.do(do="beacon")
        stats = await_stats(events, lambda stats: bool(stats["missed"] == 2))
        assert stats["gaps"] == {"prx.new": 1, "prx.old": 1}
        assert await_counts(listener, lambda counts: bool(counts["missed"] == 2))["gaps"] == stats["gaps"]


def test_a_large_payload_goes_by_the_spool_both_ways(bus: Bus) -> None:
    """A claim of ours can be fetched as documented, and one written as documented is loaded by us."""
    listener = bus.stranger("listen", "ears", "prx.*")
    body = json.dumps({"output": "x" * 100_000})
    with (
        Publisher("ours", runtime_dir=bus.directory) as ours,
        Subscriber("prx.theirs", name="ours", runtime_dir=bus.directory) as events,
    ):
        ours.publish("prx.ours", body.encode())
        claim = listener.answer()["event"]["claim"]
        stored = (bus.directory / "spool" / claim["file"]).read_bytes()
        assert stored == body.encode()
        assert (claim["size"], claim["sha256"]) == (len(stored), hashlib.sha256(stored).hexdigest())
        assert body.startswith(claim["head"])
        bus.stranger("send", "mouth").do(do="event", topic="prx.theirs", payload=body)
        (event,) = take(events, 1)
        assert event.claim is not None
        assert event.payload_bytes == body.encode()


def test_a_tool_of_a_stranger_publishes_and_asks(bus: Bus) -> None:
    """Through the control plane alone a stranger publishes, learns who matches, reads what is retained."""
    tool = bus.stranger("tool", "wrench")
    with Subscriber("prx.*", name="ours", runtime_dir=bus.directory) as events:
        assert tool.do(do="publish", topic="prx.state", payload='{"n":1}', retain=True) == {
            "kind": "published",
            "matching": 1,
        }
        assert take(events, 1)[0].payload == {"n": 1}
        assert tool.do(do="publish", topic="else.where", payload="{}")["matching"] == 0
        told = tool.do(do="limits")["limits"]
        assert (told["payload"], told["spool_bytes"] > 0, told["claim_seconds"] > 0) == (65_536, True, True)
        status = tool.do(do="status")
        assert status["kind"] == "status_is"
        assert "wrench" in json.dumps(status)
        assert events.stats["missed"] == 0
    refused = tool.do(do="publish", topic="prx..x", payload="{}")
    assert (refused["kind"], refused["code"]) == ("error", "bad_message")
    with Publisher("ours", runtime_dir=bus.directory) as ours:
        assert ours.publish_acknowledged("prx.ours", {"n": 2}, retain=True) == 0
    for pattern, payloads in (("prx.*", ['{"n":1}', '{"n":2}']), ("prx.ours", ['{"n":2}']), ("no.*", [])):
        tool.tell(do="retained", patterns=[pattern])
        found = list(iter(tool.answer, {"end": True}))
        assert sorted(line["event"]["payload"] for line in found) == payloads
    with Subscriber("prx.state", name="late", last=True, runtime_dir=bus.directory) as late:
        (event,) = take(late, 1)
        assert (event.source, event.payload) == ("wrench", {"n": 1})


def test_what_is_no_event_is_counted_and_harms_nobody(bus: Bus) -> None:
    """Depth 8 does not pass the broker; garbage of an admitted depth is refused by reason at every end."""
    listener = bus.stranger("listen", "ears", "*")
    with Subscriber("*", name="ours", runtime_dir=bus.directory) as events:
        sender = bus.stranger("send", "mouth")
        for frame in (b"8prx.a\0", b"x", b"0prx..a\0", b"0prx.a\0", b"7prx.a\0\x91\x02", b"0$new.kind\0?"):
            assert sender.do(do="raw", frame=frame.hex()) == {"sent": True}
        sender.do(do="event", topic="prx.a", payload="{}")
        assert take(events, 1)[0].topic == "prx.a"
        assert events.stats["refused"] == {"topic": 1, "msgpack": 1, "version": 1}
    answers = [listener.answer() for _ in range(4)]
    assert [answer["reason"] for answer in answers[:3]] == ["topic", "msgpack", "version"]
    assert answers[3]["event"]["topic"] == "prx.a"


def test_a_stranger_outlives_the_broker(bus: Bus) -> None:
    """After a kill and a restart both strangers find the new broker, and the loss is counted."""
    listener = bus.stranger("listen", "ears", "prx.*")
    sender = bus.stranger("send", "mouth")
    sender.do(do="event", topic="prx.a", payload="{}")
    assert listener.answer()["event"]["sequence"] == 1
    bus.restart()
    assert listener.answer() == {"away": True}
    assert sender.answer() == {"away": True}
    sender.do(do="lose", topic="prx.a")
    sender.do(do="event", topic="prx.a", payload="{}")
    assert listener.answer()["event"]["sequence"] == 3
    assert listener.do(do="counts")["counts"]["gaps"] == {"prx.a": 1}


def test_a_broker_that_drains_asks_a_stranger_to_hold(bus: Bus) -> None:
    """A broker that ends in order tells its publishers first."""
    sender = bus.stranger("send", "mouth")
    bus.broker.process.send_signal(signal.SIGTERM)
    assert sender.answer() == {"hold": True}
    assert bus.broker.process.wait(DEADLINE_S) == 0
