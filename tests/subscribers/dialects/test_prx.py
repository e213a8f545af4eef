"""What a PRX hook receives: one envelope on every channel, and an environment built from nothing."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import prx
from subscribers.dialects.base import Dialect, EventView, Place
from subscribers.dialects.environment import HOOK_VARIABLES
from subscribers.dialects.prx_rules import PAYLOAD_ENV_BYTES
from subscribers.hooks.spec import HookSpec

SPEC = HookSpec(
    id="tool_call#0",
    dialect="prx",
    path="hooks.json",
    line=3,
    event="tool_call",
    command="audit.sh",
    args=("--flag", "value"),
    env={"LOG_DIR": "/var/log"},
    cwd=None,
    timeout_s=2.5,
    grace_s=5.0,
    stdin=True,
)
VIEW = EventView(
    event="tool_call",
    payload_bytes=b'{ "tool":"Bash",  "output":"\xc3\xa9" }',
    session_id="sess_abc123",
    time_ns=1_774_080_930_123_999_999,
    depth=3,
    id="0123/prx.lifecycle.tool_call/7",
)
PLACE = Place(
    workspace="/ws",
    runtime_dir="/run/user/1000/prxbus",
    payload_file="/dev/shm/prxbus/hook-1.json",
    prxbus_folder="/opt/prxbus/bin",
    executable="/usr/bin/audit.sh",
    cwd="/ws/sub",
)

views = st.builds(
    EventView,
    event=st.sampled_from(["tool_call", "error"]),
    payload_bytes=st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers()).map(
        lambda payload: json.dumps(payload).encode()
    ),
    session_id=st.none() | st.text(),
    time_ns=st.integers(-(2**63), 2**64 - 1),
    depth=st.integers(0, 7),
    id=st.text(),
)


def of_size(size: int, view: EventView = VIEW) -> EventView:
    """A view whose envelope has exactly this many bytes."""
    empty = len(prx.envelope(replace(view, payload_bytes=b'{"x":""}')))
    return replace(view, payload_bytes=b'{"x":"' + b"y" * (size - empty) + b'"}')


def test_the_module_is_a_dialect() -> None:
    """The PRX module has the shape that every dialect has."""
    dialect: Dialect = prx
    assert (dialect.NAME, dialect.FILE_NAME, dialect.MAX_FILE_BYTES) == ("prx", "hooks.json", 1_048_576)


def test_the_envelope_holds_the_four_fields_and_the_payload_s_own_bytes() -> None:
    """Event, timestamp, session and payload in the page's order; the payload is not encoded anew."""
    assert prx.envelope(VIEW) == (
        b'{"event":"tool_call","timestamp":"2026-03-21T08:15:30.123Z","session_id":"sess_abc123",'
        b'"payload":{ "tool":"Bash",  "output":"\xc3\xa9" }}'
    )


def test_without_a_session_the_envelope_says_null() -> None:
    """An event outside of any session has a null session_id and an empty variable."""
    view = replace(VIEW, session_id=None)
    assert json.loads(prx.envelope(view))["session_id"] is None
    assert prx.render(SPEC, view, PLACE).env["ZERO_HOOK_SESSION"] == ""


@given(views)
def test_every_envelope_is_json_with_the_view_s_values(view: EventView) -> None:
    """Whatever the session id or time, the envelope is a JSON object of the four fields."""
    document: dict[str, Any] = json.loads(prx.envelope(view))
    assert list(document) == ["event", "timestamp", "session_id", "payload"]
    assert document["event"] == view.event
    assert document["session_id"] == view.session_id
    assert document["payload"] == json.loads(view.payload_bytes)


@pytest.mark.parametrize(
    "time_ns,text",
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (999_999, "1970-01-01T00:00:00.000Z"),
        (1_000_000, "1970-01-01T00:00:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_774_080_930_123_999_999, "2026-03-21T08:15:30.123Z"),
    ],
)
def test_a_timestamp_has_milliseconds_and_is_not_rounded(time_ns: int, text: str) -> None:
    """Times are RFC 3339 in UTC, cut to milliseconds."""
    assert prx.timestamp(time_ns) == text


@given(st.integers(-(2**63), 2**64 - 1))
def test_a_timestamp_reads_back_to_its_millisecond(time_ns: int) -> None:
    """Any time that an event can carry comes back, to the millisecond, from its text."""
    read = datetime.fromisoformat(prx.timestamp(time_ns))
    delta = read - datetime(1970, 1, 1, tzinfo=UTC)
    assert (delta.days * 86_400 + delta.seconds) * 1_000 + delta.microseconds // 1_000 == time_ns // 1_000_000


def test_an_invocation_is_the_spec_in_its_place() -> None:
    """Program and folder are those that were found; arguments and times are the spec's."""
    invocation = prx.render(SPEC, VIEW, PLACE)
    assert invocation.argv == ("/usr/bin/audit.sh", "--flag", "value")
    assert (invocation.cwd, invocation.timeout_s, invocation.grace_s) == ("/ws/sub", 2.5, 5.0)


