"""Where hook files of the Codex family are looked for, what they are taken for, whether they are in force."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from subscribers.runner.inspection import explained, world
from subscribers.sources.codex_inspection import workspace_of

HOOKS = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a configuration folder in it; the current directory is empty."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for name, value in (
        ("HOME", str(tmp_path)),
        ("XDG_CONFIG_HOME", str(tmp_path / ".config")),
        ("XDG_DATA_HOME", str(tmp_path / ".data")),
        ("PRXBUS_CONFIG_DIR", str(tmp_path / "config")),
    ):
        monkeypatch.setenv(name, value)
    return tmp_path


def write(path: Path, text: str = HOOKS) -> Path:
    """A file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def found(
    root: Path, *paths: Path, dialect: str | None = None
) -> list[tuple[str, str | None, str, list[str]]]:
    """Each file: its path, dialect, why, and the states of its handlers."""
    environ = {
        "HOME": str(root),
        "XDG_CONFIG_HOME": str(root / ".config"),
        "XDG_DATA_HOME": str(root / ".data"),
        "PRXBUS_CONFIG_DIR": str(root / "config"),
    }
    return [
        (
            str(Path(file.path).relative_to(root)),
            file.dialect,
            file.because,
            [handler.status for handler in file.explained.handlers],
        )
        for file in explained([str(path) for path in paths], dialect, world(environ))
        if file.dialect in ("codex", "bitfun", "claude", "prx")
    ]


def test_without_a_path_the_users_own_files_are_checked(root: Path) -> None:
    """Ours, what the configuration names with its profile, and BitFun's where they are read."""
    write(root / "config" / "hooks.json")
    write(root / "team" / "claude.json")
    write(root / ".config" / "bitfun" / "config" / "hooks.json")
    table = "[[hook_file]]\npath = '../team/claude.json'\nprofile = 'claude'\n"
    write(root / "config" / "prxbus.toml", table)
    own = ("config/hooks.json", "codex", "it is your own hook file", ["ok"])
    bitfun = (".config/bitfun/config/hooks.json", "bitfun", "it is bitfun/config/hooks.json", ["skipped"])
    assert found(root) == [own, bitfun, ("team/claude.json", "claude", "your settings say so", ["ok"])]
    write(root / "config" / "prxbus.toml", f"[hooks]\nbitfun = true\n{table}")
    assert [states for _, _, _, states in found(root)] == [["ok"], ["ok"], ["ok"]]
    write(root / "config" / "prxbus.toml", "[hooks]\nenabled = false\n")
    assert found(root)[0][3] == ["skipped"]


def test_a_folder_is_gone_through_for_every_profile(root: Path) -> None:
    """Files that hold more than hooks count where they have any; a PRX file is one beside them."""
    ws = root / "ws"
    for name in (
        ".prxbus/hooks.json",
        ".codex/hooks.json",
        ".bitfun/config/hooks.json",
        ".claude/settings.json",
    ):
        write(ws / name)
    write(ws / ".claude" / "settings.local.json", '{"model": "x"}')
    write(ws / ".codex" / "config.toml", "model = 'x'\n")
    write(ws / "hooks.json", '{"hooks": {"error": [{"command": "true"}]}}')
    files = found(root, ws)
    assert [(path, dialect, states) for path, dialect, _, states in files] == [
        ("ws/.prxbus/hooks.json", "codex", ["skipped"]),
        ("ws/.codex/hooks.json", "codex", ["skipped"]),
        ("ws/.bitfun/config/hooks.json", "bitfun", ["skipped"]),
        ("ws/.claude/settings.json", "claude", ["skipped"]),
        ("ws/hooks.json", "prx", ["ok"]),
    ]
    assert [path for path, *_ in found(root, ws, dialect="claude")] == ["ws/.claude/settings.json"]


@pytest.mark.parametrize(
    "name, text, dialect, because",
    [
        ("team.json", HOOKS, "codex", "it is JSON with groups of handlers"),
        (
            "team.json",
            HOOKS.replace("{", '{"permissions": {}, ', 1),
            "claude",
            "it is JSON with hooks and settings",
        ),
        ("team.json", '{"hooks": {"error": []}}', "prx", "it is JSON with an object hooks"),
        ("settings.json", HOOKS, "claude", "its name is settings.json"),
    ],
)
def test_a_file_whose_place_says_nothing_is_known_by_its_content(
    root: Path, name: str, text: str, dialect: str, because: str
) -> None:
    """Groups of handlers are the family's, settings beside them Claude Code's."""
    ((_, *told, _),) = found(root, write(root / "x" / name, text))
    assert told == [dialect, because]


def test_a_file_of_the_family_where_prx_reads_is_said_to_be_that(root: Path) -> None:
    """One clear message, and nothing of it runs."""
    (file,) = explained([str(write(root / "ws" / "hooks.json"))], None, world({"HOME": str(root)}))
    (said,) = file.explained.diagnostics
    assert file.explained.refused
    assert "a hook file of the Codex family" in said.message


