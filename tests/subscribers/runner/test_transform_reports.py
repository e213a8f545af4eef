"""What is told of a transform: names, sizes and digests, and never a text."""

from __future__ import annotations

import hashlib

import orjson
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.outcome import Outcome
from subscribers.hooks.spec import HookSpec
from subscribers.hooks.transform_chain import Fault, ToolResult
from subscribers.runner.reports import run_report
from subscribers.runner.transform_reports import Who, failure_report, record

WHO = Who("redact.py:secrets", "function", "/w/redact.py", 7, "")
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=12)


@given(texts, texts)
def test_a_record_measures_both_texts_and_holds_neither(before: str, after: str) -> None:
    """Bytes and SHA-256 of what was there and what is there now, in UTF-8."""
    result = ToolResult("a1", "s1", "Bash", {"command": before}, before)
    told = record(WHO, result, "e1", after, delivered=True, duration_s=0.5, passed=2, skipped=["x"])
    for name, text in (("before", before), ("after", after)):
        data = text.encode()
        assert told[name] == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert told["changed"] == (before != after)
    others = orjson.dumps({k: v for k, v in told.items() if k not in ("before", "after")}).decode()
    assert orjson.dumps(before).decode()[1:-1] not in others
    assert orjson.dumps(after).decode()[1:-1] not in others


def test_a_record_names_who_replaced_what() -> None:
    """Handler, file and line; tool, agent, session and event."""
    result = ToolResult("a1", "s1", "Bash", {}, "raw")
    told = record(WHO, result, "e1", "new", delivered=False, duration_s=0.0125, passed=1, skipped=[])
    assert told | {"before": 0, "after": 0} == {
        "handler": "redact.py:secrets",
        "kind": "function",
        "path": "/w/redact.py",
        "line": 7,
        "event": "tool_result",
        "event_id": "e1",
        "tool": "Bash",
        "agent_id": "a1",
        "session_id": "s1",
        "before": 0,
        "after": 0,
        "changed": True,
        "delivered": False,
        "duration_ms": 12.5,
        "passed": 1,
        "skipped": [],
    }


def test_a_failure_is_reported_with_the_fields_of_every_run() -> None:
    """Whoever reads prx.hooks.run finds the same names, and an empty stderr."""
    who = Who("config.toml:transform[0]", "command", "/w/.prxbus/config.toml", None, "./redact --all")
    told = failure_report(who, Fault("signalled", "x" * 5_000, signal=9), "e1", 0.5, 0.25)
    spec = HookSpec("h", "prx", "p", None, "e", "c", (), {}, None, 1.0, 0.0, False)
    assert list(told) == list(run_report(spec, "e1", Outcome.not_started("x"), 0.0))
    assert (told["hook"], told["dialect"], told["command"], told["stderr"]) == (
        "config.toml:transform[0]",
        "transform",
        "./redact --all",
        "",
    )
    assert (told["status"], told["signal"], told["exit_code"], len(told["reason"])) == (
        "signalled",
        9,
        None,
        2_000,
    )
    assert (told["duration_ms"], told["waited_ms"]) == (500, 250)
