"""LibreFang's hooks under ``prxbus up``: the start, SIGHUP, and which home there is."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from broker.client import Publisher
from broker.version import __version__
from subscribers.runtimes.sandbox import Bubblewrap, Limits, SandboxUnavailable
from tests.integration.command import COMMAND, prxbus
from tests.integration.librefang_scene import RECORD, Home, Served, running
from tests.integration.shell_scene import Monitor
from tests.integration.waiting import until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home(tmp_path / "home")


def up(bus: Path, log: Path, *options: str, **environ: str | None) -> AbstractContextManager[Served]:
    """``prxbus up`` from its ready line to its end."""
    command = [COMMAND, "up", "--json", "--no-http", "--runtime-dir", str(bus), *options]
    return running(command, log, {"LIBREFANG_HOME": None, **environ})


@contextmanager
def watched(bus: Path) -> Iterator[tuple[Publisher, Monitor]]:
    """An agent and a monitor on that bus."""
    with Publisher("agent", runtime_dir=str(bus), on_absent="raise") as agent:
        monitor = Monitor(str(bus))
        try:
            yield agent, monitor
        finally:
            monitor.events.close()


def of_home(home: Home) -> tuple[str, str]:
    """The option that names it."""
    return "--librefang-home", str(home.path)


def test_gateway_startup_fires_when_everything_is_ready(runtime_dir: Path, home: Home) -> None:
    """It has the version and an ISO 8601 time in UTC, and the shell's own environment is there."""
    folder = home.hook("start", "[gateway:startup]", RECORD + 'echo "$SLACK_WEBHOOK_URL" > url\n')
    given = {"SLACK_WEBHOOK_URL": "http://127.0.0.1:9/x", "PRXBUS_API_TOKEN": "t" * 40}
    with up(runtime_dir, home.path.parent / "log", *of_home(home), **given) as served:
        assert served.said["librefang"] == {"home": str(home.path), "hooks": 1}
        assert served.said["workspace"] is None
        until((folder / "url").exists, "the hook to run")
    payload = json.loads((folder / "gateway:startup").read_text())
    assert payload.keys() == {"version", "started_at"}
    assert payload["version"] == __version__
    assert datetime.fromisoformat(payload["started_at"]).utcoffset() == timedelta(0)
    until(lambda: (folder / "url").read_text() == "http://127.0.0.1:9/x\n", "the variable")


def test_sighup_scans_again_and_a_running_hook_ends_as_it_began(runtime_dir: Path, home: Home) -> None:
    """Added, changed and removed hooks are logged and in force; what runs meanwhile is left alone."""
    slow = home.hook(
        "slow", "[agent:end]", "touch began; until [ -e go ]; do sleep 0.05; done; echo old > said"
    )
    gone = home.hook("gone", "[agent:end]", "true")
    with up(runtime_dir, home.path.parent / "log", *of_home(home)) as served, watched(runtime_dir) as at:
        agent, monitor = at
        agent.publish("prx.lifecycle.agent_end", {})
        until((slow / "began").exists, "the slow hook to begin")
        home.hook("slow", "[session:end]", "echo new > other")
        (gone / "HOOK.yaml").unlink()
        home.hook("new", "[agent:end]", "true")
        broken = home.hook("broken", "[agent:end]", "true") / "HOOK.yaml"
        broken.write_text("name: [\n")
        served.process.send_signal(signal.SIGHUP)
        served.record("hooks were scanned", added=1, changed=1, removed=1)
        assert served.record("a hook was added", hook="new")["events"] == "agent:end"
        assert served.record("a hook was changed", hook="slow")["events"] == "session:end"
        assert served.record("a hook was removed")["path"] == str(gone / "HOOK.yaml")
        assert "broken/HOOK.yaml:2:1: error: not YAML" in served.log.read_text()
        (slow / "go").touch()
        first = monitor.runs(2)
        assert (slow / "said").read_text() == "old\n"
        agent.publish("prx.lifecycle.agent_end", {})
        agent.publish("prx.lifecycle.session_end", {})
        reports = monitor.runs(4)
    assert sorted(report["hook"] for report in first) == ["gone", "slow"]
    assert sorted((report["hook"], report["status"]) for report in reports[2:]) == [
        ("new", "ok"),
        ("slow", "ok"),
    ]
    assert (slow / "other").read_text() == "new\n"


