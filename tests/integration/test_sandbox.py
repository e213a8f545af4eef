"""Hooks inside bubblewrap: what they see, what they may use, and that their end is that of any other run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from subscribers.hooks.invocation import Invocation
from subscribers.hooks.outcome import Outcome
from subscribers.runtimes.child import run
from subscribers.runtimes.process_table import carries, read_table
from subscribers.runtimes.reaper import Reaper
from subscribers.runtimes.sandbox import Bubblewrap, Limits, SandboxUnavailable
from subscribers.runtimes.spawn import StartFailed
from tests.integration.shell_scene import hooks, scene, sh, shell
from tests.integration.test_up import run as command
from tests.integration.test_up import up
from tests.integration.waiting import until

LIMITS = Limits(memory_bytes=2 << 30, processes=12, file_bytes=1 << 20)
PATH = "/usr/local/bin:/usr/bin:/bin"
PYTHON = os.path.realpath(sys.executable)  # the environment that it runs in may lie in a private folder


@pytest.fixture(scope="module")
def bubblewrap(require_tool: Callable[[str], str]) -> None:
    """Skip where the kernel allows no user namespaces; without the program, CI fails."""
    require_tool("bwrap")
    with tempfile.TemporaryDirectory() as folder:
        try:
            Bubblewrap(folder, LIMITS).close()
        except SandboxUnavailable as error:
            pytest.skip(f"this kernel does not let it work: {error}")


class Inside:
    """Runs shell scripts in the sandbox of one workspace."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.reaper = Reaper()
        self.sandbox = Bubblewrap(str(workspace), LIMITS)
        self.released = 0

    def run(self, script: str, *, readable: tuple[str, ...] = (), **changes: Any) -> Outcome:
        """The outcome of a script; its run has been released when nothing of it is left."""
        fields: dict[str, Any] = {
            "stdin": None,
            "timeout_s": 40.0,
            "grace_s": 0.0,
            "cwd": str(self.workspace),
        }
        env = {"PATH": PATH, "RUN": str(self.workspace)}
        argv = changes.pop("argv", ("/bin/sh", "-c", script))
        plain = Invocation(argv, env, **(fields | {"marker": "RUN"} | changes))
        enclosed, release = self.sandbox.enclose(plain, readable)

        def over() -> None:
            release()
            self.released += 1

        return run(enclosed, self.reaper, over)


@pytest.fixture
def inside(bubblewrap: None, tmp_path: Path) -> Iterator[Inside]:
    """A sandbox around an empty workspace."""
    found = Inside(tmp_path)
    yield found
    found.reaper.close(time.monotonic())
    found.sandbox.close()


def test_the_system_is_read_only_and_the_workspace_writable(inside: Inside) -> None:
    """Nothing but the workspace and private temporary folders can be written."""
    script = "touch here /tmp/there; for f in /etc /usr /root /; do touch $f/prxbus-was-here && echo $f; done"
    outcome = inside.run(script)
    assert outcome.stdout.text() == ""
    assert "Read-only file system" in outcome.stderr.text()
    assert (inside.workspace / "here").exists()
    assert not Path("/tmp/there").exists()


def test_the_folders_where_other_programs_listen_are_empty(inside: Inside, tmp_path: Path) -> None:
    """Neither /run nor /tmp of the machine is there, apart from the workspace and what the run may read."""
    other = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        (other / "given").write_text("given")
        (other / "hidden").write_text("hidden")
        outcome = inside.run(
            f"ls -A /run; cat {other}/given; cat {other}/hidden; echo x > {other}/given",
            readable=(str(other / "given"),),
        )
        assert outcome.stdout.text() == "given"
        assert (other / "given").read_text() == "given"
        assert "hidden: No such file" in outcome.stderr.text()
    finally:
        shutil.rmtree(other)


@pytest.mark.parametrize("folder", ["/tmp", "/run", "/var/tmp", "/proc", "/proc/self", "/dev", "/dev/shm"])
def test_a_cwd_opens_no_private_folder(inside: Inside, folder: str) -> None:
    """A folder that is not there inside is refused as a run's cwd, behind a link too."""
    link = inside.workspace / "link"
    link.symlink_to(folder)
    for cwd in (folder, str(link)):
        with pytest.raises(StartFailed, match="is private in the sandbox; name a folder of the workspace"):
            inside.run("true", cwd=cwd)


