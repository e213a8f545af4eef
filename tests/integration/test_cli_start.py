"""The command as a whole: how it starts, what it says of itself, and brokers that do not behave."""

from __future__ import annotations

import fcntl
import json
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import msgpack
import pytest
import zmq

from broker.cli.exits import TABLE
from broker.places import endpoints
from broker.protocol.control import Message, decode_message, encode_message
from broker.version import __version__
from tests.integration.command import COMMAND, DEADLINE_S, environment, prxbus

pytestmark = pytest.mark.timeout(180)

Answer = Callable[[Message], bytes | None]


@contextmanager
def answering(runtime_dir: Path, answer: Answer) -> Iterator[None]:
    """Something in the place of a broker that answers each control message as ``answer`` says."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.linger = 0
    router.bind(endpoints(str(runtime_dir)).control)
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            if router.poll(50):
                peer, data = router.recv_multipart()
                said = answer(decode_message(data))
                if said is not None:
                    router.send_multipart([peer, said])
        router.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        context.term()


def welcome(message: Message) -> bytes | None:
    """The answer of a broker that greets and then says nothing any more."""
    if message.kind != "hello":
        return None
    return encode_message(
        "welcome", message.request, epoch=bytes(16), release="9", pid=1, limits={}, batches=True
    )


def of_another_version(message: Message) -> bytes:
    """The answer of a broker that speaks protocol version 99."""
    return bytes(msgpack.packb([99, "welcome", message.request, {}]))


def test_the_version_is_told_with_its_place() -> None:
    """The installed command knows which release it is and where it was loaded from."""
    said = prxbus("--version")
    assert said.returncode == 0
    assert said.stdout.startswith(f"prxbus {__version__} from ")
    assert "/broker (Python 3." in said.stdout


def test_help_lists_every_verb() -> None:
    """Those of the bus and those of the hooks, and the table of exit codes."""
    said = prxbus("--help")
    assert (said.returncode, said.stderr) == (0, "")
    listed = [line.split()[0] for line in said.stdout.splitlines() if line.startswith("  ")]
    verbs = {"ask", "bench", "completion", "config", "demo", "pub", "schema", "status", "tap", "top", "up"}
    assert verbs <= set(listed)
    assert {str(row.code) for row in TABLE} <= set(listed)


@pytest.mark.parametrize(
    "verb", ["ask", "bench", "completion", "config", "demo", "pub", "schema", "status", "tap", "top", "up"]
)
def test_every_verb_has_help_and_the_runtime_directory(verb: str) -> None:
    """Each verb explains itself without a bus."""
    said = prxbus(verb, "--help")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith(f"usage: prxbus {verb} ")
    assert ("--runtime-dir DIR" in said.stdout) == (verb not in ("completion", "demo", "schema"))


@pytest.mark.parametrize(
    "arguments,message", [(["publ"], "did you mean 'pub'?"), (["stat"], "'status'"), ([], "usage: ")]
)
def test_a_mistyped_verb_is_a_usage_error(arguments: list[str], message: str) -> None:
    """Exit code 2 and the nearest name."""
    said = prxbus(*arguments)
    assert (said.returncode, said.stdout) == (2, "")
    assert message in said.stderr


@pytest.mark.parametrize("verb", ["pub a.x", "status", "top --once"])
def test_a_broker_of_another_version_is_refused(verb: str, runtime_dir: Path) -> None:
    """Both versions are named, and what to do: use the same release."""
    with answering(runtime_dir, of_another_version):
        said = prxbus(*verb.split(), "--json", "--runtime-dir", str(runtime_dir))
    assert (said.returncode, said.stdout) == (4, "")
    told = json.loads(said.stderr)
    assert (told["code"], told["remote_code"]) == ("refused", "wrong_version")
    assert "protocol version 99 is not 1; use the same prxbus release at both ends" in told["message"]


@pytest.mark.parametrize("verb", ["pub a.x", "status"])
def test_a_broker_that_does_not_greet_counts_as_none(verb: str, runtime_dir: Path) -> None:
    """The command waits as long as --timeout says, and then knows of no bus."""
    with answering(runtime_dir, lambda message: None):
        said = prxbus(*verb.split(), "--timeout", "0.3", "--runtime-dir", str(runtime_dir))
    assert said.returncode == 3
    assert "no bus answers in" in said.stderr


@pytest.mark.parametrize("verb", ["pub a.x", "status"])
def test_a_broker_that_does_not_answer_is_a_timeout(verb: str, runtime_dir: Path) -> None:
    """A bus that is known and silent is exit code 5."""
    with answering(runtime_dir, welcome):
        said = prxbus(*verb.split(), "--timeout", "5", "--json", "--runtime-dir", str(runtime_dir))
    assert (said.returncode, said.stdout) == (5, "")
    assert json.loads(said.stderr)["code"] == "timeout"


def test_a_broker_that_ends_halfway_is_a_timeout(runtime_dir: Path) -> None:
    """A bus that goes away after the greeting is a timeout, no hanging command and no traceback."""
    greeted = threading.Event()

    def greet_and_go(message: Message) -> bytes | None:
        greeted.set()
        return welcome(message)

    command = [COMMAND, "pub", "a.x", "--count", "100000", "--timeout", "3"]
    broker = ExitStack()
    with broker:
        broker.enter_context(answering(runtime_dir, greet_and_go))
        with subprocess.Popen(
            [*command, "--runtime-dir", str(runtime_dir)], stderr=subprocess.PIPE, env=environment(None)
        ) as pub:
            assert greeted.wait(DEADLINE_S)
            broker.close()
            _, said = pub.communicate(timeout=DEADLINE_S)
    assert pub.returncode == 5
    assert said.decode() == (f"prxbus pub: the broker in {str(runtime_dir)!r} did not answer within 3 s\n")


def test_a_broker_that_refuses_is_told_in_its_words(runtime_dir: Path) -> None:
    """A refusal has the broker's own code beside ours, and its text made fit for a terminal."""

    def refuse(message: Message) -> bytes | None:
        if message.kind == "hello":
            return welcome(message)
        return encode_message("error", message.request, code="draining", message="about to stop\x1b[31m")

    with answering(runtime_dir, refuse):
        plain = prxbus("pub", "a.x", "--timeout", "60", "--runtime-dir", str(runtime_dir))
        as_json = prxbus("pub", "a.x", "--timeout", "60", "--json", "--runtime-dir", str(runtime_dir))
    assert plain.returncode == as_json.returncode == 4
    assert plain.stderr == "prxbus pub: about to stop\\x1b[31m\n"
    assert json.loads(as_json.stderr)["remote_code"] == "draining"


def test_an_interrupt_is_quiet() -> None:
    """Ctrl-C while a command waits for its input: exit code 130 and not a word."""
    command = [COMMAND, "pub", "a.x", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(None)
    ) as pub:
        try:
            assert pub.stdin is not None
            pub.stdin.write(b"{")
            pub.stdin.flush()
            wait_until_read(pub.stdin)
            pub.send_signal(signal.SIGINT)
            _, said = pub.communicate(timeout=DEADLINE_S)
        finally:
            pub.kill()
    assert (pub.returncode, said) == (130, b"")


def wait_until_read(stream: IO[bytes]) -> None:
    """Wait until what was written into the pipe ``stream`` has been read at its other end."""
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while struct.unpack("i", fcntl.ioctl(stream, termios.FIONREAD, bytes(4)))[0]:
        assert time.monotonic() < deadline, "the command did not come to read its input"
        pause.wait(0.01)
