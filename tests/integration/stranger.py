"""A client of the bus written from WIRE.md alone: raw zmq and msgpack, nothing of ours.

It stands for a program in another language. It is driven by JSON lines on stdin and answers with
JSON lines on stdout; at the end of stdin it leaves the bus in order.

    stranger.py decode                          hexadecimal frames on stdin, what they hold on stdout
    stranger.py DIR listen NAME PATTERN...      {"do": "counts"}
    stranger.py DIR send SOURCE                 {"do": "event" | "lose" | "batch" | "beacon" | "raw", ...}
    stranger.py DIR tool NAME                   {"do": "publish" | "retained" | "status", ...}

Section numbers in comments are those of the document.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Iterable
from typing import Any

import msgpack
import zmq

VERSION = 1
DEPTHS = [b"%d" % depth for depth in range(8)]
SEGMENT = "[A-Za-z0-9_-]{1,64}"
TOPIC = re.compile(rf"{SEGMENT}(\.{SEGMENT}){{0,15}}")
TICK_MS = 50


class Refused(Exception):
    """What breaks a rule of the document; the text is its reason (13)."""


def say(**line: Any) -> None:
    """One line of answer."""
    print(json.dumps(line), flush=True)


def must(condition: bool, reason: str) -> None:
    """Refuse what does not hold."""
    if not condition:
        raise Refused(reason)


# -- 3: frames and keys -----------------------------------------------------------------------------


def split(frame: bytes) -> tuple[str, int, str, Any]:
    """The kind of a frame, its depth, the rest of its key and its body."""
    if frame.startswith(b"$welcome") and len(frame) == 24:
        return "welcome", 0, "", frame[8:]
    must(len(frame) <= 67_584, "size")
    key, nul, body = frame.partition(b"\0")
    must(nul != b"", "key")
    must(key[:1] in DEPTHS, "depth")
    depth, name = int(key[:1]), key[1:].decode("latin-1")
    for mark, kind in (("~", "batch"), ("$beacon.", "beacon"), ("$inbox.", "probe"), ("$", "unknown")):
        if name.startswith(mark):
            name = name.removeprefix(mark)
            return kind, depth, name, unpack(body) if kind in ("batch", "beacon") else None
    must(is_topic(name), "topic")
    return "event", depth, name, unpack(body)


def unpack(body: bytes) -> list[Any]:
    """Exactly one msgpack array that begins with our version."""
    try:
        value = msgpack.unpackb(body)
    except Exception as error:
        raise Refused("msgpack") from error
    must(isinstance(value, list) and len(value) > 0, "envelope")
    must(type(value[0]) is int and value[0] == VERSION, "version")
    return list(value)


def is_topic(text: Any) -> bool:
    """4: the grammar of topics."""
    return isinstance(text, str) and len(text) <= 255 and TOPIC.fullmatch(text) is not None


def namespace(topic: str) -> str:
    """4: the first two segments, or the only one."""
    return ".".join(topic.split(".")[:2])


# -- 5, 6, 7: events, batches, beacons --------------------------------------------------------------


def is_text(value: Any, limit: int) -> bool:
    """A str of at most so many bytes."""
    return isinstance(value, str) and len(value.encode()) <= limit


def is_number(value: Any, least: int, most: int = 2**63 - 1) -> bool:
    """An int, which a bool is not."""
    return type(value) is int and least <= value <= most


def read_event(topic: str, depth: int, fields: list[Any]) -> dict[str, Any]:
    """An event as a dict, every field checked; a claim stays an array."""
    must(len(fields) == 8, "envelope")
    _, publisher, sequence, time_ns, session, source, cause, payload = fields
    must(isinstance(publisher, bytes) and len(publisher) == 16, "envelope")
    must(is_number(sequence, 1) and is_number(time_ns, 0), "envelope")
    must(session is None or is_text(session, 256), "envelope")
    must(is_text(source, 128) and (cause is None or is_text(cause, 320)), "envelope")
    event = {
        "topic": topic,
        "depth": depth,
        "id": f"{publisher.hex()}:{topic}:{sequence}",
        "publisher": publisher.hex(),
        "sequence": sequence,
        "time": time_ns,
        "session": session,
        "source": source,
        "cause": cause,
    }
    if isinstance(payload, bytes):
        must(len(payload) <= 65_536, "envelope")
        return event | {"payload": payload.decode(errors="replace")}
    must(isinstance(payload, list) and len(payload) == 4, "envelope")
    size, digest, reference, head = payload
    must(is_number(size, 0, 67_108_864), "envelope")
    must(isinstance(digest, bytes) and len(digest) == 32, "envelope")
    must(isinstance(reference, str) and re.fullmatch("[0-9a-z-]{1,96}", reference) is not None, "envelope")
    must(isinstance(head, bytes) and len(head) <= 256, "envelope")
    return event | {
        "claim": {
            "size": size,
            "sha256": digest.hex(),
            "file": reference,
            "head": head.decode(errors="replace"),
        }
    }


def read_batch(channel: str, depth: int, body: list[Any]) -> list[dict[str, Any]]:
    """The events of a batch."""
    must(len(body) == 5, "batch")
    _, publisher, source, topics, rows = body
    must(isinstance(topics, list) and isinstance(rows, list), "batch")
    must(max(len(topics), len(rows)) <= 4_096, "batch")
    must(all(is_topic(topic) and namespace(topic) == channel for topic in topics), "batch")
    events = []
    for row in rows:
        must(isinstance(row, list) and len(row) == 6, "batch")
        index, sequence, time_ns, session, cause, payload = row
        must(is_number(index, 0, len(topics) - 1), "batch")
        fields = [VERSION, publisher, sequence, time_ns, session, source, cause, payload]
        events.append(read_event(topics[index], depth, fields))
    return events


def read_beacon(channel: str, body: list[Any]) -> dict[str, Any]:
    """A beacon as a dict."""
    must(len(body) == 5, "beacon")
    _, publisher, source, closing, topics = body
    must(isinstance(publisher, bytes) and len(publisher) == 16 and is_text(source, 128), "beacon")
    must(isinstance(closing, bool) and isinstance(topics, dict) and len(topics) <= 200, "beacon")
    for topic, numbers in topics.items():
        must(is_topic(topic) and namespace(topic) == channel, "beacon")
        must(isinstance(numbers, list) and len(numbers) == 2, "beacon")
        must(is_number(numbers[0], 0) and is_number(numbers[1], 1), "beacon")
    return {"publisher": publisher.hex(), "source": source, "closing": closing, "topics": topics}


def read(frame: bytes) -> dict[str, Any]:
    """What a frame holds: its kind, and its event, events or beacon."""
    try:
        kind, depth, name, body = split(frame)
        if kind == "event":
            return {"kind": kind, "event": read_event(name, depth, body)}
        if kind == "batch":
            return {"kind": kind, "events": read_batch(name, depth, body)}
        if kind == "beacon":
            return {"kind": kind, "beacon": read_beacon(name, body)}
    except Refused as refusal:
        return {"kind": "refused", "reason": str(refusal)}
    return {"kind": kind, "name": body.hex() if kind == "welcome" else name}


# -- 4: patterns ------------------------------------------------------------------------------------


def prefixes(patterns: Iterable[str]) -> set[bytes]:
    """Every subscription of a subscriber."""
    wanted = {b"$welcome"}
    for pattern in patterns:
        literal, star, _ = pattern.partition("*")
        first, second, *_ = [*pattern.split("."), None]
        if first == "*":
            channel = ""
        elif second == "*":
            channel = f"{first}."
        else:
            channel = f"{first}\0" if second is None else f"{first}.{second}\0"
        for depth in DEPTHS:
            wanted.add(depth + literal.encode() + (b"" if star else b"\0"))
            wanted.add(depth + b"~" + channel.encode())
        wanted.add(b"0$beacon." + channel.encode())
    return wanted


def matches(pattern: str, topic: str) -> bool:
    """Segment by segment; a star at the end takes all the rest."""
    wanted, found = pattern.split("."), topic.split(".")
    if wanted[-1] == "*" and len(found) > len(wanted):
        found = found[: len(wanted)]
    return len(wanted) == len(found) and all(w in ("*", f) for w, f in zip(wanted, found, strict=True))


# -- 9: numbers and loss ----------------------------------------------------------------------------


class Counts:
    """What a subscriber counts."""

    def __init__(self) -> None:
        self.ready = 2**63
        self.streams: dict[tuple[str, str], dict[str, int]] = {}
        self.received = self.late = 0

    def event(self, publisher: str, topic: str, number: int) -> None:
        """An event has arrived."""
        self.received += 1
        stream = self.streams.get((publisher, topic))
        if stream is None:
            base = 0 if number == 1 or int(publisher[:16], 16) > self.ready else number - 1
            stream = self.streams[publisher, topic] = {"last": base, "unsure": base, "missed": 0}
        if number > stream["last"]:
            stream["missed"] += number - stream["last"] - 1
            stream["last"] = number
        else:
            self.late += 1
            pot = "missed" if stream["missed"] else "unsure"
            stream[pot] = max(0, stream[pot] - 1)

    def beacon(self, publisher: str, topic: str, first: int, end: int) -> None:
        """A publisher has told its last number."""
        ours = first > self.ready or int(publisher[:16], 16) > self.ready
        stream = self.streams.setdefault(
            (publisher, topic), {"last": 0 if ours else end, "unsure": 0, "missed": 0}
        )
        stream["missed"] += stream["unsure"] if ours else 0
        stream["unsure"] = 0
        stream["missed"] += max(0, end - stream["last"])
        stream["last"] = max(end, stream["last"])

    def report(self) -> dict[str, Any]:
        """The counters by name."""
        gaps: dict[str, int] = {}
        for (_, topic), stream in self.streams.items():
            if stream["missed"]:
                gaps[topic] = gaps.get(topic, 0) + stream["missed"]
        return {"received": self.received, "missed": sum(gaps.values()), "late": self.late, "gaps": gaps}


# -- 2, 8, 10: sockets and conversations ------------------------------------------------------------


class Peer:
    """A control connection, stdin, and the loop over both; a role adds its data socket."""

    role = "tool"
    patterns: tuple[str, ...] = ()

    def __init__(self, directory: str, name: str) -> None:
        self.directory = directory
        self.name = name
        self.publisher = time.time_ns().to_bytes(8, "big") + secrets.token_bytes(8)
        self.context = zmq.Context()
        self.poller = zmq.Poller()
        self.control = self.connect(
            zmq.DEALER, "control", {zmq.IMMEDIATE: 1, zmq.RECONNECT_IVL: 10, zmq.RECONNECT_IVL_MAX: 200}
        )
        self.poller.register(0, zmq.POLLIN)
        self.epoch: bytes | None = None
        self.limits: dict[str, float] = {}
        self.welcomed = False
        self.held = False
        self.next_hello = self.next_report = 0.0
        self.requests = 0
        self.replies: dict[int, tuple[str, dict[str, Any]]] = {}
        self.typed = b""

    def connect(self, kind: int, endpoint: str, options: dict[Any, int]) -> zmq.Socket[bytes]:
        """A socket of ours at an endpoint of the bus, in the poller."""
        socket: zmq.Socket[bytes] = self.context.socket(kind)
        for option, value in ({zmq.LINGER: 1_000} | options).items():
            socket.setsockopt(option, value)
        socket.connect(f"ipc://{self.directory}/{endpoint}.sock")
        self.poller.register(socket, zmq.POLLIN)
        return socket

    def tell(self, kind: str, request: int = 0, /, **body: Any) -> None:
        """Send a control message; without a broker it is not sent."""
        try:
            self.control.send(msgpack.packb([VERSION, kind, request, body]), zmq.DONTWAIT)
        except zmq.Again:
            return

    def ask(self, kind: str, /, **body: Any) -> tuple[str, dict[str, Any]]:
        """Send a request and wait for its reply."""
        self.requests += 1
        self.tell(kind, self.requests, **body)
        while self.requests not in self.replies:
            self.step()
        return self.replies.pop(self.requests)

    def hear(self, data: bytes) -> None:
        """A control message from the broker."""
        version, kind, request, body = msgpack.unpackb(data)
        must(version == VERSION, "version")
        if kind == "welcome":
            self.welcomed, self.held = True, False
            if self.epoch not in (None, body["epoch"]):
                self.another_broker()
            self.epoch, self.limits = body["epoch"], body["limits"]
        elif kind == "hold":
            self.held = True
            say(hold=True)
        elif kind == "error" and request == 0:
            self.welcomed = False
            if body["code"] != "unknown_peer":
                say(error=body)
        elif request:
            self.replies[request] = (kind, body)

    def hello(self) -> None:
        """Introduce ourselves, until there is a welcome."""
        self.welcomed = False
        self.next_hello = time.monotonic() + 0.25
        self.tell(
            "hello",
            role=self.role,
            name=self.name,
            pid=os.getpid(),
            release="stranger/1",
            patterns=list(self.patterns),
            batches=True,
            publisher=self.publisher if self.role == "publisher" else None,
        )

    def step(self) -> None:
        """Wait for a tick at most, then look at every socket."""
        self.poller.poll(TICK_MS)
        while self.control.poll(0):
            self.hear(self.control.recv())
        self.receive()
        now = time.monotonic()
        if not self.welcomed and now >= self.next_hello:
            self.hello()
        if self.welcomed and now >= self.next_report:
            self.next_report = now + 1
            self.tell("report", counters=self.counters())
        self.tick(now)

    def commands(self) -> Iterable[dict[str, Any]]:
        """What is typed, a line at a time, until stdin ends; the sockets are looked after meanwhile."""
        while True:
            self.step()
            if not dict(self.poller.poll(0)).get(0):
                continue
            data = os.read(0, 65_536)
            *lines, self.typed = (self.typed + data).split(b"\n")
            yield from map(json.loads, lines)
            if not data:
                return

    def run(self) -> None:
        """Join, do as told, leave."""
        self.join()
        say(ready=True)
        for command in self.commands():
            getattr(self, "do_" + command.pop("do"))(**command)
        self.leave()
        self.tell("bye")
        self.context.destroy(linger=1_000)

    def join(self) -> None:
        """Until the broker knows us."""
        while not self.welcomed:
            self.step()

    def counters(self) -> dict[str, Any]:
        """What we report."""
        return {}

    def do_limits(self) -> None:
        """Say what the broker told."""
        say(limits=self.limits)

    def another_broker(self) -> None:
        """The broker was restarted."""

    def receive(self) -> None:
        """Look at the data socket."""

    def tick(self, now: float) -> None:
        """Do what is due."""

    def leave(self) -> None:
        """Close the data socket in order."""


class Tool(Peer):
    """A peer without a data socket: it publishes and asks through the broker."""

    def __init__(self, directory: str, name: str) -> None:
        super().__init__(directory, name)
        self.numbers: dict[str, int] = {}

    def do_publish(self, topic: str, payload: str, retain: bool = False) -> None:
        """One event through the control plane, and the closing beacon after it."""
        number = self.numbers[topic] = self.numbers.get(topic, 0) + 1
        now = time.time_ns()
        fields = [VERSION, self.publisher, number, now, None, self.name, None, payload.encode()]
        kind, body = self.ask(
            "publish", frame=b"0%b\0" % topic.encode() + msgpack.packb(fields), retain=retain
        )
        if kind == "published":
            beacon = [VERSION, self.publisher, self.name, True, {topic: [now, number]}]
            key = b"0$beacon.%b\0" % namespace(topic).encode()
            self.tell("beacon", frame=key + msgpack.packb(beacon))
        else:
            self.numbers[topic] -= 1
        say(kind=kind, **body)

    def do_retained(self, patterns: list[str]) -> None:
        """Every retained value, page by page."""
        after: int | None = 0
        while after is not None:
            kind, body = self.ask("retained", patterns=patterns, after=after)
            must(kind == "values", kind)
            for frame in body["frames"]:
                say(**read(frame))
            after = body["next"]
        say(end=True)

    def do_status(self) -> None:
        """What the broker knows."""
        kind, body = self.ask("status")
        say(kind=kind, **body)


class Listener(Peer):
    """A subscriber: says every event that it delivers, and each time that it was away."""

    role = "subscriber"

    def __init__(self, directory: str, name: str, *patterns: str) -> None:
        super().__init__(directory, name)
        self.patterns = patterns
        self.counts = Counts()
        self.welcomes = 0
        self.inbox: str | None = None
        self.pause = self.next_probe = 0.0
        options = {zmq.RCVHWM: 4_000, zmq.SNDHWM: 0, zmq.RECONNECT_IVL: 10, zmq.RECONNECT_IVL_MAX: 200}
        beat = {zmq.HEARTBEAT_IVL: 1_000, zmq.HEARTBEAT_TTL: 4_000, zmq.HEARTBEAT_TIMEOUT: 10_000}
        self.data = self.connect(zmq.SUB, "egress", {**options, **beat, zmq.LINGER: 0})
        for prefix in prefixes(patterns):
            self.data.subscribe(prefix)

    def join(self) -> None:
        """Until a probe has come back."""
        super().join()
        self.barrier()
        while self.inbox is not None:
            self.step()
        self.counts.ready = time.time_ns()

    def barrier(self) -> None:
        """Begin a new one, with a new inbox."""
        if self.inbox is not None:
            self.data.unsubscribe(b"0$inbox.%b\0" % self.inbox.encode())
        self.inbox = secrets.token_hex(8)
        self.data.subscribe(b"0$inbox.%b\0" % self.inbox.encode())
        self.pause, self.next_probe = 0.002, 0.0

    def tick(self, now: float) -> None:
        """Probe while a barrier is under way."""
        if self.inbox is not None and self.welcomed and now >= self.next_probe:
            self.tell("probe", inbox=self.inbox)
            self.next_probe = now + self.pause
            self.pause = min(self.pause * 2, 0.064)

    def receive(self) -> None:
        """Tell the kinds of frames apart and deliver what is for us."""
        while self.data.poll(0):
            found = read(self.data.recv())
            kind = found["kind"]
            if kind == "welcome":
                self.welcomes += 1
                if self.welcomes > 1:
                    self.hello()
                    self.barrier()
            elif kind == "probe" and found["name"] == self.inbox:
                self.data.unsubscribe(b"0$inbox.%b\0" % found["name"].encode())
                self.inbox = None
                if self.welcomes > 1:
                    say(away=True)
            elif kind == "beacon":
                beacon = found["beacon"]
                for topic, numbers in beacon["topics"].items():
                    if self.wants(topic):
                        self.counts.beacon(beacon["publisher"], topic, *numbers)
            elif kind == "refused":
                say(**found)
            for event in found.get("events", [found["event"]] if kind == "event" else []):
                if self.wants(event["topic"]):
                    self.counts.event(event["publisher"], event["topic"], event["sequence"])
                    say(event=event)

    def wants(self, topic: str) -> bool:
        """Whether a pattern of ours matches."""
        return any(matches(pattern, topic) for pattern in self.patterns)

    def counters(self) -> dict[str, Any]:
        """What we report."""
        return self.counts.report()

    def do_counts(self) -> None:
        """Say what we counted."""
        say(counts=self.counters())


class Sender(Peer):
    """A publisher."""

    role = "publisher"

    def __init__(self, directory: str, name: str) -> None:
        super().__init__(directory, name)
        self.topics: dict[str, list[int]] = {}
        self.told: dict[str, int] = {}
        self.beacon_pause, self.next_beacon = 1.0, time.monotonic() + 1
        self.subscribed: set[bytes] = set()
        self.data = self.connect(
            zmq.XPUB, "ingress", {zmq.XPUB_NODROP: 1, zmq.SNDHWM: 1_000, zmq.RECONNECT_IVL: 100}
        )

    def join(self) -> None:
        """Until the eight subscriptions were seen."""
        super().join()
        while self.subscribed != set(DEPTHS):
            self.step()

    def receive(self) -> None:
        """Subscriptions are 01 and a prefix."""
        while self.data.poll(0):
            frame = self.data.recv()
            if frame[:1] == b"\1" and frame[1:] in DEPTHS:
                self.subscribed.add(frame[1:])

    def transmit(self, frame: bytes) -> bool:
        """Whether the queue took it."""
        try:
            self.data.send(frame, zmq.DONTWAIT)
        except zmq.Again:
            return False
        return True

    def number(self, topic: str) -> int:
        """The next number of a topic."""
        row = self.topics.setdefault(topic, [time.time_ns(), 0])
        row[1] += 1
        return row[1]

    def do_event(
        self,
        topic: str,
        payload: str,
        session: str | None = None,
        cause: str | None = None,
        depth: int = 0,
    ) -> None:
        """One event; its payload goes to the spool when it has to."""
        content: Any = payload.encode()
        if len(content) > 65_536:
            content = self.claim(content)
        number, now = self.number(topic), time.time_ns()
        fields = [VERSION, self.publisher, number, now, session, self.name, cause, content]
        sent = self.transmit(DEPTHS[depth] + topic.encode() + b"\0" + msgpack.packb(fields))
        if not sent:
            self.topics[topic][1] -= 1
        say(sent=sent, id=f"{self.publisher.hex()}:{topic}:{number}", time=now)

    def claim(self, payload: bytes) -> list[Any]:
        """5: the file comes first, under the spool's lock."""
        name = secrets.token_hex(16)
        spool = f"{self.directory}/spool"
        lock = os.open(f"{spool}/.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = os.open(f"{spool}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(file, "wb") as stream:
            stream.write(payload)
        os.close(lock)
        return [len(payload), hashlib.sha256(payload).digest(), name, payload[:256]]

    def do_lose(self, topic: str) -> None:
        """Take a number for an event that will not arrive."""
        say(lost=self.number(topic))

    def do_batch(self, events: list[dict[str, Any]], depth: int = 0) -> None:
        """Many events of one namespace in one frame."""
        topics = sorted({event["topic"] for event in events})
        rows = [
            [
                topics.index(event["topic"]),
                self.number(event["topic"]),
                time.time_ns(),
                event.get("session"),
                event.get("cause"),
                event["payload"].encode(),
            ]
            for event in events
        ]
        key = DEPTHS[depth] + b"~" + namespace(topics[0]).encode() + b"\0"
        say(sent=self.transmit(key + msgpack.packb([VERSION, self.publisher, self.name, topics, rows])))

    def do_raw(self, frame: str) -> None:
        """Whatever bytes."""
        say(sent=self.transmit(bytes.fromhex(frame)))

    def do_beacon(self) -> None:
        """All topics, now."""
        self.beacon(self.topics, closing=False)
        say(beacon=self.topics)

    def beacon(self, topics: dict[str, list[int]], *, closing: bool) -> None:
        """One frame a namespace (nobody here uses 200 topics of one)."""
        for space in sorted(set(map(namespace, topics))):
            part = {topic: row for topic, row in topics.items() if namespace(topic) == space}
            body = [VERSION, self.publisher, self.name, closing, part]
            if self.transmit(b"0$beacon.%b\0" % space.encode() + msgpack.packb(body)):
                self.told |= {topic: row[1] for topic, row in part.items()}

    def tick(self, now: float) -> None:
        """7: every second while there is news, everything again at doubling pauses while there is none."""
        if now < self.next_beacon or self.held:
            return
        news = {topic: row for topic, row in self.topics.items() if self.told.get(topic) != row[1]}
        self.beacon(news or self.topics, closing=False)
        self.beacon_pause = 1.0 if news else min(self.beacon_pause * 2, 64)
        self.next_beacon = now + self.beacon_pause

    def another_broker(self) -> None:
        """7: tell everything again."""
        self.beacon(self.topics, closing=False)
        say(away=True)

    def leave(self) -> None:
        """The last beacon."""
        self.beacon(self.topics, closing=True)


def main() -> None:
    """See the module's docstring."""
    if sys.argv[1:] == ["decode"]:
        for line in sys.stdin:
            say(**read(bytes.fromhex(line)))
        return
    directory, role, *arguments = sys.argv[1:]
    {"listen": Listener, "send": Sender, "tool": Tool}[role](directory, *arguments).run()


if __name__ == "__main__":
    main()
