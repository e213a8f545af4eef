"""``prxbus check`` as a user runs it: what it finds in broken files and its exit codes; it starts no hook."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from subscribers.hooks.explanation_schema import SCHEMA
from tests.integration.command import COMMAND, Ran, environment, prxbus, terminal

pytestmark = pytest.mark.timeout(180)

QUIET = {"PRXBUS_CONFIG_DIR": "/nowhere", "HOME": "/nowhere"}


def check(*arguments: str | Path, **env: str) -> Ran:
    """Run the verb without anybody's configuration."""
    return prxbus("check", *map(str, arguments), env={**QUIET, **env})


def checked(*arguments: str | Path) -> dict[str, Any]:
    """What it prints as JSON, valid by its schema."""
    document = json.loads(check(*arguments, "--json").stdout)
    jsonschema.validate(document, SCHEMA)
    assert isinstance(document, dict)
    return document


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace whose one hook would leave a mark."""
    (tmp_path / "run.sh").write_text(f"#!/bin/sh\necho ran > {tmp_path}/mark\n")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "hooks.json").write_text(
        '{"hooks": {"tool_call": [{"command": "./run.sh", "timeout_ms": 900}]}}'
    )
    return tmp_path


def test_a_good_workspace_exits_with_0_and_starts_nothing(workspace: Path) -> None:
    """Every handler is explained, and no hook has run."""
    done = check(workspace)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ok       tool_call#0  ./run.sh\n" in done.stdout
    assert "timeout 0.9 s, its own" in done.stdout
    assert done.stdout.endswith("1 file; handlers: 1 ok\n")
    assert not (workspace / "mark").exists()


def test_the_json_is_as_documented(workspace: Path) -> None:
    """Every documented field has what a program needs."""
    (file,) = checked(workspace)["files"]
    assert (file["path"], file["dialect"], file["diagnostics"]) == (f"{workspace}/hooks.json", "prx", [])
    (handler,) = file["handlers"]
    assert handler == {
        "event": "tool_call",
        "index": 0,
        "name": "tool_call#0",
        "runtime": "shell",
        "command": "./run.sh",
        "args": [],
        "matcher": None,
        "topics": ["prx.lifecycle.tool_call"],
        "timeout_s": 0.9,
        "timeout_from": "own",
        "status": "ok",
        "trusted": True,
        "executable": f"{workspace}/run.sh",
        "cwd": str(workspace),
        "line": 1,
        "diagnostics": [],
    }


@pytest.mark.parametrize(
    "name,text,statuses,codes",
    [
        ("hooks.json", '{"hooks": {"tool_cal": [{"command": "true"}]}}', ["dead"], ["unknown_event"]),
        ("hooks.json", '{"hooks": {"error": [{"command": "./none"}]}}', ["dead"], ["missing_command"]),
        ("hooks.json", '{"hooks": {"error": [{"command": "a && b"}]}}', ["refused"], ["metacharacter"]),
        ("hooks.json", '{"hooks": {"error": {"command": "true"}}}', [], ["wrong_event_value"]),
        ("hooks.json", '{"hooks": {"error": [', [], ["not_json"]),
        ("hooks.json", "", [], ["not_json"]),
        ("plugins/a/plugin.toml", "[plugin", [], ["not_toml"]),
        (".prxbus/config.toml", "[hoks]\nruns = 1\n", [], ["unknown_section"]),
        ("notes.txt", "hello", [], ["unknown_file"]),
        ("a/HOOK.yaml", "name: a\nevents: [agent:x]\ncommand: sh\n", ["dead"], ["unknown_event"]),
        ("a/HOOK.yaml", "name: a\nevents: [agent:end]\ncommand: ./x\n", ["dead"], ["missing_command"]),
        ("a/HOOK.yaml", "name: a\nevents: agent:end\ncommand: sh\n", [], ["wrong_type"]),
        ("a/HOOK.yaml", "a: [", [], ["not_yaml"]),
        (".prxbus/config.toml", "[[transform]]\ncommand = './x'\n", ["dead"], ["missing_command"]),
        (".prxbus/config.toml", "[[transform]]\ntimeout = 0.0\n", ["refused"], ["missing", "bad_value"]),
        (".prxbus/handlers/a.py", "def f(:\n", [], ["syntax_error"]),
    ],
)
def test_what_is_broken_exits_with_1_and_a_reason(
    tmp_path: Path, name: str, text: str, statuses: list[str], codes: list[str]
) -> None:
    """Each broken file has the statuses and diagnostics of the table, in words and as JSON."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (file,) = checked(path)["files"]
    said = [d["code"] for handler in file["handlers"] for d in handler["diagnostics"]]
    said += [d["code"] for d in file["diagnostics"]]
    assert ([handler["status"] for handler in file["handlers"]], said) == (statuses, codes)
    done = check(path)
    assert (done.returncode, done.stderr) == (1, "")
    assert all(f"[{code}]" in done.stdout for code in codes)


def test_what_is_skipped_on_purpose_is_not_broken(tmp_path: Path) -> None:
    """A disabled hook is told and exits with 0."""
    (tmp_path / "hooks.json").write_text('{"hooks": {"error": [{"command": "x", "enabled": false}]}}')
    done = check(tmp_path)
    assert done.returncode == 0
    assert "skipped  error#0  x\n" in done.stdout


