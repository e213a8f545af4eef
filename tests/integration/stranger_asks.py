"""A decider and an asker written from WIRE.md alone: raw zmq and msgpack, nothing of ours.

They stand for programs in another language, tell what happens as JSON lines on stdout, and end with stdin.

    stranger_asks.py DIR decide NAME PRIORITY FAILURE PATTERN...
        answers as the payload of each event says: its field "how" and, for ways that need them, "answers"
    stranger_asks.py DIR ask NAME
        {"topic", "payload", "timeout_ms", "lane", "session"} on stdin is asked; {"cancel": true} cancels it

Section numbers in comments are those of the document.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterable
from typing import Any

import msgpack
import zmq

VERSION = 1
TICK_MS = 20
VERDICTS = ("none", "allow", "ask", "deny")
KEPT = ("agent_id", "agent_name", "session_id", "tool", "tool_name", "tool_use_id", "is_error")


def say(**line: Any) -> None:
    """One line of answer."""
    print(json.dumps(line), flush=True)


def store(directory: str, content: bytes) -> list[Any]:
    """5: a file in the spool, written under its lock, and the claim of it."""
    name = secrets.token_hex(16)
    lock = os.open(f"{directory}/spool/.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    file = os.open(f"{directory}/spool/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(file, "wb") as stream:
        stream.write(content)
    os.close(lock)
    return [len(content), hashlib.sha256(content).digest(), name, content[:256]]


def load(directory: str, content: bytes | list[Any]) -> bytes:
    """5: what is meant by a payload or a claim."""
    if isinstance(content, bytes):
        return content
    size, digest, name, _ = content
    with open(os.open(f"{directory}/spool/{name}", os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
        found = stream.read(size + 1)
    if len(found) != size or hashlib.sha256(found).digest() != digest:
        raise ValueError("corrupt")
    return found


class Lane:
    """11: a stream connection: its name first, then messages, each behind its length."""

    def __init__(self, directory: str, name: bytes, poller: zmq.Poller) -> None:
        self.path = f"{directory}/lanes.sock"
        self.name = name
        self.poller = poller
        self.stream: socket.socket | None = None
        self.rest = b""

    def send(self, data: bytes) -> None:
        """Send one message."""
        if self.stream is None:
            raise ConnectionError
        self.stream.sendall(len(data).to_bytes(4, "big") + data)

    def receive(self) -> list[bytes]:
        """What came; without a connection it is made (again)."""
        try:
            if self.stream is None:
                self.join()
            assert self.stream is not None
            data = self.stream.recv(1 << 20, socket.MSG_DONTWAIT)
            if not data:
                raise ConnectionError
        except BlockingIOError:
            return []
        except OSError:
            self.leave()
            return []
        self.rest += data
        found = []
        while len(self.rest) >= 4 and len(self.rest) >= 4 + (size := int.from_bytes(self.rest[:4], "big")):
            found.append(self.rest[4 : 4 + size])
            self.rest = self.rest[4 + size :]
        return found

    def join(self) -> None:
        """Connect and say the name."""
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            stream.connect(self.path)
        except OSError:
            stream.close()
            raise
        self.stream, self.rest = stream, b""
        self.poller.register(stream, zmq.POLLIN)
        self.send(self.name)

    def leave(self) -> None:
        """The broker has ended the connection."""
        if self.stream is not None:
            self.poller.unregister(self.stream)
            self.stream.close()
            self.stream = None


class Peer:
    """A control connection with a routing id, lanes beside it, stdin, and the loop over all."""

    role = "tool"
    about: dict[str, Any] = {}  # noqa: RUF012 - each role has its own
    patterns: tuple[str, ...] = ()

    def __init__(self, directory: str, name: str) -> None:
        self.directory = directory
        self.name = name
        self.context = zmq.Context()
        self.poller = zmq.Poller()
        self.poller.register(0, zmq.POLLIN)
        self.key = b"\1" + secrets.token_bytes(15)
        self.control = self.connect()
        self.welcomed = False
        self.next_hello = self.next_report = 0.0

    def connect(self) -> zmq.Socket[bytes]:
        """2, 11: a DEALER whose routing id is ours."""
        socket: zmq.Socket[bytes] = self.context.socket(zmq.DEALER)
        socket.setsockopt(zmq.ROUTING_ID, self.key)
        for option, value in ((zmq.LINGER, 1_000), (zmq.IMMEDIATE, 1), (zmq.RECONNECT_IVL, 10)):
            socket.setsockopt(option, value)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 200)
        socket.connect(f"ipc://{self.directory}/control.sock")
        self.poller.register(socket, zmq.POLLIN)
        return socket

    def tell(self, kind: str, request: int = 0, /, *, on: Any = None, **body: Any) -> None:
        """Send a control message; without a broker it is not sent."""
        data = msgpack.packb([VERSION, kind, request, body])
        try:
            if on is None:
                self.control.send(data, zmq.DONTWAIT)
            else:
                on.send(data)
        except (zmq.Again, OSError):
            return

    def step(self) -> None:
        """Wait for a tick at most, then read every connection and say what is due."""
        self.poller.poll(TICK_MS)
        while self.control.poll(0):
            self.read(self.control.recv())
        for lane in self.lanes():
            for data in lane.receive():
                self.read(data)
        now = time.monotonic()
        if not self.welcomed and now >= self.next_hello:
            self.next_hello = now + 0.25
            self.tell(
                "hello",
                role=self.role,
                name=self.name,
                pid=os.getpid(),
                release="stranger/1",
                patterns=list(self.patterns),
                batches=True,
                publisher=None,
                **self.about,
            )
        if self.welcomed and now >= self.next_report:
            self.next_report = now + 1
            self.tell("report", counters={})

    def read(self, data: bytes) -> None:
        """10: one control message."""
        version, kind, request, body = msgpack.unpackb(data)
        if version != VERSION:
            raise ValueError(version)
        if kind == "welcome":
            self.welcomed = True
        elif kind == "error" and request == 0:
            self.welcomed = self.welcomed and body["code"] != "unknown_peer"
        else:
            self.hear(kind, request, body)

    def run(self) -> None:
        """Join, do as told, leave."""
        while not self.welcomed or not self.up():
            self.step()
        say(ready=True)
        typed = b""
        while True:
            self.step()
            if not dict(self.poller.poll(0)).get(0):
                continue
            data = os.read(0, 65_536)
            *lines, typed = (typed + data).split(b"\n")
            for line in lines:
                self.do(json.loads(line))
            if not data:
                break
        self.tell("bye")
        self.context.destroy(linger=1_000)

    def lanes(self) -> Iterable[Lane]:
        """Every lane."""
        return ()

    def up(self) -> bool:
        """Whether all is there to begin."""
        return True

    def hear(self, kind: str, request: int, body: dict[str, Any]) -> None:
        """What the broker says."""

    def do(self, command: dict[str, Any]) -> None:
        """What is typed."""


class Decider(Peer):
    """11: says every event that it is asked about, and answers as the event's payload says."""

    role = "decider"

    def __init__(self, directory: str, name: str, priority: str, failure: str, *patterns: str) -> None:
        super().__init__(directory, name)
        self.patterns = patterns
        self.about = {"priority": int(priority), "failure": failure}
        self.asks = Lane(directory, self.key + b"\1", self.poller)
        self.answers = Lane(directory, self.key + b"\2", self.poller)
        self.deciding = False

    def lanes(self) -> Iterable[Lane]:
        """That of the asks, and one for answers."""
        return self.asks, self.answers

    def up(self) -> bool:
        """We are asked from the first ``deciding`` on."""
        return self.deciding

    def hear(self, kind: str, request: int, body: dict[str, Any]) -> None:
        """An ask comes, or is taken back."""
        if kind == "deciding":
            self.deciding = True
        elif kind == "cancelled":
            say(cancelled=request)
        elif kind == "asked":
            key, _, envelope = body["frame"].partition(b"\0")
            _, publisher, sequence, _, session, source, cause, content = msgpack.unpackb(envelope)
            topic = key[1:].decode()
            payload = load(self.directory, content)
            self.answer(request, json.loads(payload))
            say(
                token=request,
                id=f"{publisher.hex()}:{topic}:{sequence}",
                depth=key[0] - 48,
                session=session,
                source=source,
                cause=cause,
                size=len(payload),
                claimed=isinstance(content, list),
                left_ms=body["left_ms"],
            )

    def answer(self, token: int, payload: dict[str, Any]) -> None:
        """In the way that the payload names."""
        how = payload.get("how", "lane")
        packed = msgpack.packb(payload.get("answers", []))
        if how == "lane":
            self.tell("answer", token, on=self.answers, answers=packed, error=None)
        elif how == "control":
            self.tell("answer", token, answers=packed, error=None)
        elif how == "same lane":
            self.tell("answer", token, on=self.asks, answers=packed, error=None)
        elif how == "claim":
            self.tell("answer", token, on=self.answers, answers=store(self.directory, packed), error=None)
        elif how == "garbage":
            self.tell("answer", token, on=self.answers, answers=b"\x93", error=None)
        elif how == "failed":
            self.tell("answer", token, on=self.answers, answers=b"", error="broken")


