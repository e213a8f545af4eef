"""The page's own samples run, their bytes unchanged, at the paths and hosts that they name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.prx import page
from tests.conformance.prx.stage import Event, Played, Stage, stage

pytestmark = pytest.mark.timeout(150)  # each test starts a whole bus, in a machine of its own

START: Event = ("agent_start", {"agent": "main", "session": "sess_abc123"})
END: Event = ("agent_end", {"success": True, "messages_count": 12})
REQUEST: Event = ("llm_request", {"provider": "openai", "model": "gpt-4o", "messages_count": 12})
RESPONSE: Event = (
    "llm_response",
    {"provider": "openai", "model": "gpt-4o", "duration_ms": 1842, "success": True},
)
BEFORE: Event = ("tool_call_start", {"tool": "Bash", "arguments": {"command": "ls"}})
CALL: Event = ("tool_call", {"tool": "Bash", "success": True, "output": "a\nb"})
TURN: Event = ("turn_complete", {})
ERROR: Event = ("error", {"component": "llm", "message": "timed out"})
EVERY = (START, END, REQUEST, RESPONSE, BEFORE, CALL, TURN, ERROR)

NOTES = b'#!/bin/sh\nprintf "%s|%s|%s\\n" "$*" "$ZERO_HOOK_EVENT" "$(cat)" >> /var/log/prx/notes\n'
"""Stands in where the page names a script without showing it."""


class Page:
    """The page's samples, and a machine to run them."""

    def __init__(self, text: str, machine: Stage) -> None:
        self.text = text
        self.machine = machine
        self.files = page.hook_files(text)
        self.variable, self.file, self.stdin, self.audit, self.metrics = page.scripts(text)

    def sample(self, *marks: str) -> bytes:
        """The hook file that names all of this, and fewer events than any other that does."""
        found = [(len(value["hooks"]), text) for text, value in self.files]
        return min((size, text) for size, text in found if all(mark.encode() in text for mark in marks))[1]

    def play(self, hooks: bytes, scripts: dict[str, bytes], *events: Event, runs: int = 1) -> Played:
        """What came of it; every run must have ended well."""
        found = self.machine.play(hooks, scripts, events, runs)
        assert [run["status"] for run in found.runs] == ["ok"] * runs, found.runs
        return found


@pytest.fixture(scope="module")
def of_page(pages: Path, require_tool: Callable[[str], str]) -> Iterator[Page]:
    """The page and a stage."""
    with stage(require_tool) as machine:
        yield Page(page.find(pages), machine)


def test_the_audit_sample_runs(of_page: Page) -> None:
    """The file and the script of the audit sample write the whole envelope into the log that env names."""
    found = of_page.play(of_page.sample("audit_log.sh"), {"audit_log.sh": of_page.audit}, CALL)
    line = json.loads(found.text("tool_audit.jsonl"))
    assert (line["event"], line["session_id"], line["payload"]) == ("tool_call", "sess_abc123", CALL[1])


def test_the_alert_sample_runs(of_page: Page) -> None:
    """curl posts the envelope to the address that the sample names, over TLS."""
    found = of_page.play(of_page.sample('"-s"', "hooks.slack.com"), {}, ERROR)
    (request,) = found.requests
    assert (request["host"], request["path"]) == ("hooks.slack.com", "/services/T00/B00/xxxxx")
    assert request["type"] == "application/json"
    assert json.loads(request["body"])["payload"] == ERROR[1]


def test_the_latency_sample_runs(of_page: Page) -> None:
    """The script gets its numbers from standard input; what it prints is what its page says."""
    found = of_page.play(of_page.sample("metrics.py"), {"metrics.py": of_page.metrics}, RESPONSE)
    assert found.runs[0]["command"] == "python3 /opt/hooks/metrics.py"
    seen = of_page.play(
        _keeping("llm_response", "python3 /opt/hooks/metrics.py"), {"metrics.py": of_page.metrics}, RESPONSE
    )
    assert seen.text("said").splitlines() == [
        "prx.llm.duration,provider=openai,model=gpt-4o 1842",
        "prx.llm.success,provider=openai,model=gpt-4o 1",
    ]


