"""``prxbus ask`` as a process of its own, against a real broker and real deciders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import zmq

import broker.client.core.session as session_module
import broker.client.tool as tool_module
from broker.cli.exits import ASK_USER
from broker.client import Decider, Event, Subscriber
from broker.client.decider import Ask
from broker.client.tool import Tool
from broker.places import endpoints, spool_directory
from broker.protocol.control import Message, decode_message, encode_message
from broker.protocol.decisions import Answer, Failure
from broker.protocol.errors import BusUnreachable, ClosedError, RequestRefused, RequestTimeout
from broker.protocol.limits import ASK_BYTES, PAYLOAD_BYTES
from tests.integration.command import COMMAND, DEADLINE_S, Ran, environment, prxbus, temporary_bus, terminal
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(180)

START = "prx.lifecycle.tool_call_start"
RESULT = "prx.lifecycle.tool_result"

Judge = Callable[[Ask], Iterable[Answer] | None]
"""What a decider answers; None: nothing at all."""


@pytest.fixture(scope="module")
def bus() -> Iterator[str]:
    """A bus that the tests of this file share; each asks about a topic of its own where it matters."""
    with temporary_bus() as directory:
        yield directory


@contextmanager
def deciding(
    bus: str, pattern: str, judge: Judge, *, name: str = "guard", failure: Failure = "open", priority: int = 0
) -> Iterator[Decider]:
    """A real decider in a thread, answering as ``judge`` says."""
    with Decider([pattern], name=name, failure=failure, priority=priority, runtime_dir=bus, wait=30) as asks:

        def serve() -> None:
            try:
                while not asks.closed:
                    for ask in asks.batch(timeout=0.1):
                        answers = judge(ask)
                        if answers is not None:
                            ask.reply(answers)
            except ClosedError:
                return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield asks
        finally:
            asks.close()
            thread.join()


def asked(bus: str, topic: str, *arguments: str | bytes, **given: Any) -> Ran:
    """Run ``prxbus ask`` on ``bus`` with patience for a busy machine, unless it is told otherwise."""
    return prxbus("ask", topic, "--runtime-dir", bus, "--timeout", "60", *arguments, **given)


def take(events: Subscriber, count: int) -> list[Event]:
    """The next ``count`` events."""
    found: list[Event] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} events came"
        found += events.batch(count - len(found), timeout=0.5)
    return found


# -- how it ends --------------------------------------------------------------------------------------


def test_a_denial_is_four_with_reason_and_handler(bus: str) -> None:
    """The decision stands on standard output, nothing on the other, and the exit code says no."""
    with deciding(bus, "a.denied", lambda ask: [Answer("guards.py:guard", "deny", "not here")]):
        said = asked(bus, "a.denied", '{"tool":"Bash","arguments":{"command":"rm -rf /"}}')
    assert (said.returncode, said.stderr) == (4, "")
    lines = said.stdout.splitlines()
    assert lines[0] == "denied by guards.py:guard: not here"
    assert lines[2].split() == ["ASKED", "FAILS", "TOOK", "SAID"]
    assert lines[3].split()[:2] == ["guard", "open"]
    assert lines[3].endswith("ms  deny (guards.py:guard)")


@pytest.mark.parametrize(
    "answers,code,line",
    [
        ([Answer("g", "allow", "fine")], 0, "allowed by g: fine"),
        ([], 0, "no opinion"),
        ([Answer("g", "ask", "sure?")], ASK_USER, "the user is to be asked, says g: sure?"),
    ],
)
def test_the_other_decisions_have_their_codes(bus: str, answers: list[Answer], code: int, line: str) -> None:
    """Allowed and no opinion are 0; what the user is to decide is neither yes nor no."""
    topic = f"a.end{code}-{len(answers)}"
    with deciding(bus, topic, lambda ask: answers):
        said = asked(bus, topic)
    assert (said.returncode, said.stdout.splitlines()[0], said.stderr) == (code, line, "")


def test_nobody_to_ask_is_no_opinion(bus: str) -> None:
    """Without a decider it ends at once, and says so."""
    said = asked(bus, "a.nobody", "--json")
    assert said.returncode == 0
    told = json.loads(said.stdout)
    assert (told["verdict"], told["heard"], told["timed_out"]) == ("none", [], False)
    assert asked(bus, "a.nobody").stdout == "no opinion: nobody was asked\n"


def test_it_loads_no_more_than_it_takes_to_ask(bus: str) -> None:
    """Like a publish it does without the clients, and without what they load for many events."""
    program = (
        "import sys\n"
        "from broker.cli.main import main\n"
        "main(sys.argv[1:])\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program, "ask", "a.nobody", "--runtime-dir", bus],
        capture_output=True, text=True, timeout=DEADLINE_S, env=environment(None), check=False,
    )  # fmt: skip
    assert ran.stdout == "no opinion: nobody was asked\n"
    loaded = set(ran.stderr.split())
    assert "broker.client.tool" in loaded
    assert not {"msgspec", "broker.client.publisher", "broker.client.asker", "asyncio", "structlog"} & loaded


@pytest.mark.parametrize("topic", ["tool_call_start", "prx.lifecycle.tool_call_strat"])
def test_a_topic_that_nobody_decides_is_told_with_the_one_that_was_meant(bus: str, topic: str) -> None:
    """Who asks about an event by its bare name, or with a slip in it, hears which topic it has."""
    said = asked(bus, topic, "{}")
    assert said.returncode == 0
    assert said.stderr.endswith(f"did you mean {START}?\n")
    with deciding(bus, "tool_call_start", lambda ask: []):
        assert asked(bus, "tool_call_start", "{}").stderr == ""


def test_a_late_decider_is_five_unless_somebody_denies(bus: str) -> None:
    """Who is missing is named with why; a no of another is a no all the same."""
    verdicts = ["allow", "deny"]

    def judge(ask: Ask) -> list[Answer]:
        return [Answer("g", verdicts[ask.event.payload["n"]])]

    with deciding(bus, "a.late", judge), deciding(bus, "a.late", lambda ask: None, name="slow"):
        said = asked(bus, "a.late", '{"n": 0}', "--timeout", "1")
        denied = asked(bus, "a.late", '{"n": 1}', "--timeout", "1", "--json")
    assert said.returncode == 5
    assert said.stdout.startswith("allowed by g (1 of 2 deciders without an answer)\n")
    assert said.stdout.splitlines()[-1].endswith("no answer in time")
    assert denied.returncode == 4
    told = json.loads(denied.stdout)
    assert (told["timed_out"], told["partial"]) == (True, True)
    assert [(row["decider"], row["silence"]) for row in told["heard"]] == [
        ("guard", None),
        ("slow", "timeout"),
    ]
    assert 900 < told["heard"][1]["elapsed_ms"] < 1_000 * DEADLINE_S


def test_silence_of_a_decider_that_fails_closed_is_a_denial(bus: str) -> None:
    """The reason says who was silent, and why that counts."""
    with deciding(bus, "a.closed", lambda ask: None, failure="closed"):
        said = asked(bus, "a.closed", "--timeout", "0.5")
    assert said.returncode == 4
    assert said.stdout.startswith("denied by guard: guard did not answer (timeout) and fails closed")


def test_no_bus_is_three(tmp_path: Path) -> None:
    """Where no broker is, that is said with what to do."""
    tmp_path.chmod(0o700)
    said = asked(str(tmp_path), "a.x")
    assert (said.returncode, said.stdout) == (3, "")
    assert "start one with 'prxbus up'" in said.stderr


@pytest.mark.parametrize(
    "arguments,code,message",
    [
        (["a..b"], "bad_topic", "an empty segment"),
        (["a.x", "{bad}"], "bad_payload", "payload is not JSON at line 1, column 2"),
        (["a.x", "[]"], "bad_payload", "payload is an array"),
        ([START, '{"tool": 1}'], "bad_payload", "tool"),
        (["a.x", "--depth", "-1"], "usage", "is not a whole number from 0 up"),
        (["a.x", "--timeout", "3601"], "limit_exceeded", "--timeout must be at most 3600 s, not 3601"),
        (["a.x", "--timeout", "0"], "usage", "is not a number of seconds"),
        (["a.x", "--session", "s" * 257], "limit_exceeded", "session id"),
        ([], "usage", "TOPIC"),
    ],
)
def test_what_cannot_be_asked_is_two(bus: str, arguments: list[str], code: str, message: str) -> None:
    """Never 4, which means denied: a fault of the caller's is wrong usage, as text and as JSON."""
    said = prxbus("ask", *arguments, "--runtime-dir", bus, "--json")
    assert (said.returncode, said.stdout) == (2, "")
    told = json.loads(said.stderr)
    assert told["code"] == code
    assert message in told["message"]
    assert message in prxbus("ask", *arguments, "--runtime-dir", bus).stderr


