"""The example role and the example agents, as their first lines say that they are run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.command import DEADLINE_S, prxbus
from tests.integration.rolebox_scene import NODE, Roles, node_version, role, roles_up
from tests.integration.waiting import until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CHAPTER = (ROOT / "README.md").read_text().split("\n## Hooks: rolebox `role.yaml`\n")[1].split("\n## ")[0]
TYPESCRIPT = (22, 13)
"""The Node from which TypeScript runs as it is."""

PROMPT = "You write TypeScript."
RULES = "Rules of the house:\n- Write tests first.\n- Leave no debugging behind."
REVIEW = "Before you end your turn, read each file that you have changed once more"


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory, require_tool: Callable[[str], str]) -> Iterator[Roles]:
    """A bus with the example role and the README's."""
    require_tool("node")
    if node_version()[0] < NODE:
        pytest.skip(f"modules in JavaScript need Node {NODE}")
    folder = tmp_path_factory.mktemp("example")
    with roles_up(folder, EXAMPLES / "roles" / "quality", reviewer(folder)) as found:
        yield found


def samples(language: str) -> list[str]:
    """The README's samples of one language, in its chapter on roles."""
    return re.findall(rf"^```{language}\n(.*?)^```", CHAPTER, re.DOTALL | re.MULTILINE)


def reviewer(folder: Path) -> Path:
    """The role of the README, each file where its first line says that it is."""
    files: dict[str, str | bytes] = {}
    for sample in (*samples("yaml"), samples("javascript")[0], samples("python")[0]):
        place = re.match(r"(?:#|//) reviewer/(\S+)\n", sample)
        assert place is not None
        files[place[1]] = sample
    return role(folder / "reviewer", files)


def run(roles: Roles, *command: str) -> str:
    """What an agent prints, run to its end on that bus."""
    environ = {**os.environ, "PRXBUS_RUNTIME_DIR": roles.bus}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_turn(roles: Roles, said: str) -> None:
    """What hooks in three languages have made of the turn."""
    strips = node_version() >= TYPESCRIPT
    path = "app.ts" if strips else "/workspace/app.ts"
    assert said.count("Rules of the house:") == said.count(PROMPT) == said.count("review (locked)") == 2
    assert said.count(REVIEW) == 2
    assert said.count(f"Warning: write left console.log( in {path}.") == 1
    before, after = said.split("writes:")
    assert "Warning" not in before
    assert 'console.log("hello")\\n' in after
    assert "without its hooks" not in said
    ended = [r for r in roles.logged("hook:count-edits") if r["event"] == "1 edits until session.idle"]
    assert ended
    assert ended[-1]["agent"] == "example-agent"


def test_the_agent_in_python_and_its_role(roles: Roles) -> None:
    """One turn: the prompt has rules and function, the call its newline, the next prompt a warning."""
    said = run(roles, sys.executable, str(EXAMPLES / "agents" / "rolebox_agent.py"))
    until(lambda: bool(roles.logged("hook:count-edits")), "the hook to count")
    check_turn(roles, said)


def test_the_agent_in_node_and_its_role(roles: Roles, tmp_path: Path) -> None:
    """The same over HTTP, with the file that ``prxbus adapter node`` prints; its own step is in between."""
    (tmp_path / "rolebox.mjs").write_text(prxbus("adapter", "node").stdout)
    agent = tmp_path / "rolebox_agent.mjs"
    agent.write_bytes((EXAMPLES / "agents" / "rolebox_agent.mjs").read_bytes())
    said = run(roles, "node", str(agent))
    assert "encoding: 'utf-8'" in said
    check_turn(roles, said)


def test_the_agents_of_the_readme_and_their_role(roles: Roles, tmp_path: Path) -> None:
    """As they are written: the tool gets what the hook has left, the next prompt what it has said."""
    _, javascript = samples("javascript")
    _, python = samples("python")
    (tmp_path / "rolebox.mjs").write_text(prxbus("adapter", "node").stdout)
    (tmp_path / "agent.mjs").write_text(javascript)
    prompt = [PROMPT, "write has written a.ts.", "Leave no debugging behind."]
    assert run(roles, sys.executable, "-c", python) == f"hello() {prompt}\n"
    said = run(roles, "node", str(tmp_path / "agent.mjs"))
    assert said.startswith("hello() [")
    assert [part for part in prompt if f"'{part}'" not in said] == []


def test_the_commands_of_the_readme_show_its_role(roles: Roles, tmp_path: Path) -> None:
    """Looked at, tried without a bus, and asked on one: each says what stands there, or that all is well."""
    (shown,) = samples("console")
    commands = re.findall(r"^\$ prxbus (.*)$", shown, re.MULTILINE)
    place = str(reviewer(tmp_path))
    looking, trying, serving, asking = (
        [place if word == "reviewer" else word for word in shlex.split(command, comments=True)]
        for command in commands
    )
    assert serving == ["up", "--role", place]
    assert prxbus(*looking).stdout.endswith("Checked: in order\n")
    said = shown.split("--session s1\n")[1]
    change = re.search(r"^input .*$", said, re.MULTILINE)
    assert change is not None
    assert change[0] in prxbus(*trying).stdout
    with roles.agent("s1", "reviewer") as agent:
        agent.system_transform([])
    asked = prxbus(*asking, "--runtime-dir", roles.bus).stdout
    assert without_times(asked) == without_times(said)


def without_times(text: str) -> list[list[str]]:
    """The words of each line."""
    return [re.sub(r"[\d.]+ ms", "TIME", line).split() for line in text.splitlines()]


def test_what_prxbus_knows_of_the_example(roles: Roles, tmp_path: Path) -> None:
    """``prxbus info`` finds everything in order but what this Node cannot run, and records it when asked."""
    quality, env = str(EXAMPLES / "roles" / "quality"), {"XDG_STATE_HOME": str(tmp_path)}
    checked = prxbus("info", quality, "--check", "--json", env=env)
    document = json.loads(checked.stdout)
    strips = node_version() >= TYPESCRIPT
    assert [hook["name"] for hook in document["hooks"] if not hook["loaded"]] == (
        [] if strips else ["stay-inside"]
    )
    assert (checked.returncode, document["passed"]) == (0 if strips else 1, strips)
    accepted = json.loads(prxbus("info", quality, "--accept", "--json", env=env).stdout)
    assert (document["accepted"], accepted["accepted"]) == (False, True)
    assert roles.said["role_hooks"] == sum(bool(hook["loaded"]) for hook in document["hooks"]) + 2


def test_what_this_node_cannot_run_is_said_and_the_others_run(roles: Roles) -> None:
    """TypeScript needs a Node that strips types: with another one the hook is named with the reason."""
    failed = [r for r in roles.logged("hook:custom-loader") if r["level"] == "warning"]
    if node_version() >= TYPESCRIPT:
        assert failed == []
        return
    (said,) = failed
    assert (said["hook"], Path(said["modulePath"]).name) == ("stay-inside", "stay-inside.ts")
    assert "22.13" in said["err"]