@pytest.mark.parametrize(
    "path, workspace",
    [
        ("/w/.prxbus/hooks.json", "/w"),
        ("/w/.bitfun/config/hooks.json", "/w"),
        ("/w/.claude/settings.local.json", "/w"),
        ("/.codex/hooks.json", "/"),
        ("/c/prxbus/hooks.json", "/c/prxbus"),
    ],
)
def test_the_workspace_of_a_file(path: str, workspace: str) -> None:
    """It is the folder that the file's own folder lies in; of one elsewhere, its folder."""
    assert workspace_of(path) == workspace


def test_a_file_that_is_named_twice_says_so(root: Path) -> None:
    """It runs once: by the same name it is told, and under the name of a link its handlers do not run."""
    own = write(root / "config" / "hooks.json")
    (root / "link.json").symlink_to(own)
    table = "[[hook_file]]\npath = '{}'\nprofile = 'codex'\n"
    write(root / "config" / "prxbus.toml", table.format(own) + table.format(root / "link.json"))
    here = world({"HOME": str(root), "PRXBUS_CONFIG_DIR": str(root / "config")})
    first, second = explained([str(own), str(root / "link.json")], "codex", here)
    assert [handler.status for handler in first.explained.handlers] == ["ok"]
    assert [each.code for each in first.explained.diagnostics] == ["named_twice"]
    (handler,) = second.explained.handlers
    assert handler.status == "skipped"
    assert "runs once" in handler.diagnostics[0].message


def test_a_url_that_is_not_called_is_refused(root: Path) -> None:
    """Neither on this machine nor allowed: it says what allows it, and nothing else stands in its way."""
    urls = ("http://localhost/x", "https://hooks.example/a", "https://else.example/")
    groups = [{"hooks": [{"type": "http", "url": url} for url in urls]}]
    write(root / ".claude" / "settings.json", json.dumps({"hooks": {"PreToolUse": groups}}))
    write(root / "config" / "prxbus.toml", "[hooks]\nhttp_urls = 'https://hooks.example/*'\n")
    here = replace(world({"HOME": str(root), "PRXBUS_CONFIG_DIR": str(root / "config")}), is_trial=True)
    (file,) = explained([str(root / ".claude" / "settings.json")], None, here)
    assert [handler.status for handler in file.explained.handlers] == ["ok", "ok", "refused"]
    said = file.explained.handlers[2].diagnostics[-1]
    assert (said.severity, said.code, said.field) == ("error", "url_not_allowed", "PreToolUse#0.2.url")
    assert "hooks.http_urls does not allow it" in said.message
    assert "http_urls under [hooks]" in (said.hint or "")


def test_an_entry_that_asks_here_is_refused(root: Path) -> None:
    """In a file that we read; it would ask about its own asking, without end."""
    write(root / "config" / "hooks.json", HOOKS.replace('"true"', '"prxbus hook --dialect codex"'))
    ((_, _, _, states),) = found(root)
    assert states == ["refused"]


def test_a_program_that_is_not_there_is_said(root: Path) -> None:
    """Of one simple command; what a shell knows by itself, or only a shell can tell, is no fault."""
    commands = {
        "/nonexistent/guard.sh": "dead",
        "nosuchprog x": "dead",
        "'nosuchprog' x": "dead",
        "./gone.sh --now": "ok",  # a session may be in another folder
        "ls -l": "ok",
        "./there.sh": "ok",
        "exit 0": "ok",
        "A=1 nosuchprog": "ok",
        "nosuchprog || true": "ok",
        "$TOOL x": "ok",
    }
    write(root / "w" / "there.sh", "#!/bin/sh\n").chmod(0o755)
    handlers = [{"type": "command", "command": command} for command in commands]
    path = write(root / "w" / ".codex" / "hooks.json", json.dumps({"hooks": {"Stop": [{"hooks": handlers}]}}))
    environ = {"HOME": str(root), "PRXBUS_CONFIG_DIR": str(root / "config"), "PATH": os.environ["PATH"]}
    (file,) = explained([str(path)], None, replace(world(environ), is_trial=True))
    assert [handler.status for handler in file.explained.handlers] == list(commands.values())
    said = file.explained.handlers[1].diagnostics[-1]
    assert (said.severity, said.code) == ("error", "no_such_program")
    assert said.message == 'no such program: "nosuchprog" is on no PATH'


def test_a_file_that_fails_closed_and_cannot_be_used_says_what_is_denied(root: Path) -> None:
    """One that fails open does not."""
    files = [write(root / "team" / name, "{").with_suffix(".json") for name in ("closed.json", "open.json")]
    tables = [f"[[hook_file]]\npath = '{file}'\nprofile = 'codex'\n" for file in files]
    tables[0] += "on_failure = 'block'\n"
    write(root / "config" / "prxbus.toml", "".join(tables))
    here = world({"HOME": str(root), "PRXBUS_CONFIG_DIR": str(root / "config")})
    codes = [
        [each.code for each in file.explained.diagnostics]
        for file in explained([str(file) for file in files], "codex", here)
    ]
    assert ["guard_unusable" in each for each in codes] == [True, False]
