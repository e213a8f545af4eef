"""One event after another, whatever is in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.client.core.numbering import Stream
from broker.client.payloads import encode_payload
from broker.protocol.envelope import Claim
from broker.protocol.events import Event
from subscribers.dialects import prx
from subscribers.dialects.base import EventView
from subscribers.hooks.invocation import Invocation
from subscribers.hooks.outcome import Outcome
from subscribers.hooks.plan import Plan
from subscribers.hooks.spec import HookSpec
from subscribers.runner.dispatch import Dispatcher
from subscribers.runtimes.payload_files import PayloadDirError, PayloadFiles
from subscribers.runtimes.pool import RunPool
from subscribers.runtimes.reaper import Reaper
from subscribers.runtimes.spawn import StartFailed
from subscribers.sources.resolve import Resolved, Unresolved

SPEC = HookSpec("tool_call#0", "prx", "/w/hooks.json", 3, "tool_call", "x", (), {}, None, 30.0, 5.0, False)
STREAM = cast("Stream", type("Unchecked", (), {"types_of": None}))
"""A topic that is not in the catalogue, as those of reports."""


class Hooks:
    """One hook of tool calls, whose program is nowhere."""

    workspace = "/w"
    plan = Plan.of([SPEC])

    def resolve(self, _: HookSpec) -> Resolved | Unresolved:
        """Nowhere."""
        return Unresolved("command_missing", "command", "there is no such program", None)


class Pool:
    """Runs a job at once, in the caller's thread."""

    def submit(self, _: str, job: Callable[[], None], data: bytes) -> bool:
        """Run it."""
        self.data = data
        job()
        return True


class Scene:
    """A dispatcher, and what it published: each report as the client would encode it."""

    def __init__(self, hooks: Hooks | None = None, files: object = None) -> None:
        self.reports: list[dict[str, Any]] = []
        self.pool = Pool()
        self.dispatcher = Dispatcher(
            hooks or Hooks(),
            prx,
            pool=cast("RunPool", self.pool),
            reaper=cast("Reaper", None),
            files=cast("PayloadFiles", files),
            publish=self._publish,
            runtime_dir="/r",
            prxbus_folder="/b",
        )

    def _publish(self, topic: str, payload: dict[str, Any], _: Event) -> None:
        self.reports.append(orjson.loads(encode_payload(payload, STREAM)) | {"to": topic})


def event(content: bytes | Claim) -> Event:
    """A tool call with this payload, from anybody."""
    return Event.of("prx.lifecycle.tool_call", 0, bytes(16), 1, 1, "s", "stranger", None, content)


@given(st.binary(max_size=50) | st.integers(0, 1_100).map(lambda depth: b"[" * depth + b"]" * depth))
@example(b"")
@example(b"{")
@example(b"\xff")
@example(b"1")
@example(b"1,2")
@example(b'{"a":' * 1_000 + b"null" + b"}" * 1_000)
@example(b'{"a":' * 1_023 + b"null" + b"}" * 1_023)
@example(b'{"tool":' * 300 + b"{}" + b"}" * 300)
def test_any_payload_is_reported_and_counted_and_none_raises(payload: bytes) -> None:
    """Whatever the bytes, both reports can be published and the run is counted once."""
    scene = Scene()
    scene.dispatcher.dispatch(event(payload))
    assert [report["to"] for report in scene.reports] == ["prx.hooks.run", "prx.hooks.dead_letter"]
    assert sum(scene.dispatcher.outcomes.values()) == 1
    assert scene.reports[1]["payload_bytes"] == len(payload)
    assert ("payload" in scene.reports[1]) != ("payload_base64" in scene.reports[1])


def test_a_claim_that_cannot_be_had_is_unreadable() -> None:
    """The letter then holds no payload, and says so."""
    scene = Scene()
    scene.dispatcher.dispatch(event(Claim(100_000, bytes(32), "gone", b"{")))
    run, letter = scene.reports
    assert "its payload cannot be had" in run["reason"]
    assert letter["payload_bytes"] is None
    assert "payload" not in letter
    assert scene.dispatcher.outcomes == {"unreadable": 1}


