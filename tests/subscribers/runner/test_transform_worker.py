"""What a function's answer means, and what is told of one that raises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker.protocol.decisions import Answer
from subscribers.handlers import transform
from subscribers.handlers.registration import Registration, collected
from subscribers.runner import transform_worker
from subscribers.runner.transform_worker import Broken, _answer, _guarded
from subscribers.runtimes.python_caller import Raised, Returned, TimedOut
from subscribers.runtimes.python_traceback import Fault


class Text(str):
    """A text of a class of its own."""


@pytest.mark.parametrize(
    "value, answer",
    [
        ("text", ["value", "text"]),
        ("", ["value", ""]),
        (Text("x"), ["value", "x"]),
        (Answer("h", output="from an answer"), ["value", "from an answer"]),
        (None, ["passed"]),
        (5, ["fault", "failed", "it returned int; it may return a text or None"]),
        (b"x", ["fault", "failed", "it returned bytes; it may return a text or None"]),
        (Answer("h", "deny"), ["fault", "failed", "it returned Answer; it may return a text or None"]),
        (Answer("h", output=5), ["fault", "failed", "it returned Answer; it may return a text or None"]),
    ],
)
def test_a_text_replaces_none_passes_and_anything_else_is_a_fault(value: Any, answer: list[str]) -> None:
    """What ctx.replace_output gives is a text too; the fault names a type and no value."""
    found = _answer(Returned(value, 0.1))
    assert found == answer
    assert [type(word) for word in found] == [str] * len(found)


def test_a_text_has_a_size_and_whole_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too long, or that UTF-8 cannot say, is a fault."""
    monkeypatch.setattr(transform_worker, "TEXT_BYTES", 10)
    assert _answer(Returned("ä" * 5, 0.1)) == ["value", "ä" * 5]
    assert _answer(Returned("ä" * 6, 0.1))[2] == "it returned 12 bytes; a replacement has at most 10"
    assert "half a character" in _answer(Returned("\ud800", 0.1))[2]


def test_other_ends_of_a_call_are_faults() -> None:
    """Its time is over, or it could not even be called; the words of an error are left out."""
    assert _answer(TimedOut(0.25, 0.3)) == ["fault", "timeout", "no answer within 0.25 s"]
    assert _answer(Raised(Fault("SECRET", None, None, "SECRET"), 0.1)) == [
        "fault",
        "failed",
        "it could not be called",
    ]


def registered(function: Any) -> Registration:
    """A function made a handler."""
    with collected() as found:
        transform(function)
    return found[0]


def test_what_is_raised_is_told_by_its_type_and_line() -> None:
    """Neither its message nor that of its cause is kept."""

    def raises(event: Any, ctx: Any) -> str:
        try:
            raise KeyError("SECRET")
        except KeyError as error:
            raise SystemExit("SECRET") from error

    async def raises_later(event: Any, ctx: Any) -> str:
        await asyncio.sleep(0)
        raise GeneratorExit("SECRET")

    broken = _guarded(registered(raises))(None, None)
    later = asyncio.run(_guarded(registered(raises_later))(None, None))
    assert isinstance(broken, Broken)
    assert isinstance(later, Broken)
    line = raises.__code__.co_firstlineno
    assert broken.reason == f"SystemExit at test_transform_worker.py:{line + 4}"
    assert later.reason == f"GeneratorExit at test_transform_worker.py:{line + 8}"
    assert _answer(Returned(broken, 0.1)) == ["fault", "failed", broken.reason]


def test_what_is_raised_elsewhere_is_told_by_its_type() -> None:
    """An error without a line in the handler's folder has no place."""
    assert Broken(ValueError("SECRET"), "/nowhere").reason == "ValueError"


def test_a_cancelled_function_is_cancelled() -> None:
    """Cancelling is how its time ends: it is no error of the function's."""

    async def waits(event: Any, ctx: Any) -> str:
        await asyncio.Event().wait()
        return "never"

    async def cancel() -> bool:
        task = asyncio.ensure_future(_guarded(registered(waits))(None, None))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return bool(task.cancelled())

    assert asyncio.run(cancel())