class Asker(Peer):
    """11: asks about what is typed, publishes the copy, and says what it comes to."""

    def __init__(self, directory: str, name: str) -> None:
        super().__init__(directory, name)
        self.publisher = time.time_ns().to_bytes(8, "big") + secrets.token_bytes(8)
        self.extra = Lane(directory, self.key + b"\x10\0\0", self.poller)
        self.numbers: dict[str, int] = {}
        self.requests = 0
        self.input: dict[str, Any] = {}
        self.used: Any = None

    def lanes(self) -> Iterable[Lane]:
        """One for asks."""
        return (self.extra,)

    def do(self, command: dict[str, Any]) -> None:
        """Ask, or take the last ask back."""
        if command.get("cancel"):
            self.tell("cancel", self.requests, on=self.used)
            return
        topic, payload = command["topic"], command["payload"]
        body = json.dumps(payload).encode()
        fields = ("arguments", "tool_input", "args")
        self.input = next((payload[f] for f in fields if isinstance(payload.get(f), dict)), payload)
        self.numbers[topic] = self.numbers.get(topic, 0) + 1
        copy = redacted(payload) if topic == "prx.lifecycle.tool_result" else body
        self.requests += 1
        self.used = self.extra if command.get("lane") else self.control
        asked = self.frame(topic, command, body)
        self.tell("ask", self.requests, on=self.used, frame=asked, timeout_ms=command["timeout_ms"])
        self.tell("publish", 0, frame=self.frame(topic, command, copy), retain=False)
        say(id=f"{self.publisher.hex()}:{topic}:{self.numbers[topic]}")

    def frame(self, topic: str, command: dict[str, Any], body: bytes) -> bytes:
        """5: the event, its payload by claim where it must be."""
        content: Any = body if len(body) <= 65_536 else store(self.directory, body)
        session, number = command.get("session"), self.numbers[topic]
        fields = [VERSION, self.publisher, number, time.time_ns(), session, self.name, None, content]
        return b"0" + topic.encode() + b"\0" + bytes(msgpack.packb(fields))

    def hear(self, kind: str, request: int, body: dict[str, Any]) -> None:
        """The end of an ask."""
        if request != self.requests:
            return
        if kind == "answered":
            rows = [
                (*row[:3], msgpack.unpackb(load(self.directory, row[4])) if row[2] is None else [])
                for row in body["heard"]
            ]
            say(heard=[row[:3] for row in rows], **self.merge(rows))
        elif kind == "error":
            say(error=body)

    def merge(self, rows: list[Any]) -> dict[str, Any]:
        """11: the laws."""
        answers: list[Any] = []
        for name, failure, silence, said in rows:
            denial = [name, "deny", None, [], None, [], False, None, None, 0]
            answers += said if silence is None else [denial] * (failure == "closed")
        answers.sort(key=lambda answer: answer[9])
        strictest = max((VERDICTS.index(answer[1]) for answer in answers), default=0)
        first = next((a for a in answers if strictest and VERDICTS.index(a[1]) == strictest), None)
        result = dict(self.input)
        changes: list[tuple[str, str]] = []
        for handler, _, _, _, updated, *_ in answers:
            for key in {**self.input, **updated} if updated is not None else ():
                if self.input.get(key, changes) != updated.get(key, changes):
                    changes.append((key, handler))
                    result.pop(key, None)
                    if key in updated:
                        result[key] = updated[key]
        return {
            "verdict": VERDICTS[strictest],
            "by": first and first[0],
            "contexts": [text for answer in answers for text in answer[3]],
            "input": result if changes else None,
            "conflicts": sorted({key for key, _ in changes if [k for k, _ in changes].count(key) > 1}),
            "output": next((answer[5] for answer in answers if answer[5]), []),
        }


def redacted(payload: dict[str, Any]) -> bytes:
    """11: the copy of a tool's result."""
    copy: dict[str, Any] = {}
    for name, value in payload.items():
        if name in KEPT and (value is None or isinstance(value, bool | str)):
            copy[name] = value[:200] if isinstance(value, str) else value
            continue
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        copy[f"{name}_bytes"] = len(text.encode())
        copy[f"{name}_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(copy).encode()


if __name__ == "__main__":
    directory, role, *arguments = sys.argv[1:]
    ({"decide": Decider, "ask": Asker}[role])(directory, *arguments).run()
