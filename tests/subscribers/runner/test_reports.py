"""What the bus is told of a run."""

import base64
from dataclasses import replace

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from subscribers.hooks.outcome import NOTHING, Captured, Outcome
from subscribers.hooks.spec import HookSpec
from subscribers.runner.reports import (
    LETTER_BYTES,
    NAME_CHARACTERS,
    REASON_CHARACTERS,
    STDERR_CHARACTERS,
    dead_letter,
    run_report,
)

SPEC = HookSpec(
    "tool_call#0", "prx", "/w/hooks.json", 3, "tool_call", "x", ("--flag",), {}, None, 30.0, 5.0, False
)


def test_a_report_says_which_hook_ran_for_what_and_how_it_ended() -> None:
    """Hook, event, status, code, times in milliseconds and the end of stderr."""
    outcome = Outcome.exited(3, 0.0123456, NOTHING, Captured(b"e" * 3_000, b"", 3_000))
    report = run_report(SPEC, "id", outcome, 0.5)
    assert report == {
        "hook": "tool_call#0",
        "dialect": "prx",
        "path": "/w/hooks.json",
        "command": "x --flag",
        "event": "tool_call",
        "event_id": "id",
        "status": "failed",
        "exit_code": 3,
        "signal": None,
        "duration_ms": 12.346,
        "waited_ms": 500.0,
        "stderr": "e" * STDERR_CHARACTERS,
        "reason": None,
    }


def test_a_hook_goes_by_its_name_where_it_has_one() -> None:
    """The name is cut: a file may say anything."""
    for name, shown in (("notify", "notify"), ("n" * 10_000, "n" * NAME_CHARACTERS)):
        report = run_report(replace(SPEC, name=name), "id", Outcome.not_started("gone"), 0.0)
        assert report["hook"] == shown


def test_a_reason_is_cut() -> None:
    """Whoever gives one, a report carries its beginning."""
    report = run_report(SPEC, "id", Outcome.not_started("r" * 1_000_000), 0.0)
    assert report["reason"] == "r" * REASON_CHARACTERS


def test_a_dead_letter_carries_the_event_for_a_retry() -> None:
    """A payload of moderate size is in the letter as it was; of a larger one only its size."""
    report = run_report(SPEC, "id", Outcome.not_started("no such file"), 0.0)
    small = dead_letter(report, "prx.lifecycle.tool_call", b'{"a":1}')
    assert orjson.loads(orjson.dumps(small))["payload"] == {"a": 1}
    assert (small["topic"], small["payload_bytes"], small["reason"]) == (
        "prx.lifecycle.tool_call",
        7,
        "no such file",
    )
    large = dead_letter(report, "prx.lifecycle.tool_call", b" " * (LETTER_BYTES + 1))
    assert "payload" not in large
    assert large["payload_bytes"] == LETTER_BYTES + 1


@given(st.binary(max_size=40))
@example(b"1, 2")
@example(b"[" * 1_024 + b"]" * 1_024)
@example(b"")
def test_a_dead_letter_is_json_whatever_it_is_about(payload: bytes) -> None:
    """The letter can be decoded, and gives back the payload's value or its very bytes."""
    report = run_report(SPEC, "id", Outcome.not_started("bad"), 0.0)
    letter = orjson.loads(orjson.dumps(dead_letter(report, "prx.x", payload)))
    assert letter["payload_bytes"] == len(payload)
    if "payload" in letter:
        assert letter["payload"] == orjson.loads(payload)
    else:
        assert base64.b64decode(letter["payload_base64"]) == payload


def test_a_dead_letter_without_the_payload_says_so() -> None:
    """A payload that cannot be had has no size either."""
    report = run_report(SPEC, "id", Outcome.not_started("expired"), 0.0)
    letter = dead_letter(report, "prx.x", None)
    assert letter["payload_bytes"] is None
    assert letter.keys().isdisjoint({"payload", "payload_base64"})