def test_too_much_is_two(bus: str) -> None:
    """One byte more than an ask takes is refused before anybody is asked."""
    body = b'{"output":"' + b"x" * (ASK_BYTES - 12) + b'"}'
    assert len(body) == ASK_BYTES + 1
    said = asked(bus, "a.large", "-", stdin=body)
    assert (said.returncode, said.stdout) == (2, "")
    assert "an ask takes at most 16,777,216" in said.stderr


# -- what is asked and published ----------------------------------------------------------------------


def test_the_event_is_asked_and_published_under_one_id(bus: str) -> None:
    """Payload, session, source and depth reach the decider and the subscriber alike; cause comes along."""
    seen: list[Event] = []

    def judge(ask: Ask) -> list[Answer]:
        seen.append(ask.event)
        return []

    cause = f"{'0' * 32}:a.b:1"
    with deciding(bus, "a.both", judge), Subscriber(["a.both"], runtime_dir=bus) as events:
        env = {"PRXBUS_DEPTH": "2", "PRXBUS_CAUSE": cause}
        said = asked(bus, "a.both", '{"n": 1}', "--session", "s1", "--json", env=env)
        (event,) = take(events, 1)
    told = json.loads(said.stdout)
    assert told["id"] == event.id == seen[0].id
    assert told["matching"] == 1
    for each in (event, seen[0]):
        assert (each.payload, each.session_id, each.source) == ({"n": 1}, "s1", "prxbus-ask")
        assert (each.depth, each.caused_by) == (2, cause)


