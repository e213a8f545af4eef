"""The codex service with real programs: what handlers may do, what they find, and how it starts and ends."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from broker.client import Decision, Publisher
from broker.client.tool import Tool
from broker.testing import running_broker
from subscribers.hooks.withheld import WITHHELD
from subscribers.sources.attach_context import save
from subscribers.sources.import_actions import Importer
from subscribers.sources.import_places import ImportPlaces
from subscribers.sources.import_sources import homes
from tests.integration.service_scene import Runner, serving
from tests.integration.shell_scene import Monitor
from tests.integration.transform_scene import write
from tests.integration.waiting import until

START = "prx.lifecycle.tool_call_start"
DENY = json.dumps(
    {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "no",
        }
    }
)

CASES: dict[str, tuple[str, str | None, str | None]] = {
    # name: the command, the reason of a block (None: it does not block), what the report says
    "exit_2": ("echo ' why ' >&2; exit 2", "why", None),
    "deny": (f"echo '{DENY}'", "no", None),
    "blank": ("exit 2", None, "exited with code 2 but did not write a blocking reason to stderr"),
    "missing": ("python3 ./gone.py", None, "is not there"),
    "unreadable_command": ("echo 'unbalanced", None, "cannot be read by "),
    "other": ("echo oops >&2; exit 7", None, "hook exited with code 7"),
    "killed": ("kill -9 $$", None, "hook exited without a status code"),
    "two": (f"echo '{DENY}'; echo '{DENY}'", None, "invalid pre-tool-use JSON output"),
    "banner": (f"echo hello; echo '{DENY}'", None, None),
    "nan": ("echo '{\"continue\": NaN}'", None, "invalid pre-tool-use JSON output"),
    "not_utf8": ('printf \'{"decision":"block","reason":"a\\377b"}\'', "a\ufffdb", None),
    "huge": (
        'printf \'{"decision":"block","reason":"\'; head -c 1200000 /dev/zero | tr \'\\0\' x; echo \'"}\'',
        None,
        "invalid pre-tool-use JSON output",
    ),
    "never_reads": ("echo unread >&2; exit 2", "unread", None),
    "holds_its_output": ("sleep 4 & echo held >&2; exit 2", "held", None),
    "too_slow": ("sleep 300", None, "hook timed out after 1s"),
}


class Scene(NamedTuple):
    """A bus, the user's configuration folder, a workspace, an agent and a monitor."""

    root: Path
    bus: str
    agent: Publisher
    monitor: Monitor

    @property
    def config(self) -> Path:
        """The user's configuration folder."""
        return self.root / "config"

    @property
    def workspace(self) -> Path:
        """The workspace."""
        return self.root / "workspace"

    def ask(self, tool: str, session: str = "s1", **payload: Any) -> Decision:
        """Ask about a tool call in the workspace."""
        whole = {"tool": tool, "arguments": {"command": "ls"}, "cwd": str(self.workspace), **payload}
        return self.agent.ask(START, whole, timeout=40.0, session_id=session)

    def run_of(self, tool: str) -> dict[str, Any]:
        """The report of the run of a case."""
        self.monitor.wait("prx.hooks.run", len(self.monitor.of("prx.hooks.run")) + 1)
        return next(each for each in self.monitor.of("prx.hooks.run")[::-1] if each["status_message"] == tool)


