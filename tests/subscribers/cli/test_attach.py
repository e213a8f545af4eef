"""``prxbus attach`` and ``detach`` as a user types them, with a home of the test's own."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.cli.main import main
from subscribers.runner.agent_http import write_address
from subscribers.sources.import_actions import Importer


class User:
    """Types commands; ``home`` is theirs."""

    def __init__(self, home: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self.home = home
        self.claude = home / ".claude" / "settings.json"
        self.codex = home / ".codex" / "hooks.json"
        self._capture = capture

    def __call__(self, line: str, status: int = 0) -> str:
        """What a command prints, errors too; it ends with ``status``."""
        self._capture.readouterr()
        ended = main(line.split())
        told = self._capture.readouterr()
        text = (told.out + told.err).decode()
        assert ended == status, text
        return text


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> User:
    """A user whose agents have said nothing yet."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PRXBUS_HOOK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PRXBUS_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("PRXBUS_RUNTIME_DIR", "/run/test")
    return User(tmp_path, capsysbinary)


def events(path: Path) -> list[str]:
    """The events in a settings file."""
    return list(json.loads(path.read_text())["hooks"])


def token(user: User) -> str:
    """The token of HTTP hooks."""
    return (user.home / "state" / "prxbus" / "hook-token").read_text().strip()


def test_a_plan_is_shown_then_carried_out_then_undone(user: User) -> None:
    """A dry run writes nothing; attaching says what it keeps and where the copy is; detaching undoes it."""
    user.claude.parent.mkdir()
    user.claude.write_text('{"model": "opus"}\n')
    shown = user("attach claude-code --dry-run --events Stop,PreToolUse")
    assert "+ PreToolUse" in shown
    assert "nothing was written: this is the plan" in shown
    assert user.claude.read_text() == '{"model": "opus"}\n'
    written = user("attach claude-code --user --events Stop,PreToolUse")
    copy = Path(written.rpartition("what it was before: ")[2].strip())
    assert copy.read_text() == '{"model": "opus"}\n'
    assert events(user.claude) == ["PreToolUse", "Stop"]
    assert "nothing was written: it is so already" in user("attach claude-code --events PreToolUse,Stop")
    assert "- Stop" in user("detach claude-code")
    assert user.claude.read_text() == '{"model": "opus"}\n'
    assert "nothing of ours is there" in user("detach claude-code")
    assert "nothing of ours is there" in user("detach codex")
    assert not user.codex.exists()


def test_what_attaching_made_goes_with_the_last_entry(user: User) -> None:
    """The file and its folders, unless something else is in them; a file that was there before stays."""
    project = user.home / "shop"
    project.mkdir()
    folder = project / ".claude"
    user(f"attach claude-code --project {project}")
    user(f"attach claude-code --project {project} --events Stop")
    assert "it goes too" in user(f"detach claude-code --dry-run --project {project}")
    assert events(folder / "settings.local.json") == ["Stop"]
    told = user(f"detach claude-code --project {project}")
    assert "removed; " in told
    assert '"Stop"' in Path(told.rpartition("what it was before: ")[2].strip()).read_text()
    assert list(project.iterdir()) == []
    user(f"attach claude-code --project {project}")
    (folder / "mine").touch()
    user(f"detach claude-code --project {project}")
    assert list(folder.iterdir()) == [folder / "mine"]
    local = folder / "settings.local.json"
    user(f"attach claude-code --project {project}")
    local.write_text("{}\n")
    user(f"attach claude-code --project {project}")
    user(f"detach claude-code --project {project}")
    assert local.read_text() == "{}\n"


def test_codex_says_that_it_will_ask_for_trust(user: User) -> None:
    """And of a project's file, that it may be committed; no token is in either."""
    assert "Codex asks you to trust" in user("attach codex")
    project = user.home / "shop"
    project.mkdir()
    assert "may be committed" in user(f"attach codex --project {project}")
    assert events(project / ".codex" / "hooks.json") == events(user.codex)
    assert "Interrupt" in events(user.codex)
    assert not (user.home / "state" / "prxbus" / "hook-token").exists()


def test_http_hooks_carry_a_token_where_nobody_else_reads_it(
    user: User, require_tool: Callable[[str], str]
) -> None:
    """In the user's file; of a project in the local one if git leaves that alone, else by its variable."""
    user.claude.parent.mkdir()
    user.claude.write_text("{}")
    user.claude.chmod(0o644)
    user("attach claude-code")
    assert user.claude.stat().st_mode & 0o777 == 0o644
    user("attach claude-code --http")
    assert user.claude.stat().st_mode & 0o777 == 0o600
    assert f'"Bearer {token(user)}"' in user.claude.read_text()
    assert token(user) not in user("attach claude-code --http --dry-run")
    project = user.home / "shop"
    project.mkdir()
    local = project / ".claude" / "settings.local.json"
    subprocess.run(
        [require_tool("git"), "-C", project, "init", "-q"], check=True, capture_output=True, timeout=30
    )
    refused = user(f"attach claude-code --http --project {project}", status=4)
    assert "would hold a token, and it lies in the checkout" in refused
    assert not local.exists()
    told = user(f"attach claude-code --http --token-variable --project {project}")
    assert "start Claude Code with PRXBUS_HOOK_TOKEN set to the token in " in told
    assert '"Bearer $PRXBUS_HOOK_TOKEN"' in local.read_text()
    assert token(user) not in local.read_text()
    (project / ".gitignore").write_text(".claude/settings.local.json\n")
    user(f"attach claude-code --http --project {project}")
    assert token(user) in local.read_text()


