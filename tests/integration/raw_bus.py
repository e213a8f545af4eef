"""A real broker process and peers made of raw sockets, so that what is tested is the broker alone.

Honest peers speak ZeroMQ as the wire document says; hostile ones speak ZMTP, the protocol below
it, by hand, byte by byte, because libzmq would not let them misbehave.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import zmq

from broker.places import endpoints
from broker.protocol.control import Message, decode_message, encode_message
from broker.protocol.envelope import encode_event
from broker.protocol.events import decode_event
from broker.protocol.topics import DEPTH_BYTES, WELCOME
from tests.integration.waiting import until

DEADLINE_S = 30.0
"""Nothing here takes so long unless it is broken; a loaded machine has to be forgiven a lot."""

Socket = zmq.Socket[bytes]


class BrokerProcess:
    """``python -m broker`` on ``directory``. With ``shell`` the command runs below that shell text."""

    def __init__(self, directory: Path, *arguments: str, shell: str = "") -> None:
        self.directory = directory
        self.endpoints = endpoints(str(directory))
        self.ready: dict[str, Any] = {}
        self._arguments = arguments
        self._shell = shell
        self._log = directory / "stderr"
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it (again), without waiting."""
        command = [sys.executable, "-P", "-m", "broker", "--json", "--runtime-dir", str(self.directory)]
        command += self._arguments
        if self._shell:
            command = ["/bin/sh", "-c", f'{self._shell}; exec "$@"', "sh", *command]
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        return self.process

    def wait_ready(self) -> Self:
        """Wait for the line that says it works."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        line = self.process.stdout.readline() if readable else b""
        assert line, f"no ready line; exit code {self.process.poll()}; stderr: {self.log()}"
        self.ready = json.loads(line)
        return self

    def restart(self) -> None:
        """Kill it as if the machine had and start the next one."""
        self.kill()
        self.start()
        self.wait_ready()

    def kill(self) -> None:
        """End it without any warning."""
        self.process.kill()
        self.reap()

    def reap(self) -> int:
        """Wait for its end; returns the exit code."""
        code = self.process.wait(DEADLINE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end and wait; returns the exit code."""
        self.process.send_signal(number)
        return self.reap()

    def log(self) -> str:
        """What it has written to stderr, also before a restart."""
        return self._log.read_text()

    def memory(self) -> int:
        """Its resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )

    def sockets(self) -> int:
        """The connections and listeners that it holds."""
        targets = []
        for entry in os.scandir(f"/proc/{self.process.pid}/fd"):
            with suppress(FileNotFoundError):  # closed meanwhile
                targets.append(os.readlink(entry.path))
        return sum(target.startswith("socket:") for target in targets)

    def alive(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def close(self) -> None:
        """Whatever it does, it is gone afterwards."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        self._log.unlink(missing_ok=True)