def test_the_session_sample_runs(of_page: Page) -> None:
    """One script for two events, told apart by its argument."""
    found = of_page.play(
        of_page.sample("session_tracker.sh"), {"session_tracker.sh": NOTES}, START, END, runs=2
    )
    assert sorted(found.text("notes").splitlines()) == ["end|agent_end|", "start|agent_start|"]


def test_the_full_example_runs(of_page: Page) -> None:
    """Four events, four programs: notify, python3, a script with env, curl."""
    scripts = {
        "log_latency.py": b"import sys\nopen('/var/log/prx/latency', 'w').write(sys.stdin.read())\n",
        "audit_tool_usage.sh": b'#!/bin/sh\nmkdir "$LOG_DIR"; cp "$ZERO_HOOK_PAYLOAD_FILE" "$LOG_DIR/one"\n',
    }
    found = of_page.play(of_page.sample("log_latency.py", "curl"), scripts, *EVERY, runs=4)
    assert found.text("notified").splitlines() == ["--channel", "ops", "--title", "Agent Started"]
    assert json.loads(found.text("latency"))["payload"] == RESPONSE[1]
    assert json.loads(found.text("audit/one"))["payload"] == CALL[1]
    assert [json.loads(request["body"])["event"] for request in found.requests] == ["error"]


def test_the_structure_runs_with_a_real_event(of_page: Page) -> None:
    """With an event in place of the placeholder, every field of the structure has its effect."""
    hooks = of_page.sample("<event_name>").replace(b"<event_name>", b"tool_call")
    script = (
        b'#!/bin/sh\nprintf "%s|" "$*" "$CUSTOM_VAR" "$PWD" > /var/log/prx/seen; cat >> /var/log/prx/seen\n'
    )
    found = of_page.play(hooks, {"/path/to/script": script}, CALL)
    arguments, custom, folder, envelope = found.text("seen").split("|", 3)
    assert (arguments, custom, folder) == ("--flag value", "value", "/working/directory")
    assert json.loads(envelope)["payload"] == CALL[1]


def test_the_channel_samples_run(of_page: Page) -> None:
    """The three scripts, one for each channel, print what they read from it."""
    scripts = {"variable": of_page.variable, "stdin": of_page.stdin, "file": of_page.file}
    assert (
        of_page.play(_keeping("tool_call", "/opt/hooks/variable"), scripts, CALL).text("said") == '"Bash"\n'
    )
    assert (
        of_page.play(_keeping("tool_call", "python3 /opt/hooks/file"), scripts, CALL).text("said")
        == "Tool: Bash, Success: True\n"
    )
    assert of_page.play(_keeping("error", "/opt/hooks/stdin"), scripts, ERROR).text("said") == "timed out\n"


def test_each_event_of_the_page_fires_its_hook(of_page: Page) -> None:
    """Eight events, each in the page's envelope with exactly the fields of the page's table."""
    script = b'#!/bin/sh\ncp "$ZERO_HOOK_PAYLOAD_FILE" "/var/log/prx/$ZERO_HOOK_EVENT"\n'
    action = [{"command": "/opt/hooks/keep"}]
    hooks = json.dumps({"hooks": {name: action for name, _ in EVERY}}).encode()
    found = of_page.play(hooks, {"keep": script}, *EVERY, runs=8)
    for name, payload in EVERY:
        row = next(line for line in of_page.text.splitlines() if line.startswith(f"{name}\t"))
        assert all(f"{field} (" in row for field in payload)
        envelope = json.loads(found.text(name))
        assert list(envelope) == ["event", "timestamp", "session_id", "payload"]
        assert (envelope["event"], envelope["payload"]) == (name, payload)


def _keeping(event: str, command: str) -> bytes:
    """A hook file of our own around a script of the page, which keeps what the script prints."""
    action: dict[str, Any] = {"command": "/bin/sh", "args": ["-c", f"{command} > /var/log/prx/said"]}
    return json.dumps({"hooks": {event: [action | {"stdin_json": True}]}}).encode()