def test_other_folders_of_the_machine_may_be_a_cwd(inside: Inside) -> None:
    """What can be read inside can be worked in, and so can a folder of the workspace."""
    (inside.workspace / "below").mkdir()
    for cwd in ("/usr", str(inside.workspace / "below")):
        assert inside.run("pwd", cwd=cwd).stdout.text() == f"{cwd}\n"


def test_of_a_program_in_a_private_folder_the_file_alone_is_there(inside: Inside) -> None:
    """Its neighbours are not, and a socket in its place is not brought along."""
    with tempfile.TemporaryDirectory(dir="/tmp") as other:
        program = Path(other, "program")
        program.write_text(f"#!/bin/sh\nls -A {other}\n")
        program.chmod(0o755)
        Path(other, "neighbour").touch()
        assert inside.run("", argv=(str(program),)).stdout.text() == "program\n"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"{other}/socket")
            plain = Invocation((f"{other}/socket",), {}, str(inside.workspace), None, 1.0, 0.0)
            enclosed, release = inside.sandbox.enclose(plain)
            release()
            assert f"{other}/socket" not in enclosed.argv[: enclosed.argv.index("--chdir")]


def test_what_is_kept_in_memory_is_limited(inside: Inside) -> None:
    """/dev cannot be written, its devices can; /dev/shm holds as much as a file may, whatever is in it."""
    script = (
        "echo x > /dev/null && touch /dev/here;"
        "for n in 1 2 3; do head -c 900000 /dev/zero > /dev/shm/$n; done; cat /dev/shm/* | wc -c"
    )
    outcome = inside.run(script)
    assert int(outcome.stdout.text()) <= LIMITS.file_bytes
    said = outcome.stderr.text()
    assert "/dev/here" in said
    assert "Read-only file system" in said
    assert "No space left on device" in said


def test_there_is_no_network(inside: Inside) -> None:
    """A server on this machine's loopback, and an abstract socket, cannot be reached from inside."""
    connect = (
        "import socket, sys\n"
        "for family, address in ((socket.AF_INET, ('127.0.0.1', int(sys.argv[1]))),"
        " (socket.AF_UNIX, '\\0' + sys.argv[2])):\n"
        "    try: socket.socket(family).connect(address); print('connected')\n"
        "    except OSError as error: print(type(error).__name__)\n"
    )
    name = f"prxbus-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0" + name)
        abstract.listen()
        port = server.getsockname()[1]
        (inside.workspace / "connect.py").write_text(connect)
        outcome = inside.run(f"{PYTHON} -I -S connect.py {port} {name}")
    assert outcome.stdout.text() == "ConnectionRefusedError\nConnectionRefusedError\n"


def test_nothing_of_the_machine_can_be_signalled(inside: Inside) -> None:
    """Processes outside have no pid inside, and no privilege is left."""
    outcome = inside.run(f"kill -0 {os.getpid()}; grep CapEff /proc/self/status; ls -d /proc/[0-9]* | wc -l")
    assert outcome.stdout.text().split()[:2] == ["CapEff:", "0000000000000000"]
    assert int(outcome.stdout.text().split()[2]) < 10
    assert "No such process" in outcome.stderr.text()


def test_memory_files_and_processes_are_limited(inside: Inside) -> None:
    """An allocation, a file and a number of processes beyond the limits fail, for root too."""
    grab = f"{PYTHON} -I -S -c 'bytearray(3 << 30)'"
    assert "MemoryError" in inside.run(grab).stderr.text()
    inside.run("head -c 3000000 /dev/zero > large")
    assert (inside.workspace / "large").stat().st_size == LIMITS.file_bytes
    fork = inside.run("for i in $(seq 30); do sleep 60 & done; echo all")
    assert "fork" in fork.stderr.text()
    assert "all" not in fork.stdout.text()


def test_input_output_and_exit_codes_pass_through(inside: Inside) -> None:
    """Standard input of any size arrives; both outputs and the exit code come back; a signal is 128 more."""
    data = os.urandom(1 << 20)
    outcome = inside.run("cksum; echo err >&2; pwd >&2; exit 7", stdin=data)
    assert (outcome.status, outcome.exit_code) == ("failed", 7)
    (inside.workspace / "data").write_bytes(data)
    assert outcome.stdout.text() == inside.run("cksum < data").stdout.text()
    assert outcome.stderr.text() == f"err\n{inside.workspace}\n"
    assert inside.run("kill -9 $$").exit_code == 137