class Peers:
    """Honest peers of one bus, all in one context that ends with the test."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.endpoints = broker.endpoints
        self.context: zmq.Context[Socket] = zmq.Context()
        self._tokens = 0
        self._made: list[Socket] = []  # nobody drops a socket of ours before close

    def socket(self, kind: int, linger_ms: int = 0) -> Socket:
        """A socket that is closed with the others."""
        made = self.context.socket(kind)
        made.set(zmq.LINGER, linger_ms)
        self._made.append(made)
        return made

    def publisher(self, ready: bool = True) -> Socket:
        """An XPUB that is ready: the eight prefixes were seen."""
        made = self.socket(zmq.XPUB)
        made.set(zmq.XPUB_NODROP, 1)
        made.connect(self.endpoints.ingress)
        if ready:
            assert wait_admitted(made) == sorted(DEPTH_BYTES)
        return made

    def subscriber(self, *prefixes: bytes, barrier: bool = True) -> Socket:
        """A SUB to ``prefixes`` at every depth that has passed its barrier."""
        made = self.socket(zmq.SUB)
        made.set(zmq.SNDHWM, 0)
        made.set(zmq.RCVHWM, 0)
        made.set(zmq.RECONNECT_IVL, 10)
        made.set(zmq.RECONNECT_IVL_MAX, 200)
        made.connect(self.endpoints.egress)
        made.subscribe(WELCOME)
        for prefix in prefixes:
            for depth in DEPTH_BYTES:
                made.subscribe(depth + prefix)
        if barrier:
            assert self.barrier(made) == []
        return made

    def barrier(self, subscriber: Socket) -> list[bytes]:
        """Wait until the broker knows all subscriptions of ``subscriber``; returns what came meanwhile."""
        self._tokens += 1
        token = f"t{id(self)}-{self._tokens}"
        inbox = b"0$inbox." + token.encode() + b"\0"
        subscriber.subscribe(inbox)
        came: list[bytes] = []
        deadline = time.monotonic() + DEADLINE_S
        with self.control() as control:
            while inbox not in came:
                assert time.monotonic() < deadline, "the barrier does not return"
                control.send(encode_message("probe", inbox=token))
                while subscriber.poll(5):
                    came.append(subscriber.recv())
        subscriber.unsubscribe(inbox)
        return [frame for frame in came if frame != inbox and not frame.startswith(WELCOME)]

    def await_welcome(self, subscriber: Socket, broker: BrokerProcess) -> None:
        """Wait until ``subscriber`` hears the present broker. A barrier proves something only after that.

        Earlier its inbox would be one of the old subscriptions, which are told to the new broker in
        the order of their bytes: the probe could come back before all of them are known.
        """
        welcome = WELCOME + bytes.fromhex(broker.ready["epoch"])
        until(lambda: subscriber.poll(20) and subscriber.recv() == welcome, "the new broker's welcome")

    def control(self) -> Socket:
        """A DEALER to the control plane."""
        made = self.socket(zmq.DEALER, linger_ms=1_000)
        made.connect(self.endpoints.control)
        return made

    def ask(self, kind: str, /, **body: Any) -> Message:
        """The answer to one request over a connection of its own."""
        with self.control() as control:
            control.send(encode_message(kind, 1, **body))
            return receive(control)

    def status(self) -> dict[str, Any]:
        """The broker's status."""
        status: dict[str, Any] = self.ask("status").body["status"]
        return status

    def register(self, role: str, name: str, **changes: Any) -> Socket:
        """A control connection that was welcomed as ``role``."""
        control = self.control()
        control.send(encode_message("hello", 1, **hello(role, name, **changes)))
        reply = receive(control)
        assert reply.kind == "welcome", reply
        return control

    def close(self) -> None:
        """Close everything at once."""
        self.context.destroy(0)


def hello(role: str, name: str, /, **changes: Any) -> dict[str, Any]:
    """The body of a hello."""
    return {
        "role": role,
        "name": name,
        "pid": os.getpid(),
        "release": "0",
        "patterns": ["*"] if role == "subscriber" else [],
        "batches": True,
        "publisher": os.urandom(16) if role == "publisher" else None,
        **changes,
    }


def receive(control: Socket) -> Message:
    """The next message from the broker."""
    assert control.poll(int(DEADLINE_S * 1000)), "no answer from the control plane"
    return decode_message(control.recv())


def wait_admitted(publisher: Socket) -> list[bytes]:
    """The prefixes that the ingress asks for, once there are eight or no more come."""
    seen: list[bytes] = []
    while len(seen) < 8 and publisher.poll(int(DEADLINE_S * 1000)):
        subscription = publisher.recv()
        assert subscription[:1] == b"\x01"
        seen.append(subscription[1:])
    return sorted(seen)


def event(topic: str, sequence: int, payload: bytes = b"{}", depth: int = 0) -> bytes:
    """One event as a frame, sent now."""
    return encode_event(topic, b"raw-peer-16bytes", sequence, time.time_ns(), payload, depth=depth)


def received(subscriber: Socket, count: int, quiet_ms: int = int(DEADLINE_S * 1000)) -> list[bytes]:
    """The next ``count`` frames, or fewer when ``quiet_ms`` pass without one; welcomes are left out."""
    frames: list[bytes] = []
    while len(frames) < count and subscriber.poll(quiet_ms):
        frame = subscriber.recv()
        if not frame.startswith(WELCOME):
            frames.append(frame)
    return frames