@contextmanager
def scene() -> Iterator[Scene]:
    """A broker, an agent and a monitor; no service yet."""
    with tempfile.TemporaryDirectory(prefix="pxb", dir="/tmp", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        for name in ("config", "workspace", "home"):
            (root / name).mkdir()
        with (
            running_broker(root / "bus") as bus,
            Publisher("agent", runtime_dir=bus, on_absent="raise") as agent,
        ):
            monitor = Monitor(bus)
            try:
                yield Scene(root, bus, agent, monitor)
            finally:
                monitor.events.close()


@contextmanager
def service(scene: Scene, *options: str) -> Iterator[Runner]:
    """The service for the scene; ended in order."""
    environ = {
        "PRXBUS_CONFIG_DIR": str(scene.config),
        "HOME": str(scene.root / "home"),
        "XDG_CONFIG_HOME": "",
        "XDG_DATA_HOME": "",
        "SHELL": "/bin/sh",
        **dict.fromkeys(WITHHELD, "secret"),
    }
    options = ("--runtime-dir", scene.bus, "--workspace", str(scene.workspace), *options)
    log = scene.root / "codex.log"
    with serving(Runner, "codex_service", log, options, environ, appends=True) as runner:
        yield runner


def document(*groups: tuple[str | None, dict[str, Any]], event: str = "PreToolUse") -> str:
    """A hook file with a handler for each matcher."""
    found = [
        {**({} if matcher is None else {"matcher": matcher}), "hooks": [{"type": "command", **handler}]}
        for matcher, handler in groups
    ]
    return json.dumps({"hooks": {event: found}})


def test_what_handlers_may_do_and_what_they_find() -> None:
    """Only what is meant as a block blocks; whatever else a handler does is told, and harms nobody.

    What the agent forwarded is its environment, and never our token; its input is the payload.
    """
    with scene() as made:
        handlers = [
            (name, {"command": command, "statusMessage": name, "timeout": 1 if name == "too_slow" else 30})
            for name, (command, _, _) in CASES.items()
        ]
        show = {"command": "cat; env | sort >&2; exit 2", "statusMessage": "show"}
        write(made.config / "hooks.json", document(*handlers, ("show", show)))
        with service(made):
            found = {name: _did(made, name) for name in CASES}
            failing = [name for name, (_, _, told) in CASES.items() if told is not None]
            letters = made.monitor.wait("prx.hooks.dead_letter", len(failing))
            _finds_its_agents_environment_and_folder(made)
            until(lambda: sum(_counted(made).values()) > len(CASES), "every run counted in the status")
            counted = _counted(made)
    assert sum(counted.values()) - counted["ok"] == len(failing)
    assert set(counted) <= {"ok", "failed", "timeout", "signalled", "not_started"}
    assert found == {
        name: (reason, "blocked" if reason else "completed" if told is None else "failed", told)
        for name, (_, reason, told) in CASES.items()
    }
    assert [each["status_message"] for each in letters] == failing


def _counted(made: Scene) -> dict[str, int]:
    """The runs that the broker's status tells of the service, by how they ended."""
    with Tool("test", runtime_dir=made.bus) as tool:
        (row,) = [row for row in tool.request("status").body["status"]["deciders"] if row["name"] == "codex"]
    return dict(row.get("runs", {}))


def _did(made: Scene, name: str) -> tuple[str | None, str, str | None]:
    """What came of a case: the reason of a block, the result, and what is told."""
    expected = CASES[name][2]
    decision = made.ask(name, **({"output": "x" * 5_000_000} if name == "never_reads" else {}))
    assert decision.denied is (decision.reason is not None), name
    report = made.run_of(name)
    assert name != "holds_its_output" or report["duration_ms"] < 3_500
    texts = [each["text"] for each in report["entries"] if each["kind"] == "error"]
    told = expected if expected is not None and any(expected in text for text in texts) else None
    assert (report["status"] == "ok") is (report["result"] != "failed")
    return decision.reason, report["result"], told if told or not texts else str(texts)


def _finds_its_agents_environment_and_folder(made: Scene) -> None:
    sent = {"PATH": "/usr/bin:/bin", "AGENT": "yes", "CLAUDE_ENV_FILE": "/e"}
    context = save(made.bus, sent | dict.fromkeys(WITHHELD, "theirs"))
    own = made.ask("show").reason or ""
    theirs = made.ask("show", agent_context=context).reason or ""
    assert "AGENT=yes" not in own
    assert "AGENT=yes" in theirs
    assert ("CLAUDE_ENV_FILE=/e" in own, "CLAUDE_ENV_FILE=/e" in theirs) == (False, True)
    for text in (own, theirs):
        names = {line.partition("=")[0] for line in text.splitlines()}
        assert not names & {*WITHHELD}
        assert {"PRXBUS_DEPTH", "PRXBUS_CAUSE", "PRXBUS_RUNTIME_DIR"} <= names
        assert f"PWD={made.workspace}" in text.splitlines()


def test_it_is_a_bare_interpreter_until_there_is_a_file() -> None:
    """It says that it is ready, ends in order, and serves from the first file on; what comes next counts."""
    with scene() as made:
        path = made.config / "hooks.json"
        options = ("--watch", str(path), "--lifeline")
        with service(made, *options) as runner:
            assert runner.said == {"ready": True, "name": "codex", "pid": runner.process.pid, "handlers": 0}
            maps = Path(f"/proc/{runner.process.pid}/maps").read_text()
            assert "zmq" not in maps
        with service(made, *options) as runner:
            write(path, document((None, {"command": "echo a >&2; exit 2"})))
            until(lambda: made.ask("Bash").reason == "a", "the first hook")
            write(path, document((None, {"command": "echo b >&2; exit 2"})))
            assert made.ask("Bash").reason == "b"
            write(path, "{")
            assert made.ask("Bash").reason == "b"
            until(lambda: runner.logged("kept_last_good"), "that the last good file is kept")
            path.unlink()
            assert made.ask("Bash").verdict == "none"
            os.kill(runner.process.pid, signal.SIGHUP)
            write(made.workspace / ".prxbus" / "hooks.json", document((None, {"command": "exit 0"})))
            assert made.ask("Bash").heard == () or made.ask("Bash").verdict == "none"


def test_a_run_keeps_what_it_began_with_and_a_stop_lets_it_end() -> None:
    """An edit does not touch a handler that runs; the service answers for it before it ends."""
    with scene() as made:
        gate = made.root / "gate"
        os.mkfifo(gate)
        path = made.config / "hooks.json"
        first = {"command": f"echo >{made.root}/began; read x <{gate}; echo old >&2; exit 2"}
        write(path, document((None, first)))
        with service(made) as runner:
            found: list[Decision] = []
            asking = threading.Thread(target=lambda: found.append(made.ask("Bash")))
            asking.start()
            until((made.root / "began").exists, "the handler")
            write(path, document((None, {"command": "sleep 300", "async": True, "statusMessage": "later"})))
            for session in ("s1", "s2"):
                assert made.ask("Bash", session=session).verdict == "none"
            made.agent.publish("prx.lifecycle.session_end", {}, session_id="s2")
            report = made.run_of("later")
            assert report["reason"] == "ended early: nobody wants its result any more"
            path.unlink()
            assert made.ask("Bash").verdict == "none"
            runner.process.terminate()
            until(lambda: made.ask("Other").heard == (), "that it is asked no more")
            gate.write_text("\n")
            asking.join(40)
            assert [each.reason for each in found] == ["old"]


def test_the_handlers_of_a_configured_file_may_be_a_server() -> None:
    """Claude Code's http handlers get the payload; their answer decides, and their silence is no opinion."""
    bodies: list[dict[str, Any]] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bodies.append(body)
            answer = DENY.encode() if body["tool_name"] == "Write" else b""
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with scene() as made, HTTPServer(("127.0.0.1", 0), Server) as server:
        serving_thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving_thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}/hooks"
            hook = {"type": "http", "url": url}
            write(made.root / "team.json", json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))
            table = f"[[hook_file]]\npath = '{made.root}/team.json'\nprofile = 'claude'\n"
            write(made.config / "prxbus.toml", table)
            with service(made) as runner:
                assert runner.said["handlers"] == 1
                assert made.ask("Read").verdict == "none"
                denied = made.ask("Write")
                assert (denied.verdict, denied.reason) == ("deny", "no")
                assert [body["tool_name"] for body in bodies] == ["Read", "Write"]
                server.shutdown()
                server.server_close()
                assert made.ask("Write").verdict == "none"
                (letter,) = made.monitor.wait("prx.hooks.dead_letter", 1)
                assert "it cannot be reached" in letter["reason"]
        finally:
            server.shutdown()
            serving_thread.join(20)


