"""``prxbus pub`` as a process of its own, against a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.client import Event, Subscriber
from broker.protocol.limits import PAYLOAD_BYTES
from tests.integration.command import COMMAND, DEADLINE_S, Ran, environment, prxbus, temporary_bus

pytestmark = pytest.mark.timeout(180)

TOPIC = "prx.lifecycle.tool_call"


@pytest.fixture(scope="module")
def bus() -> Iterator[str]:
    """A bus that the tests of this file share; each uses a topic of its own where it matters."""
    with temporary_bus() as directory:
        yield directory


def pub(bus: str, *arguments: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None) -> Ran:
    """Run ``prxbus pub`` on ``bus``, with patience for a busy machine."""
    return prxbus("pub", "--runtime-dir", bus, "--timeout", "60", *arguments, stdin=stdin, env=env)


def take(events: Subscriber, count: int) -> list[Event]:
    """The next ``count`` events."""
    found: list[Event] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} events came"
        found += events.batch(count - len(found), timeout=0.5)
    return found


def test_an_event_arrives_with_everything_that_was_said(bus: str) -> None:
    """Payload, session, source and depth come out as they went in, and the count of subscribers is true."""
    with Subscriber(["a.*"], runtime_dir=bus) as events, Subscriber(["a.said"], runtime_dir=bus):
        said = pub(bus, "a.said", '{"tool":"Bash"}', "--session", "s1", "--depth", "2", "--source", "me")
        (event,) = take(events, 1)
    assert (said.returncode, said.stdout, said.stderr) == (0, "matching subscribers: 2\n", "")
    assert event.payload == {"tool": "Bash"}
    assert (event.topic, event.session_id, event.source, event.depth) == ("a.said", "s1", "me", 2)


def test_a_mistyped_event_is_published_with_a_hint(bus: str) -> None:
    """A topic beside the catalogue is allowed; the catalogued one that is near is named."""
    said = pub(bus, "prx.lifecycle.tol_call")
    assert (said.returncode, said.stdout) == (0, "matching subscribers: 0\n")
    assert "did you mean prx.lifecycle.tool_call?" in said.stderr
    as_json = pub(bus, "prx.lifecycle.tol_call", "--json")
    assert json.loads(as_json.stderr)["code"] == "uncatalogued"


def test_nobody_listens_is_no_failure(bus: str) -> None:
    """The number of subscribers is then zero; a payload that is not given is an empty object."""
    assert pub(bus, "a.nobody").stdout == "matching subscribers: 0\n"


def test_a_count_is_published_so_many_times(bus: str) -> None:
    """Each one is acknowledged, and none is missing."""
    with Subscriber(["a.count"], runtime_dir=bus) as events:
        said = pub(bus, "a.count", '{"n":1}', "--count", "1000", "--json")
        found = take(events, 1000)
        missed = events.stats["missed"]
    told = json.loads(said.stdout)
    assert told.pop("id") == found[-1].id
    assert told == {"matching": 1, "published": 1000, "over_depth": 0}
    assert [event.sequence for event in found] == list(range(1, 1001))
    assert missed == 0


def test_the_payload_may_come_from_a_file_or_standard_input(bus: str, tmp_path: Path) -> None:
    """@FILE and - are read whole, and the bytes travel as they were written."""
    text = b'{ "n": 12345678901234567890123,\n "f": 1.10 }'
    path = tmp_path / "payload.json"
    path.write_bytes(text + b"\n")
    with Subscriber(["a.file"], runtime_dir=bus) as events:
        assert pub(bus, "a.file", f"@{path}").returncode == 0
        assert pub(bus, "a.file", "-", stdin=text).returncode == 0
        assert [event.payload_bytes for event in take(events, 2)] == [text, text]


def test_a_large_payload_goes_by_claim_check(bus: str) -> None:
    """One byte more than an event carries travels through the spool, whole."""
    head = b'{"output":"'
    body = head + b"x" * (PAYLOAD_BYTES + 1 - len(head) - 2) + b'"}'
    assert len(body) == PAYLOAD_BYTES + 1
    with Subscriber(["a.large"], runtime_dir=bus) as events:
        assert pub(bus, "a.large", "-", stdin=body).returncode == 0
        assert pub(bus, "a.large", "-", stdin=body[:-3] + b'"}').returncode == 0
        large, fitting = take(events, 2)
        assert large.payload_bytes == body
    assert large.claim is not None
    assert fitting.claim is None


def test_a_retained_value_is_there_for_who_comes_later(bus: str) -> None:
    """The last one of a topic comes first to a subscriber that asks for it."""
    for number in (1, 2):
        assert pub(bus, "a.kept", f'{{"n":{number}}}', "--retain").returncode == 0
    with Subscriber(["a.kept"], last=True, runtime_dir=bus) as events:
        assert [event.payload for event in take(events, 1)] == [{"n": 2}]


@pytest.mark.parametrize(
    "arguments,env,depth",
    [
        (["--depth", "8"], {}, 8),
        (["--depth", "300"], {}, 300),
        ([], {"PRXBUS_DEPTH": "9"}, 9),
        (["--depth", "1"], {"PRXBUS_DEPTH": "8"}, 8),
    ],
)
def test_too_deep_is_dropped_with_a_note(
    bus: str, arguments: list[str], env: dict[str, str], depth: int
) -> None:
    """From depth 8 on nothing is published, and that is no failure: a note on stderr says so."""
    with Subscriber(["a.deep"], runtime_dir=bus) as events:
        said = pub(bus, "a.deep", *arguments, env=env)
        pub(bus, "a.deep", '{"last":true}')
        (only,) = take(events, 1)
    assert only.payload == {"last": True}
    assert said.returncode == 0
    assert said.stderr.startswith(f"prxbus pub: depth {depth} is beyond 7, so the event was dropped")


@pytest.mark.parametrize(
    "arguments,env,depth",
    [
        (["--depth", "7"], {}, 7),
        ([], {"PRXBUS_DEPTH": "3"}, 3),
        (["--depth", "5"], {"PRXBUS_DEPTH": "3"}, 5),
        (["--depth", "1"], {"PRXBUS_DEPTH": "3"}, 3),
        ([], {"PRXBUS_DEPTH": "x"}, 7),
    ],
)
def test_the_depth_is_the_greater_of_flag_and_environment(
    bus: str, arguments: list[str], env: dict[str, str], depth: int
) -> None:
    """A child of a hook cannot publish less deep than the hook runs; a broken variable counts as deepest."""
    with Subscriber(["a.depth"], runtime_dir=bus) as events:
        assert pub(bus, "a.depth", *arguments, env=env).returncode == 0
        assert take(events, 1)[0].depth == depth


def test_the_cause_is_inherited(bus: str) -> None:
    """What a hook publishes names the event that started the hook."""
    with Subscriber(["a.cause"], runtime_dir=bus) as events:
        pub(bus, "a.cause", env={"PRXBUS_CAUSE": "00:x:1", "PRXBUS_DEPTH": "1"})
        assert take(events, 1)[0].caused_by == "00:x:1"


@pytest.mark.parametrize("depth", ["-1", "x", "", "1.5"])
def test_what_is_no_depth_is_a_usage_error(bus: str, depth: str) -> None:
    """Negative or not a number."""
    said = pub(bus, "a.x", "--depth", depth)
    assert said.returncode == 2
    assert f"prxbus pub: argument --depth: {depth!r} is not a whole number from 0 up" in said.stderr


@pytest.mark.parametrize(
    "arguments,code,message",
    [
        (["a..b"], "bad_topic", "topic 'a..b': an empty segment (position 2); did you mean 'a.b'?"),
        (["a.*"], "bad_topic", "topic 'a.*': '*' is for patterns, not for topics (position 2)"),
        (["a b"], "bad_topic", "topic 'a b': ' ' is not one of A-Z a-z 0-9 _ - and '.' (position 1)"),
        (["a.x", "{bad"], "bad_payload", "payload is not JSON at line 1, column 2: "),
        (["a.x", '{"a":\n NaN}'], "bad_payload", "payload is not JSON at line 2, column 2: NaN is no JSON"),
        (["a.x", "[1]"], "bad_payload", "payload is an array; an event's payload is a JSON object"),
        (["a.x", b'{"a":"\xff"}'], "bad_payload", "payload is not UTF-8 at line 1, column 7"),
        ([TOPIC, '{"success":"yes"}'], "bad_payload", f"{TOPIC}: payload.success must be boolean or null"),
        (["a.x", "--session", "s" * 257], "limit_exceeded", "session id is longer than 256 bytes"),
        (["a.x", "--source", "s" * 129], "limit_exceeded", "--source must be 1 to 128 bytes, not 129"),
    ],
)
def test_what_breaks_a_rule_is_refused(
    bus: str, arguments: list[str | bytes], code: str, message: str
) -> None:
    """Exit code 4, nothing on stdout, one line of what, where and what to do; with --json an object."""
    plain, as_json = pub(bus, *arguments), pub(bus, *arguments, "--json")
    assert (plain.returncode, plain.stdout) == (as_json.returncode, as_json.stdout) == (4, "")
    assert message in plain.stderr
    assert plain.stderr.startswith("prxbus pub: ")
    assert len(plain.stderr.splitlines()) == 1
    told = json.loads(as_json.stderr)
    assert told["code"] == code
    assert message in told["message"]


def test_a_refusal_of_the_broker_is_told_in_its_words(bus: str) -> None:
    """A name that the broker does not take is refused by it, with its own code."""
    said = pub(bus, "a.x", "--source", "a\nb", "--json")
    assert said.returncode == 4
    told = json.loads(said.stderr)
    assert (told["code"], told["remote_code"]) == ("refused", "limit_exceeded")


@pytest.mark.parametrize(
    "arguments", [[], ["a.x", "{}", "{}"], ["a.x", "--no-such-option"], ["a.x", "--count", "0"]]
)
def test_a_wrong_command_line_is_a_usage_error(bus: str, arguments: list[str]) -> None:
    """Exit code 2, and where to read on."""
    said = pub(bus, *arguments)
    assert (said.returncode, said.stdout) == (2, "")
    assert "see 'prxbus pub --help'" in said.stderr


def test_a_file_that_is_missing_is_named(bus: str, tmp_path: Path) -> None:
    """Exit code 1."""
    said = pub(bus, "a.x", f"@{tmp_path}/none.json")
    assert said.returncode == 1
    assert said.stderr == (
        f"prxbus pub: cannot read the payload from '{tmp_path}/none.json': No such file or directory\n"
    )


def test_without_a_bus_there_is_a_way_out(runtime_dir: Path) -> None:
    """Exit code 3, and what to do: start one, or name another directory."""
    said = prxbus("pub", "a.x", env={"PRXBUS_RUNTIME_DIR": str(runtime_dir)})
    assert (said.returncode, said.stdout) == (3, "")
    assert f"no bus answers in '{runtime_dir}'" in said.stderr
    assert "prxbus up" in said.stderr
    assert "--runtime-dir" in said.stderr


def test_what_is_wrong_with_the_event_is_told_without_a_bus_too(runtime_dir: Path) -> None:
    """A fault of the command line does not wait for a bus to be found."""
    said = prxbus("pub", "a..x", "--runtime-dir", str(runtime_dir))
    assert said.returncode == 4


def test_a_runtime_directory_that_others_can_use_is_refused(tmp_path: Path) -> None:
    """Whoever can replace a socket can read events: the command to mend it is part of the message."""
    open_to_all = tmp_path / "bus"
    open_to_all.mkdir(mode=0o777)
    open_to_all.chmod(0o777)
    said = prxbus("pub", "a.x", "--runtime-dir", str(open_to_all))
    assert said.returncode == 4
    assert "chmod 700" in said.stderr


def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    """The message says how long it is and how long it may be."""
    said = prxbus("pub", "a.x", "--runtime-dir", str(tmp_path / ("x" * 120)))
    assert said.returncode == 4
    assert "107 are possible" in said.stderr


def test_the_environment_names_the_bus(bus: str) -> None:
    """PRXBUS_RUNTIME_DIR does what --runtime-dir does; the flag wins."""
    assert prxbus("pub", "a.x", "--timeout", "60", env={"PRXBUS_RUNTIME_DIR": bus}).returncode == 0
    assert pub(bus, "a.x", env={"PRXBUS_RUNTIME_DIR": "/nonexistent"}).returncode == 0


def test_output_that_cannot_be_written_is_a_failure(bus: str) -> None:
    """A full disk is no success, and the message says what could not be written."""
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [COMMAND, "pub", "a.x", "--runtime-dir", bus, "--timeout", "60"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(None),
            timeout=DEADLINE_S,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr.decode() == f"prxbus pub: standard output could not be written: {os.strerror(28)}\n"