class Flow:
    """One honest publisher and some honest subscribers at work, in threads, from start to :meth:`end`.

    ``accepted`` counts events that the publisher's socket took. ``numbers`` holds the sequence
    numbers that each subscriber received, ``delays`` how long they took in ns.
    """

    def __init__(self, peers: Peers, topic: str, subscribers: int = 1, pause: float = 0.002) -> None:
        self.accepted = 0
        self.numbers: list[list[int]] = [[] for _ in range(subscribers)]
        self.delays: list[int] = []
        self._topic = topic
        self._pause = pause
        self._stop = threading.Event()
        self._published = threading.Event()
        self._give_up = float("inf")
        self._publisher = peers.publisher()
        self._subscribers = [peers.subscriber(topic.encode() + b"\0") for _ in range(subscribers)]
        self._threads = [threading.Thread(target=self._publish)]
        self._threads += [threading.Thread(target=self._follow, args=(n,)) for n in range(subscribers)]
        for thread in self._threads:
            thread.start()

    def wait_for_more(self) -> None:
        """Return when each subscriber has received ten events more."""
        before = [len(numbers) for numbers in self.numbers]
        until(lambda: all(len(n) > b + 10 for n, b in zip(self.numbers, before, strict=True)), "events flow")

    def end(self) -> None:
        """Publish no more, wait until the last event has arrived everywhere, and close."""
        self._stop.set()
        self._threads[0].join()
        self._published.set()  # only now is ``accepted`` the last: a send may have been under way
        self._give_up = time.monotonic() + DEADLINE_S
        for thread in self._threads:
            thread.join()
        for made in (self._publisher, *self._subscribers):
            made.close()

    def _publish(self) -> None:
        while not self._stop.wait(self._pause):
            try:
                self._publisher.send(event(self._topic, self.accepted + 1), zmq.NOBLOCK)
            except zmq.Again:
                continue
            self.accepted += 1

    def _follow(self, index: int) -> None:
        subscriber, numbers = self._subscribers[index], self.numbers[index]
        while time.monotonic() < self._give_up:
            if self._published.is_set() and numbers[-1:] == [self.accepted]:
                return
            for frame in received(subscriber, 1, 50):
                got = decode_event(frame)
                numbers.append(got.sequence)
                self.delays.append(time.time_ns() - got.time_ns)


@contextmanager
def undisturbed(peers: Peers, worst_s: float = 10.0) -> Iterator[None]:
    """An honest pair works all the time: it loses nothing, in order, and no event takes ``worst_s``."""
    flow = Flow(peers, "undisturbed.pair")
    try:
        flow.wait_for_more()
        yield
        flow.wait_for_more()
    finally:
        flow.end()
    assert flow.numbers == [list(range(1, flow.accepted + 1))]
    assert max(flow.delays) < worst_s * 1e9


class Zmtp:
    """One hand-made ZMTP 3.0 connection to an ``ipc`` endpoint, posing as a socket of ``kind``."""

    def __init__(self, endpoint: str, kind: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(endpoint.removeprefix("ipc://"))
        self.socket.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32))
        ready = b"\x05READY" + _property("Socket-Type", kind)
        self.socket.sendall(b"\x04" + bytes([len(ready)]) + ready)
        greeting = self._exactly(64)
        assert greeting[:1] == b"\xff"
        self._exactly(self._exactly(2)[1])  # the READY command of the other side

    def send(self, *data: bytes, more: bool = False) -> None:
        """Messages of one frame each; with ``more`` they are parts of a message that goes on."""
        self.socket.sendall(b"".join(frame(part, more=more) for part in data))

    def flood(self, data: bytes, seconds: float, limit: int = 2**40) -> int:
        """Send ``data`` again and again until time or ``limit`` bytes are up, or the other side ends it."""
        deadline = time.monotonic() + seconds
        sent = 0
        while time.monotonic() < deadline and sent < limit:
            try:
                self.socket.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                break
            sent += len(data)
        return sent

    def cut_off(self) -> bool:
        """Whether the other side has closed the connection, now or within the deadline."""
        try:
            while self.socket.recv(65_536):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True

    def frames(self, seconds: float) -> list[bytes]:
        """The messages that come within ``seconds``; a broker's greeting is left out."""
        deadline = time.monotonic() + seconds
        found = []
        try:
            while (left := deadline - time.monotonic()) > 0:
                self.socket.settimeout(left)
                flags, size = self._exactly(2)
                if flags & 2:
                    size = int.from_bytes(bytes([size]) + self._exactly(7), "big")
                body = self._exactly(size)
                if not flags & 4 and not body.startswith(WELCOME):
                    found.append(body)
        except (TimeoutError, ConnectionError):
            pass
        return found

    def close(self) -> None:
        """Leave without a word."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionResetError("closed by the other side")
            data += part
        return data


def frame(data: bytes, more: bool = False) -> bytes:
    """One ZMTP frame."""
    if len(data) < 256:
        return bytes([int(more), len(data)]) + data
    return bytes([2 | int(more)]) + len(data).to_bytes(8, "big") + data


def _property(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + len(value).to_bytes(4, "big") + value.encode()


@contextmanager
def running(directory: Path, *arguments: str, shell: str = "") -> Iterator[BrokerProcess]:
    """A broker that works."""
    broker = BrokerProcess(directory, *arguments, shell=shell)
    try:
        yield broker.wait_ready()
    finally:
        broker.close()


@contextmanager
def peers_of(broker: BrokerProcess) -> Iterator[Peers]:
    """Honest peers that are closed whatever happens."""
    peers = Peers(broker)
    try:
        yield peers
    finally:
        peers.close()
