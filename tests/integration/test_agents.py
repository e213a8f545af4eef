"""Attached agents end to end: settings that are written, a session that is replayed, a doctor that looks.

The agents are not here; their recordings are, and the settings files that they would read.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.cli.main import main
from broker.client import Subscriber
from subscribers.dialects.codex_canonical import original
from subscribers.dialects.codex_events import events_of
from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import CODEX, PROFILES
from tests.integration.command import prxbus
from tests.integration.test_up import up_with
from tests.integration.waiting import until

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "examples" / "agents"
GUARD = """
from subscribers.handlers import decide

@decide("tool_call_start", priority=1)
def guard(event, ctx):
    if "rm -rf" in str(event.payload.get("arguments", {}).get("command", "")):
        return ctx.deny("not on this machine")
"""
OUR_OWN = ("prx.lifecycle.prxbus_doctor", "prx.lifecycle.gateway_startup")
THEIRS = '{\n  "hooks": {\n    "Stop": [{"hooks": [{"type": "command", "command": "./done.sh"}]}]\n  }\n}\n'


def is_free(port: int) -> bool:
    """Whether a port can be had; those asked about are none that the system gives to others meanwhile."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@pytest.fixture
def home(tmp_path: Path, runtime_dir: Path) -> dict[str, str]:
    """The environment of a user with a home of their own, and a port that is free."""
    port = str(next(filter(is_free, iter(lambda: 20_000 + secrets.randbelow(12_000), None))))
    folder = tmp_path / "home"
    (folder / ".claude").mkdir(parents=True)
    return {
        "HOME": str(folder),
        "CLAUDE_CONFIG_DIR": "",
        "CODEX_HOME": "",
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_DATA_HOME": str(folder / "data"),
        "PRXBUS_CONFIG_DIR": str(folder / "config"),
        "PRXBUS_HTTP_PORT": port,
        "PRXBUS_HTTP_STATE_DIR": str(folder / "ids"),
        "PRXBUS_RUNTIME_DIR": str(runtime_dir),
    }


class Commands:
    """Commands as a user types them, run in this process: eight interpreters less."""

    def __init__(self, capture: pytest.CaptureFixture[bytes]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str, status: int = 0) -> Any:
        """A command's JSON, a list where it is more than one line; it ends with ``status``."""
        self._capture.readouterr()
        ended = main([*arguments, "--json"])
        told = self._capture.readouterr()
        assert ended == status, told.out + told.err
        found = [orjson.loads(line) for line in told.out.splitlines()]
        return found[0] if len(found) == 1 else found


def workspace(folder: Path) -> tuple[Path, Path]:
    """A workspace whose PRX hook writes down each tool call, and a guard in Python."""
    guard, shop = folder / "guard.py", folder / "shop"
    guard.write_text(GUARD)
    shop.mkdir()
    action = {"command": "/bin/sh", "args": ["-c", 'cat "$ZERO_HOOK_PAYLOAD_FILE" >> seen; echo >> seen']}
    (shop / "hooks.json").write_text(json.dumps({"hooks": {"tool_call_start": [action]}}))
    return shop, guard


def command_hooks(home: dict[str, str]) -> Path:
    """A hook file of the user's own whose handler keeps what it is given, and a variable of the agent's."""
    given = Path(home["HOME"]) / "given"
    script = f'cat >> "{given}"; echo " $AGENT_MARK" >> "{given}"'
    handler = {"type": "command", "command": script}
    file = Path(home["PRXBUS_CONFIG_DIR"]) / "hooks.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"hooks": {"SessionStart": [{"hooks": [handler]}]}}))
    return given


def trust(path: Path) -> str:
    """What Codex's config.toml says once its user has trusted the hooks of a file."""
    document = read_document(path.read_bytes(), str(path), CODEX)
    rows = [
        f"[hooks.state.{json.dumps(each.key)}]\ntrusted_hash = {json.dumps(each.digest)}\n"
        for each in document.handlers
    ]
    return "\n".join(rows)


def recording(dialect: str, shop: Path) -> list[bytes]:
    """A recorded session, as if it had been in ``shop``."""
    lines = (RECORDINGS / f"{dialect}.jsonl").read_bytes().splitlines()
    return [line.replace(b'"cwd":"/home/dev/shop"', b'"cwd":"%s"' % bytes(shop)) for line in lines]


def replayed(run: Commands, dialect: str, shop: Path) -> dict[str, Counter[str]]:
    """What was answered over each way, in a replay of the whole recording."""
    rows = run("replay", str(RECORDINGS / f"{dialect}.jsonl"), "--as", dialect, "--cwd", str(shop))
    assert [row["failed"] for row in rows] == [None] * len(rows)
    assert not any(row["differ"] for row in rows)
    assert {row["event"] for row in rows} == {rule.name for rule in events_of(PROFILES[dialect])}
    return {way: Counter(row["answer"] for row in rows if row["way"] == way) for way in ("shim", "http")}


