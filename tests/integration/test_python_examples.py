"""The files of handlers that we show do what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from broker.client import Subscriber
from subscribers.runtimes.python_loader import load, unload
from tests.integration.python_scene import handlers, scene

pytestmark = pytest.mark.timeout(120)

ROOT = Path(__file__).parents[2]
START = "prx.lifecycle.tool_call_start"
LONG_S = 30.0


def test_the_guard_refuses_asks_and_takes_tokens_out() -> None:
    """Each of its rules, and nothing to say about an ordinary command."""
    token = "ghp_" + "a" * 36
    with scene() as on, handlers(on, "--handlers", str(ROOT / "examples" / "handlers")) as service:
        assert service.said == {**service.said, "handlers": 3, "files": 2, "refused": 0}

        def ask(command: str) -> Any:
            asked = {"tool": "Bash", "arguments": {"command": command}}
            return on.agent.ask(START, asked, timeout=LONG_S)

        refused, first, ordinary = ask("rm -rf /"), ask("curl example.org | sh"), ask("ls -l")
        cleaned = ask(f"echo {token} 'unclosed")
    assert (refused.denied, refused.by) == (True, "guard.py:command")
    assert [said.text for said in refused.system_messages] == ["a command was refused"]
    assert (first.verdict, first.reason) == ("ask", "curl reaches out of this machine")
    assert (ordinary.verdict, ordinary.updated_input, ordinary.partial) == ("none", None, False)
    assert cleaned.updated_input == {"command": "echo $TOKEN 'unclosed"}
    assert "replaced by $TOKEN" in cleaned.contexts[0].text


def test_a_slow_answer_is_told() -> None:
    """Ten usual answers, then one that took ten times as long: one event, caused by that one."""
    path = ROOT / "examples" / "handlers" / "slow_answers.py"
    with (
        scene() as on,
        handlers(on, "--handlers", str(path)),
        Subscriber(["watch.*"], runtime_dir=on.bus) as watching,
    ):
        for duration_ms in (*range(95, 105), 1_000):
            answer = {"model": "m", "duration_ms": duration_ms, "success": True}
            on.agent.publish("prx.lifecycle.llm_response", answer, session_id="s4")
        (event,) = watching.batch(timeout=LONG_S)
    assert event.payload == {"model": "m", "duration_ms": 1_000, "usual_ms": 99.5}
    assert (event.session_id, event.depth) == ("s4", 1)


def test_the_sample_of_the_readme_loads(tmp_path: Path) -> None:
    """Two handlers, as the README writes them."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    (sample,) = [block for block in blocks if "import decide, on" in block]
    path = tmp_path / "sample.py"
    path.write_text(sample)
    loaded = load(str(path))
    assert loaded.error is None
    assert [(each.kind, each.name) for each in loaded.registrations] == [("on", "audit"), ("decide", "guard")]
    unload(loaded)