@pytest.mark.parametrize(
    "arguments,env",
    [(["--depth", "8"], {}), ([], {"PRXBUS_DEPTH": "9"}), (["--depth", "3"], {"PRXBUS_DEPTH": "8"})],
)
def test_too_deep_is_no_opinion_with_a_note(bus: str, arguments: list[str], env: dict[str, str]) -> None:
    """Nobody is asked, nothing is published, and standard error says so."""
    with deciding(bus, "a.deep", lambda ask: [Answer("g", "deny")]) as asks:
        said = asked(bus, "a.deep", "--json", *arguments, env=env)
        assert asks.stats["asked"] == 0
    assert said.returncode == 0
    told = json.loads(said.stdout)
    assert (told["id"], told["matching"], told["verdict"]) == (None, None, "none")
    note = json.loads(said.stderr)
    assert note["code"] == "over_depth"
    assert "nobody was asked" in note["message"]


def test_a_large_payload_is_asked_by_claim(bus: str) -> None:
    """Above 64 KiB it lies in the spool: the decider and the subscriber both load it whole."""
    body = b'{"text":"' + b"x" * PAYLOAD_BYTES + b'"}'
    seen: list[bytes] = []

    def judge(ask: Ask) -> list[Answer]:
        assert ask.event.claim is not None
        seen.append(ask.event.payload_bytes)
        return [Answer("g", "allow")]

    with deciding(bus, "a.claim", judge), Subscriber(["a.claim"], runtime_dir=bus) as events:
        assert asked(bus, "a.claim", "-", stdin=body).returncode == 0
        (event,) = take(events, 1)
        assert event.payload_bytes == body
    assert seen == [body]


@pytest.mark.parametrize("size", [10, PAYLOAD_BYTES])
def test_a_tool_s_result_is_published_without_its_text(bus: str, size: int) -> None:
    """The decider reads it, the bus gets size and digest, and nothing of it stays in the spool."""
    output = "secret" + "x" * size
    before = set(os.listdir(spool_directory(bus)))
    with (
        deciding(bus, RESULT, lambda ask: [Answer("r", output=ask.event.payload["output"].upper())]),
        Subscriber([RESULT], runtime_dir=bus) as events,
    ):
        said = asked(
            bus, RESULT, "-", "--json", stdin=json.dumps({"tool": "Bash", "output": output}).encode()
        )
        (event,) = take(events, 1)
    assert json.loads(said.stdout)["output"] == {"by": "r", "value": output.upper()}
    assert event.payload == {
        "tool": "Bash",
        "output_bytes": len(output),
        "output_sha256": sha256(output.encode()).hexdigest(),
    }
    left = set(os.listdir(spool_directory(bus))) - before
    assert not any(output.encode() in Path(spool_directory(bus), name).read_bytes() for name in left)


