"""A command handler and an event as one run: shell, environment, folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.client.context import CAUSE_VARIABLE, DEPTH_VARIABLE
from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import PROFILES
from subscribers.dialects.codex_spec import CodexHandler
from subscribers.hooks.withheld import WITHHELD
from subscribers.runner.codex_invocation import (
    OUTPUT_BYTES,
    NotRunnable,
    Scene,
    argv_of,
    environment_of,
    folder_of,
    invocation_of,
)

SCENE = Scene(
    environ={
        "HOME": "/home/me",
        "PATH": "/usr/bin:/bin",
        "KEY": "kept",
        "PRXBUS_API_TOKEN": "secret",
        "prxbus_api_token": "secret",
        "PRXBUS_HOOK_TOKEN": "secret",
        "OPENAI_IDENTITY_TOKEN_FILE": "/t",
        "CLAUDE_ENV_FILE": "/e",
        DEPTH_VARIABLE: "7",
        CAUSE_VARIABLE: "x",
    },
    cwd="/",
    workspace="/srv/shop",
    runtime_dir="/run/bus",
    event_id="p:prx.lifecycle.tool_call:1",
    depth=2,
)


def handler(profile: str = "claude", event: str = "PreToolUse", **fields: Any) -> CodexHandler:
    """One handler as a file says it."""
    one = {"type": "command", "command": "./guard --all", **fields}
    content = orjson.dumps({"hooks": {event: [{"hooks": [one]}]}})
    document = read_document(content, "/c/hooks.json", PROFILES[profile])
    assert len(document.handlers) == 1, document.diagnostics
    return document.handlers[0]


def test_a_handler_inherits_the_environment_and_never_our_token() -> None:
    """It finds the bus, its depth and its cause, and the project where its profile has that."""
    env = environment_of(SCENE, "PreToolUse", PROFILES["claude"])
    assert env.pop("PRXBUS_RUN") != environment_of(SCENE, "PreToolUse", PROFILES["claude"])["PRXBUS_RUN"]
    assert env == {
        "HOME": "/home/me",
        "PATH": "/usr/bin:/bin",
        "KEY": "kept",
        "OPENAI_IDENTITY_TOKEN_FILE": "/t",
        "CLAUDE_PROJECT_DIR": "/",
        "PRXBUS_RUNTIME_DIR": "/run/bus",
        "PRXBUS_DEPTH": "3",
        "PRXBUS_CAUSE": "p:prx.lifecycle.tool_call:1",
    }


@pytest.mark.parametrize(
    "profile, event, missing, present",
    [
        (
            "codex",
            "SessionStart",
            {"OPENAI_IDENTITY_TOKEN_FILE", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE"},
            set(),
        ),
        ("bitfun", "SessionStart", {"CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE"}, {"OPENAI_IDENTITY_TOKEN_FILE"}),
        ("claude", "SessionStart", set(), {"CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE"}),
        ("claude", "Stop", {"CLAUDE_ENV_FILE"}, {"CLAUDE_PROJECT_DIR"}),
    ],
)
def test_what_a_profile_adds_and_takes(
    profile: str, event: str, missing: set[str], present: set[str]
) -> None:
    """Codex takes its secrets away; Claude Code names the project, and on some events a file."""
    env = environment_of(SCENE, event, PROFILES[profile])
    assert (missing & env.keys(), present - env.keys()) == (set(), set())


@pytest.mark.parametrize("profile", PROFILES)
def test_the_file_for_variables_that_an_agent_names_reaches_every_profile(profile: str) -> None:
    """What the agent sent is passed on, whoever reads it and for whichever event; our tokens are not."""
    env = environment_of(replace(SCENE, is_agents=True), "Stop", PROFILES[profile])
    assert env["CLAUDE_ENV_FILE"] == "/e"
    assert not {name for name in env if name.upper() in WITHHELD}


@pytest.mark.parametrize(
    "environ, cwd, project",
    [
        ({}, "/srv/shop/deep", "/srv/shop"),
        ({}, "/srv/other", "/srv/other"),
        ({"CLAUDE_PROJECT_DIR": "/agents/own"}, "/srv/shop", "/agents/own"),
    ],
)
def test_the_project_is_the_agents_own_else_the_workspace(
    environ: dict[str, str], cwd: str, project: str
) -> None:
    """An agent knows best; one that works in the workspace has it for its project."""
    scene = replace(SCENE, environ=environ, cwd=cwd)
    assert environment_of(scene, "Stop", PROFILES["claude"])["CLAUDE_PROJECT_DIR"] == project


@pytest.mark.parametrize(
    "cwd, workspace, home, folder",
    [
        ("/srv/x", "/w", "/home/me", "/srv/x"),
        ("relative", "/w", "/home/me", "/w"),
        ("/nul\0", None, "/home/me", "/home/me"),
        (None, None, "relative", "/"),
        (7, None, "", "/"),
    ],
)
def test_the_folder_is_the_sessions(cwd: object, workspace: str | None, home: str, folder: str) -> None:
    """Where a session has none, or nonsense, it is the workspace, then the home directory."""
    assert folder_of(cwd, workspace, {"HOME": home}) == folder


@pytest.mark.parametrize(
    "profile, fields, env, argv",
    [
        ("bitfun", {}, {}, ("/bin/sh", "-c", "./guard --all")),
        ("codex", {}, {"SHELL": "/bin/sh"}, ("/bin/sh", "-c", "./guard --all")),
        ("codex", {}, {"SHELL": "/gone/zsh"}, ("/bin/sh", "-lc", "./guard --all")),
        ("codex", {}, {}, ("/bin/sh", "-lc", "./guard --all")),
        ("claude", {}, {"PATH": "/nowhere"}, ("/bin/sh", "-c", "./guard --all")),
        (
            "claude",
            {"command": "env", "args": ["-i", "a b"]},
            {"PATH": "/usr/bin:/bin"},
            ("env", "-i", "a b"),
        ),
        ("claude", {"command": "./run", "args": []}, {}, ("run",)),
    ],
)
def test_what_is_started(
    tmp_path: Path, profile: str, fields: dict[str, Any], env: dict[str, str], argv: tuple[str, ...]
) -> None:
    """A shell reads the command, the session's own where it is known; a handler with arguments needs none."""
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o755)
    found = argv_of(handler(profile, **fields), PROFILES[profile], env, str(tmp_path))
    assert found[0].startswith("/")
    assert (found[0].endswith(argv[0]), found[1:]) == (True, argv[1:])


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"command": "gone-program", "args": ["x"]}, '"gone-program" is not there'),
        ({"command": "./gone", "args": []}, '"./gone" is not there'),
        ({"shell": "powershell"}, "powershell, which is not installed"),
    ],
)
def test_what_cannot_be_started_is_said(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    """A program or shell that is not there is told before anything runs."""
    with pytest.raises(NotRunnable, match=words):
        argv_of(handler(**fields), PROFILES["claude"], {"PATH": "/nowhere"}, str(tmp_path))


def test_a_run_has_the_payload_and_ends_at_once_when_its_time_is_over(tmp_path: Path) -> None:
    """The payload is its input, its output is bounded, there is no grace; a folder that is gone is said."""
    scene = replace(SCENE, cwd=str(tmp_path))
    run = invocation_of(handler("bitfun"), PROFILES["bitfun"], scene, b"{}", 1.5)
    assert (run.stdin, run.cwd, run.timeout_s, run.grace_s) == (b"{}", str(tmp_path), 1.5, 0.0)
    assert run.output_limit == OUTPUT_BYTES
    assert run.env[run.marker or ""]
    gone = replace(SCENE, cwd=str(tmp_path / "gone"))
    with pytest.raises(NotRunnable, match="is not there"):
        invocation_of(handler("bitfun"), PROFILES["bitfun"], gone, b"{}", 1.0)
