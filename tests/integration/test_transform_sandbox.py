"""Transforms in the sandbox that is configured for hooks: commands and functions alike."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from subscribers.runtimes.sandbox import Bubblewrap, Limits, SandboxUnavailable
from tests.integration.transform_scene import Scene, scene, transforms
from tests.integration.waiting import until

LOOK = """
import json, os, pathlib, socket, subprocess, time
from subscribers.handlers import transform

@transform(tools=["Stuck"], timeout=0.5)
def stuck(event, ctx):
    subprocess.Popen(["sleep", "1000"])
    while True: pass

@transform(tools=["Fallback", "Stuck"])
def fallback(event, ctx):
    return "fallback"

@transform
def look(event, ctx):
    ctx.publish("my.note", {"from": "inside"})
    pathlib.Path(INSIDE).write_text("x")
    return json.dumps([os.path.exists(OUTSIDE), [name for _, name in socket.if_nameindex()]])
"""
COMMAND = """
[[transform]]
tools = ["Command"]
command = ["/bin/sh", "-c", '''[ -e OUTSIDE ] && a=yes || a=no; echo "{\\"content\\": \\"$a\\"}" ''']
"""


@pytest.fixture(scope="module")
def bubblewrap(require_tool: Callable[[str], str]) -> None:
    """Skip where the kernel allows no user namespaces; without the program, CI fails."""
    require_tool("bwrap")
    with tempfile.TemporaryDirectory() as folder:
        try:
            Bubblewrap(folder, Limits(2**31, 16, 2**20)).close()
        except SandboxUnavailable as error:
            pytest.skip(f"this kernel does not let it work: {error}")


@pytest.fixture(name="stage")
def _stage() -> Iterator[Scene]:
    with scene() as found:
        yield found


@pytest.mark.usefixtures("bubblewrap")
def test_functions_and_commands_run_enclosed(stage: Scene) -> None:
    """They see neither the files of /tmp nor a network, write to the workspace, and are ended as ever."""
    outside = stage.workspace.parent / "outside"
    outside.write_text("x")
    inside = stage.workspace / "inside"
    source = LOOK.replace("OUTSIDE", repr(str(outside))).replace("INSIDE", repr(str(inside)))
    stage.handlers("look.py", source)
    stage.tables(COMMAND.replace("OUTSIDE", str(outside)))
    with transforms(stage, "--sandbox", "bubblewrap") as service:
        assert (service.said["sandbox"], service.said["refusal"]) == ("bubblewrap", None)
        assert stage.ask("raw", tool="Command").output == "no"
        assert json.loads(stage.ask("raw").output) == [False, ["lo"]]
        assert inside.read_text() == "x"
        for _ in range(2):
            assert stage.ask("raw", tool="Stuck").output == "fallback"
        (run, *_) = stage.monitor.runs(1)
        assert (run["hook"], run["status"]) == ("look.py:stuck", "timeout")


def test_a_sandbox_that_cannot_be_used_lets_nothing_run(stage: Scene) -> None:
    """A workspace that would be writable as a whole system is refused: every ask hears why, nothing runs."""
    sign = stage.workspace / "executed"
    source = f"from subscribers.handlers import transform\nopen({str(sign)!r}, 'w').close()\n"
    named = stage.handlers("f.py", source)
    with transforms(
        stage, "--sandbox", "bubblewrap", "--workspace", "/", "--handlers", str(named)
    ) as service:
        assert service.said["transforms"] == 0
        assert "cannot be used here" in service.said["refusal"]
        decision = stage.ask("raw")
        assert [heard.silence for heard in decision.missing] == ["failed"]
        until(lambda: service.logged("no transforms run"), "the word of it")
    assert not Path(sign).exists()