def test_a_decider_in_another_process_may_die(bus: str) -> None:
    """Killed while it holds the ask: that is told, at once and not at the deadline."""
    program = (
        "import sys; from broker.client import Decider\n"
        "asks = Decider(['a.dies'], name='frail', runtime_dir=sys.argv[1], wait=60)\n"
        "print('ready', flush=True); asks.batch(); print('asked', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-P", "-c", program, bus]
    with ExitStack() as stack:
        decider = stack.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        stack.callback(decider.kill)
        assert decider.stdout is not None
        assert decider.stdout.readline() == b"ready\n"
        began = time.monotonic()
        asking = stack.enter_context(
            subprocess.Popen(
                [COMMAND, "ask", "a.dies", "--timeout", "600", "--runtime-dir", bus],
                stdout=subprocess.PIPE,
                env=environment(None),
            )
        )
        stack.callback(asking.kill)
        assert decider.stdout.readline() == b"asked\n"
        decider.kill()
        said, _ = asking.communicate(timeout=DEADLINE_S)
    assert asking.returncode == 0
    assert said.decode().splitlines()[-1].endswith("its process ended")
    assert time.monotonic() - began < DEADLINE_S


def test_an_interrupt_cancels_the_ask(bus: str) -> None:
    """Ctrl-C ends it with 130 at once, and whoever judges is told that nobody waits."""
    held: list[Ask] = []

    def hold(ask: Ask) -> None:
        held.append(ask)

    with (
        deciding(bus, "a.interrupted", hold) as asks,
        subprocess.Popen(
            [COMMAND, "ask", "a.interrupted", "--timeout", "600", "--runtime-dir", bus],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(None),
        ) as asking,
    ):
        try:
            until(lambda: held, "the ask", DEADLINE_S)
            asking.send_signal(signal.SIGINT)
            said = asking.communicate(timeout=DEADLINE_S)
        finally:
            asking.kill()
        until(lambda: asks.stats["cancelled"], "the cancellation", DEADLINE_S)
    assert (asking.returncode, said) == (130, (b"", b""))
    assert held[0].cancelled


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_denial_that_nobody_reads_is_a_denial(bus: str, options: list[str]) -> None:
    """A reader that has gone does not turn a no into success."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with deciding(bus, "a.unread", lambda ask: [Answer("g", "deny")]):
            ran = subprocess.run(
                [COMMAND, "ask", "a.unread", "--timeout", "60", "--runtime-dir", bus, *options],
                stdout=writing,
                stderr=subprocess.PIPE,
                env=environment(None),
                timeout=DEADLINE_S,
                check=False,
            )
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (4, b"")


def test_it_fits_a_terminal(bus: str) -> None:
    """At 80 columns no line is longer, and names with control characters do no harm."""
    answer = Answer("g\x1b[2J", "deny", "because " * 20, ("context " * 20,), {"command": "ls " * 40})
    with deciding(bus, "a.wide", lambda ask: [answer], name="d" * 100), terminal(80) as (ours, theirs):
        process = subprocess.Popen(
            [COMMAND, "ask", "a.wide", '{"arguments":{}}', "--timeout", "60", "--runtime-dir", bus],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            env=environment({"NO_COLOR": "1"}),
        )
        assert process.wait(DEADLINE_S) == 4
        shown = os.read(ours, 65_536).decode()
    lines = shown.replace("\r", "").splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("denied by g\\x1b[2J: because because")
    assert lines[-1].split()[1] == "open"


# -- brokers that do not behave -----------------------------------------------------------------------


@contextmanager
def answering(runtime_dir: Path, answer: Callable[[Message], bytes | None]) -> Iterator[list[Message]]:
    """Something in the place of a broker; yields the list of all that it was told."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.linger = 0
    router.bind(endpoints(str(runtime_dir)).control)
    done = threading.Event()
    told: list[Message] = []

    def serve() -> None:
        while not done.is_set():
            if router.poll(50):
                peer, data = router.recv_multipart()
                message = decode_message(data)
                told.append(message)
                said = answer(message) if message.kind != "hello" else welcome(message)
                if said is not None:
                    router.send_multipart([peer, said])
        router.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield told
    finally:
        done.set()
        thread.join()
        context.term()


