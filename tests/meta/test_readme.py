"""The README is true: its tables come from the code, its code runs, its commands and links exist."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from types import ModuleType

import pytest

from broker.cli.verbs import OWN, joined
from broker.client import Publisher, Subscriber
from broker.testing import running_broker

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PRXBUS = os.path.join(sysconfig.get_path("scripts"), "prxbus")


def blocks(language: str) -> list[str]:
    """The code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The script that writes the tables."""
    spec = importlib.util.spec_from_file_location("readme", ROOT / ".ci" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_code(generator: ModuleType) -> None:
    """`.ci/readme.py --write` would change nothing, and every table is used."""
    assert generator.fill(README) == README
    used = re.findall(r"<!-- table: ([\w-]+) -->", README)
    assert sorted(used) == sorted(generator.TABLES)


def test_links_lead_somewhere() -> None:
    """Every relative link is a file of the project."""
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_verb_is_in_the_table_and_every_named_verb_exists() -> None:
    """The table of verbs is the command's own list."""
    verbs = set(OWN) | set(joined().verbs)
    rows = re.findall(
        r"^\| (`[a-z].*?) \| .* \|$", README.split("## Command line")[1].split("<!--")[0], re.MULTILINE
    )
    listed = {name for row in rows for name in re.findall(r"`([a-z]+)", row)}
    assert listed == verbs
    commands = {
        match for block in blocks("console") for match in re.findall(r"^\$ prxbus (\w+)", block, re.MULTILINE)
    }
    assert commands <= verbs


def test_every_make_target_that_is_named_exists() -> None:
    """`make X` in the text is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", README)) <= targets


def test_the_refusal_that_is_shown_is_the_one_that_is_printed(runtime_dir: Path) -> None:
    """The pattern error stands in the README letter by letter."""
    (shown,) = re.findall(r"^\$ prxbus (tap 'prx.life\*')\n(.*)$", README, re.MULTILINE)
    done = subprocess.run(
        [PRXBUS, "tap", "prx.life*", "--runtime-dir", str(runtime_dir)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (4, shown[1])


def test_the_commands_of_the_first_minute_work(runtime_dir: Path) -> None:
    """The publish command of the README, as it is written, reaches a subscriber."""
    (command,) = re.findall(r"^\$ (prxbus pub .*)$", README, re.MULTILINE)
    with running_broker(runtime_dir) as bus, Subscriber(["prx.lifecycle.*"], runtime_dir=bus) as events:
        path = f"{os.path.dirname(PRXBUS)}{os.pathsep}{os.environ['PATH']}"
        environ = {**os.environ, "PATH": path, "PRXBUS_RUNTIME_DIR": bus}
        done = subprocess.run(
            command, shell=True, env=environ, capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout == "matching subscribers: 1\n"
        (event,) = events.batch(timeout=20)
        assert (event.payload["tool"], event.session_id) == ("Bash", "s1")


def test_asking_works_as_it_is_shown(runtime_dir: Path) -> None:
    """Decider and agent of the section run as they are written; the command prints what stands there."""
    section = README.split("\n## Ask\n")[1].split("\n## ")[0]
    agent, decider = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    ((command, shown),) = re.findall(r"^\$ (prxbus ask [^\n]*)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    path = f"{os.path.dirname(PRXBUS)}{os.pathsep}{os.environ['PATH']}"

    def run(program: str | list[str], *, shell: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            program, shell=shell, env=environ, capture_output=True, text=True, timeout=100, check=False
        )

    def comparable(text: str) -> list[list[str]]:
        return [re.sub(r"[\d.]+ ms", "TIME", line).split() for line in text.splitlines()]

    with running_broker(runtime_dir) as bus:
        environ = {**os.environ, "PATH": path, "PRXBUS_RUNTIME_DIR": bus}
        deciding = subprocess.Popen([sys.executable, "-c", decider], env=environ)
        try:
            pause = threading.Event()
            said = run(command, shell=True)
            for _ in range(1_000):
                if said.stdout.startswith("denied"):
                    break
                pause.wait(0.05)
                said = run(command, shell=True)
            assert (said.returncode, comparable(said.stdout)) == (4, comparable(shown))
            assert run([sys.executable, "-c", agent]).stdout == "not here guard\n"
        finally:
            deciding.kill()
            deciding.wait()


def test_the_object_of_ask_is_the_one_that_is_documented(runtime_dir: Path) -> None:
    """Every key stands in the section's table, and no other."""
    table = README.split("With `--json` it prints one object:")[1].split("\n## ")[0]
    keys = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    documented = set(re.findall(r"`([a-z_]+)`", " ".join(keys)))
    with running_broker(runtime_dir) as bus:
        said = subprocess.run(
            [PRXBUS, "ask", "a.b", "--json", "--runtime-dir", bus],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
    assert set(json.loads(said.stdout)) == documented


def test_the_python_of_the_first_minute_works(runtime_dir: Path) -> None:
    """Publisher and subscriber code run as they are written, against a real bus."""
    publisher, subscriber, *_ = blocks("python")
    with running_broker(runtime_dir) as bus:
        environ = {**os.environ, "PRXBUS_RUNTIME_DIR": bus, "PYTHONUNBUFFERED": "1"}
        listening = subprocess.Popen(
            [sys.executable, "-c", subscriber], env=environ, stdout=subprocess.PIPE, text=True
        )
        assert listening.stdout is not None
        try:
            with Publisher("test", runtime_dir=bus, on_absent="raise") as agent:
                pause = threading.Event()
                while agent.publish_acknowledged("prx.metrics.probe", {}) == 0:
                    pause.wait(0.02)
            probe = "prx.metrics.probe None {}\n"
            assert listening.stdout.readline() == probe
            subprocess.run([sys.executable, "-c", publisher], env=environ, check=True, timeout=60)
            expected = "prx.lifecycle.tool_call s1 {'tool': 'Bash', 'success': True, 'output': 'ok'}\n"
            # A probe may reach a subscriber that was not counted yet, and the next one again.
            assert next(line for line in listening.stdout if line != probe) == expected
        finally:
            listening.kill()
            listening.wait()
            listening.stdout.close()
