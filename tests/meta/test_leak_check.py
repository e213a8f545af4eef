"""The leak check of conftest.py sees each kind of thing that a test can leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

LEAKY = """
import os, socket, subprocess, threading, time
import pytest, zmq

KEPT = []

def test_socket():
    KEPT.append(socket.socket())

def test_context():
    context = zmq.Context()
    KEPT.append((context, context.socket(zmq.PUB)))

def test_thread():
    thread = threading.Thread(target=time.sleep, args=(30,), daemon=True)
    thread.start()

def test_child():
    KEPT.append(subprocess.Popen(["sleep", "0"]))

@pytest.mark.may_leak("shows the way out")
def test_allowed():
    KEPT.append(socket.socket())

def test_clean(runtime_dir):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(runtime_dir / "a.sock"))
    subprocess.run(["true"], check=True)
"""


@pytest.mark.timeout(240)
def test_each_kind_of_leak_is_an_error(tmp_path: Path) -> None:
    """A leaked socket, zmq context, thread or unreaped child fails its test; a clean test passes."""
    (tmp_path / "conftest.py").write_text(
        CONFTEST.read_text().replace("LEAK_DEADLINE_S = 5.0", "LEAK_DEADLINE_S = 0.3")
    )
    (tmp_path / "test_leaky.py").write_text(LEAKY)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    may_leak(reason): allowed\n")
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            "-rE",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=200,
        check=False,
    )
    errors = [line for line in run.stdout.splitlines() if line.startswith("ERROR test_leaky.py::")]
    failed = {line.split("::")[1].split()[0] for line in errors}
    assert failed == {"test_socket", "test_context", "test_thread", "test_child"}, run.stdout
    assert "6 passed, 4 errors" in run.stdout


def test_the_runtime_directory_is_private_and_short(runtime_dir: Path) -> None:
    """The fixture's directory is readable by us alone and leaves room for an ipc address of 107 bytes."""
    assert runtime_dir.stat().st_mode & 0o777 == 0o700
    assert len(os.fsencode(runtime_dir)) < 40


def test_a_missing_tool_is_named(require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that is there is found; one that is not ends the test with its name."""
    assert require_tool("sh").endswith("/sh")
    with pytest.raises((pytest.skip.Exception, pytest.fail.Exception), match="no-such-tool is not installed"):
        require_tool("no-such-tool")