def test_the_environment_is_exactly_what_is_documented() -> None:
    """The documented variables and the action's own, nothing else, and no HOME."""
    assert prx.render(SPEC, VIEW, PLACE).env == {
        "LOG_DIR": "/var/log",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/prxbus/bin",
        "ZERO_HOOK_EVENT": "tool_call",
        "ZERO_HOOK_SESSION": "sess_abc123",
        "ZERO_HOOK_TIMESTAMP": "2026-03-21T08:15:30.123Z",
        "ZERO_HOOK_PAYLOAD": prx.envelope(VIEW).decode(),
        "ZERO_HOOK_PAYLOAD_FILE": "/dev/shm/prxbus/hook-1.json",
        "PRXBUS_RUNTIME_DIR": "/run/user/1000/prxbus",
        "PRXBUS_DEPTH": "4",
        "PRXBUS_CAUSE": "0123/prx.lifecycle.tool_call/7",
    }


def test_the_documented_variables_are_all_set() -> None:
    """The table of variables for readers is what a hook without env gets."""
    assert prx.render(replace(SPEC, env={}), VIEW, PLACE).env.keys() == HOOK_VARIABLES.keys()


def test_what_prxbus_sets_wins() -> None:
    """Should a spec carry a documented name all the same, the documented value is the one that counts."""
    env = prx.render(replace(SPEC, env={"PRXBUS_DEPTH": "0", "PATH": "/x"}), VIEW, PLACE).env
    assert (env["PRXBUS_DEPTH"], env["PATH"]) == ("4", "/usr/local/bin:/usr/bin:/bin:/opt/prxbus/bin")


@pytest.mark.parametrize("depth", range(8))
def test_a_child_publishes_one_deeper(depth: int) -> None:
    """PRXBUS_DEPTH is the depth of what the hook publishes, so an event of depth 7 leads to 8."""
    assert prx.render(SPEC, replace(VIEW, depth=depth), PLACE).env["PRXBUS_DEPTH"] == str(depth + 1)


@pytest.mark.parametrize("size,is_set", [(8_191, True), (8_192, True), (8_193, False), (20_000_000, False)])
def test_the_payload_variable_ends_at_eight_kibibytes(size: int, is_set: bool) -> None:
    """An envelope of 8,192 bytes travels in the environment, a longer one does not; stdin has it anyway."""
    view = of_size(size)
    invocation = prx.render(SPEC, view, PLACE)
    assert len(prx.envelope(view)) == size
    assert ("ZERO_HOOK_PAYLOAD" in invocation.env) is is_set
    assert invocation.stdin is not None
    assert len(invocation.stdin) == size
    assert invocation.env["ZERO_HOOK_PAYLOAD_FILE"] == PLACE.payload_file


@given(views)
def test_all_channels_carry_the_same_bytes(view: EventView) -> None:
    """The standard input and the variable are the envelope, byte for byte, as the file's bytes are."""
    invocation = prx.render(SPEC, view, PLACE)
    body = prx.envelope(view)
    assert invocation.stdin == body
    if len(body) <= PAYLOAD_ENV_BYTES:
        assert invocation.env["ZERO_HOOK_PAYLOAD"].encode() == body


def test_stdin_is_closed_unless_asked_for() -> None:
    """Without stdin_json a hook reads nothing."""
    assert prx.render(replace(SPEC, stdin=False), VIEW, PLACE).stdin is None


def test_a_caller_may_encode_the_envelope_once_for_many_hooks() -> None:
    """With the envelope given, the invocation is the same as without."""
    assert prx.render(SPEC, VIEW, PLACE, prx.envelope(VIEW)) == prx.render(SPEC, VIEW, PLACE)


def test_bytes_that_are_not_utf8_reach_the_variable_unchanged() -> None:
    """What a foreign publisher sent is passed on as it is, not repaired."""
    view = replace(VIEW, payload_bytes=b'{"x":"\xff"}')
    env = prx.render(SPEC, view, PLACE).env
    assert env["ZERO_HOOK_PAYLOAD"].encode("utf-8", "surrogateescape") == prx.envelope(view)


def test_nul_never_reaches_the_environment() -> None:
    """A payload with a raw NUL is left to file and stdin; a session id shows a replacement instead."""
    env = prx.render(SPEC, replace(VIEW, payload_bytes=b'{"x":"\0"}'), PLACE).env
    assert "ZERO_HOOK_PAYLOAD" not in env
    view = replace(VIEW, session_id="a\0b", id="c\0d")
    env = prx.render(SPEC, view, PLACE).env
    assert (env["ZERO_HOOK_SESSION"], env["PRXBUS_CAUSE"]) == ("a\ufffdb", "c\ufffdd")
    assert json.loads(env["ZERO_HOOK_PAYLOAD"])["session_id"] == "a\0b"


def test_a_run_can_be_recognised_by_its_payload_file() -> None:
    """The marker names a variable whose value no other run has."""
    invocation = prx.render(SPEC, VIEW, PLACE)
    assert invocation.marker == "ZERO_HOOK_PAYLOAD_FILE"
    assert invocation.env[invocation.marker] == PLACE.payload_file