def test_the_report_in_the_readme_is_the_one_that_is_printed(tmp_path: Path) -> None:
    """The example stands there letter by letter."""
    (tmp_path / "audit.sh").write_text("#!/bin/sh\n")
    (tmp_path / "audit.sh").chmod(0o755)
    good = '{"command": "./audit.sh", "args": ["--all"], "timeout_ms": 5000}'
    bad = '    "agent_strat": [{"command": "./start.sh"}]'
    lines = [
        "{",
        '  "hooks": {',
        '    "tool_call": [',
        f"      {good}",
        "    ],",
        "",
        "",
        "",
        bad,
        "  }",
        "}",
    ]
    (tmp_path / "hooks.json").write_text("\n".join(lines))
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (shown,) = re.findall(r"^\$ prxbus check \.\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert prxbus_in(tmp_path, "check", ".") == shown


def test_without_a_path_the_current_directory_is_checked(workspace: Path) -> None:
    """Nobody named it, so what it would run is told to be not trusted."""
    done = prxbus_in(workspace, "check")
    assert "not trusted: it runs only under prxbus up --workspace ." in done
    assert "hooks.json  (prx: its name is hooks.json)" in done


def prxbus_in(folder: Path, *arguments: str) -> str:
    """The output of a command in a folder."""
    env = environment(QUIET)
    done = subprocess.run(
        [COMMAND, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False
    )
    return done.stdout


def test_python_is_executed_only_where_it_was_named(tmp_path: Path) -> None:
    """Named, a file of handlers is loaded and explained; in a folder that nobody named it is not executed."""
    folder = tmp_path / ".prxbus" / "handlers"
    folder.mkdir(parents=True)
    text = f"from subscribers.handlers import decide\nopen({str(tmp_path / 'mark')!r}, 'w').close()\n"
    text += '@decide("tool_call_start", tools=["Bash"], priority=5)\ndef guard(event, ctx): ...\n'
    (folder / "guards.py").write_text(text)
    assert "not loaded: loading executes it" in prxbus_in(tmp_path, "check")
    assert not (tmp_path / "mark").exists()
    (file,) = checked(tmp_path)["files"]
    (handler,) = file["handlers"]
    assert (tmp_path / "mark").exists()
    assert (file["dialect"], handler["runtime"], handler["name"]) == ("python", "python", "guards.py:guard")
    assert (handler["event"], handler["matcher"], handler["line"]) == ("tool_call_start", "tools: Bash", 3)
    assert (handler["command"], handler["args"]) == ("@decide", ["priority=5"])
    assert list(folder.iterdir()) == [folder / "guards.py"]  # nothing is left beside it


def test_an_unknown_file_names_what_is_supported(tmp_path: Path) -> None:
    """The list is in the hint, and --dialect takes the file for one of them."""
    odd = tmp_path / "odd"
    odd.write_text('{"hooks": {"error": [{"command": "true"}]}}')
    assert "hooks.json (prx), plugin.toml (prx-plugin)" in check(odd).stdout
    done = check(odd, "--dialect", "prx")
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, f"{odd}  (prx: --dialect says so)")


def test_an_unknown_dialect_is_wrong_usage(tmp_path: Path) -> None:
    """The dialects that there are stand in the error."""
    done = check(tmp_path, "--dialect", "basic")
    assert done.returncode == 2
    assert "'prx', 'prx-plugin'" in done.stderr


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    """Nothing to check is no failure; it is told on standard error, as JSON where that was asked for."""
    done = check(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing to check here; looked for " in done.stderr
    assert " hooks.json (prx)" in done.stderr
    (tmp_path / "coder").mkdir()
    (tmp_path / "coder" / "role.yaml").write_text("name: Coder\n")
    assert 'of roles, name a directory that has one, as these below it: "coder"' in check(tmp_path).stderr
    done = check(tmp_path, "--json")
    assert json.loads(done.stdout) == {"files": []}
    assert json.loads(done.stderr)["code"] == "nothing"


def test_the_schema_can_be_printed() -> None:
    """The JSON Schema of the output is the one that its tests use."""
    assert json.loads(check("--schema").stdout) == SCHEMA


def test_a_terminal_gets_colours_and_lines_that_fit(workspace: Path) -> None:
    """On a terminal of 60 columns no line is wider, and statuses are coloured."""
    (workspace / "hooks.json").write_text('{"hooks": {"tool_cal": [{"command": "./run.sh"}]}}')
    with terminal(60) as (ours, theirs):
        child = subprocess.Popen(
            [COMMAND, "check", str(workspace)], stdout=theirs, env=environment({**QUIET, "TERM": "xterm"})
        )
        child.wait(100)
        shown = os.read(ours, 65_536).decode()
    assert "\x1b[31;1mdead\x1b[0m" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert max(map(len, plain.splitlines())) <= 60


def test_a_name_that_is_no_text_can_be_told(tmp_path: Path) -> None:
    """A folder whose name is not UTF-8 is explained, and the JSON stays valid."""
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    Path(os.fsdecode(folder), "hooks.json").write_text('{"hooks": {"error": [{"command": "./none"}]}}')
    done = prxbus("check", folder, "--json", env=QUIET)
    assert done.returncode == 1
    jsonschema.validate(json.loads(done.stdout), SCHEMA)
    assert prxbus("check", folder, env=QUIET).returncode == 1


def test_one_bad_handler_refuses_its_file_where_that_is_asked_for(tmp_path: Path) -> None:
    """Otherwise its sibling runs, and what Codex would do is said."""
    good, bad = {"type": "command", "command": "true"}, {"type": "webhook"}
    path = tmp_path / ".prxbus" / "hooks.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [good, bad]}]}}))
    (file,) = checked(path)["files"]
    assert (file["status"], file["diagnostics"][-1]["code"]) == ("ok", "upstream_refuses")
    (file,) = checked(path, "--strict")["files"]
    assert (file["status"], file["diagnostics"][-1]["code"]) == ("refused", "refused")
