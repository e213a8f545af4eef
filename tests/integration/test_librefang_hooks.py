"""LibreFang's hooks on a bus: what they receive, how they end, and what the log says of it."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects import librefang_rules as rules
from subscribers.hooks.withheld import WITHHELD
from tests.integration.command import COMMAND
from tests.integration.librefang_scene import RECORD, Home, serve
from tests.integration.shell_scene import Scene, hooks, scene, sh
from tests.integration.waiting import until

FIELDS = {
    "agent:start": "agent_id session_id sender message_preview agent_name",
    "agent:end": (
        "agent_id session_id status tokens_used steps duration_ms response_preview "
        "agent_name latency_ms success"
    ),
    "agent:step": "agent_id session_id step_index tool_call step",
    "session:start": "agent_id session_id",
    "session:end": "agent_id session_id",
    "session:reset": "agent_id session_id reset_reason message_count_cleared",
    "gateway:startup": "version started_at",
}
"""The fields of the page, and after them the names that the program sends."""


@pytest.fixture
def at() -> Iterator[Scene]:
    """A bus, an agent and a monitor."""
    with scene() as made:
        yield made


@pytest.fixture
def home(at: Scene) -> Home:
    """An empty home."""
    return Home(at.workspace.parent / "home")


def text(path: Path) -> str:
    """A file's content, waiting for it."""
    until(path.exists, f"{path} to be there")
    return path.read_text()


def test_every_event_arrives_with_every_field_of_the_page(at: Scene, home: Home) -> None:
    """A hook of all events gets each under its own name; unknown fields are null, the session is known."""
    folder = home.hook("all", "['*']", RECORD)
    with serve(at.bus, home) as served:
        assert served.said["librefang"] == {"home": str(home.path), "hooks": 1}
        for event in rules.EVENTS.values():
            at.agent.publish(f"prx.lifecycle.{event}", {}, session_id="s1")
        reports = at.monitor.runs(7)
    assert {(r["hook"], r["dialect"], r["status"]) for r in reports} == {("all", "librefang", "ok")}
    for name, fields in FIELDS.items():
        written = (folder / name).read_text()
        payload = json.loads(written)
        assert written == json.dumps(payload, separators=(",", ":"))
        assert list(payload) == fields.split()
        known = {"session_id": "s1"} if "session_id" in payload else {}
        assert payload == dict.fromkeys(payload) | known


def test_what_an_agent_publishes_arrives_in_the_pages_words(at: Scene, home: Home) -> None:
    """One event of any agent fills the page's fields and the program's; a preview has 120 code points."""
    folder = home.hook("all", "['agent:*']", RECORD)
    end: dict[str, Any] = {
        "success": False,
        "agent": "main",
        "duration_ms": 7,
        "input_tokens": 2,
        "output_tokens": 3,
    }
    end |= {"last_assistant_message": "é" * 200, "custom": [1]}
    with serve(at.bus, home):
        at.agent.publish("prx.lifecycle.agent_end", end, session_id="s1")
        at.agent.publish("prx.lifecycle.agent_step", {"tool": "Bash", "step_index": 0})
        at.monitor.runs(2)
    assert json.loads((folder / "agent:end").read_text()) == {
        "agent_id": "main",
        "session_id": "s1",
        "status": "error",
        "tokens_used": 5,
        "steps": None,
        "duration_ms": 7,
        "response_preview": "é" * 120,
        "agent_name": "main",
        "latency_ms": 7,
        "success": False,
        "input_tokens": 2,
        "output_tokens": 3,
        "custom": [1],
    }
    step = json.loads((folder / "agent:step").read_text())
    assert (step["step_index"], step["step"], step["tool_call"]) == (0, 0, "Bash")


def test_only_what_matches_fires_and_each_hook_once(at: Scene, home: Home) -> None:
    """Overlapping entries fire once; another session's, agent's or tool's event fires nothing."""
    home.hook("agents", "[agent:end, 'agent:*', '*']", "true")
    home.hook("sessions", "['session:*']", "true")
    home.hook("extension", "[tool_call]", '[ "$HOOK_EVENT" = tool_call ]')
    with serve(at.bus, home):
        for event in ("agent_end", "session_end", "tool_call", "llm_request"):
            at.agent.publish(f"prx.lifecycle.{event}", {})
        at.agent.publish("prx.hooks.other", {})
        reports = at.monitor.runs(4)
        at.agent.publish("prx.lifecycle.session_start", {})
        reports = at.monitor.runs(6)
    assert sorted((r["hook"], r["event"]) for r in reports) == [
        ("agents", "agent_end"),
        ("agents", "session_end"),
        ("agents", "session_start"),
        ("extension", "tool_call"),
        ("sessions", "session_end"),
        ("sessions", "session_start"),
    ]
    assert {r["status"] for r in reports} == {"ok"}


