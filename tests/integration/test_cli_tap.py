"""``prxbus tap`` as a process of its own, against a real broker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.client import Publisher
from broker.client.tool import Tool
from tests.integration.command import (
    COMMAND,
    DEADLINE_S,
    drained,
    environment,
    prxbus,
    started,
    temporary_bus,
    terminal,
)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def bus() -> Iterator[str]:
    """A bus that the tests of this file share; each uses topics of its own."""
    with temporary_bus() as directory:
        yield directory


@contextmanager
def tapping(bus: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """``prxbus tap`` that has said that it is ready."""
    with started("tap", "--ready", "--runtime-dir", bus, *arguments) as tap:
        assert tap.stderr is not None
        assert b"ready" in tap.stderr.readline()
        yield tap


def publish(bus: str, topic: str, *payloads: Any, **more: Any) -> None:
    """Publish ``payloads``, one after the other, each acknowledged."""
    with Tool("test", runtime_dir=bus, timeout=60.0) as tool:
        for payload in payloads:
            assert tool.publish(topic, payload, **more).matching >= 1


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Exit code and output of a command that ends by itself."""
    output, said = process.communicate(timeout=DEADLINE_S)
    return process.returncode, output.decode(), said.decode()


def test_events_are_shown_as_lines(bus: str) -> None:
    """One line for each event, in order, without colours and uncut where the output is no terminal."""
    with tapping(bus, "b.*", "--count", "2") as tap:
        publish(bus, "b.lines", {"n": 1}, {"long": "x" * 300}, session_id="s1")
        code, output, said = finish(tap)
    assert (code, said) == (0, "")
    first, second = output.splitlines()
    assert re.fullmatch(r'\d\d:\d\d:\d\d\.\d{3}  b\.lines  s1  test  \{"n":1\}', first)
    assert "x" * 300 in second