def test_an_import_runs_from_its_snapshot_as_long_as_that_is_what_was_confirmed() -> None:
    """The source's later edits do not count; a changed copy does not run, nor does a disabled import."""
    with scene() as made:
        script = made.workspace / ".claude" / "hooks" / "guard.sh"
        write(script, "#!/bin/sh\necho imported >&2\nexit 2\n", mode=0o755)
        command = '"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh'
        write(made.workspace / ".claude" / "settings.json", document(("Bash", {"command": command})))
        home = str(made.root / "home")
        places = ImportPlaces(str(made.root / "imports"), str(made.workspace))
        importer = Importer(places, homes({"HOME": home}))
        plan = importer.preview("claude:project").plan
        assert importer.confirm("claude:project", plan.fingerprint, time.time()).outcome == "applied"
        write(script, "#!/bin/sh\nexit 0\n", mode=0o755)
        write(made.config / "prxbus.toml", f"[hooks]\nimport_dir = '{made.root}/imports'\n")
        with service(made) as runner:
            assert runner.said["handlers"] == 1, "what the agent runs itself is not run here"
            assert made.ask("Bash").reason == "imported"
            (copied,) = (made.root / "imports").rglob("guard.sh")
            before = copied.read_bytes()
            copied.chmod(0o755)
            copied.write_bytes(before + b"#\n")
            assert made.ask("Bash").verdict == "none"
            (letter,) = made.monitor.wait("prx.hooks.dead_letter", 1)
            assert "its import was changed since it was confirmed" in letter["reason"]
            copied.write_bytes(before)
            assert made.ask("Bash").reason == "imported", "it is what was confirmed again"
            importer.disable(plan.import_id, time.time())
            assert made.ask("Bash").verdict == "none"
            assert len(made.monitor.of("prx.hooks.dead_letter")) == 1


