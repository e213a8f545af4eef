"""``prxbus up``, ``config`` and ``demo`` as a person starts them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.client import Subscriber
from tests.integration.waiting import until

PRXBUS = os.path.join(sysconfig.get_path("scripts"), "prxbus")


@contextmanager
def up(
    runtime_dir: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A running ``prxbus up`` with its broker and hooks alone: as :func:`up_with`.

    It serves no HTTP API, whose port others may have, and no attached agents.
    """
    alone = {"PRXBUS_AGENTS_ENABLED": "false", **(environ or {})}
    with up_with(runtime_dir, "--no-http", *arguments, environ=alone) as running:
        yield running


@contextmanager
def up_with(
    runtime_dir: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A running ``prxbus up``: the process and its ready line; stopped with SIGTERM, exit 0."""
    process = subprocess.Popen(
        [PRXBUS, "up", "--json", "--runtime-dir", str(runtime_dir), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environ or {})},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said: list[bytes] = []
    listener = threading.Thread(target=lambda: said.extend(process.stderr or ()))
    listener.start()
    try:
        assert select.select([process.stdout], [], [], 40)[0]
        line = process.stdout.readline()
        assert line, b"".join(said)
        yield process, orjson.loads(line)
        process.terminate()
        assert process.wait(40) == 0, b"".join(said)
    finally:
        process.kill()
        process.wait()
        listener.join(20)
        process.stdout.close()
        process.stderr.close()


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """One command to its end."""
    return subprocess.run(
        [PRXBUS, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environ},
        check=False,
    )


def write_hook(workspace: Path, script: str) -> None:
    """A workspace whose hook runs ``script`` on errors."""
    action = {"command": "/bin/sh", "args": ["-c", script]}
    (workspace / "hooks.json").write_text(json.dumps({"hooks": {"error": [action]}}))


def test_the_main_job_with_three_commands(runtime_dir: Path, tmp_path: Path) -> None:
    """up runs the hooks of a workspace, pub publishes and says who listens, tap watches."""
    write_hook(tmp_path, "cp $ZERO_HOOK_PAYLOAD_FILE seen.json")
    where = {"PRXBUS_RUNTIME_DIR": str(runtime_dir)}
    with up(runtime_dir, "--workspace", str(tmp_path)) as (_, said):
        assert (said["ready"], said["hooks"], said["workspace"]) == (True, 1, str(tmp_path))
        assert said["processes"].keys() == {"broker", "codex", "shell"}
        tap = subprocess.Popen(
            [PRXBUS, "tap", "prx.lifecycle.*", "prx.hooks.run", "--json", "--count", "2", "--timeout", "40"],
            stdout=subprocess.PIPE,
            env={**os.environ, **where},
        )
        until(
            lambda: (
                json.loads(run("pub", "prx.other", "--json", **where).stdout)["matching"] == 0
                and "tap" in run("status", "--json", **where).stdout
            ),
            "the tap to be there",
        )
        sent = run("pub", "prx.lifecycle.error", '{"component": "x"}', "--session", "s1", **where)
        assert (sent.returncode, sent.stdout) == (0, "matching subscribers: 2\n")
        out, _ = tap.communicate(timeout=60)
        event, report = (json.loads(line) for line in out.splitlines())
        assert (tap.returncode, event["topic"], event["session_id"]) == (0, "prx.lifecycle.error", "s1")
        assert (report["topic"], report["payload"]["status"]) == ("prx.hooks.run", "ok")
        assert report["caused_by"] == event["id"]
        assert json.loads((tmp_path / "seen.json").read_text())["payload"]["component"] == "x"
    assert [name for name in os.listdir(runtime_dir) if name.endswith(".sock")] == []


def test_without_a_workspace_no_hooks_run_and_it_says_so(runtime_dir: Path, tmp_path: Path) -> None:
    """Started in a directory with hooks but without naming it, it runs the bus alone."""
    write_hook(tmp_path, "true")
    process = subprocess.Popen(
        [PRXBUS, "up", "--no-http", "--runtime-dir", str(runtime_dir)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert b"is ready in" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=40)
    assert process.returncode == 0
    assert f"no hooks run; name one with --workspace {tmp_path}".encode() in words


def test_gateway_startup_is_published_and_kept(runtime_dir: Path) -> None:
    """When everything is ready the lifecycle event is there, also for who comes later."""
    with (
        up(runtime_dir),
        Subscriber(["prx.lifecycle.gateway_startup"], last=True, runtime_dir=runtime_dir) as events,
    ):
        (event,) = events.batch(timeout=20)
        assert event.payload.keys() == {"version", "started_at"}


def test_a_killed_broker_comes_back(runtime_dir: Path) -> None:
    """up starts a broker that died again, and the bus works on."""
    with up(runtime_dir) as (_, said):
        os.kill(said["processes"]["broker"], signal.SIGKILL)
        where = {"PRXBUS_RUNTIME_DIR": str(runtime_dir)}

        def pid() -> Any:
            status = run("status", "--json", **where)
            return json.loads(status.stdout)["broker"]["pid"] if status.returncode == 0 else None

        until(lambda: pid() not in (None, said["processes"]["broker"]), "the new broker")


def test_everything_ends_when_up_is_killed(runtime_dir: Path, tmp_path: Path) -> None:
    """kill -9 of up leaves no process behind: its children notice and end in order."""
    write_hook(tmp_path, "true")
    process = subprocess.Popen(
        [
            PRXBUS,
            "up",
            "--no-http",
            "--json",
            "--runtime-dir",
            str(runtime_dir),
            "--workspace",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    pids = orjson.loads(process.stdout.readline())["processes"].values()
    process.kill()
    process.wait()
    process.stdout.close()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the children to end")


def test_a_second_bus_in_the_same_directory_is_refused(runtime_dir: Path) -> None:
    """The second one says who owns the directory and exits 4; the first is undisturbed."""
    with up(runtime_dir) as (_, said):
        second = run("up", "--no-http", "--runtime-dir", str(runtime_dir))
        assert second.returncode == 4
        assert f"a broker (pid {said['processes']['broker']}) owns" in second.stderr


@pytest.mark.parametrize(
    "arguments, environ, words",
    [
        (["--workspace", "/nowhere"], {}, "workspace '/nowhere' is not a directory"),
        (["--log-level", "loud"], {}, "log.level: 'loud' is refused"),
        ([], {"PRXBUS_HOOKS_RUNS": "none"}, "hooks.runs: 'none' is refused"),
        ([], {"PRXBUS_HOKS_RUNS": "1"}, "did you mean PRXBUS_HOOKS_RUNS?"),
    ],
)
def test_a_wrong_configuration_starts_nothing(
    runtime_dir: Path, arguments: list[str], environ: dict[str, str], words: str
) -> None:
    """Every fault is told with its origin, and the exit code is 2."""
    done = run("up", "--runtime-dir", str(runtime_dir), *arguments, **environ)
    assert done.returncode == 2
    assert words in done.stderr
    assert os.listdir(runtime_dir) == []


def test_config_shows_values_with_their_origin(tmp_path: Path) -> None:
    """show prints every setting; check exits 1 when there is a fault and names the nearest key."""
    (tmp_path / "prxbus.toml").write_text("[hooks]\nruns = 5\n")
    where = {"PRXBUS_CONFIG_DIR": str(tmp_path)}
    shown = json.loads(run("config", "show", "--json", **where).stdout)
    assert shown["settings"]["hooks.runs"] == {"value": 5, "origin": str(tmp_path / "prxbus.toml")}
    assert shown["diagnostics"] == []
    assert run("config", "check", **where).stdout == "the configuration is in order\n"
    lines = run("config", "show", **where).stdout.splitlines()
    values = {words[0]: words[1] for words in map(str.split, lines)}
    assert values["hooks.runs"] == "5"
    assert (values["hooks.enabled"], values["hooks.strict"]) == ("true", "false")
    (tmp_path / "prxbus.toml").write_text("[hooks]\nrun = 5\n")
    checked = run("config", "check", **where)
    assert checked.returncode == 1
    assert "did you mean hooks.runs?" in checked.stderr


def test_the_demo_loses_nothing(tmp_path: Path) -> None:
    """Every recorded event arrives, every hook reports, the slow one times out, and it ends with 0."""
    done = run("demo", "--json", TMPDIR="/tmp")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["events"] == {"published": 61, "received": 61, "large": 2, "lost": 0}
    hooks = result["hooks"]
    assert (hooks["reported"], hooks["failed"], hooks["timed_out"]) == (hooks["expected"], 1, 2)
    assert result["by_hook"]["turn_complete#0"]["timed_out"] == 2
    shown = run("demo", NO_COLOR="1")
    assert "lost 0" in shown.stdout


def test_a_deleted_working_directory_is_named(runtime_dir: Path, tmp_path: Path) -> None:
    """A workspace that cannot be found because we stand in a deleted directory is said so."""
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        [
            *("/bin/sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" up --workspace . --runtime-dir "$3"'),
            *("sh", gone, PRXBUS, runtime_dir),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "workspace '.' cannot be found: the current directory was deleted" in done.stderr
