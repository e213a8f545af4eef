"""The BitFun page's samples run where it says they lie, bytes unchanged, under ``prxbus up --bitfun``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.client import Decision, Publisher
from tests.conformance.bitfun import page
from tests.integration.test_up import up
from tests.integration.transform_scene import write

START = "prx.lifecycle.tool_call_start"


@pytest.fixture(scope="module")
def text(pages: Path) -> str:
    """The page."""
    return page.find(pages)


def test_the_quick_start_and_the_guard_run_as_they_are(
    text: str, runtime_dir: Path, tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """Commands are logged, migrations protected, switches count: each change from the next event on."""
    for tool in ("jq", "python3"):
        require_tool(tool)
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    user = home / ".config" / "bitfun" / "config"
    project = workspace / ".bitfun" / "config"
    (switches, app), (quick, _), (guard, _) = page.documents(text)
    assert set(app) == {"app"}
    write(user / "hooks.json", quick.decode())
    workspace.mkdir(exist_ok=True)
    environ = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": "",
        "PRXBUS_CONFIG_DIR": str(tmp_path / "config"),
    }
    options = ("--bitfun", "--workspace", str(workspace))
    with (
        up(runtime_dir, *options, environ=environ) as (_, said),
        Publisher("agent", runtime_dir=str(runtime_dir), on_absent="raise") as agent,
    ):
        assert said["codex"] == {"handlers": 1}

        def ask(tool: str, **arguments: str) -> Decision:
            payload = {"tool": tool, "arguments": arguments, "cwd": str(workspace)}
            return agent.ask(START, payload, timeout=30.0, session_id="s1")

        log = home / "bitfun-commands.log"
        for command in ("ls -l", "git status"):
            assert ask("Bash", command=command).verdict == "none"
        assert log.read_text() == "ls -l\ngit status\n"

        # The other sample takes its place: from the next event on, without a restart.
        write(home / "hooks" / "protect.py", page.script(text).decode())
        write(user / "hooks.json", guard.decode())
        assert ask("Edit", file_path="/r/migrations/1.sql").denied
        denied = ask("Write", file_path="/r/migrations/1.sql", content="x")
        assert (denied.verdict, denied.reason) == ("deny", "迁移文件由生成器产出，请改动 schema。")  # noqa: RUF001
        assert ask("Edit", file_path="/r/src/a.py").verdict == "none"
        assert ask("Bash", command="rm x").verdict == "none"
        assert log.read_text() == "ls -l\ngit status\n"

        # A project's hooks are off until the page's own app.json switches them on.
        write(project / "hooks.json", quick.decode())
        assert ask("Bash", command="one").verdict == "none"
        assert log.read_text() == "ls -l\ngit status\n"
        write(user / "app.json", switches.decode())
        assert ask("Bash", command="two").verdict == "none"
        assert log.read_text() == "ls -l\ngit status\ntwo\n"
        write(user / "app.json", switches.decode().replace('"enabled": true', '"enabled": false'))
        assert ask("Edit", file_path="/r/migrations/1.sql").verdict == "none"
