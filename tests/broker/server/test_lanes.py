"""The broker's lanes: who may connect, what comes and goes on them, what a slow or a foolish one may cost."""

from __future__ import annotations

import os
import resource
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from broker.protocol.framing import framed
from broker.protocol.limits import CONTROL_BYTES
from broker.server.lanes import CHUNK, WAITING_BYTES, Heard, Lanes

KEY = b"k" * 16
NAME = KEY + b"\x10"


class Scene:
    """Lanes that are served by hand, and clients of them."""

    def __init__(self, path: Path, limit: int = 100) -> None:
        self.path = str(path / "lanes.sock")
        self.epoll = select.epoll()
        self.lanes = Lanes(self.path, limit, self.epoll)
        self.lanes.open()
        self.clients: list[socket.socket] = []

    def client(self, *messages: bytes) -> socket.socket:
        """A connection that says ``messages``, its name first."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.clients.append(made)
        made.settimeout(20)
        made.connect(self.path)
        made.sendall(framed(messages))
        return made

    def hear(self, enough: Callable[[list[Heard]], object]) -> list[Heard]:
        """What comes until it is enough."""
        found: list[Heard] = []
        while not enough(found):
            ready = dict(self.epoll.poll(20))
            assert ready, f"nothing more came after {found}"
            found += self.lanes.take(ready)
            self.lanes.flush()
        return found

    def close(self) -> None:
        """End everything."""
        for each in self.clients:
            each.close()
        self.lanes.close()
        self.epoll.close()


@pytest.fixture
def scene(runtime_dir: Path) -> Iterator[Scene]:
    """Open lanes."""
    runtime_dir.mkdir(exist_ok=True)
    made = Scene(runtime_dir)
    yield made
    made.close()


def received(client: socket.socket, size: int) -> bytes:
    """So many bytes."""
    found = b""
    while len(found) < size:
        piece = client.recv(1 << 20)
        assert piece, "the lane was ended"
        found += piece
    return found


def ended(client: socket.socket) -> bool:
    """Whether the broker has ended the connection."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_lane_says_its_name_and_then_messages(scene: Scene) -> None:
    """The name comes as an empty message, what was sent behind it in order."""
    scene.client(NAME, b"one", b"two")
    assert scene.hear(lambda found: len(found) == 3) == [(NAME, b""), (NAME, b"one"), (NAME, b"two")]
    assert NAME in scene.lanes


def test_what_is_put_is_sent_at_the_flush(scene: Scene) -> None:
    """Several messages leave together, in order."""
    client = scene.client(NAME)
    scene.hear(bool)
    assert scene.lanes.put(NAME, b"first")
    assert scene.lanes.put(NAME, b"second")
    scene.lanes.flush()
    expected = framed([b"first", b"second"])
    assert received(client, len(expected)) == expected


def test_an_end_is_told(scene: Scene) -> None:
    """Who goes leaves no lane behind."""
    scene.client(NAME).close()
    assert scene.hear(lambda found: len(found) == 2) == [(NAME, b""), (NAME, None)]
    assert NAME not in scene.lanes


def test_who_comes_back_takes_its_name_along(scene: Scene) -> None:
    """The connection before is ended without a word of it."""
    before = scene.client(NAME)
    scene.hear(bool)
    after = scene.client(NAME)
    assert scene.hear(bool) == [(NAME, b"")]
    assert ended(before)
    scene.lanes.put(NAME, b"x")
    scene.lanes.flush()
    assert received(after, 5) == framed([b"x"])


@pytest.mark.parametrize("name", [KEY, bytes(17), b"k" * 49])
def test_a_name_that_is_none_ends_the_connection(scene: Scene, name: bytes) -> None:
    """Too short, of no peer, or too long: nothing of it is heard."""
    client = scene.client(name, b"message")
    scene.client(NAME)
    assert scene.hear(bool) == [(NAME, b"")]
    assert ended(client)


def test_a_length_out_of_range_ends_the_lane(scene: Scene) -> None:
    """Nothing behind it could be found; what came before counts."""
    client = scene.client(NAME, b"before")
    scene.hear(lambda found: len(found) == 2)
    client.sendall((CONTROL_BYTES + 1).to_bytes(4))
    assert scene.hear(bool) == [(NAME, None)]
    assert ended(client)