def test_the_daemons_environment_is_inherited_without_the_token(at: Scene, home: Home) -> None:
    """A variable of the shell reaches the hook, the API's token does not; the folder is the hook's own."""
    script = "env > env.new; pwd >> env.new; cat >> env.new; mv env.new environment"
    folder = home.hook("h", "[agent:end]", script)
    given = {"SLACK_WEBHOOK_URL": "http://127.0.0.1:1/x", "ODD": "\udcff"}
    given |= dict.fromkeys(WITHHELD, "t" * 40)
    with serve(at.bus, home, **given):
        at.agent.publish("prx.lifecycle.agent_end", {}, session_id="s1")
        lines = (folder / "environment").read_bytes().splitlines() if at.monitor.runs(1) else []
    assert b"SLACK_WEBHOOK_URL=http://127.0.0.1:1/x" in lines
    assert b"ODD=\xff" in lines
    assert b"HOOK_EVENT=agent:end" in lines
    assert f"PRXBUS_RUNTIME_DIR={at.bus}".encode() in lines
    assert b"PRXBUS_DEPTH=1" in lines
    assert not any(
        line.startswith((b"PRXBUS_API_TOKEN", b"PRXBUS_HOOK_TOKEN", b"HOOK_EVENT_DATA_FILE"))
        for line in lines
    )
    assert lines[-1] == str(folder).encode()  # and nothing came from the standard input


def test_a_payload_beyond_a_variable_arrives_in_a_file(at: Scene, home: Home) -> None:
    """It is private, whole, and gone after the run; the variable is not set."""
    script = (
        '[ -z "${HOOK_EVENT_DATA+set}" ] && stat -c %a "$HOOK_EVENT_DATA_FILE" > mode'
        ' && echo "$HOOK_EVENT_DATA_FILE" > path && cp "$HOOK_EVENT_DATA_FILE" copy'
    )
    folder = home.hook("h", "[agent:start]", script)
    payload = {"custom": "é" * 200_000}
    with serve(at.bus, home):
        at.agent.publish("prx.lifecycle.agent_start", payload)
        (report,) = at.monitor.runs(1)
        assert report["status"] == "ok", report
        assert not Path((folder / "path").read_text().strip()).exists()
    assert (folder / "mode").read_text() == "600\n"
    assert json.loads((folder / "copy").read_text())["custom"] == payload["custom"]
    assert not (folder / "copy").stat().st_mode & stat.S_IWOTH


def test_arguments_are_passed_as_they_are(at: Scene, home: Home) -> None:
    """Blanks and shell characters mean nothing: there is no shell."""
    home.hook("h", "[agent:end]", 'printf "%s|" "$@" > said', 'args: ["two words", "$HOME", "; false", ""]\n')
    with serve(at.bus, home):
        at.agent.publish("prx.lifecycle.agent_end", {})
        (report,) = at.monitor.runs(1)
    assert report["command"].startswith("./run.sh two words $HOME")
    assert (home.path / "hooks/h/said").read_text() == "two words|$HOME|; false||"


def test_a_program_with_blanks_in_its_name_runs_in_its_folder(at: Scene, home: Home) -> None:
    """The whole command is one path, with args and without."""
    for name, more in (("with", "args: [one word]\n"), ("without", "")):
        folder = home.hook(name, "[agent:end]", 'echo "$# $1" > said', more)
        (folder / "run.sh").rename(folder / "my run.sh")
        file = folder / "HOOK.yaml"
        file.write_text(file.read_text().replace("./run.sh", "./my run.sh"))
    with serve(at.bus, home):
        at.agent.publish("prx.lifecycle.agent_end", {})
        assert {report["status"] for report in at.monitor.runs(2)} == {"ok"}
    assert (home.path / "hooks/with/said").read_text() == "1 one word\n"
    assert (home.path / "hooks/without/said").read_text() == "0 \n"


