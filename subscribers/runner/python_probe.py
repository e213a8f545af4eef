"""A process that loads one file of handlers, tells what it registers, and may call it for one event.

    python -P -m subscribers.runner.python_probe [--entry-point] PATH < request

The request is one msgpack value: None, or the event's fields, the numbers of the functions to call, their
file's name, and whether the tool's output was replaced already. The answer is msgpack values on standard
output, each told at once, because a function may end this process: what the file registers, then for each
call the monotonic time at which it starts and what came of it. What the file and its functions print goes to
standard error. Whoever starts this process ends it when its time is over. Decides how a call is put and what
comes of it in plain values. It has no bus: what a handler publishes is kept and told.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

import msgpack
import orjson

from broker.client import handling
from broker.logs import configure
from broker.protocol.decisions import Answer
from broker.protocol.errors import shown
from broker.protocol.events import Event

from ..handlers.context import Context, answer_in
from ..handlers.happening import HandlerEvent
from ..handlers.registration import TIMEOUTS, HandlerError, Registration
from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import text
from ..runtimes.python_caller import Caller, Outcome, Raised, Returned
from ..runtimes.python_loader import Loaded, load, load_entry_point
from ..sources.handlers import GROUP
from .python_reports import failure_of

SHOWN: Final = 300
"""Characters of somebody's error that are repeated."""

REPLACED: Final = "an earlier one has replaced the output"
"""Why a transform is not asked any more."""


def facts(loaded: Loaded) -> dict[str, Any]:
    """What a file registers, or why it cannot be loaded, in plain values."""
    error = loaded.error
    return {
        "functions": [
            [
                each.kind,
                each.name,
                each.path,
                each.line,
                [pattern.text for pattern in each.patterns],
                list(each.tools),
                list(each.agents),
                each.priority,
                each.timeout_s,
                each.timeout_s != TIMEOUTS[each.kind],
                each.failure,
            ]
            for each in loaded.registrations
        ],
        "error": None if error is None else {name: getattr(error, name) for name in Diagnostic.__slots__},
        "traceback": loaded.traceback,
    }


class Calls:
    """The calls for one event. ``unit`` is the file's name in reports; ``tell`` is given what is told.

    ``is_replaced``: somebody has replaced the tool's output already.
    """

    def __init__(self, event: Event, unit: str, tell: Callable[[object], None], *, is_replaced: bool) -> None:
        self._event = event
        self._unit = unit
        self._tell = tell
        self._is_replaced = is_replaced
        self._caller = Caller()
        import_module("structlog")  # what is loaded in a service already is not to count as a call's time

    def of(self, registrations: Iterable[Registration]) -> None:
        """Tell what comes of each, in order; once a transform has given a text, no other is asked."""
        for each in registrations:
            self._tell(self._come_of(each))

    def _come_of(self, registration: Registration) -> dict[str, Any]:
        seen = self._seen_by(registration)
        if seen is None:
            return {"unasked": "the event brings no output of a tool"}
        if registration.filters and not registration.wants_payload(seen.payload):
            return {"unasked": "its filters do not let this payload through"}
        if registration.kind == "transform" and self._is_replaced:
            return {"unasked": REPLACED}
        self._tell(time.monotonic())
        told = self._call(registration, seen)
        if registration.kind == "transform" and told["answer"] is not None:
            self._is_replaced = True
        return told

    def _seen_by(self, registration: Registration) -> HandlerEvent | None:
        """The event as a function is given it; None for a transform where there is nothing to transform."""
        if registration.kind != "transform":
            return HandlerEvent(self._event)
        from .transform_steps import question
        from .transform_worker import ResultEvent

        asked = question(self._event)
        return None if asked is None else ResultEvent(self._event, asked.payload)

    def _call(self, registration: Registration, seen: HandlerEvent) -> dict[str, Any]:
        published: list[list[Any]] = []

        def publish(topic: str, payload: Mapping[str, Any], /, *, session_id: str | None) -> bool:  # noqa: ARG001
            published.append([topic, orjson.loads(orjson.dumps(payload))])
            return True

        name = f"{self._unit}:{registration.name}"
        deadline = time.monotonic() + registration.timeout_s
        context = Context(registration, name, deadline, publish, self._event.session_id)
        with handling(self._event):
            outcome = self._caller.call(registration, seen, context)
        outcome, answer = _answered(registration, name, outcome)
        failed = None if isinstance(outcome, Returned) else failure_of(outcome)
        if failed is not None and registration.kind == "decide" and registration.failure == "closed":
            answer = closed(name, failed, registration.priority)
        status = (
            "ok" if isinstance(outcome, Returned) else "failed" if isinstance(outcome, Raised) else "timeout"
        )
        return {
            "status": status,
            "seconds": outcome.seconds,
            "reason": failed,
            "traceback": outcome.fault.traceback if isinstance(outcome, Raised) else "",
            "answer": None if answer is None else _plain(answer.fields()),
            "published": published,
        }


