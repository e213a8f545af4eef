"""What the bus is told of a hook's run: the report, and the dead letter of one that failed.

Decides fields and sizes. Pure; who publishes them is the dispatcher's affair.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from broker.protocol.errors import BusError
from broker.protocol.events import Event

from ..hooks.outcome import Outcome
from ..hooks.spec import HookSpec

RUN_TOPIC: Final = "prx.hooks.run"
DEAD_LETTER_TOPIC: Final = "prx.hooks.dead_letter"

STDERR_CHARACTERS: Final = 2_000
"""Last characters of a run's stderr that a report carries."""

REASON_CHARACTERS: Final = 2_000
"""First characters of an outcome's reason that a report carries."""

NAME_CHARACTERS: Final = 200
"""First characters of a hook's name that a report carries."""

COMMAND_CHARACTERS: Final = 200
"""First characters of the command that a report carries."""

LETTER_BYTES: Final = 32_768
"""Largest payload that a dead letter carries; of a larger one it tells the size."""


def run_report(spec: HookSpec, event_id: str, outcome: Outcome, waited_s: float) -> dict[str, Any]:
    """The payload of ``prx.hooks.run``: which hook ran for which event and how it ended.

    A hook that has a name goes by it, any other by its id.

    ``waited_ms`` is the time between the event's arrival at the runner and the start.
    """
    return {
        "hook": spec.id if spec.name is None else spec.name[:NAME_CHARACTERS],
        "dialect": spec.dialect,
        "path": spec.path,
        "command": " ".join((spec.command, *spec.args))[:COMMAND_CHARACTERS],
        "event": spec.event,
        "event_id": event_id,
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "duration_ms": round(outcome.duration_s * 1e3, 3),
        "waited_ms": round(waited_s * 1e3, 3),
        "stderr": outcome.stderr.text()[-STDERR_CHARACTERS:],
        "reason": None if outcome.reason is None else outcome.reason[:REASON_CHARACTERS],
    }


def dead_letter(report: Mapping[str, Any], topic: str, payload: bytes | None) -> dict[str, Any]:
    """The payload of ``prx.hooks.dead_letter``: a failed run's report with its event, for a retry.

    ``payload`` is what the publisher sent, None when it cannot be had. It stands in the letter as
    ``payload`` when it is JSON that a reader of the letter can still decode, one level deeper than
    it was; any other bytes as ``payload_base64``. More than :data:`LETTER_BYTES` are left out.
    """
    letter: dict[str, Any] = {
        **report,
        "topic": topic,
        "payload_bytes": None if payload is None else len(payload),
    }
    if payload is None or len(payload) > LETTER_BYTES:
        return letter
    if _fits_inside(payload):
        letter["payload"] = orjson.Fragment(payload)
    else:
        letter["payload_base64"] = b64encode(payload).decode("ascii")
    return letter


def reports(
    spec: HookSpec, event: Event, outcome: Outcome, waited_s: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Topic and payload of all that the bus is told of a run: its report, and a dead letter if it failed."""
    report = run_report(spec, event.id, outcome, waited_s)
    yield RUN_TOPIC, report
    if outcome.status != "ok":
        payload: bytes | None
        try:
            payload = event.payload_bytes
        except BusError:
            payload = None
        yield DEAD_LETTER_TOPIC, dead_letter(report, event.topic, payload)


def _fits_inside(payload: bytes) -> bool:
    """Whether ``payload`` is one JSON value that is still within the decoder's depth inside an object."""
    try:
        orjson.loads(payload)  # alone first: "1, 2" would be an array's inside
        orjson.loads(b'{"payload":%b}' % payload)
    except orjson.JSONDecodeError:
        return False
    return True