@pytest.mark.parametrize(
    "line,status,said",
    [
        ("attach cursor", 2, "invalid choice"),
        ("attach claude-code --user --project", 2, "not allowed with"),
        ("attach claude-code --project /no/such", 2, "is not a directory"),
        ("attach codex --http", 2, "Codex has no HTTP hooks"),
        ("attach claude-code --token-variable", 2, "means nothing without --http"),
        ("attach claude-code --events PreTool", 4, "claude has no event 'PreTool'"),
        ("attach claude-code --events WorktreeCreate", 4, "cannot be attached"),
        ("detach", 2, "required"),
    ],
)
def test_what_cannot_be_meant_is_refused(user: User, line: str, status: int, said: str) -> None:
    """Before anything is written."""
    assert said in user(line, status)
    assert not user.claude.exists()


def test_an_api_without_a_port_cannot_be_attached_to(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address would be another one at each start."""
    monkeypatch.setenv("PRXBUS_HTTP_PORT", "0")
    assert "has no fixed port" in user("attach claude-code --http", 2)


@pytest.mark.parametrize("configured,said", [("16831", "names port 16831"), ("0", "names no port")])
def test_the_api_that_runs_is_attached_to(
    user: User, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch, configured: str, said: str
) -> None:
    """Wherever it is; with a note if the configuration has it elsewhere. One that was killed is none."""
    monkeypatch.setenv("PRXBUS_RUNTIME_DIR", str(runtime_dir))
    monkeypatch.setenv("PRXBUS_HTTP_PORT", configured)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        write_address(str(runtime_dir), f"http://127.0.0.1:{port}")
        told = user("attach claude-code --http --events Stop")
        assert f"at http://127.0.0.1:{port} now, and the configuration {said}: " in told
        assert f"'prxbus up --http {port}'" in told
        assert f'"http://127.0.0.1:{port}/hooks/claude?' in user.claude.read_text()
        monkeypatch.setenv("PRXBUS_HTTP_PORT", str(port))
        assert "note: " not in user("attach claude-code --http --events Stop")
    if configured == "0":
        monkeypatch.setenv("PRXBUS_HTTP_PORT", configured)
        assert "no HTTP API runs on this bus" in user("attach claude-code --http", 2)
    else:
        assert "no HTTP API runs on this bus now; " in user("attach claude-code --http --events Stop")


def test_settings_that_cannot_be_changed_safely_are_left(user: User) -> None:
    """Told by their path, whichever way."""
    user.claude.parent.mkdir()
    user.claude.write_text("{// mine\n}")
    for line in ("attach claude-code", "detach claude-code"):
        assert f"{user.claude} was not changed: it is not JSON" in user(line, 4)
    user.claude.unlink()
    user.claude.mkdir()
    assert str(user.claude) in user("attach claude-code", 1)


def test_hooks_that_would_run_twice_are_refused(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was imported of an agent runs here; attached, the agent runs it besides. --force says so."""

    def imports(self: Importer, agent: str) -> tuple[Any, ...]:
        return (SimpleNamespace(id="claude-user-1"),) if agent == "claude-code" else ()

    monkeypatch.setattr(Importer, "imports_of", imports)
    assert "the imports claude-user-1 would run them a second time" in user("attach claude-code", 4)
    assert not user.claude.exists()
    assert "claude-user-1 run a second time" in user("attach claude-code --force")
    user("attach codex")


def test_all_events_are_those_that_can_be_attached(user: User) -> None:
    """And the note about the others is for who did not ask for them."""
    assert "older versions do not know" in user("attach claude-code")
    assert "older versions do not know" not in user("attach claude-code --events all --fail-closed")
    assert len(events(user.claude)) == 30
    assert " closed" in user.claude.read_text()


@pytest.mark.parametrize("again", ["", " --http"])
def test_attaching_again_does_not_open_what_was_closed(user: User, again: str) -> None:
    """A guard that is to hold without an answer stays one, until somebody says that it is not to."""
    (user.home / "config").mkdir()
    (user.home / "config" / "prxbus.toml").write_text("[http]\nport = 16831\n")
    user("attach claude-code --fail-closed --events PreToolUse,Stop")
    before = user.claude.read_bytes()
    told = user(f"attach claude-code{again} --events PreToolUse,Stop", status=4)
    assert "PreToolUse is blocked without an answer today; --fail-closed keeps that" in told
    assert user.claude.read_bytes() == before
    user("attach claude-code --fail-closed --events PreToolUse,Stop")
    assert user.claude.read_bytes() == before
    user("attach claude-code --fail-open --events PreToolUse,Stop")
    assert b"closed" not in user.claude.read_bytes()


def test_settings_with_a_key_twice_are_left(user: User) -> None:
    """What an agent makes of them nobody knows, and one of the two would be lost."""
    user.claude.parent.mkdir()
    text = '{"hooks": {"Stop": []}, "model": "x", "hooks": {}}'
    user.claude.write_text(text)
    assert "has the key 'hooks' twice" in user("attach claude-code", status=4)
    assert "has the key 'hooks' twice" in user("detach claude-code", status=4)
    assert user.claude.read_text() == text