def test_events_are_shown_as_json(bus: str) -> None:
    """One object a line with everything that is known of the event."""
    with tapping(bus, "b.json", "--json", "--count", "1") as tap:
        publish(bus, "b.json", {"n": 1, "c": "\x9b\x7f"}, session_id="s1")
        code, output, said = finish(tap)
    assert (code, said) == (0, "")
    (line,) = output.splitlines()
    event = json.loads(line)
    assert event.pop("id").endswith(":b.json:1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event.pop("time"))
    assert event == {
        "topic": "b.json",
        "session_id": "s1",
        "source": "test",
        "depth": 0,
        "caused_by": None,
        "payload": {"n": 1, "c": "\x9b\x7f"},
    }
    assert "\x9b" not in line
    assert "\x7f" not in line


def test_a_payload_keeps_its_numbers_and_its_depth(bus: str) -> None:
    """Digits are passed on as written, layout between tokens becomes one line, deep nesting is no error."""
    deep = b'{"a":' + b"[" * 300 + b"]" * 300 + b"}"
    exact = b'{"n": 12345678901234567890123,\n "f": 1.10}'
    with tapping(bus, "b.exact", "--json", "--count", "2") as tap:
        publish(bus, "b.exact", deep, exact)
        code, output, _ = finish(tap)
    assert code == 0
    first, second = output.splitlines()
    assert deep.decode() in first
    assert '"n": 12345678901234567890123,  "f": 1.10' in second


def test_retained_values_come_first_with_last(bus: str) -> None:
    """--last shows the last value of each topic at once."""
    with Tool("test", runtime_dir=bus, timeout=60.0) as tool:
        tool.publish("b.kept", {"n": 7}, retain=True)
    said = prxbus("tap", "b.kept", "--last", "--count", "1", "--json", "--runtime-dir", bus)
    assert said.returncode == 0
    assert json.loads(said.stdout)["payload"] == {"n": 7}


@pytest.mark.parametrize(
    "arguments,code,said_so",
    [
        ([], 0, ""),
        (["--count", "1"], 5, "prxbus tap: timed out after 0.2 s with 0 of 1 event\n"),
    ],
)
def test_the_time_may_run_out(bus: str, arguments: list[str], code: int, said_so: str) -> None:
    """Without a count the time is up and that is the end; with one, it was not reached, and that is said."""
    said = prxbus("tap", "b.silence", "--timeout", "0.2", *arguments, "--runtime-dir", bus)
    assert (said.returncode, said.stdout, said.stderr) == (code, "", said_so)


def test_many_patterns_may_be_given(bus: str) -> None:
    """An event that matches several is shown once."""
    with tapping(bus, "b.many", "b.*", "--count", "2", "--json") as tap:
        publish(bus, "b.many", {"n": 1}, {"n": 2})
        code, output, _ = finish(tap)
    assert code == 0
    assert [json.loads(line)["payload"]["n"] for line in output.splitlines()] == [1, 2]


def test_twenty_thousand_events_come_through_a_pipe_in_order(bus: str) -> None:
    """Nothing is lost or said to be lost when a reader keeps up."""
    number = 20_000
    with tapping(bus, "b.flood", "--count", str(number), "--json") as tap:
        assert tap.stdout is not None
        with Publisher("flood", runtime_dir=bus, on_full="block", on_absent="block") as agent:
            seen = 0
            for start in range(0, number, 1_000):  # a window, so that the queue in the broker holds it
                for n in range(start, start + 1_000):
                    agent.publish("b.flood", {"n": n})
                for _ in range(1_000):
                    assert json.loads(tap.stdout.readline())["payload"]["n"] == seen
                    seen += 1
        assert tap.wait(DEADLINE_S) == 0
        assert tap.stderr is not None
        assert tap.stderr.read() == b""


def test_what_was_missed_is_said_as_it_is_noticed(bus: str) -> None:
    """A tap that could not keep up names the topic and the number, on stderr."""
    with tapping(bus, "b.missed", "--json") as tap:
        assert tap.stderr is not None
        os.kill(tap.pid, signal.SIGSTOP)
        with Publisher("flood", runtime_dir=bus, on_full="block", on_absent="block") as agent:
            for n in range(30_000):
                agent.publish("b.missed", {"n": n, "fill": "x" * 100})
                agent.publish("other.topic", {})  # so that each has a frame of its own
            os.kill(tap.pid, signal.SIGCONT)
            with drained(tap.stdout):
                news = json.loads(tap.stderr.readline())
                tap.kill()
    assert news["code"] == "missed"
    assert news["topic"] == "b.missed"
    assert news["message"] == f"missed {news['count']:,} events of b.missed"


def test_a_reader_that_has_seen_enough_ends_it_quietly(bus: str) -> None:
    """``tap | head -1`` ends by itself, also when no event comes any more, and says nothing."""
    with tapping(bus, "b.head", "--json") as tap:
        assert tap.stdout is not None
        publish(bus, "b.head", {"n": 1})
        assert json.loads(tap.stdout.readline())["payload"] == {"n": 1}
        tap.stdout.close()
        assert tap.wait(DEADLINE_S) == 0
        assert tap.stderr is not None
        assert tap.stderr.read() == b""


def test_an_interrupt_ends_it_quietly(bus: str) -> None:
    """Ctrl-C is exit code 130 and no traceback."""
    with tapping(bus, "b.interrupt") as tap:
        publish(bus, "b.interrupt", {"n": 1})
        assert tap.stdout is not None
        tap.stdout.readline()
        tap.send_signal(signal.SIGINT)
        code, _, said = finish(tap)
    assert (code, said) == (130, "")


def test_without_standard_error_nothing_of_it_lands_among_the_data(bus: str) -> None:
    """Started with standard error closed, a command keeps its errors to itself."""
    command = f'exec "$0" tap b.closed --ready --count 1 --timeout 0.2 --runtime-dir {bus} 2>&-'
    ran = subprocess.run(
        ["/bin/sh", "-c", command, COMMAND],
        stdout=subprocess.PIPE,
        env=environment(None),
        timeout=DEADLINE_S,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (5, b"")


def test_without_a_bus_it_says_what_to_do(runtime_dir: Path) -> None:
    """Exit code 3; with --wait only after that time."""
    for arguments in ([], ["--wait", "0.2"]):
        said = prxbus("tap", "b.x", *arguments, "--runtime-dir", str(runtime_dir))
        assert (said.returncode, said.stdout) == (3, "")
        assert "prxbus tap: no bus answers in" in said.stderr
        assert "prxbus up" in said.stderr
        assert "with --runtime-dir or PRXBUS_RUNTIME_DIR" in said.stderr


@pytest.mark.parametrize(
    "pattern,message",
    [
        ("b.**", "pattern 'b.**': '*' stands for a whole segment (position 2); did you mean 'b.*'?"),
        ("b.#", "pattern 'b.#': '#' is not one of A-Z a-z 0-9 _ - and '.' (position 2); did you mean 'b.*'?"),
        ("", "an empty pattern; '*' subscribes to every topic"),
        ("b.{x,y}", "alternatives are separate patterns"),
    ],
)
def test_a_malformed_pattern_is_refused_with_its_place(bus: str, pattern: str, message: str) -> None:
    """Exit code 4, with the position and the form that was probably meant."""
    said = prxbus("tap", pattern, "--runtime-dir", bus)
    assert (said.returncode, said.stdout) == (4, "")
    assert message in said.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["b.x", "--count", "0"], ["b.x", "--timeout", "nan"], ["b.x", "--wait", "-1"]]
)
def test_a_wrong_command_line_is_a_usage_error(bus: str, arguments: list[str]) -> None:
    """Exit code 2, and where to read on."""
    said = prxbus("tap", *arguments, "--runtime-dir", bus)
    assert (said.returncode, said.stdout) == (2, "")
    assert "see 'prxbus tap --help'" in said.stderr


@pytest.mark.parametrize("env,coloured", [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_gets_colours_and_lines_that_fit(bus: str, env: dict[str, str], coloured: bool) -> None:
    """Lines are cut to its width; what an event holds cannot control it; NO_COLOR is honoured."""
    command = [COMMAND, "tap", "b.terminal", "--count", "1", "--ready", "--runtime-dir", bus]
    clean = environment({"TERM": "xterm", **env})
    with (
        terminal(100) as (ours, theirs),
        subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=clean) as tap,
    ):
        try:
            assert tap.stderr is not None
            assert tap.stderr.readline() == b"prxbus tap: ready\n"
            dangerous = {"output": "\x1b[31m\x9b\u202e" + "x" * 300}
            publish(bus, "b.terminal", dangerous, session_id="\x1b]0;owned\x07")
            assert tap.wait(DEADLINE_S) == 0
        finally:
            tap.kill()
        text = os.read(ours, 65_536).decode()
    assert ("\x1b[" in text) is coloured
    line = re.sub(r"\x1b\[[0-9;]*m", "", text).removesuffix("\r\n")
    assert line.isprintable()
    assert len(line) == 100
    assert "\\x1b]0;owne…" in line
    assert line.endswith("…")
