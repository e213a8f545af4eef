"""The ``[[hook_file]]`` tables: what holds, in which order, and what is refused with its place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from subscribers.config.files import load, user_file, workspace_file
from subscribers.config.hook_files import AGENTS_OWN, HookFile, owner, read
from subscribers.config.tables import TABLES


def test_a_table_names_a_file_and_whose_rules_hold_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the folder, ``~`` is the home directory, and what is not said has its default."""
    monkeypatch.setenv("HOME", "/home/me")
    text = """
        [[hook_file]]
        path = "team.json"
        [[hook_file]]
        path = "~/h/hooks.json"
        profile = "claude"
        on_failure = "block"
    """
    found, faults = read(tomllib.loads(text), "/etc/prxbus.toml", "/etc", is_workspace=False)
    assert faults == []
    assert found == (
        HookFile("/etc/team.json", None, False, "continue"),
        HookFile("/home/me/h/hooks.json", "claude", False, "block"),
    )


@pytest.mark.parametrize(
    "text, code, field, words",
    [
        ("hook_file = 'x'", "not_a_table", "hook_file", "tables of their own"),
        ("[hook_file]\npath = 'x'", "not_a_table", "hook_file", "tables of their own"),
        ("[[hook_file]]", "missing", "hook_file[0].path", "needs a path"),
        ("[[hook_file]]\npath = ''", "bad_value", "hook_file[0].path", "at least 1"),
        (
            "[[hook_file]]\npath = 'x'\nprofil = 'x'",
            "unknown_setting",
            "hook_file[0].profil",
            "no such setting",
        ),
        ("[[hook_file]]\npath = 'x'\nzz = 'x'", "unknown_setting", "hook_file[0].zz", "no such setting"),
        ("[[hook_file]]\npath = 'x'\nprofile = 'prx'", "bad_value", "hook_file[0].profile", "refused"),
        ("[[hook_file]]\npath = 'x'\n" * 2, "duplicate_file", "hook_file[1].path", "/etc/x is named before"),
        *(
            (f"[[hook_file]]\npath = '/repo/{folder}/{name}'", "agents_own_file", "hook_file[0].path", agent)
            for folder, name, agent in AGENTS_OWN
        ),
    ],
)
def test_a_faulty_table_is_left_out_and_told(text: str, code: str, field: str, words: str) -> None:
    """Each fault is one diagnostic that names its place; no file is run behind the back of its agent."""
    found, (fault,) = read(tomllib.loads(text), "/etc/prxbus.toml", "/etc", is_workspace=True)
    assert (fault.code, fault.field, fault.path) == (code, field, "/etc/prxbus.toml")
    assert words in fault.message
    assert len(found) == (1 if code == "duplicate_file" else 0)


def test_a_link_to_an_agents_file_is_that_file(tmp_path: Path) -> None:
    """A link does not hide whose file it is; other files of such a folder are nobody's."""
    own = tmp_path / ".claude" / "settings.json"
    own.parent.mkdir()
    own.write_text("{}")
    (tmp_path / "mine.json").symlink_to(own)
    _, (fault,) = read({"hook_file": [{"path": "mine.json"}]}, "p", str(tmp_path), is_workspace=False)
    assert fault.code == "agents_own_file"
    assert owner("/repo/.claude/team.json") is None


def test_there_is_a_most_number_of_tables() -> None:
    """Tables beyond it are told and not read."""
    tables = [{"path": f"f{number}"} for number in range(TABLES + 1)]
    found, (fault,) = read({"hook_file": tables}, "p", "/w", is_workspace=False)
    assert (len(found), fault.code) == (TABLES, "too_many")


def test_the_tables_of_both_files_hold_and_are_told_apart(tmp_path: Path) -> None:
    """The user's come first; a workspace's are marked, for they run only where the workspace's own may."""
    environ = {"PRXBUS_CONFIG_DIR": str(tmp_path / "config")}
    workspace = tmp_path / "work"
    for path, name in ((user_file(environ), "a.json"), (workspace_file(str(workspace)), "b.json")):
        Path(path).parent.mkdir(parents=True)
        Path(path).write_text(f"[[hook_file]]\npath = '{name}'\n")
    configured = load(environ, {}, str(workspace))
    assert configured.diagnostics == ()
    assert configured.hook_files == (
        HookFile(str(tmp_path / "config" / "a.json"), None, False),
        HookFile(str(workspace / "b.json"), None, True),
    )
