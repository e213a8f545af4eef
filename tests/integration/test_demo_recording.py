"""The recorded session that the demonstration replays."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from broker.protocol.catalogue import check
from broker.protocol.limits import PAYLOAD_BYTES
from broker.protocol.topics import LIFECYCLE
from subscribers.dialects.prx_rules import PAGE_EVENTS

ROOT = resources.files("subscribers.demo")
RECORDED: list[dict[str, Any]] = [
    json.loads(line) for line in ROOT.joinpath("session.jsonl").read_text().splitlines()
]


def test_every_event_of_the_prx_page_is_recorded() -> None:
    """About sixty events, over all types that a PRX hook can name, each as the catalogue wants it."""
    assert len(RECORDED) in range(50, 71)
    assert {event["topic"] for event in RECORDED} == {LIFECYCLE + name for name in PAGE_EVENTS}
    for event in RECORDED:
        check(event["topic"], event["payload"])


def test_two_payloads_are_too_large_for_a_frame() -> None:
    """The claim check is part of what the demonstration shows."""
    sizes = [len(json.dumps(event["payload"], ensure_ascii=False).encode()) for event in RECORDED]
    assert sum(size > PAYLOAD_BYTES for size in sizes) == 2


def test_the_hooks_audit_measure_note_errors_and_outstay() -> None:
    """One hook each for audit, metrics, errors and a timeout, all scripts of the demonstration's own."""
    hooks = json.loads(ROOT.joinpath("workspace", "hooks.json").read_text())["hooks"]
    assert {"tool_call", "llm_response", "error", "turn_complete"} <= hooks.keys()
    commands = {action["command"] for actions in hooks.values() for action in actions}
    for command in commands:
        assert ROOT.joinpath("workspace", command.removeprefix("./")).is_file()
