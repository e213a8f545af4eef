"""The PRX dialect against cases that lie here as files, one folder each.

``hooks.json`` is what a workspace holds; ``event.json`` and ``payload.json`` are an event; ``expected.json``
says what the file means, which processes the event starts, and in ``program`` what PRX's own program does.
In an expected environment ``<envelope>`` stands for the envelope's bytes.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects import prx
from subscribers.dialects.base import EventView, ParsedFile, Place
from subscribers.hooks.plan import Plan
from subscribers.hooks.spec import HookSpec

CASES = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))
WORKSPACE = "/ws"


@pytest.fixture(params=CASES, ids=lambda path: path.name)
def case(request: pytest.FixtureRequest) -> Path:
    """The folder of a case."""
    assert isinstance(request.param, Path)
    return request.param


def load(case: Path, name: str) -> Any:
    """One JSON file of a case."""
    return json.loads((case / name).read_text())


def parsed(case: Path) -> ParsedFile:
    """The case's hook file, read."""
    return prx.parse((case / "hooks.json").read_bytes(), "hooks.json")


def view(case: Path) -> EventView:
    """The case's event as the dialect sees it."""
    payload = (case / "payload.json").read_bytes().removesuffix(b"\n")
    return EventView(payload_bytes=payload, **load(case, "event.json"))


def place(spec: HookSpec) -> Place:
    """A machine on which every command name is found in /found and every folder exists."""
    executable = spec.command if "/" in spec.command else f"/found/{spec.command}"
    cwd = spec.cwd if (spec.cwd or "").startswith("/") else "/".join(filter(None, (WORKSPACE, spec.cwd)))
    return Place(WORKSPACE, "/run/prxbus", "/spool/hook-1.json", "/opt/prxbus/bin", executable, str(cwd))


def test_the_file_means_what_is_expected(case: Path) -> None:
    """The file is refused or not, with exactly these diagnostics at these places."""
    expected = load(case, "expected.json")
    found = parsed(case)
    assert found.refused == expected["refused"]
    told = [
        {"severity": d.severity, "code": d.code, "line": d.line, "column": d.column, "field": d.field}
        for d in found.diagnostics
    ]
    assert told == expected["diagnostics"]


def test_the_event_starts_what_is_expected(case: Path) -> None:
    """The event starts exactly these processes, with exactly this environment, input and deadlines."""
    event = view(case)
    body = prx.envelope(event)
    started = []
    for spec in Plan.of(parsed(case).specs).for_event(event.event):
        run = prx.render(spec, event, place(spec))
        assert run.stdin in (None, body)
        env = {name: "<envelope>" if value == body.decode() else value for name, value in run.env.items()}
        started.append(
            {
                "hook": spec.id,
                "argv": list(run.argv),
                "cwd": run.cwd,
                "env": env,
                "stdin": run.stdin is not None,
                "timeout_s": run.timeout_s,
                "grace_s": run.grace_s,
            }
        )
    assert started == load(case, "expected.json")["invocations"]


def test_the_envelope_is_what_is_expected(case: Path) -> None:
    """The envelope is JSON around the payload's own bytes; where a case spells it out, it is just that."""
    body = prx.envelope(view(case)).decode()
    payload = (case / "payload.json").read_text().removesuffix("\n")
    assert body.endswith(f',"payload":{payload}}}')
    assert json.loads(body)["payload"] == json.loads(payload)
    assert body == load(case, "expected.json").get("envelope", body)


def test_there_are_cases() -> None:
    """The folder was found: a moved file must not leave nothing to test."""
    assert len(CASES) >= 17