def test_an_interpreter_may_be_the_command(at: Scene, home: Home) -> None:
    """A word of the PATH is used, with a notice; a script without a #! line of its own is not started."""
    folder = home.hook("python", "[agent:end]", "")
    (folder / "run.py").write_text("import os; open('said', 'w').write(os.environ['HOOK_EVENT'])")
    (folder / "HOOK.yaml").write_text("name: python\nevents: [agent:end]\ncommand: python3 run.py\n")
    (home.hook("bare", "[agent:end]", "") / "run.sh").write_text("true\n")
    with serve(at.bus, home) as served:
        at.agent.publish("prx.lifecycle.agent_end", {})
        by_name = {report["hook"]: report for report in at.monitor.runs(2)}
        assert "python/HOOK.yaml:3:10: info: command: " in served.log.read_text()
    assert (folder / "said").read_text() == "agent:end"
    assert by_name["python"]["status"] == "ok"
    assert by_name["bare"]["status"] == "not_started"
    assert "its first line must name an interpreter" in by_name["bare"]["reason"]


def test_time_spent_waiting_does_not_count(at: Scene, home: Home) -> None:
    """The five seconds begin when the program does, not when its turn is awaited."""
    first = home.hook("a", "[agent:end]", "touch began; until [ -e go ]; do sleep 0.02; done")
    home.hook("b", "[agent:end]", "true")
    with serve(at.bus, home, "--runs", "1"):
        at.agent.publish("prx.lifecycle.agent_end", {})
        until((first / "began").exists, "the first to begin")
        since = time.monotonic()
        until(lambda: time.monotonic() > since + 0.3, "the second to have waited")
        (first / "go").touch()
        reports = {report["hook"]: report for report in at.monitor.runs(2)}
    assert {report["status"] for report in reports.values()} == {"ok"}
    assert reports["b"]["waited_ms"] >= 300
    assert reports["a"]["duration_ms"] >= 300


def test_a_run_of_more_than_five_seconds_is_killed_with_its_group(at: Scene, home: Home) -> None:
    """No signal can be caught, the children of the program end too, and the others ran meanwhile."""
    stuck = "trap 'echo caught > caught' TERM\nsleep 300 & echo $! > pid\nwhile :; do wait; done"
    folder = home.hook("stuck", "[agent:end]", stuck)
    home.hook("other", "[agent:end]", "true")
    with serve(at.bus, home) as served:
        at.agent.publish("prx.lifecycle.agent_end", {})
        by_name = {report["hook"]: report for report in at.monitor.runs(2)}
        assert by_name["other"]["status"] == "ok"
        assert by_name["stuck"]["status"] == "timeout"
        assert 5_000 <= by_name["stuck"]["duration_ms"] < 20_000
        said = served.record("a hook failed", hook="stuck")
        assert (said["level"], said["on"], said["status"]) == ("warning", "agent:end", "timeout")
        pid = text(folder / "pid").strip()
        until(lambda: not os.path.exists(f"/proc/{pid}"), "the background process to be killed")
    assert not (folder / "caught").exists()


def test_what_a_hook_leaves_running_goes_on(at: Scene, home: Home) -> None:
    """A hook that starts something in the background and ends well has ended well, at once."""
    folder = home.hook("h", "[agent:end]", "sleep 300 & echo $! > pid")
    with serve(at.bus, home):
        at.agent.publish("prx.lifecycle.agent_end", {})
        (report,) = at.monitor.runs(1)
        assert (report["status"], report["duration_ms"] < 5_000) == ("ok", True)
        pid = int(text(folder / "pid"))
        assert os.path.exists(f"/proc/{pid}")
        os.kill(pid, 9)


def test_failures_are_warnings_with_hook_event_code_and_stderr(at: Scene, home: Home) -> None:
    """Another exit code, a program that is missing or not executable; the hooks beside them run."""
    home.hook("fails", "[session:reset]", "echo first >&2; echo last words >&2; exit 3")
    (home.hook("missing", "[session:reset]", "") / "run.sh").unlink()
    (home.hook("plain", "[session:reset]", "") / "run.sh").chmod(0o644)
    home.hook("good", "[session:reset]", "true")
    with serve(at.bus, home) as served:
        at.agent.publish("prx.lifecycle.session_reset", {"reset_reason": "idle"})
        status = {report["hook"]: report["status"] for report in at.monitor.runs(4)}
        letters = at.monitor.wait("prx.hooks.dead_letter", 3)
        said = {name: served.record("a hook failed", hook=name) for name in ("fails", "missing", "plain")}
    assert status == {"fails": "failed", "missing": "not_started", "plain": "not_started", "good": "ok"}
    assert {letter["hook"] for letter in letters} == {"fails", "missing", "plain"}
    assert all((r["level"], r["on"]) == ("warning", "session:reset") for r in said.values())
    assert (said["fails"]["exit_code"], said["fails"]["stderr"]) == (3, "first\nlast words\n")
    assert 'no "./run.sh" in' in said["missing"]["reason"]
    assert "chmod +x" in said["plain"]["reason"]
    assert said["fails"]["path"] == str(home.path / "hooks/fails/HOOK.yaml")