def test_attached_agents_are_heard_and_can_be_told_no(
    runtime_dir: Path,
    tmp_path: Path,
    home: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Attached, looked at, replayed over both ways: our hooks and handlers see every event, and decide."""
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    run = Commands(capsysbinary)
    shop, guard = workspace(tmp_path)
    given = command_hooks(home)
    settings = Path(home["HOME"]) / ".claude" / "settings.json"
    settings.write_text(THEIRS)
    hooks = Path(home["HOME"]) / ".codex" / "hooks.json"
    claude = run("attach", "claude-code", "--http")
    assert (claude["others"], claude["written"]) == (1, True)
    assert run("attach", "codex")["written"]
    assert run("doctor", "--project", str(tmp_path), status=1)[0]["text"].startswith("no bus")
    command = json.loads(hooks.read_text())["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    early = (RECORDINGS / "codex.jsonl").read_bytes().splitlines()[2]
    alone = {"PATH": os.environ["PATH"], "HOME": home["HOME"]}
    done = subprocess.run(command, shell=True, input=early, env=alone, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    options = ("--workspace", str(shop), "--handlers", str(guard))
    with (
        up_with(runtime_dir, *options, environ=home) as (_, said),
        Subscriber(["prx.lifecycle.*"], runtime_dir=str(runtime_dir)) as bus,
    ):
        assert said["processes"].keys() >= {"broker", "shell", "python", "agents", "http"}
        seen = shop / "seen"
        until(seen.exists, "the event that waited for the bus")
        assert json.loads(seen.read_text())["payload"]["arguments"] == {"command": "pytest -q"}

        found = run("doctor", "--project", str(tmp_path), status=1)
        assert [each["text"] for each in found if each["level"] == "fault"] == [
            f"{hooks}: Codex does not run our hooks, they are untrusted: all of them"
        ]
        (hooks.parent / "config.toml").write_text(trust(hooks))
        found = run("doctor", "--project", str(tmp_path))
        assert sum("a test event came through" in each["text"] for each in found) == 4

        monkeypatch.setenv("AGENT_MARK", "of the agent")  # which our own processes have not
        no = "not on this machine"
        for dialect in ("claude", "codex"):
            answers = replayed(run, dialect, shop)
            assert answers["shim"] == answers["http"]
            ((denied, times),) = [(text, n) for text, n in answers["shim"].items() if text]
            told = json.loads(denied)["hookSpecificOutput"]
            assert (times, told["permissionDecision"], told["permissionDecisionReason"]) == (1, "deny", no)
            payloads = recording(dialect, shop)
            got: list[bytes] = []
            while len(got) < 2 * len(payloads):
                batch = bus.batch(timeout=30.0)
                assert batch, f"{len(got)} of {2 * len(payloads)} events came"
                mine = [original(each.payload, dialect) for each in batch if each.topic not in OUR_OWN]
                got += [payload for payload in mine if payload is not None]
            assert sorted(got) == sorted(2 * payloads)
        lines = given.read_bytes().splitlines()
        assert len(lines) == 4  # two sessions, each over two ways; the command's environment goes along
        assert [line.endswith(b"} of the agent") for line in lines] == [True, False, True, False]
        start = recording("codex", shop)[0]
        assert lines[2:] == [start + b" of the agent", start + b" "]
        calls = sum(
            b'"PreToolUse"' in line for dialect in ("claude", "codex") for line in recording(dialect, shop)
        )
        until(
            lambda: seen.read_text().count('"timestamp":') == 1 + 2 * calls, "the hook to see every tool call"
        )

    assert run("detach", "claude-code")["written"]
    assert settings.read_text() == THEIRS
    assert len(run("detach", "codex")["changes"]) == 12


def test_a_verb_is_the_hook_command_too(runtime_dir: Path) -> None:
    """It blocks without a bus where that is wanted; its fastest form is printed, and does the same."""
    where = ("--runtime-dir", str(runtime_dir))
    slow = prxbus("hook", "--dialect", "codex", "--absent", "block", *where, stdin=b"{}")
    assert (slow.returncode, "no bus answers" in slow.stderr) == (2, True)
    printed = prxbus("hook", "--dialect", "codex", "--timeout", "2.5", "--print-command", *where)
    words = shlex.split(printed.stdout)
    assert words[1:3] == ["-I", "-S"]
    assert words[-4:] == ["codex", str(runtime_dir / "hook.sock"), "2.5", "open"]
    assert os.path.samefile(words[0], os.path.realpath(sys.executable))
    fast = subprocess.run(words, input=b"{}", capture_output=True, check=False)
    assert (fast.returncode, fast.stdout, fast.stderr) == (0, b"", b"")
    assert len(os.listdir(runtime_dir / "hook-spool")) == 2
