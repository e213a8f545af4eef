"""What a handler may inject and log, how large, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from subscribers.runtimes import python_module_context
from subscribers.runtimes.python_module_context import (
    A_SECOND,
    FIELDS_BYTES,
    INJECT_BYTES,
    MESSAGE_CHARACTERS,
    Context,
    HookLog,
    Injected,
)


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def monotonic(self) -> float:
        """The time."""
        return self.now


class Sent(list[Mapping[str, Any]]):
    """What was sent."""

    def said(self) -> list[tuple[str, str, Any]]:
        """Every record since the last look."""
        found = [(each["level"], each["message"], each["fields"]) for each in self]
        self.clear()
        return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that the log reads."""
    clock = Clock()
    monkeypatch.setattr(python_module_context, "time", clock)
    return clock


def test_a_log_says_what_it_is_given(clock: Clock) -> None:
    """At the level that is wanted and above; fields as an object, by name, or as something else."""
    sent = Sent()
    diary = HookLog("a", "info", sent.append)
    diary.debug("too low")
    diary.info("one", {"a": 1}, b=2)
    diary.warn("two", 3)  # type: ignore[arg-type]
    diary.warning("three")
    diary.error(ValueError("four"))
    assert {each["hook"] for each in sent} == {"a"}
    assert sent.said() == [
        ("info", "one", {"a": 1, "b": 2}),
        ("warn", "two", {"value": 3}),
        ("warn", "three", {}),
        ("error", "four", {}),
    ]


def test_a_log_survives_whatever_it_is_given(clock: Clock) -> None:
    """What cannot be JSON is told as text, what is too long is cut, and nothing raises."""

    class Sly:
        def __str__(self) -> str:
            raise RuntimeError("no")

    sent = Sent()
    diary = HookLog("a", "debug", sent.append)
    diary.debug(Sly())
    diary.debug("x" * (MESSAGE_CHARACTERS + 1))
    diary.debug("\ud800", {"1": object, "s": {1}})
    diary.debug("large", {"x": "x" * FIELDS_BYTES})
    diary.debug("odd", {"x": "\ud800"})
    sly, cut, odd, large, lone = sent.said()
    assert sly[1] == "<Sly: RuntimeError when shown>"
    assert len(cut[1]) == MESSAGE_CHARACTERS + 3
    assert odd == ("debug", "\\ud800", {"1": "<class 'object'>", "s": "{1}"})
    assert large[2] == {"fields": f"left out: 16,392 bytes, at most {FIELDS_BYTES:,}"}
    assert "cannot be JSON" in lone[2]["fields"]


def test_a_log_leaves_out_what_is_too_much_and_says_so(clock: Clock) -> None:
    """In the next second, or at the end."""
    sent = Sent()
    diary = HookLog("a", "info", sent.append)
    for _ in range(A_SECOND + 3):
        diary.info("again")
    assert len(sent.said()) == A_SECOND
    clock.now += 1
    diary.info("next")
    assert [record[1] for record in sent.said()] == [
        f"3 records of this hook were left out: more than {A_SECOND} in a second",
        "next",
    ]
    for _ in range(A_SECOND):
        diary.info("again")
    sent.clear()
    diary.flush()
    diary.flush()
    assert sent.said()[0][1].startswith("1 records of this hook")
    assert sent == []


def test_what_is_injected_goes_with_the_call_or_by_itself() -> None:
    """Before it is told of, and afterwards; never more than there may be."""
    sent, later = Sent(), list[str]()
    injected = Injected(later.append)
    ctx = Context("name", {"a": 1}, HookLog("a", "info", sent.append), injected, "s1", "coder")
    assert (ctx.hook_name, ctx.hookName, ctx.session_id, ctx.sessionID) == ("name", "name", "s1", "s1")
    ctx.inject("one")
    ctx.inject("\ud800")
    ctx.inject("x" * (INJECT_BYTES - 9))
    ctx.inject("x")
    with pytest.raises(TypeError, match="takes a text, not int"):
        ctx.inject(3)  # type: ignore[arg-type]
    assert [text[:7] for text in injected.close()] == ["one", "\\ud800", "xxxxxxx"]
    ctx.inject("later")
    ctx.inject("x" * (INJECT_BYTES + 1))
    assert later == ["later"]
    assert injected.close() == []
    assert [record[1] for record in sent.said()] == [
        "a text of 1 bytes was not injected: at most 65,536 bytes in a call",
        "a text of 65,537 bytes was not injected: at most 65,536 bytes in a call",
    ]
