"""The transform chain on a real bus: commands and functions, in order, with the first text winning."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from tests.integration.transform_scene import Scene, scene, transforms, write


@pytest.fixture(name="stage")
def _stage() -> Iterator[Scene]:
    with scene() as found:
        yield found


def test_a_function_replaces_the_output(stage: Scene) -> None:
    """What a @transform function returns is the decision's output, and the record tells who it was."""
    stage.handlers(
        "redact.py",
        "from subscribers.handlers import transform\n"
        "@transform(tools=['Bash'])\n"
        "def secrets(event, ctx):\n"
        "    return event.payload['tool_output'].replace('hunter2', '***')\n",
    )
    with transforms(stage) as service:
        assert service.said["transforms"] == 1
        decision = stage.ask("password is hunter2")
        assert (decision.output, decision.output_by) == ("password is ***", "redact.py:secrets")
        (record,) = stage.monitor.wait("prx.hooks.transform", 1)
    assert record["handler"] == "redact.py:secrets"
    assert (record["tool"], record["agent_id"], record["session_id"]) == ("Bash", "a1", "s1")
    assert record["before"] == {"bytes": 19, "sha256": hashlib.sha256(b"password is hunter2").hexdigest()}
    assert record["after"] == {"bytes": 15, "sha256": hashlib.sha256(b"password is ***").hexdigest()}


def test_a_command_replaces_the_output(stage: Scene) -> None:
    """A [[transform]] command reads the page's four fields and answers with content."""
    write(
        stage.workspace / "upper.py",
        "#!/usr/bin/env python3\n"
        "import json, sys\n"
        "asked = json.load(sys.stdin)\n"
        "assert set(asked) == {'agent_id', 'tool_name', 'tool_input', 'tool_output'}, asked\n"
        "print(json.dumps({'content': asked['tool_output'].upper() + asked['tool_input']['command']}))\n",
        mode=0o755,
    )
    stage.tables("[[transform]]\ncommand = './upper.py'\ntools = ['Bash']\n")
    with transforms(stage):
        decision = stage.ask("quiet ")
        assert (decision.output, decision.output_by) == ("QUIET git diff", "config.toml:transform[0]")
        assert not stage.ask("quiet", tool="Read").replaced