def test_an_import_that_was_damaged_and_restored_runs_again() -> None:
    """Also one that was looked at while it was damaged; what fails closed in it is denied in between."""
    with scene() as made:
        guard = {"command": "echo imported >&2; exit 2", "onFailure": "block"}
        write(made.workspace / ".claude" / "settings.json", document(("Bash", guard)))
        places = ImportPlaces(str(made.root / "imports"), str(made.workspace))
        importer = Importer(places, homes({"HOME": str(made.root / "home")}))
        plan = importer.preview("claude:project").plan
        assert importer.confirm("claude:project", plan.fingerprint, time.time()).outcome == "applied"
        write(made.config / "prxbus.toml", f"[hooks]\nimport_dir = '{made.root}/imports'\n")
        (hooks,) = (made.root / "imports").rglob("hooks.json")
        before, aside = hooks.read_bytes(), hooks.parent.with_suffix(".aside")
        with service(made) as runner:
            assert made.ask("Bash").reason == "imported"
            hooks.parent.rename(aside)
            assert "onFailure" in (made.ask("Bash").reason or ""), "its copy is gone"
            runner.kill()
        with service(made) as runner:
            assert f"{hooks} fails closed and cannot be used" in (made.ask("Bash").reason or "")
            aside.rename(hooks.parent)
            until(lambda: made.ask("Bash").reason == "imported", "imported")
            hooks.write_bytes(before + b"\n")
            assert "onFailure" in (made.ask("Bash").reason or "")
            hooks.write_bytes(before)
            until(lambda: made.ask("Bash").reason == "imported", "imported")


def test_what_fails_closed_is_denied_while_the_service_is_not_there() -> None:
    """Killed, stopped, or started with a broken file: the answer is no. Other events and other times pass."""
    with scene() as made:
        team = made.root / "team.json"
        team.write_text(document(("Bash", {"command": "exit 0"})))
        table = f"[[hook_file]]\npath = '{team}'\nprofile = 'codex'\non_failure = 'block'\n"
        write(made.config / "prxbus.toml", table)
        with service(made) as runner:
            assert made.ask("Bash").verdict == "none"
            os.kill(runner.process.pid, signal.SIGSTOP)
            stopped = made.agent.ask(START, {"tool": "Bash", "arguments": {}}, timeout=0.5)
            assert (stopped.verdict, "fails closed" in (stopped.reason or "")) == ("deny", True)
            assert made.agent.ask("prx.lifecycle.session_end", {}, timeout=0.5).verdict == "none"
            os.kill(runner.process.pid, signal.SIGCONT)
            until(lambda: made.ask("Bash").verdict == "none", "none")
            runner.kill()
        until(lambda: made.ask("Bash").verdict == "deny", "deny")
        team.write_text("{")
        with service(made) as runner:
            said = made.ask("Bash")
            assert f"{team} fails closed and cannot be used" in (said.reason or "")
            assert made.agent.ask("prx.lifecycle.user_prompt", {"prompt": "p"}, timeout=40).verdict == "none"
            runner.kill()
        write(made.config / "prxbus.toml", "")
        until(lambda: made.ask("Bash").verdict == "deny", "deny")
        with service(made):
            until(lambda: made.ask("Bash").verdict == "none", "there is nothing to guard any more")


def test_a_workspace_with_thousands_of_patterns_delays_no_guard_of_the_users() -> None:
    """They are read beside what is asked; the guard that was there before answers within the ask's time."""
    with scene() as made:
        write(made.config / "hooks.json", document(("Bash", {"command": "echo mine >&2; exit 2"})))
        write(made.config / "prxbus.toml", "[hooks]\nproject_hooks_enabled = true\n")
        many = document(*((f"^Tool{number}.*x{number}$", {"command": "true"}) for number in range(12_000)))
        with service(made) as runner:
            assert made.ask("Bash").reason == "mine"
            write(made.workspace / ".prxbus" / "hooks.json", many)
            said = made.agent.ask(START, {"tool": "Bash", "arguments": {}}, timeout=6.0)
            assert said.reason == "mine"
            until(lambda: runner.logged('"handlers":12000'), "the workspace's hooks")
