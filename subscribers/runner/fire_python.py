"""Calls the Python handlers of one file for one event without a bus, in a process of their own.

It decides what the plain values mean that come back from there. How a handler is called is the probe's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from broker.protocol.decisions import answer_of
from broker.protocol.events import Event

from ..hooks.firing import Fired, FiredFile, Published
from ..hooks.outcome import NOTHING, Captured, Outcome
from .inspection import unit_name
from .python_inspection import Probed, Prober
from .python_probe import REPLACED

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
    path = file.file.path
    seconds = sum(handler.timeout_s or 0.0 for handler in wanted) + GRACE_SECONDS
    asked = (event, [handler.index for handler in wanted], unit_name(path))
    with Prober(environ) as prober:
        probed = prober.probe(path, call=asked, call_s=seconds)
    told = iter(_calls(probed, len(wanted)))
    done = tuple(_told(each, next(told)) if each.reason is None else each for each in fired)
    return replace(file, fired=done, printed=probed.stderr)


def _unless_replaced(fired: Fired) -> Fired:
    if fired.reason is None and fired.handler.runtime == "transform":
        return replace(fired, reason=REPLACED)
    return fired


def _calls(probed: Probed, count: int) -> Iterable[Mapping[str, Any]]:
    """What came of each call; the same of all where the process did not come to its end."""
    if probed.error is None and len(probed.calls) == count:
        return probed.calls
    why = "the file has changed meanwhile" if probed.error is None else probed.error.message
    return [{"status": "not_started", "seconds": 0.0, "reason": why}] * count


def _told(fired: Fired, call: Mapping[str, Any]) -> Fired:
    if "unasked" in call:
        return replace(fired, matched=call["unasked"] == REPLACED, reason=call["unasked"])
    trace = call.get("traceback", "").encode("utf-8", "backslashreplace")
    stderr = Captured(trace, b"", len(trace)) if trace else NOTHING
    answer = call.get("answer")
    return replace(
        fired,
        outcome=Outcome(call["status"], None, None, call["seconds"], NOTHING, stderr, call["reason"]),
        answer=None if answer is None else answer_of(answer),
        published=tuple(Published(topic, payload) for topic, payload in call.get("published", ())),
    )