def closed(name: str, failure: str, priority: int) -> Answer:
    """What a guard that fails closed has decided when it failed."""
    return Answer(text(name), "deny", text(f"{name} failed ({failure}) and fails closed"), priority=priority)


def _answered(registration: Registration, name: str, outcome: Outcome) -> tuple[Outcome, Answer | None]:
    """What a function has decided; what it may not return is a failure of its own."""
    if not isinstance(outcome, Returned) or registration.kind == "on":
        return outcome, None
    try:
        answer = _answer(registration, name, outcome.value)
        if answer is not None:
            _plain(answer.fields())
    except Exception as error:  # a handler may put anything into an answer
        from ..runtimes.python_traceback import Fault

        reason = (
            str(error)
            if isinstance(error, HandlerError)
            else f"its answer cannot be sent: {shown(error, SHOWN)}"
        )
        return Raised(Fault(reason, registration.path, registration.line, ""), outcome.seconds), None
    return outcome, answer


def _plain(fields: list[object]) -> Any:
    """An answer as values that JSON can say; what it cannot is a text."""
    return orjson.loads(orjson.dumps(fields, default=str, option=orjson.OPT_NON_STR_KEYS))


def _answer(registration: Registration, name: str, value: Any) -> Answer | None:
    if registration.kind == "decide":
        return answer_in(value, registration)
    if isinstance(value, Answer):
        value = value.output
    if value is None or isinstance(value, str):
        return None if value is None else Answer(name, output=value)
    raise HandlerError(f"it returned {type(value).__name__}; it may return a text or None")


def _load(path: str, *, is_entry_point: bool) -> Loaded:
    if not is_entry_point:
        return load(path)
    for point in entry_points(group=GROUP, name=path):
        return load_entry_point(point)
    gone = Diagnostic("error", "not_installed", path, None, None, None, "it is not installed", None)
    return Loaded(path, (), gone)


def main(argv: list[str] | None = None) -> int:
    """Load, call and tell; returns 0."""
    parser = argparse.ArgumentParser(prog="python -P -m subscribers.runner.python_probe")
    parser.add_argument("--entry-point", action="store_true")
    parser.add_argument("path")
    options = parser.parse_args(argv)
    configure("info")
    answer = os.dup(1)
    os.dup2(2, 1)  # what handlers print is for people
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # at once: one may end the process
    request = msgpack.unpackb(sys.stdin.buffer.read())
    loaded = _load(options.path, is_entry_point=options.entry_point)
    with open(answer, "wb") as stream:

        def tell(value: object) -> None:
            stream.write(msgpack.packb(value, unicode_errors="backslashreplace"))  # half characters too
            stream.flush()

        tell(facts(loaded))
        if request is not None and loaded.error is None:
            fields, numbers, unit, is_replaced = request
            if max(numbers) < len(loaded.registrations):  # else the file has changed, which the facts tell
                calls = Calls(Event.of(*fields), unit, tell, is_replaced=is_replaced)
                calls.of(loaded.registrations[number] for number in numbers)
        sys.stdout.flush()
    os._exit(0)  # whatever handlers have left running


if __name__ == "__main__":
    sys.exit(main())