def test_a_failed_scan_and_a_broken_file_keep_what_was_there(runtime_dir: Path, home: Home) -> None:
    """The last good hooks stay in force, and the log says so."""
    folder = home.hook("h", "[agent:end]", "true")
    with up(runtime_dir, home.path.parent / "log", *of_home(home)) as served, watched(runtime_dir) as at:
        agent, monitor = at
        (folder / "HOOK.yaml").write_text("events: [\n")
        served.process.send_signal(signal.SIGHUP)
        until(lambda: "[kept_last_good]" in served.log.read_text(), "the scan")
        agent.publish("prx.lifecycle.agent_end", {})
        assert monitor.runs(1)[0]["status"] == "ok"
        hooks = home.path / "hooks"
        hooks.rename(home.path / "elsewhere")
        hooks.write_text("no folder")
        served.process.send_signal(signal.SIGHUP)
        until(lambda: "[scan_failed]" in served.log.read_text(), "the failed scan")
        hooks.unlink()
        (home.path / "elsewhere").rename(hooks)
        agent.publish("prx.lifecycle.agent_end", {})
        assert monitor.runs(2)[1]["status"] == "ok"


def test_edits_wait_for_sighup_unless_watching_is_configured(
    runtime_dir: Path, home: Home, tmp_path: Path
) -> None:
    """``reload = "watch"`` follows edits; with the default they are in force at the next SIGHUP only."""
    (tmp_path / "prxbus.toml").write_text(f'[librefang]\nreload = "watch"\nhome = "{home.path}"\n')
    config = {"PRXBUS_CONFIG_DIR": str(tmp_path)}
    with up(runtime_dir, tmp_path / "log", **config) as served:
        home.hook("late", "[agent:end]", "true")
        served.record("a hook was added", hook="late")
    with up(runtime_dir, tmp_path / "log", **config, PRXBUS_LIBREFANG_RELOAD="sighup") as served:
        home.hook("later", "[agent:end]", "true")
        served.process.send_signal(signal.SIGHUP)
        served.record("a hook was added", hook="later")
        records = served.records("hooks were scanned")
        assert [record["added"] for record in records] == [1, 1]


def test_the_variable_names_a_home_and_the_option_wins(runtime_dir: Path, tmp_path: Path) -> None:
    """LIBREFANG_HOME stands before ~/.librefang, and --librefang-home before both."""
    usual, other = Home(tmp_path / "user" / ".librefang"), Home(tmp_path / "other")
    environ = {"HOME": str(tmp_path / "user"), "LIBREFANG_HOME": str(other.path)}
    for options, expected in (((), other), (of_home(usual), usual)):
        with up(runtime_dir, tmp_path / "log", *options, **environ) as served:
            assert "shell" in served.said["processes"]
            assert served.said["librefang"]["home"] == str(expected.path)


def test_a_home_that_was_named_and_is_none_starts_nothing(runtime_dir: Path, tmp_path: Path) -> None:
    """The mistake is told, with exit code 2."""
    done = prxbus(
        "up", "--no-http", "--runtime-dir", str(runtime_dir), "--librefang-home", str(tmp_path / "x")
    )
    assert done.returncode == 2
    assert "is not a directory; create it, or name another" in done.stderr
    assert os.listdir(runtime_dir) == []


@pytest.fixture
def bubblewrap(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Skip where the kernel allows no user namespaces; without the program, CI fails."""
    require_tool("bwrap")
    try:
        Bubblewrap(str(tmp_path), Limits(2**32, 64, 2**30)).close()
    except SandboxUnavailable as error:
        pytest.skip(f"this kernel does not let it work: {error}")


@pytest.mark.usefixtures("bubblewrap")
def test_a_home_without_hooks_is_no_obstacle_to_the_sandbox(runtime_dir: Path, tmp_path: Path) -> None:
    """Nothing is refused; hooks that come later run enclosed from the next scan on."""
    (tmp_path / "home").mkdir()
    options = ("--librefang-home", str(tmp_path / "home"))
    with (
        up(runtime_dir, tmp_path / "log", *options, PRXBUS_HOOKS_SANDBOX="bubblewrap") as served,
        watched(runtime_dir) as (agent, monitor),
    ):
        assert served.said["refusal"] is None
        outside = Path("/tmp", f"{runtime_dir.name}.outside")
        folder = Home(tmp_path / "home").hook("h", "[agent:end]", f"touch inside; touch {outside}")
        served.process.send_signal(signal.SIGHUP)
        served.record("a hook was added", hook="h")
        agent.publish("prx.lifecycle.agent_end", {})
        assert monitor.runs(1)[0]["status"] == "ok"
    assert (folder / "inside").exists()
    assert not outside.exists()


@pytest.mark.usefixtures("bubblewrap")
def test_the_sandbox_holds_for_a_home_too(runtime_dir: Path, home: Home) -> None:
    """A hook can write in the folder of the hooks and nowhere else, and has no network."""
    folder = home.hook(
        "h",
        "[gateway:startup]",
        f"touch inside; touch {home.path}/outside; cat /proc/net/dev > net; touch done",
    )
    with up(
        runtime_dir, home.path.parent / "log", *of_home(home), PRXBUS_HOOKS_SANDBOX="bubblewrap"
    ) as served:
        assert served.said["refusal"] is None
        until((folder / "done").exists, "the hook to run")
    assert (folder / "inside").exists()
    assert not (home.path / "outside").exists()
    assert "eth" not in (folder / "net").read_text()
