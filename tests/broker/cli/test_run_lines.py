"""The report of a hook's run as one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.run_lines import run_text
from broker.cli.terminal import width


def report(**changed: Any) -> dict[str, Any]:
    """A run that failed, with some fields ``changed``."""
    return {
        "hook": "tool_call#0",
        "command": "/srv/agent/hooks/audit.sh --log audit.jsonl",
        "status": "failed",
        "exit_code": 3,
        "signal": None,
        "duration_ms": 12.34,
        "stderr": "opening the log\n/srv/audit.jsonl: Permission denied\n",
        "reason": None,
        **changed,
    }


@pytest.mark.parametrize(
    "changed,text",
    [
        ({"status": "ok", "exit_code": 0, "stderr": ""}, "tool_call#0  ok, exit 0, 12.3 ms  a.sh"),
        (
            {"status": "ok", "result": "blocked", "exit_code": 2, "stderr": "no\n"},
            "tool_call#0  blocked, exit 2, 12.3 ms  a.sh  no",
        ),
        ({"status": "ok", "result": ["x"], "stderr": ""}, "tool_call#0  ok, exit 3, 12.3 ms  a.sh"),
        ({"result": "blocked", "stderr": ""}, "tool_call#0  failed, exit 3, 12.3 ms  a.sh"),
        ({"stderr": "one\n two\n"}, "tool_call#0  failed, exit 3, 12.3 ms  a.sh  one / two"),
        ({"status": "timeout", "exit_code": None, "stderr": ""}, "tool_call#0  timeout, 12.3 ms  a.sh"),
        (
            {"status": "signalled", "exit_code": None, "signal": 9, "stderr": ""},
            "tool_call#0  signalled, signal 9, 12.3 ms  a.sh",
        ),
        (
            {"status": "not_started", "exit_code": None, "duration_ms": 0.0, "reason": "no such file"},
            "tool_call#0  not started  a.sh  no such file",
        ),
    ],
)
def test_each_way_to_end_has_its_words(changed: dict[str, Any], text: str) -> None:
    """Hook, status, exit code or signal, duration, command, and what was said, of these what there is."""
    assert run_text(report(command="a.sh", **changed), None) == text


@pytest.mark.parametrize(
    "columns,text",
    [
        (20, "…_call#0  failed, e…"),
        (45, "tool_call#0  failed, exit 3, 12.3 ms"),
        (50, "tool_call#0  failed, exit 3, 12.3 ms  …sion denied"),
        (80, "tool_call#0  failed, exit 3, 12.3 ms  audit.sh --log aud…  …l: Permission denied"),
    ],
)
def test_what_matters_stays_on_a_narrow_terminal(columns: int, text: str) -> None:
    """The ending first, then the end of what was said, then the command without its directories."""
    shown = run_text(report(), columns)
    assert shown is not None
    assert width(shown) <= columns
    assert shown == text


@pytest.mark.parametrize("payload", [{}, {"hook": "h"}, {"hook": "h", "status": 3}, {"status": "ok"}])
def test_what_names_no_hook_and_no_status_is_no_report(payload: dict[str, Any]) -> None:
    """Its payload is shown as that of any event."""
    assert run_text(payload, 80) is None


ANYTHING = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.text())
)


@given(
    st.text(),
    st.text(),
    st.dictionaries(
        st.sampled_from(["command", "exit_code", "signal", "duration_ms", "stderr", "reason"]), ANYTHING
    ),
    st.integers(0, 150),
)
def test_a_report_may_hold_anything_and_fits(
    hook: str, status: str, rest: dict[str, Any], columns: int
) -> None:
    """Whatever stands in the fields, the line is printable and no wider than its room."""
    shown = run_text({**rest, "hook": hook, "status": status}, columns)
    assert shown is not None
    assert shown.isprintable()
    assert width(shown) <= columns
