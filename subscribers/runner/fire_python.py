"""Calls the Python handlers of one file for one event without a bus, in a process of their own.

It decides what the plain values mean that come back from there. How a handler is called is the probe's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from broker.protocol.decisions import answer_of
from broker.protocol.events import Event

from ..hooks.explanation import Handler
from ..hooks.firing import Fired, FiredFile, Published
from ..hooks.outcome import NOTHING, Captured, Outcome
from .inspection import unit_name
from .python_inspection import Probed, Prober
from .python_probe import REPLACED, closed

GRACE_SECONDS: Final = 5.0
"""What the calls of a file may take beyond the timeouts of its handlers together."""


def call(file: FiredFile, event: Event, environ: Mapping[str, str], *, is_replaced: bool) -> FiredFile:
    """Call every function of the file that the event is for.

    ``is_replaced``: somebody has replaced the tool's output already, so that no transform is asked.
    """
    fired = [_unless_replaced(each) if is_replaced else each for each in file.fired]
    wanted = [each.handler for each in fired if each.reason is None]
    if not wanted:
        return replace(file, fired=tuple(fired))
    with Prober(environ) as prober:
        calls, printed = _calls(prober, file.file.path, event, wanted)
    told = iter(calls)
    done = tuple(_told(each, next(told)) if each.reason is None else each for each in fired)
    return replace(file, fired=done, printed=printed)


def _unless_replaced(fired: Fired) -> Fired:
    if fired.reason is None and fired.handler.runtime == "transform":
        return replace(fired, reason=REPLACED)
    return fired


def _calls(
    prober: Prober, path: str, event: Event, wanted: Sequence[Handler]
) -> tuple[list[Mapping[str, Any]], str]:
    """What came of each call, and what was printed; one that ends its process costs the others nothing."""
    calls: list[Mapping[str, Any]] = []
    printed = ""
    while len(calls) < len(wanted):
        rest = wanted[len(calls) :]
        seconds = sum(handler.timeout_s or 0.0 for handler in rest) + GRACE_SECONDS
        asked = (event, [handler.index for handler in rest], unit_name(path))
        is_replaced = any(_replaces(*each) for each in zip(wanted, calls, strict=False))
        probed = prober.probe(path, call=asked, call_s=seconds, is_replaced=is_replaced)
        printed += probed.stderr
        calls += probed.calls
        if probed.lost is not None:
            calls.append(probed.lost._asdict())
        elif not probed.calls:  # none was made, and none would be the next time
            calls += [_not_made(probed)] * len(rest)
    return calls, printed


def _replaces(handler: Handler, call: Mapping[str, Any]) -> bool:
    return handler.runtime == "transform" and call.get("answer") is not None


def _not_made(probed: Probed) -> Mapping[str, Any]:
    why = "the file has changed meanwhile" if probed.error is None else probed.error.message
    return {"status": "not_started", "seconds": 0.0, "reason": why}


def _told(fired: Fired, call: Mapping[str, Any]) -> Fired:
    if "unasked" in call:
        return replace(fired, matched=call["unasked"] == REPLACED, reason=call["unasked"])
    trace = call.get("traceback", "").encode("utf-8", "backslashreplace")
    stderr = Captured(trace, b"", len(trace)) if trace else NOTHING
    answer = None if call.get("answer") is None else answer_of(call["answer"])
    handler = fired.handler
    if answer is None and call["status"] != "ok" and handler.failure == "closed":
        answer = closed(handler.name, call["reason"], handler.priority)
    return replace(
        fired,
        outcome=Outcome(call["status"], None, None, call["seconds"], NOTHING, stderr, call["reason"]),
        answer=answer,
        published=tuple(Published(topic, payload) for topic, payload in call.get("published", ())),
    )