def _left(inside: Inside) -> list[int]:
    """Processes of the workspace's runs that still live."""
    marker = b"RUN=" + os.fsencode(inside.workspace)
    return [row.pid for row in read_table().values() if row.alive and carries(row.pid, marker)]


def test_a_program_has_its_grace_inside_too(inside: Inside) -> None:
    """SIGTERM reaches the program itself, which can clean up; SIGKILL never comes."""
    script = "trap 'sleep 0.2; touch cleaned; exit 0' TERM; touch ready; while :; do sleep 0.01; done"
    outcome = inside.run(script, timeout_s=1.5, grace_s=40.0)
    assert outcome.status == "timeout"
    until(lambda: inside.released, "the end")
    assert (inside.workspace / "cleaned").exists()
    assert inside.reaper.stats.killed == 0


def test_whoever_ignores_sigterm_is_gone_with_everything_it_started(inside: Inside) -> None:
    """Double forks, sessions of their own and scrubbed environments end with the namespace."""
    script = (
        "trap '' TERM; setsid env -i /bin/sh -c \"trap '' TERM; while :; do sleep 0.01; done\" &"
        "while :; do sleep 0.01; done"
    )
    assert inside.run(script, timeout_s=1.0, grace_s=0.3).status == "timeout"
    until(lambda: inside.released, "the end")
    until(lambda: not _left(inside), "every process to go")
    assert inside.reaper.stats.killed == 1


def test_what_a_run_leaves_behind_ends_with_it(inside: Inside) -> None:
    """A background process does not outlive the program that started it."""
    assert inside.run("setsid sleep 1000 & exit 0").status == "ok"
    until(lambda: not _left(inside), "the sleeper to go")


def test_a_missing_interpreter_is_no_exit_code(inside: Inside) -> None:
    """What cannot be started is refused before bubblewrap would report it as its own failure."""
    script = inside.workspace / "hook"
    script.write_text("#!/no/such/sh\n")
    script.chmod(0o755)
    plain = Invocation((str(script),), {}, str(inside.workspace), None, 1.0, 0.0)
    with pytest.raises(StartFailed, match="names /no/such/sh, which does not exist"):
        inside.sandbox.enclose(plain)


def test_hooks_run_inside_on_all_three_channels_and_reach_the_bus(bubblewrap: None) -> None:
    """A sandboxed hook gets its envelope three times and publishes with prxbus pub, one level deeper."""
    script = (
        'printf %s "$ZERO_HOOK_PAYLOAD" > variable; cat "$ZERO_HOOK_PAYLOAD_FILE" > file; cat > stdin;'
        "touch /etc/prxbus-was-here; ls -d /sys/class/net/* > nets; prxbus pub prx.metrics.count '{\"n\": 1}'"
    )
    with scene() as at:
        hooks(at.workspace, error=[sh(script, stdin_json=True)])
        from broker.client import Subscriber

        with (
            shell(at.bus, at.workspace, "--sandbox", "bubblewrap") as runner,
            Subscriber(["prx.metrics.*"], runtime_dir=at.bus) as events,
        ):
            assert (runner.said["hooks"], runner.said["sandbox"], runner.said["refusal"]) == (
                *(1, "bubblewrap", None),
            )
            at.agent.publish("prx.lifecycle.error", {"component": "llm", "message": "m"}, session_id="s")
            (ran,) = at.monitor.runs(1)
            assert ran["status"] == "ok", ran
            (event,) = events.batch(timeout=20)
            assert (event.depth, event.payload) == (1, {"n": 1})
        channels = {(at.workspace / name).read_bytes() for name in ("variable", "file", "stdin")}
        assert len(channels) == 1
        assert orjson.loads(channels.pop())["payload"]["component"] == "llm"
        assert not Path("/etc/prxbus-was-here").exists()


