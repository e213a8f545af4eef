"""Python handlers explained: what their decorators say, in the shape of every handler."""

from __future__ import annotations

import pytest

from subscribers.dialects.python_explanation import Function, handlers, matcher

GUARD = Function(
    kind="decide",
    name="guard",
    path="/w/.prxbus/handlers/guards.py",
    line=7,
    patterns=("prx.lifecycle.tool_call_start", "my.topic"),
    tools=("Bash", "mcp__*"),
    agents=("a1",),
    priority=10,
    timeout_s=1.0,
    has_own_timeout=True,
    failure="closed",
)


def test_a_guard_is_told_with_all_that_its_decorator_says() -> None:
    """Events, filters, time, priority and failure policy are shown, and where it is."""
    (found,) = handlers([GUARD], "guards.py")
    assert (found.name, found.event) == ("guards.py:guard", "tool_call_start, my.topic")
    assert (found.runtime, found.status, found.command) == ("python", "ok", "@decide")
    assert found.args == ("priority=10", "failure=closed")
    assert found.matcher == "tools: Bash, mcp__*; agents: a1"
    assert found.topics == ("prx.lifecycle.tool_call_start", "my.topic")
    assert (found.timeout_s, found.timeout_from, found.line) == (1.0, "own", 7)
    assert (found.executable, found.diagnostics) == (GUARD.path, ())


@pytest.mark.parametrize("kind,runtime", [("on", "python"), ("transform", "transform")])
def test_what_does_not_decide_has_no_priority(kind: str, runtime: str) -> None:
    """Priority and failure policy are of meaning for guards alone; a transform belongs to another process."""
    (found,) = handlers([GUARD._replace(kind=kind, has_own_timeout=False)], "guards.py")
    assert (found.args, found.runtime, found.timeout_from) == ((), runtime, "default")


def test_a_guard_of_the_usual_kind_says_nothing_more() -> None:
    """A priority of 0 and an open failure policy are the defaults, and functions are numbered."""
    plain = GUARD._replace(priority=0, failure="open")
    found = handlers([plain, plain], "guards.py")
    assert [(handler.args, handler.index) for handler in found] == [((), 0), ((), 1)]


@pytest.mark.parametrize(
    "name,hint",
    [
        ("tool_cal", "did you mean tool_call?"),
        ("zzzzzz", "an event of the agent's own may have any name"),
        ("tool_call", None),
        ("*", None),
    ],
)
def test_an_event_that_nobody_has_is_probably_a_slip(name: str, hint: str | None) -> None:
    """A lifecycle event outside the catalogue is remarked upon with the nearest name."""
    (found,) = handlers([GUARD._replace(patterns=(f"prx.lifecycle.{name}",))], "guards.py")
    assert [d.hint for d in found.diagnostics] == ([] if hint is None else [hint])
    assert all(
        (d.severity, d.code, d.line) == ("warning", "uncatalogued_event", 7) for d in found.diagnostics
    )


def test_filters_are_told_as_far_as_there_are_any() -> None:
    """No filter is no matcher."""
    assert matcher((), ()) is None
    assert matcher(("Bash",), ()) == "tools: Bash"
    assert matcher((), ("a", "b")) == "agents: a, b"