def test_a_message_larger_than_a_chunk_comes_whole(scene: Scene) -> None:
    """It is put together from its pieces, and others get their turn between them."""
    large = b"x" * (3 * CHUNK)
    client = scene.client(NAME)
    client.settimeout(0.0)
    scene.hear(bool)
    left = memoryview(framed([large]))
    found: list[Heard] = []
    while not found:
        if left:
            with suppress(BlockingIOError):
                left = left[client.send(left) :]
        found += scene.lanes.take(dict(scene.epoll.poll(0.01)))
    assert found == [(NAME, large)]


def test_a_lane_that_does_not_read_costs_its_own_messages_only(scene: Scene) -> None:
    """What is waiting for it is bounded; once it reads, all that was taken arrives, in order."""
    client = scene.client(NAME)
    other = scene.client(KEY + b"\x11")
    scene.hear(lambda found: len(found) == 2)
    taken, letter = 0, b"y" * 500_000
    while scene.lanes.put(NAME, letter):
        taken += 1
        scene.lanes.flush()
    assert WAITING_BYTES - 1_000_000 < taken * len(letter) < WAITING_BYTES + 2_000_000
    scene.lanes.put(KEY + b"\x11", b"z")
    scene.lanes.flush()
    assert received(other, 5) == framed([b"z"])
    size, client_bytes = taken * (len(letter) + 4), 0
    client.settimeout(0.0)
    while client_bytes < size:
        try:
            client_bytes += len(client.recv(1 << 20))
        except BlockingIOError:
            scene.lanes.take(dict(scene.epoll.poll(20)))
            scene.lanes.flush()
    assert scene.lanes.put(NAME, b"again")
    scene.lanes.flush()
    client.settimeout(20)
    assert received(client, 9) == framed([b"again"])


def test_sending_to_one_that_has_just_gone_is_no_error(scene: Scene) -> None:
    """Its end is told when it is read."""
    client = scene.client(NAME)
    scene.hear(bool)
    client.close()
    scene.lanes.put(NAME, b"x")
    scene.lanes.flush()
    assert scene.hear(bool) == [(NAME, None)]


def test_the_lanes_of_a_peer_end_together(scene: Scene) -> None:
    """When it is registered no longer; those of others stay."""
    own, foreign = scene.client(NAME), b"f" * 16 + b"\x10"
    scene.client(foreign)
    scene.hear(lambda found: len(found) == 2)
    scene.lanes.cut(KEY)
    scene.lanes.cut(b"unknown")
    assert ended(own)
    assert NAME not in scene.lanes
    assert foreign in scene.lanes


def test_there_are_so_many_lanes_and_no_more(runtime_dir: Path) -> None:
    """One too many is ended at once; when another goes there is room again."""
    runtime_dir.mkdir(exist_ok=True)
    scene = Scene(runtime_dir, limit=1)
    try:
        first = scene.client(NAME)
        scene.hear(bool)
        late = scene.client(KEY + b"\x11")
        scene.lanes.take(dict(scene.epoll.poll(20)))
        assert ended(late)
        first.close()
        scene.hear(bool)
        scene.client(KEY + b"\x12")
        assert scene.hear(bool) == [(KEY + b"\x12", b"")]
    finally:
        scene.close()


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """As if this process had opened all that it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    fillers = [os.open(os.devnull, os.O_RDONLY) for _ in range(highest)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(fillers) + 1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in fillers:
            os.close(each)


def test_without_a_descriptor_left_a_connection_is_ended(scene: Scene) -> None:
    """It does not keep the broker awake, and the lanes that are there go on."""
    client = scene.client(NAME)
    scene.hear(bool)
    late = scene.client(KEY + b"\x11")
    with no_descriptor_left():
        scene.lanes.take(dict(scene.epoll.poll(20)))
    assert ended(late)
    client.sendall(framed([b"still"]))
    assert scene.hear(bool) == [(NAME, b"still")]