def test_configured_but_missing_no_hook_runs_and_everybody_is_told(runtime_dir: Path, tmp_path: Path) -> None:
    """Without bubblewrap the ready line, the log and each run's report say so, and nothing is started."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "prxbus.toml").write_text('[hooks]\nsandbox = "bubblewrap"\n')
    workspace = tmp_path / "ws"
    workspace.mkdir()
    hooks(workspace, error=[sh("touch ran")])
    path = tmp_path / "path.py"  # the service, on a machine without the program
    path.write_text(
        "import sys\nfrom subscribers.runtimes import sandbox\n"
        "sandbox.Bubblewrap.__init__.__kwdefaults__['path'] = ('/nonexistent',)\n"
        "from subscribers.runner.shell_service import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    import subprocess

    from broker.testing import running_broker
    from tests.integration.shell_scene import Monitor

    with running_broker(runtime_dir) as bus, (tmp_path / "log").open("wb") as log:
        monitor = Monitor(bus)
        arguments = ["--runtime-dir", bus, "--workspace", str(workspace), "--sandbox", "bubblewrap"]
        service = subprocess.Popen(
            [sys.executable, str(path), *arguments], stdout=subprocess.PIPE, stderr=log
        )
        try:
            assert service.stdout is not None
            said = json.loads(service.stdout.readline())
            assert (said["hooks"], said["sandbox"]) == (0, "bubblewrap")
            assert "install the package bubblewrap" in said["refusal"]
            sent = command("pub", "prx.lifecycle.error", "{}", PRXBUS_RUNTIME_DIR=bus)
            assert sent.returncode == 0
            (ran,) = monitor.runs(1)
            assert (ran["status"], ran["reason"]) == ("not_started", said["refusal"])
        finally:
            service.terminate()
            with suppress(subprocess.TimeoutExpired):
                service.wait(30)
            service.kill()
            service.wait()
            assert service.stdout is not None
            service.stdout.close()
            monitor.events.close()
    assert "no hooks run" in (tmp_path / "log").read_text()
    assert not (workspace / "ran").exists()


def test_a_workspace_may_ask_for_the_sandbox(bubblewrap: None, runtime_dir: Path, tmp_path: Path) -> None:
    """prxbus up puts the hooks into it when the workspace's own file says so, and its ready line tells."""
    (tmp_path / ".prxbus").mkdir()
    (tmp_path / ".prxbus" / "config.toml").write_text('[hooks]\nsandbox = "bubblewrap"\n')
    hooks(tmp_path, error=[sh("touch ran; touch /etc/prxbus-was-here")])
    with up(runtime_dir, "--workspace", str(tmp_path)) as (_, said):
        assert (said["hooks"], said["sandbox"], said["refusal"]) == (1, "bubblewrap", None)
        command("pub", "prx.lifecycle.error", "{}", PRXBUS_RUNTIME_DIR=str(runtime_dir))
        until((tmp_path / "ran").exists, "the hook")
    assert not Path("/etc/prxbus-was-here").exists()


def test_a_workspace_cannot_leave_the_sandbox(runtime_dir: Path, tmp_path: Path) -> None:
    """Where the user's file asks for it, a workspace that says none is refused, and nothing is started."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "prxbus.toml").write_text('[hooks]\nsandbox = "bubblewrap"\n')
    (tmp_path / ".prxbus").mkdir()
    (tmp_path / ".prxbus" / "config.toml").write_text('[hooks]\nsandbox = "none"\n')
    arguments = ("up", "--no-http", "--runtime-dir", str(runtime_dir), "--workspace", str(tmp_path))
    done = command(*arguments, PRXBUS_CONFIG_DIR=str(config))
    assert done.returncode == 2
    assert "'none' loosens 'bubblewrap'; a workspace may only tighten it" in done.stderr


def test_the_check_of_the_configuration_tries_the_sandbox(tmp_path: Path) -> None:
    """Where it can be used the configuration is in order; where not, it says why and exits with 1."""
    (tmp_path / "prxbus.toml").write_text('[hooks]\nsandbox = "bubblewrap"\n')
    try:
        Bubblewrap(str(tmp_path), LIMITS).close()
    except SandboxUnavailable as error:
        expected, words = 1, str(error)
    else:
        expected, words = 0, ""
    done = command("config", "check", "--workspace", str(tmp_path), PRXBUS_CONFIG_DIR=str(tmp_path))
    assert (done.returncode, words in done.stderr) == (expected, True)
    done = command("config", "check", "--workspace", "/", PRXBUS_CONFIG_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "hooks.sandbox: the workspace is /, all of which would be writable" in done.stderr