def test_what_a_hook_says_changes_nothing(at: Scene, home: Home) -> None:
    """There is no return value: output is neither read as an answer nor published, however much it is."""
    answer = 'echo \'{"decision": "deny", "tool_output": "x"}\'; head -c 3000000 /dev/zero; exit 2'
    home.hook("h", "[agent:end]", answer)
    with serve(at.bus, home):
        at.agent.publish("prx.lifecycle.agent_end", {})
        (report,) = at.monitor.runs(1)
        at.monitor.wait("prx.hooks.dead_letter", 1)
    assert (report["status"], report["exit_code"]) == ("failed", 2)
    assert "deny" not in json.dumps([event.payload for event in at.monitor.seen])
    assert {event.topic for event in at.monitor.seen} == {"prx.hooks.run", "prx.hooks.dead_letter"}


def test_bad_files_are_said_and_the_others_run(at: Scene, home: Home) -> None:
    """Each has its diagnostic in the log, with file, line and column."""
    home.hook("good", "[agent:end]", "true")
    for name, content in {
        "twice": "name: n\nname: m\nevents: [agent:end]\ncommand: x\n",
        "types": "name: 1\nevents: agent:end\ncommand: x\n",
        "documents": "name: n\n---\nname: m\n",
        "garbage": "\x01[",
        "foreign": "kind: Hook\n",
    }.items():
        folder = home.path / "hooks" / name
        folder.mkdir()
        (folder / "HOOK.yaml").write_text(content)
    (home.path / "hooks" / "yml").mkdir()
    (home.path / "hooks" / "yml" / "HOOK.yml").write_text("")
    with serve(at.bus, home) as served:
        assert served.said["librefang"]["hooks"] == 1
        at.agent.publish("prx.lifecycle.agent_end", {})
        (report,) = at.monitor.runs(1)
    log = served.log.read_text()
    assert report["hook"] == "good"
    for words in (
        "twice/HOOK.yaml:2:1: error: name: ",
        "types/HOOK.yaml:1:7: error: name: ",
        "types/HOOK.yaml:2:9: error: events: ",
        "documents/HOOK.yaml:3:1: error: ",
        "garbage/HOOK.yaml:1:1: error: ",
        "foreign/HOOK.yaml:1:1: error: ",
        "yml/HOOK.yml: warning: ",
    ):
        assert words in log


def test_a_hook_publishes_one_level_deeper_with_its_cause(at: Scene, home: Home) -> None:
    """What it publishes with the command is caused by its event; loops end as everywhere."""
    home.hook("h", "[agent:end]", f"exec {COMMAND} pub prx.hooks.echo '{{}}'")
    with serve(at.bus, home):
        at.agent.publish("prx.lifecycle.agent_end", {})
        at.monitor.wait("prx.hooks.echo", 1)
    event = next(event for event in at.monitor.seen if event.topic == "prx.hooks.echo")
    assert event.depth == 1
    assert event.caused_by is not None


def test_a_workspace_and_a_home_are_served_side_by_side(at: Scene, home: Home) -> None:
    """One event fires the hooks of both, each in its own words; what one lacks the other has."""
    hooks(at.workspace, agent_end=[sh('printf %s "$ZERO_HOOK_EVENT$HOOK_EVENT$HOME" > said')])
    folder = home.hook("h", "[agent:end]", 'printf %s "$ZERO_HOOK_EVENT$HOOK_EVENT" > said')
    with serve(at.bus, home, "--workspace", str(at.workspace)) as served:
        assert (served.said["hooks"], served.said["librefang"]["hooks"]) == (1, 1)
        at.agent.publish("prx.lifecycle.agent_end", {"success": True})
        reports = at.monitor.runs(2)
    assert {(r["dialect"], r["hook"], r["status"]) for r in reports} == {
        ("prx", "agent_end#0", "ok"),
        ("librefang", "h", "ok"),
    }
    assert (at.workspace / "said").read_text() == "agent_end"
    assert (folder / "said").read_text() == "agent:end"
