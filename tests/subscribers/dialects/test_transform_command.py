"""What a transform command is given, and how its answer is read."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import transform_command
from subscribers.hooks.outcome import Captured, Outcome
from subscribers.hooks.spec import HookSpec
from subscribers.hooks.transform_chain import Fault, Passed, ToolResult, Value

MARKER = "raw-7f3a"


def ended(stdout: bytes, code: int = 0, stderr: bytes = b"") -> Outcome:
    """The outcome of a program that wrote ``stdout``."""
    captured = Captured(stdout, b"", len(stdout))
    return Outcome.exited(code, 0.01, captured, Captured(stderr, b"", len(stderr)))


def test_a_command_reads_the_pages_four_fields() -> None:
    """One line with exactly the fields of the page, under its names; unknown is null."""
    line = transform_command.stdin_of(ToolResult("a1", "s1", "Bash", {"command": "ls"}, "two\nlines"))
    assert line.count(b"\n") == 1
    assert orjson.loads(line) == {
        "agent_id": "a1",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_output": "two\nlines",
    }
    unknown = orjson.loads(transform_command.stdin_of(ToolResult(None, None, None, {}, "")))
    assert unknown == {"agent_id": None, "tool_name": None, "tool_input": {}, "tool_output": ""}


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["content", "tool_output"]))
def test_either_field_gives_the_text_as_it_is(text: str, field: str) -> None:
    """Whatever the text, also an empty one, it comes out as it went in."""
    assert transform_command.read(ended(orjson.dumps({field: text}) + b"\n")) == Value(text)


@pytest.mark.parametrize(
    "stdout, text",
    [
        (b'{"content": "x", "tool_output": "x"}', "x"),
        (b'{"content": "x", "tool_output": null}', "x"),
        (b'{"content": null, "tool_output": "x", "type": "transformed"}', "x"),
        (b'loading...\n\n{"content": "x"}\n\n', "x"),
        (b'{\n  "content": "x"\n}', "x"),
        ('{"content": "zażółć"}'.encode(), "zażółć"),
    ],
)
def test_an_answer_may_be_written_in_several_ways(stdout: bytes, text: str) -> None:
    """Over several lines, after chatter, with further fields, and in both fields at once if they agree."""
    assert transform_command.read(ended(stdout)) == Value(text)


@pytest.mark.parametrize(
    "stdout", [b"", b" \n\n", b"null", b"{}", b'{"content": null}', b'{"content": null, "tool_output": null}']
)
def test_nothing_said_passes_on(stdout: bytes) -> None:
    """No output, null, an empty object and a field of null are no opinion."""
    assert transform_command.read(ended(stdout)) == Passed()


@pytest.mark.parametrize(
    "outcome, reason",
    [
        (ended(MARKER.encode()), "8 bytes on stdout are not JSON"),
        (ended(b'{"content": "' + MARKER.encode()), "21 bytes on stdout are not JSON"),
        (ended(b'{"content": "\xff"}'), "16 bytes on stdout are not JSON"),
        (ended(b'"' + MARKER.encode() + b'"'), "not a JSON object"),
        (ended(b'[{"content": "x"}]'), "not a JSON object"),
        (ended(b'{"content": 5}'), "is not a string"),
        (ended(b'{"content": {"text": "x"}}'), "is not a string"),
        (ended(b'{"result": "x"}'), "none of the fields content and tool_output"),
        (ended(b'{"content": "x", "tool_output": "y"}'), "differ"),
        (Outcome("ok", 0, None, 0.1, Captured(b"{", b"}", 99_000_000), Captured()), "99,000,000 bytes"),
    ],
)
def test_anything_else_is_a_fault_that_repeats_nothing(outcome: Outcome, reason: str) -> None:
    """Garbage and wrong shapes fail, with a reason that quotes no output."""
    said = transform_command.read(outcome)
    assert isinstance(said, Fault)
    assert (said.kind, said.exit_code) == ("failed", 0)
    assert reason in said.reason
    assert MARKER not in said.reason


def test_a_bad_end_is_told_with_its_number_and_none_of_its_words() -> None:
    """Exit codes and signals fail whatever was answered; of stderr the size is told."""
    answer = b'{"content": "x"}'
    assert transform_command.read(ended(answer, 3)) == Fault("failed", "exit code 3", 3)
    loud = transform_command.read(ended(answer, 3, MARKER.encode()))
    assert loud == Fault(
        "failed", "exit code 3, and 8 bytes on stderr, which may hold the tool's text", exit_code=3
    )
    assert transform_command.read(ended(answer, -9)) == Fault("signalled", "ended by signal 9", signal=9)


def test_no_start_and_no_time_are_faults_of_their_own_kind() -> None:
    """A program that is not there and one that is out of time are told apart from one that failed."""
    missing = transform_command.read(Outcome.not_started("no such file"))
    assert missing == Fault("not_started", "no such file")
    nothing = Captured()
    late = transform_command.read(Outcome("timeout", None, None, 1.25, nothing, nothing))
    assert late == Fault("timeout", "no answer within 1.25 s")
    early = transform_command.read(Outcome("timeout", None, None, 1.25, nothing, nothing, "shutting down"))
    assert early == Fault("timeout", "shutting down")
    assert transform_command.read(Outcome("not_started", None, None, 0, nothing, nothing)) == Fault(
        "not_started", "it could not be started"
    )


def test_an_invocation_inherits_nothing_and_may_answer_at_length() -> None:
    """The environment is complete, one level deeper; the time is the turn's; output may have 16 MiB."""
    spec = HookSpec(
        "config:transform[0]", "transform", "p", None, "tool_result", "./t", ("-x",), {}, None, 5.0, 0.0, True
    )
    env = transform_command.environment_of("/opt/bin", "/run/bus", 2, "e1", spec.id)
    assert env == {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/bin",
        "LANG": "C.UTF-8",
        "PRXBUS_RUNTIME_DIR": "/run/bus",
        "PRXBUS_DEPTH": "3",
        "PRXBUS_CAUSE": "e1",
        "PRXBUS_RUN": "e1 config:transform[0]",
    }
    odd = transform_command.environment_of("/opt/bin", "/run/bus", 0, "e\0", "h")
    assert odd["PRXBUS_CAUSE"] == "e\ufffd"
    run = transform_command.render(spec, "/w/t", "/w", env, b"{}\n", 0.5)
    assert (run.argv, run.cwd, run.stdin, run.timeout_s, run.grace_s) == (
        ("/w/t", "-x"),
        "/w",
        b"{}\n",
        0.5,
        0.0,
    )
    assert run.output_limit >= 16 * 2**20
