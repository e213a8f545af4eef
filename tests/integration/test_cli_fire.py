"""``prxbus fire`` as a user runs it: an event put to real hooks without a bus, and its exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import COMMAND, Ran, environment, prxbus
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(180)

QUIET = {"PRXBUS_CONFIG_DIR": "/nowhere", "HOME": "/nowhere"}
EXAMPLES = Path(__file__).parents[2] / "examples"


def fire(*arguments: str | Path, given: bytes = b"", **env: str) -> Ran:
    """Run the verb without anybody's configuration."""
    return prxbus("fire", *map(str, arguments), stdin=given, env={**QUIET, **env})


def fired(*arguments: str | Path, given: bytes = b"") -> dict[str, Any]:
    """What it prints as JSON."""
    document = json.loads(fire(*arguments, "--json", given=given).stdout)
    assert isinstance(document, dict)
    return document


def handlers(document: dict[str, Any]) -> dict[str, Any]:
    """The handlers of all files by name."""
    return {handler["name"]: handler for file in document["files"] for handler in file["handlers"]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with hooks that print, fail, wait, and are for another event."""
    scripts = {
        "print.sh": 'echo "$ZERO_HOOK_EVENT $ZERO_HOOK_SESSION"; echo "$ZERO_HOOK_PAYLOAD"; echo oops >&2',
        "fail.sh": "exit 7",
        "wait.sh": f"echo $$ > {tmp_path}/pid; sleep 60",
    }
    for name, text in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    hooks = {
        "tool_call": [{"command": "./print.sh"}],
        "error": [{"command": "./fail.sh"}, {"command": "./none"}, {"command": "x", "enabled": False}],
        "agent_end": [{"command": "./wait.sh", "timeout_ms": 3000}],
        "agent_start": [{"command": "./wait.sh"}],
    }
    (tmp_path / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    return tmp_path


def test_a_hook_runs_as_it_would_for_an_event_of_a_bus(workspace: Path) -> None:
    """The matching hook gets the payload; the others say which event they are for; nothing failed."""
    document = fired("tool_call", '{"tool": "Bash"}', "--session", "s1", "--config", workspace)
    found = handlers(document)
    run = found["tool_call#0"]["run"]
    first, second = run["stdout"].splitlines()
    assert first == "tool_call s1"
    assert json.loads(second)["payload"]["tool"] == "Bash"
    assert (run["status"], run["exit_code"], run["stderr"]) == ("ok", 0, "oops\n")
    assert 0 < run["duration_ms"] < 60_000
    assert found["error#0"] | {"matched": False, "run": None} == found["error#0"]
    assert found["error#0"]["reason"] == "it is for prx.lifecycle.error"
    assert document["decision"]["verdict"] == "none"
    assert fire("tool_call", "--config", workspace).returncode == 0


def test_a_failure_exits_with_1_and_is_told(workspace: Path) -> None:
    """An exit code, a missing program and a hook that is turned off are each told as what they are."""
    done = fire("error", "--config", workspace)
    assert done.returncode == 1
    assert "failed   error#0  ./fail.sh\n           failed, exit 7, " in done.stdout
    assert "dead     error#1  ./none\n" in done.stdout
    assert "skipped  error#2  x\n" in done.stdout
    assert done.stdout.endswith("handlers: 3 matched of 6, 1 ran, 2 failed\n")


def test_a_hook_that_takes_too_long_is_ended(workspace: Path) -> None:
    """Its timeout counts, and nothing of it is left."""
    found = handlers(fired("agent_end", "--config", workspace))
    assert found["agent_end#0"]["run"]["status"] == "timeout"
    pid = int((workspace / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


def test_a_dry_run_starts_nothing(workspace: Path) -> None:
    """What would run is told, also of a folder that nobody named, and no hook has run."""
    document = fired("agent_start", "--dry-run", "--config", workspace)
    found = handlers(document)["agent_start#0"]
    assert (found["matched"], found["reason"], found["run"]) == (True, None, None)
    done = fire("error", "--dry-run", "--config", workspace)
    assert done.returncode == 0
    assert "would    error#0  ./fail.sh\n           would run " in done.stdout
    assert "a dry run: nothing was started, 1 cannot run" in done.stdout
    assert not (workspace / "pid").exists()
    env = environment(QUIET)
    command = [COMMAND, "fire", "tool_call", "--dry-run"]
    done = subprocess.run(
        command, cwd=workspace, env=env, capture_output=True, text=True, timeout=100, check=True
    )
    assert "would    tool_call#0" in done.stdout


def test_nothing_runs_of_what_was_not_named(workspace: Path) -> None:
    """Without --config the current directory's hooks are somebody else's: wrong usage, and none has run."""
    env = environment(QUIET)
    done = subprocess.run(
        [COMMAND, "fire", "agent_start"], cwd=workspace, env=env, capture_output=True, text=True, timeout=100,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--config ." in done.stderr
    assert not (workspace / "pid").exists()


@pytest.mark.parametrize(
    "name", ["tool_call", "prx.lifecycle.tool_call", "PostToolUse", "tool.execute.after"]
)
def test_an_event_has_many_names(workspace: Path, name: str) -> None:
    """Whatever an event is called, the hook for it runs, with a sample that an agent could have sent."""
    document = fired(name, "--config", workspace)
    assert document["sample"] is True
    assert document["payload"] == {"tool": "Bash", "success": True, "output": "README.md"}
    assert handlers(document)["tool_call#0"]["run"]["status"] == "ok"


def test_wrong_usage_says_what_was_meant(workspace: Path) -> None:
    """A mistyped event, a payload that is no JSON and one with a wrong type are refused; nothing runs."""
    done = fire("agent_strat", "--config", workspace)
    assert (done.returncode, "did you mean agent_start?" in done.stderr) == (2, True)
    done = fire("agent_start", "{", "--config", workspace)
    assert (done.returncode, "line 1" in done.stderr) == (2, True)
    done = fire("agent_end", '{"success": 3}', "--config", workspace)
    assert (done.returncode, "payload.success" in done.stderr) == (2, True)
    done = fire("prx.lifecycle.agent_strat", "--config", workspace)
    assert (done.returncode, "did you mean agent_start?" in done.stderr) == (0, True)
    assert not (workspace / "pid").exists()


def test_a_payload_may_come_from_a_file_or_a_pipe(workspace: Path) -> None:
    """@FILE and - are read as by prxbus pub."""
    (workspace / "event.json").write_text('{"tool": "Read"}')
    for source, given in ((f"@{workspace}/event.json", b""), ("-", b'{"tool": "Read"}')):
        document = fired("tool_call", source, "--config", workspace, given=given)
        assert (document["payload"], document["sample"]) == ({"tool": "Read"}, False)
        assert '"tool":"Read"' in handlers(document)["tool_call#0"]["run"]["stdout"].replace(" ", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_what_runs(workspace: Path, number: signal.Signals) -> None:
    """After a signal the command ends with 130, and the hook that was running is gone."""
    command = [COMMAND, "fire", "agent_start", "--config", str(workspace)]
    with subprocess.Popen(command, env=environment(QUIET), stdout=subprocess.DEVNULL) as child:
        until(
            lambda: (workspace / "pid").exists() and (workspace / "pid").read_text().endswith("\n"),
            "the hook",
        )
        pid = int((workspace / "pid").read_text())
        child.send_signal(number)
        assert child.wait(60) == 130
    until(lambda: not Path(f"/proc/{pid}").exists(), "the hook's end")


def test_a_librefang_hook_runs_as_its_page_says(tmp_path: Path) -> None:
    """Every hook of a home that is for the event runs once, with its own variables, in its own folder."""
    folder = tmp_path / "hooks" / "notify"
    folder.mkdir(parents=True)
    (folder / "HOOK.yaml").write_text('name: notify\nevents: [agent:end, "*"]\ncommand: ./run.sh\n')
    (folder / "run.sh").write_text('#!/bin/sh\necho "$HOOK_EVENT $PWD"; echo "$HOOK_EVENT_DATA"\n')
    (folder / "run.sh").chmod(0o755)
    (file,) = fired("agent:end", "--config", tmp_path)["files"]
    first, second = file["handlers"]
    shown, data = first["run"]["stdout"].splitlines()
    assert shown == f"agent:end {folder}"
    assert json.loads(data)["status"] == "ok"
    assert (second["matched"], second["run"]) == (True, None)
    (file,) = fired("session:start", "--config", tmp_path)["files"]
    assert [handler["run"] is None for handler in file["handlers"]] == [True, False]


def test_a_sandbox_that_is_configured_encloses_runs(
    workspace: Path, require_tool: Callable[[str], str]
) -> None:
    """Without a bus and its directory too, a hook runs inside and cannot write outside of its workspace."""
    require_tool("bwrap")
    (workspace / "print.sh").write_text("#!/bin/sh\necho inside > here && echo out > /usr/prxbus-fire-test\n")
    none = str(workspace / "none")
    named = ("--config", workspace, "--json")
    done = fire("tool_call", *named, PRXBUS_HOOKS_SANDBOX="bubblewrap", XDG_RUNTIME_DIR=none)
    run = handlers(json.loads(done.stdout))["tool_call#0"]["run"]
    assert (run["status"], "Read-only file system" in run["stderr"]) == ("failed", True)
    assert (workspace / "here").read_text() == "inside\n"


def test_python_handlers_decide_without_a_bus() -> None:
    """The example's guard refuses what it should: exit 4, with the decision as prxbus ask tells it."""
    payload = '{"tool": "Bash", "arguments": {"command": "rm -rf / --no-preserve-root"}}'
    done = fire("PreToolUse", payload, "--config", EXAMPLES / "handlers" / "guard.py")
    assert done.returncode == 4
    assert "\ndenied by guard.py:command: " in done.stdout
    document = fired("PreToolUse", payload, "--config", EXAMPLES / "handlers" / "guard.py")
    assert (document["decision"]["verdict"], document["decision"]["by"]) == ("deny", "guard.py:command")
    assert handlers(document)["guard.py:command"]["answer"]["verdict"] == "deny"
    done = fire("PreToolUse", "--config", EXAMPLES / "handlers" / "guard.py")
    assert (done.returncode, "\nno opinion\n" in done.stdout) == (0, True)


def test_the_transforms_of_a_workspace_are_asked_in_their_order(tmp_path: Path) -> None:
    """The first command or function that gives a text wins; filters and faults are told."""
    folder = tmp_path / ".prxbus" / "handlers"
    folder.mkdir(parents=True)
    (folder / "late.py").write_text(
        "from subscribers.handlers import transform\n@transform\ndef late(event, ctx): return 'late'\n"
    )
    scripts = {"fail.sh": "exit 3", "up.sh": """read line; echo '{"content": "UP"}'"""}
    for name, text in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    tables = [
        'command = "cat"\ntools = ["Edit"]',
        'command = "./fail.sh"',
        'command = "./up.sh"\nname = "up"',
    ]
    (tmp_path / ".prxbus" / "config.toml").write_text(
        "".join(f"[[transform]]\n{table}\n" for table in tables)
    )
    document = fired("tool_result", "--config", tmp_path)
    edit, fails, up, late = handlers(document).values()
    assert (edit["matched"], edit["run"]) == (False, None)
    assert (fails["run"]["status"], fails["run"]["exit_code"]) == ("failed", 3)
    assert (up["run"]["status"], up["answer"]["output"]) == ("ok", "UP")
    assert (late["matched"], late["run"], late["reason"]) == (
        True,
        None,
        "an earlier one has replaced the output",
    )
    assert document["decision"]["output"] == {"by": "up", "value": "UP"}
    assert fire("tool_result", "--config", tmp_path).returncode == 1
    document = fired("tool_result", "--config", folder / "late.py")
    assert document["decision"]["output"]["value"] == "late"


def test_a_plugin_is_called_without_a_bus(tmp_path: Path) -> None:
    """The example plugin is called once for an event, and what it logs is seen."""
    pytest.importorskip("wasmtime", reason="the extra wasm is not installed")
    shutil.copytree(EXAMPLES / "plugins" / "error-watch", tmp_path / "plugins" / "error-watch")
    manifest = tmp_path / "plugins" / "error-watch" / "plugin.toml"
    manifest.write_text(manifest.read_text().replace("= 500", "= 60000"))  # machines may be busy
    cache = str(tmp_path / "cache")
    done = fire(
        "error", '{"message": "no room"}', "--config", tmp_path, "--json", PRXBUS_WASM_CACHE_DIR=cache
    )
    (handler,) = handlers(json.loads(done.stdout)).values()
    assert (handler["run"]["status"], handler["matched"]) == ("ok", True)
    assert "no room" in done.stderr
    done = fire("error", "--config", tmp_path, PRXBUS_WASM_ENABLED="false")
    assert (done.returncode, "skipped  plugin:error-watch" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    "name,text,said",
    [
        ("handlers/guards.py", "def broken(:\n", "invalid syntax"),
        ("config.toml", "[handlers\n", "config.toml"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_failure(tmp_path: Path, name: str, text: str, said: str) -> None:
    """A guard that does not load might have said no: 1, and which file it is, instead of nobody's opinion."""
    path = tmp_path / ".prxbus" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    done = fire("tool_call_start", "{}", "--config", tmp_path)
    assert done.returncode == 1
    assert f"prxbus fire: {path} cannot be used: " in done.stderr
    assert said in done.stderr
    assert "no handler is for" not in done.stderr
    assert fire("tool_call_start", "{}", "--config", tmp_path, "--dry-run").returncode == 1


def test_names_that_no_text_can_hold_are_told_as_escapes(tmp_path: Path) -> None:
    """A file and a session with bytes that are no UTF-8 in their names are in the JSON."""
    folder = tmp_path / ".prxbus" / "handlers"
    folder.mkdir(parents=True)
    text = (
        "from subscribers.handlers import decide\nimport os\n@decide('tool_call_start', failure='closed')\n"
    )
    (folder / os.fsdecode(b"a\xff.py")).write_text(text + "def ends(event, ctx): os._exit(3)\n")
    (folder / os.fsdecode(b"b\xff.py")).write_text("(")
    session = os.fsdecode(b"s\xff")
    done = fire("tool_call_start", "--config", tmp_path, "--session", session, "--json")
    assert done.returncode == 4
    document = json.loads(done.stdout)
    assert document["session_id"] == "s\\udcff"
    assert document["decision"]["by"] == "a\\udcff.py:ends"
    assert document["decision"]["heard"][0]["decider"] == "python:a\\udcff.py"
    assert "b\\udcff.py cannot be used" in json.loads(done.stderr)["message"]
