"""The examples run as their first lines say."""

import json
import os
import subprocess
import sys
from pathlib import Path

from broker.testing import running_broker

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_agent_is_heard_by_the_plugin(runtime_dir: Path) -> None:
    """agent.py publishes a turn, audit.py writes its two tool calls; nothing is dropped."""
    with running_broker(runtime_dir) as bus:
        environ = {**os.environ, "PRXBUS_RUNTIME_DIR": bus}
        audit = subprocess.Popen(
            [sys.executable, EXAMPLES / "audit.py", "2"],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert audit.stderr is not None
        assert audit.stderr.readline() == "listening\n"
        agent = subprocess.run(
            [sys.executable, EXAMPLES / "agent.py", "s1"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        out, _ = audit.communicate(timeout=60)
        lines = [json.loads(line) for line in out.splitlines()]
        assert [(line["session"], line["tool"]) for line in lines] == [("s1", "Bash")] * 2
        assert "'published': 7, 'dropped_absent': 0" in agent.stdout
