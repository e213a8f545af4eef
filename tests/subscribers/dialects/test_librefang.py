"""What a LibreFang hook receives: variables, payload, folder, time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from subscribers.dialects import librefang, prx
from subscribers.dialects import librefang_rules as rules
from subscribers.dialects.base import EventView, Place
from subscribers.hooks.invocation import Invocation

SPEC = librefang.parse(
    b"name: n\nevents: ['*', tool_call]\ncommand: ./run.sh\nargs: [a b]\n", "/h/HOOK.yaml"
).specs
WHERE = Place(
    workspace="/h",
    runtime_dir="/run/bus",
    payload_file="/shm/file",
    prxbus_folder="/b",
    executable="/h/hooks/n/run.sh",
    cwd="/h/hooks/n",
    command_args=("first",),
    environ={
        "PATH": "/bin",
        "SLACK_WEBHOOK_URL": "u",
        "PRXBUS_API_TOKEN": "t",
        "PRXBUS_HOOK_TOKEN": "t",
        "HOOK_EVENT_DATA_FILE": "old",
    },
)


def view(event: str = "agent_end", payload: bytes = b'{"a":1}') -> EventView:
    """An event of depth 2."""
    return EventView(event, payload, "s1", 0, 2, "id-1")


def rendered(event: str = "agent_end", payload: bytes = b'{"a":1}') -> Invocation:
    """What is run for it."""
    return librefang.render(SPEC[0], view(event, payload), WHERE)


def test_a_run_is_the_program_with_its_arguments_in_the_hooks_folder() -> None:
    """Arguments of the command come first; five seconds, then the group is killed without a warning."""
    run = rendered()
    assert run.argv == ("/h/hooks/n/run.sh", "first", "a b")
    assert (run.cwd, run.stdin, run.timeout_s, run.grace_s) == ("/h/hooks/n", None, 5.0, 0.0)
    assert not run.bounds_leftovers  # what a hook starts in the background may go on


def test_the_environment_is_inherited_without_the_token() -> None:
    """Everything of the daemon's but the API's token, and the documented variables."""
    assert dict(rendered().env) == {
        "PATH": "/bin",
        "SLACK_WEBHOOK_URL": "u",
        "HOOK_EVENT": "agent:end",
        "HOOK_EVENT_DATA": '{"a":1}',
        "PRXBUS_RUNTIME_DIR": "/run/bus",
        "PRXBUS_DEPTH": "3",
        "PRXBUS_CAUSE": "id-1",
    }


@pytest.mark.parametrize("name,event", [*rules.EVENTS.items(), ("tool_call", "tool_call")])
def test_the_event_has_the_pages_name(name: str, event: str) -> None:
    """HOOK_EVENT is the exact name; of an extension it is the name of prxbus."""
    assert rendered(event).env["HOOK_EVENT"] == name


@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_a_payload_beyond_one_variable_goes_to_a_file(excess: int) -> None:
    """The longest that Linux passes travels in the variable; one byte more, and it is in the file alone."""
    payload = json.dumps({"x": "é" * 10}).encode()
    payload = payload[:-2] + b"y" * (rules.MAX_DATA_BYTES + excess - len(payload)) + payload[-2:]
    assert len(payload) == rules.MAX_DATA_BYTES + excess
    run = rendered(payload=payload)
    assert librefang.needs_file(payload) == (excess > 0)
    if excess > 0:
        assert "HOOK_EVENT_DATA" not in run.env
        assert run.env["HOOK_EVENT_DATA_FILE"] == WHERE.payload_file
    else:
        assert run.env["HOOK_EVENT_DATA"].encode() == payload
        assert "HOOK_EVENT_DATA_FILE" not in run.env


@pytest.mark.parametrize("excess", [0, 1])
def test_the_limit_is_the_kernels(excess: int) -> None:
    """A variable of that length reaches a program, and one byte more does not."""
    environ = {"HOOK_EVENT_DATA": "x" * (rules.MAX_DATA_BYTES + excess)}
    command = [sys.executable, "-I", "-S", "-c", "import os; print(len(os.environ['HOOK_EVENT_DATA']))"]
    if excess:
        with pytest.raises(OSError, match="Argument list too long"):
            subprocess.run(command, env=environ, check=True)
    else:
        done = subprocess.run(command, env=environ, check=True, capture_output=True)
        assert int(done.stdout) == rules.MAX_DATA_BYTES


def test_the_payload_travels_alone() -> None:
    """There is no envelope around it; a caller that has it already may pass it."""
    assert librefang.envelope(view(payload=b"{}")) == b"{}"
    run = librefang.render(SPEC[0], view(payload=b""), WHERE, b'{"b":2}')
    assert run.env["HOOK_EVENT_DATA"] == '{"b":2}'


def test_prx_always_needs_its_file() -> None:
    """The other dialect of the same runner has the file as a documented channel."""
    assert prx.needs_file(b"")
