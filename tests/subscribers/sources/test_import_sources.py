"""Where hooks of other agents lie, and what their agents' switches say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects.codex_profiles import PROFILES
from subscribers.sources.attach_plan import SHIM_NAME
from subscribers.sources.import_rules import check, is_own, rules_for
from subscribers.sources.import_sources import (
    MAX_FOLDERS,
    Homes,
    Source,
    checkout_root,
    find_sources,
    homes,
    is_remote,
)

HOMES = Homes("/h", "/h/.claude", "/h/.codex")


def keys(found: Homes, workspace: str | None) -> dict[str, str]:
    """The path of each source by its key."""
    return {each.key: each.path for each in find_sources(found, workspace)}


def test_homes_are_named_by_variables() -> None:
    """Each agent's variable wins over the folder in the home directory; an empty one counts as unset."""
    assert homes({"HOME": "/h"}) == HOMES
    assert homes({"HOME": "/h", "CLAUDE_CONFIG_DIR": "", "CODEX_HOME": ""}) == HOMES
    told = homes({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x"})
    assert told == Homes("/h", "/c", "/x")
    assert find_sources(told, None)[0].path == "/c/settings.json"


def test_sources_of_a_workspace(tmp_path: Path) -> None:
    """The user's come first, then the workspace's own; without a workspace there are the user's alone."""
    here = str(tmp_path)
    assert keys(HOMES, here) == {
        "claude:user": "/h/.claude/settings.json",
        "codex:user": "/h/.codex/hooks.json",
        "codex:user-toml": "/h/.codex/config.toml",
        "claude:project": f"{here}/.claude/settings.json",
        "claude:local": f"{here}/.claude/settings.local.json",
        "codex:project": f"{here}/.codex/hooks.json",
        "codex:project-toml": f"{here}/.codex/config.toml",
    }
    assert list(keys(HOMES, None)) == ["claude:user", "codex:user", "codex:user-toml"]


def test_codex_has_hooks_from_the_root_of_a_checkout_down(tmp_path: Path) -> None:
    """Each folder up to the one with .git is a source of its own, called by its way from the workspace."""
    (tmp_path / ".git").mkdir()
    workspace = tmp_path / "a" / "b"
    workspace.mkdir(parents=True)
    found = keys(HOMES, str(workspace))
    assert found["codex:project"] == f"{workspace}/.codex/hooks.json"
    assert found["codex:project@.."] == f"{tmp_path}/a/.codex/hooks.json"
    assert found["codex:project-toml@../.."] == f"{tmp_path}/.codex/config.toml"
    assert "codex:project@../../.." not in found


def test_a_linked_worktree_has_the_hooks_of_the_first_checkout(tmp_path: Path) -> None:
    """As Codex does, hooks are read from the primary checkout; a file that is no link changes nothing."""
    primary, linked = tmp_path / "one", tmp_path / "two"
    (primary / ".git" / "worktrees" / "two").mkdir(parents=True)
    (primary / ".git" / "worktrees" / "two" / "commondir").write_text("../..\n")
    (linked / "sub").mkdir(parents=True)
    (linked / ".git").write_text(f"gitdir: {primary}/.git/worktrees/two\n")
    found = keys(HOMES, str(linked / "sub"))
    assert found["codex:project"] == f"{primary}/sub/.codex/hooks.json"
    assert found["codex:project@.."] == f"{primary}/.codex/hooks.json"
    assert found["claude:project"] == f"{linked}/sub/.claude/settings.json"
    (linked / ".git").write_text("gitdir: /nowhere\n")
    assert keys(HOMES, str(linked))["codex:project"] == f"{linked}/.codex/hooks.json"
    (linked / ".git").write_text("else\n")
    assert keys(HOMES, str(linked))["codex:project"] == f"{linked}/.codex/hooks.json"


def test_a_home_that_is_the_workspace_has_its_files_once(tmp_path: Path) -> None:
    """A file that is the user's and the project's is the user's."""
    here = str(tmp_path)
    found = keys(Homes(here, f"{here}/.claude", f"{here}/.codex"), here)
    assert list(found) == ["claude:user", "codex:user", "codex:user-toml", "claude:local"]


def test_a_checkout_is_looked_for_within_bounds(tmp_path: Path) -> None:
    """The search ends at the root of the file system and after so many folders."""
    deep = tmp_path.joinpath(*["d"] * MAX_FOLDERS)
    deep.mkdir(parents=True)
    (tmp_path / ".git").write_text("")
    assert checkout_root(str(deep)) is None
    assert checkout_root(str(deep.parent)) == str(tmp_path)
    assert checkout_root("/") is None


@pytest.mark.parametrize(
    "workspace,remote",
    [("ssh://host/x", True), ("vscode-remote://x", True), ("/a://b", False), ("a", False), ("C:/x", False)],
)
def test_a_workspace_on_another_machine_is_known_by_its_address(workspace: str, remote: bool) -> None:
    """An address with a scheme is not a path here."""
    assert is_remote(workspace) is remote


@pytest.mark.parametrize(
    "handler,own",
    [
        ({"command": f"/usr/bin/python3 -I -S /x/{SHIM_NAME} --dialect claude"}, True),
        ({"command": "prxbus hook --dialect codex"}, True),
        ({"command": "/venv/bin/prxbus hook"}, True),
        ({"command": "prxbus", "args": ["hook", "--dialect", "claude"]}, True),
        ({"type": "http", "url": "http://127.0.0.1:16831/hooks/claude"}, True),
        ({"command": "prxbus hooks list"}, False),
        ({"command": "prxbus pub x"}, False),
        ({"command": "echo 'prxbus hook"}, False),
        ({"command": "echo hook"}, False),
        ({"command": 7}, False),
        ({"type": "http", "url": "http://example.com/hooks/claude"}, False),
    ],
)
def test_our_own_entries_are_known(handler: dict[str, Any], own: bool) -> None:
    """Every form in which an agent asks this bus is told from a hook that merely names us."""
    assert is_own(handler) is own


@pytest.mark.parametrize(
    "profile,group,handler,timeout",
    [
        ("claude", {"matcher": "Bash"}, {"timeout": 5}, 5.0),
        ("claude", {}, {}, 600.0),
        ("claude", {}, {"timeout": 2.5}, 2.5),
        ("codex", {}, {"timeout": 7}, 7.0),
        ("codex", {"matcher": "^Bash$"}, {"if": "ignored"}, 600.0),
        ("claude", {"matcher": "["}, {}, None),
        ("claude", {"matcher": 7}, {}, None),
        ("claude", {}, {"timeout": "x"}, None),
        ("codex", {}, {"async": None}, None),
    ],
)
def test_a_profile_says_what_one_handler_is(
    profile: str, group: dict[str, Any], handler: dict[str, Any], timeout: float | None
) -> None:
    """The time limit is the one that applies, and what would not run says why in the profile's words."""
    told = check("PreToolUse", group, {"type": "command", "command": "x", **handler}, PROFILES[profile])
    if timeout is None:
        assert told.fault
    else:
        assert told == (timeout, None)


CLAUDE = Source(
    "claude:local", "claude-code", "project", "/p/.claude/settings.local.json", "/p/.claude", "/p"
)
CODEX = Source("codex:user", "codex", "user", "/h/.codex/hooks.json", "/h/.codex", "/h")
OFF: dict[str, Any] = {"disableAllHooks": True}
ON: dict[str, Any] = {"disableAllHooks": False}


@pytest.mark.parametrize(
    "outer,document,off",
    [
        ([], {}, False),
        ([], OFF, True),
        ([OFF], {}, True),
        ([OFF], ON, False),
        ([ON, OFF], {}, True),
        ([{"disableAllHooks": "yes"}], {}, False),
    ],
)
def test_claude_codes_switch_is_read_from_the_wide_to_the_narrow(
    outer: list[dict[str, Any]], document: dict[str, Any], off: bool
) -> None:
    """The narrowest settings that say so decide, and a value of another type says nothing."""
    assert (rules_for(CLAUDE, document, outer).all_disabled is not None) is off


@pytest.mark.parametrize(
    "config,off",
    [
        ({}, False),
        ({"features": {"hooks": False}}, True),
        ({"features": {"codex_hooks": False}}, True),
        ({"features": {"codex_hooks": False, "hooks": True}}, False),
        ({"features": 3}, False),
    ],
)
def test_codexs_switch_is_its_feature(config: dict[str, Any], off: bool) -> None:
    """The new name of the switch counts before the old one."""
    assert (rules_for(CODEX, {}, [config]).all_disabled is not None) is off


def test_codexs_record_switches_single_handlers_off() -> None:
    """Records of this file count; those of others, malformed ones and a project's own do not."""
    state = {
        f"{CODEX.path}:pre_tool_use:0:1": {"enabled": False},
        f"{CODEX.path}:stop:2:0": {"enabled": True},
        f"{CODEX.path}:nope:0:0": {"enabled": False},
        f"{CODEX.path}:stop:x:0": {"enabled": False},
        "/other:stop:0:0": {"enabled": False},
    }
    config: dict[str, Any] = {"hooks": {"state": state}}
    assert rules_for(CODEX, {"hooks": []}, [config]).disabled == {("PreToolUse", 0, 1)}
    project = Source("codex:project-toml", "codex", "project", CODEX.path, "/p/.codex", "/p")
    assert rules_for(project, config, []).disabled == frozenset()


def test_a_negative_timeout_leaves_the_handler_out() -> None:
    """In every profile, with the reason; one without a timeout has the default."""
    for profile in PROFILES.values():
        told = check("PreToolUse", {}, {"type": "command", "command": "x", "timeout": -5}, profile)
        assert "timeout is" in str(told.fault)
        assert check("PreToolUse", {}, {"type": "command", "command": "x"}, profile) == (600.0, None)