def welcome(message: Message) -> bytes:
    """The greeting of a broker."""
    return encode_message(
        "welcome", message.request, epoch=bytes(16), release="9", pid=1, limits={}, batches=True
    )


def kinds(told: list[Message]) -> list[str]:
    """What was said after the greeting, without signs of life."""
    return [message.kind for message in told[1:] if message.kind != "report"]


def test_a_silent_broker_is_a_timeout_and_the_ask_is_cancelled(runtime_dir: Path) -> None:
    """No word at all is exit code 5; nobody is left waiting for an answer."""
    with answering(runtime_dir, lambda message: None) as told:
        said = asked(str(runtime_dir), "a.x", "--timeout", "0.3", "--json")
        until(lambda: "bye" in kinds(told), "the goodbye")
    assert (said.returncode, said.stdout) == (5, "")
    assert json.loads(said.stderr)["code"] == "timeout"
    assert kinds(told) == ["ask", "publish", "cancel", "bye"]
    ask, cancel = told[1], next(message for message in told if message.kind == "cancel")
    assert cancel.request == ask.request
    assert 0 < ask.body["timeout_ms"] <= 300


@pytest.mark.parametrize("code,status", [("draining", 1), ("limit_exceeded", 1), ("unknown_peer", 3)])
def test_a_broker_that_refuses_is_no_denial(runtime_dir: Path, code: str, status: int) -> None:
    """Its words are told, and the exit code is not 4; one that never heard of us has lost the ask."""

    def refuse(message: Message) -> bytes | None:
        return encode_message("error", message.request, code=code, message="no room\x1b[31m")

    with answering(runtime_dir, refuse):
        said = asked(str(runtime_dir), "a.x")
    assert (said.returncode, said.stdout) == (status, "")
    assert said.stderr.startswith("prxbus ask: ")
    assert said.stderr.isprintable() or "\x1b" not in said.stderr


def test_a_copy_that_is_refused_does_not_take_the_decision_along(runtime_dir: Path) -> None:
    """The decision is told with a note, and no beacon speaks of an event that was not published."""

    def answer(message: Message) -> bytes | None:
        if message.kind == "ask":
            return encode_message("answered", message.request, heard=[])
        if message.kind == "publish":
            return encode_message("error", message.request, code="queue_full", message="no room")
        return None

    with answering(runtime_dir, answer) as told:
        said = asked(str(runtime_dir), "a.x", "--json")
        until(lambda: "bye" in kinds(told), "the goodbye")
    assert said.returncode == 0
    assert json.loads(said.stdout)["matching"] is None
    assert json.loads(said.stderr) == {
        "code": "unpublished",
        "message": "the event was not published: no room",
    }
    assert kinds(told) == ["ask", "publish", "bye"]


def test_who_waits_long_says_that_it_is_still_there(
    runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker forgets whom it has not heard for 20 s, and an ask may take an hour."""
    monkeypatch.setattr(tool_module, "SLICE_SECONDS", 0.02)
    monkeypatch.setattr(session_module, "IDLE_REPORT_SECONDS", 0.02)
    signs: list[int] = []

    def answer(message: Message) -> bytes | None:
        if message.kind == "publish":
            return encode_message("published", message.request, matching=0)
        if message.kind == "ask":
            signs.append(message.request)
        if message.kind == "report":
            signs.append(0)
            if len(signs) == 4:
                return encode_message("answered", signs[0], heard=[])
        return None

    with answering(runtime_dir, answer), Tool("t", runtime_dir=runtime_dir, timeout=60.0) as tool:
        assert tool.ask("a.x", b"{}", timeout=60.0).decision.verdict == "none"
    assert signs[1:4] == [0, 0, 0]


@pytest.mark.parametrize(
    "code,raised", [("draining", RequestRefused), ("unknown_peer", BusUnreachable), (None, RequestTimeout)]
)
def test_the_tool_raises_what_a_publisher_raises(
    runtime_dir: Path, code: str | None, raised: type[Exception]
) -> None:
    """A refusal, a broker that is another one, and no word at all."""

    def answer(message: Message) -> bytes | None:
        if code is None or message.kind != "ask":
            return None
        return encode_message("error", message.request, code=code, message="x")

    with (
        answering(runtime_dir, answer),
        Tool("t", runtime_dir=runtime_dir, timeout=60.0) as tool,
        pytest.raises(raised),
    ):
        tool.ask("a.x", b"{}", timeout=0.2 if code is None else 60.0)