def test_an_event_that_fails_in_a_way_nobody_thought_of_is_counted() -> None:
    """Any exception on the way is that event's alone."""

    class Broken(Hooks):
        @property
        def plan(self) -> Plan:  # type: ignore[override]
            raise RecursionError("deeper than anybody thought")

    scene = Scene(Broken())
    scene.dispatcher.dispatch(event(b"{}"))
    scene.dispatcher.dispatch(event(b"{}"))
    assert scene.dispatcher.outcomes == {"unreadable": 2}


@pytest.mark.parametrize(
    "error, words",
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (PayloadDirError("it belongs to user 7"), "it belongs to user 7"),
    ],
)
def test_a_payload_file_that_cannot_be_written_is_said(error: OSError, words: str) -> None:
    """The reason is told, be it the system's or our own."""

    class Found(Hooks):
        def resolve(self, _: HookSpec) -> Resolved | Unresolved:
            return Resolved("/bin/true", "/")

    class Full:
        def write(self, _: bytes) -> str:
            raise error

    scene = Scene(Found(), Full())
    scene.dispatcher.dispatch(event(b"{}"))
    assert scene.reports[0]["reason"] == f"its payload file cannot be written: {words}"
    assert scene.dispatcher.outcomes == {"not_started": 1}


class Written:
    """A store of payload files that only counts."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def write(self, _: bytes) -> str:
        """A new file."""
        path = f"/payload-{len(self.held)}"
        self.held.add(path)
        return path

    def remove(self, path: str) -> None:
        """Its end."""
        self.held.remove(path)


class Runnable(Hooks):
    """One hook of tool calls, whose program exists."""

    def resolve(self, _: HookSpec) -> Resolved | Unresolved:
        """Here."""
        return Resolved("/bin/true", "/")


def test_a_run_that_the_sandbox_refuses_is_not_started() -> None:
    """Its reason is the run's, and the payload file is gone."""
    files = Written()
    scene = Scene(Runnable(), files)

    def refuse(_invocation: Invocation, readable: tuple[str, ...]) -> tuple[Invocation, Callable[[], None]]:
        assert readable == ("/payload-0", "/r")
        raise StartFailed("its interpreter does not exist")

    scene.dispatcher.enclose = refuse
    scene.dispatcher.dispatch(event(b"{}"))
    assert scene.reports[0]["reason"] == "its interpreter does not exist"
    assert (scene.dispatcher.outcomes, files.held) == ({"not_started": 1}, set())


def test_while_there_is_a_refusal_nothing_is_looked_for() -> None:
    """Each run is reported with the refusal as its reason, and no file is written."""
    scene = Scene(Runnable())
    scene.dispatcher.refusal = "no sandbox"
    scene.dispatcher.dispatch(event(b"{}"))
    assert scene.reports[0]["reason"] == "no sandbox"
    assert scene.dispatcher.outcomes == {"not_started": 1}


def test_what_waits_holds_one_copy_of_the_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is offered with its envelope, and its view holds no second copy of the payload."""
    scene = Scene()
    seen: list[tuple[EventView, bytes]] = []

    def note(_: HookSpec, view: EventView, body: bytes) -> Outcome:
        seen.append((view, body))
        return Outcome.not_started("noted")

    monkeypatch.setattr(scene.dispatcher, "run_once", note)
    scene.dispatcher.dispatch(event(b'{"tool": "x"}'))
    ((view, body),) = seen
    assert view.payload_bytes == b""
    assert orjson.loads(body)["payload"]["tool"] == "x"
    assert scene.pool.data is body


def test_an_event_that_is_asked_about_a_second_time_runs_nothing_again() -> None:
    """The first phase, and an event without one, run the hook; the second one is no other event."""
    scene = Scene()
    for payload in (b'{"phase": "before"}', b'{"tool": "t"}', b'{"tool": "t", "phase": "after"}'):
        scene.dispatcher.dispatch(event(payload))
    assert scene.dispatcher.outcomes == {"not_started": 2}
