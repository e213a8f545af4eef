"""What every test may rely on: a short runtime directory, a leak check, tools that may be missing.

Tests need not import this file; fixtures reach them by name.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Under nohup a hangup is ignored, by children too: brokers that are to hear it would not.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# In the background of a shell without job control an interrupt is ignored, in the same way.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
LEAK_DEADLINE_S = 5.0

# No deadline per example and no complaint about slow generation: a loaded machine is not a bug.
# `pytest --hypothesis-profile=thorough` searches longer.
settings.register_profile(
    "ci", deadline=None, max_examples=40, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# Where branches are counted, the laws have been tried before: the same few examples each time.
settings.register_profile("branches", settings.get_profile("ci"), max_examples=25, derandomize=True)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=5_000)
settings.load_profile(os.environ.get("PRXBUS_HYPOTHESIS", "ci"))


@pytest.fixture
def runtime_dir() -> Iterator[Path]:
    """A private runtime directory whose path is short enough for an ipc socket; removed afterwards."""
    path = Path(tempfile.mkdtemp(prefix="pxb", dir="/tmp"))  # mkdtemp gives mode 0700
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], str]:
    """A function from a program's name to its path; without it a test is skipped here and fails in CI."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is not None:
            return path
        reason = f"{name} is not installed"
        if IN_CI:
            pytest.fail(f"{reason}, and CI promises it", pytrace=False)
        pytest.skip(reason)

    return find


@pytest.fixture(scope="session")
def pages() -> Path:
    """The directory of the documented systems' own pages, which are not ours to ship: $PRXBUS_PAGES."""
    named = os.environ.get("PRXBUS_PAGES")
    if not named:
        pytest.skip("PRXBUS_PAGES names no directory of pages")
    path = Path(named)
    if not path.is_dir():
        pytest.fail(f"PRXBUS_PAGES={named} is not a directory", pytrace=False)
    return path


@pytest.fixture(autouse=True)
def leaves_nothing_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves threads, child processes or descriptors (so: sockets, contexts) behind."""
    if request.node.get_closest_marker("may_leak"):
        yield
        return
    before = _held()
    yield
    if "broker.client.sockets" in sys.modules:  # all clients share a context, which outlives them on purpose
        sys.modules["broker.client.sockets"].end_context()
    deadline = time.monotonic() + LEAK_DEADLINE_S
    pause = threading.Event()
    while leaked := _held() - before:
        gc.collect()  # closes what only a reference cycle keeps open
        if time.monotonic() > deadline:
            pytest.fail("left behind: " + ", ".join(sorted(leaked)), pytrace=False)
        pause.wait(0.01)


def _held() -> set[str]:
    """What this process holds, each in words that stay the same while it is the same thing."""
    threads = {f"thread {thread.name} ({thread.ident})" for thread in threading.enumerate()}
    return threads | _children() | _descriptors()


def _children() -> set[str]:
    """Child processes, unreaped ones too."""
    found: set[str] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            pids = listing.read_text().split()
        except OSError:  # the thread has just ended
            continue
        found.update(f"process {pid}" for pid in pids)
    return found


def _descriptors() -> set[str]:
    """Open descriptors with what they refer to, apart from those of the test tools."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # the listing's own descriptor, closed by now
            continue
        if "/.hypothesis/" not in target and "/.coverage" not in target and target != "/dev/urandom":
            found.add(f"descriptor {number} ({target})")
    return found
