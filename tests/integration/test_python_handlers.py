"""Python handlers on a real bus: they watch, decide, publish, fail, and are loaded from all their places."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from broker.client import Publisher, Subscriber
from broker.protocol.errors import BusError
from tests.integration.command import prxbus
from tests.integration.python_scene import gone, handlers, scene
from tests.integration.shell_scene import Monitor
from tests.integration.test_up import up
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(120)

START = "prx.lifecycle.tool_call_start"
ASKED = {"tool": "Bash", "arguments": {"command": "rm -rf /"}}
GUARD = '@decide("tool_call_start")\ndef guard(event, ctx):\n    return ctx.deny("not here")\n'


def test_one_guard_denies_under_prxbus_up(runtime_dir: Path, tmp_path: Path) -> None:
    """A workspace's file is loaded, its guard answers an ask with its reason, and the run is told."""
    folder = tmp_path / ".prxbus" / "handlers"
    folder.mkdir(parents=True)
    (folder / "guards.py").write_text(
        "from subscribers.handlers import on, decide, transform\n\n"
        '@on("prx.lifecycle.tool_call", tools=["Bash"])\n'
        'def audit(event, ctx): ctx.log.info("ran", tool=event.payload["tool"])\n\n'
        '@decide("prx.lifecycle.tool_call_start", priority=10, timeout=1.0)\n'
        "async def guard(event, ctx):\n"
        '    return ctx.deny("not here") if "rm -rf" in str(event.payload) else None\n'
    )
    with up(runtime_dir, "--workspace", str(tmp_path)) as (_, said):
        assert (said["handlers"], said["handlers_refused"]) == (2, 0)
        assert "python" in said["processes"]
        monitor = Monitor(str(runtime_dir))
        with Publisher("agent", runtime_dir=runtime_dir, on_absent="raise") as agent:
            refused = agent.ask(START, ASKED, timeout=20.0, session_id="s1")
            harmless = agent.ask(START, {"tool": "Bash", "arguments": {"command": "ls"}}, timeout=20.0)
        (report,) = monitor.runs(1)
        monitor.events.close()
    assert (refused.denied, refused.reason, refused.by) == (True, "not here", "guards.py:guard")
    assert (harmless.verdict, harmless.partial) == ("none", False)
    assert (report["hook"], report["dialect"], report["status"]) == ("guards.py:guard", "python", "ok")


def test_without_a_named_workspace_nothing_of_it_runs(runtime_dir: Path, tmp_path: Path) -> None:
    """prxbus up started inside a workspace that it was not given starts no process for its handlers."""
    (tmp_path / ".prxbus" / "handlers").mkdir(parents=True)
    (tmp_path / ".prxbus" / "handlers" / "own.py").write_text("open('ran', 'w')\n")
    with up(runtime_dir) as (_, said):
        assert "python" not in said["processes"]
    with up(runtime_dir, "--workspace", str(tmp_path)) as (_, said):
        assert "python" in said["processes"]
    assert (tmp_path / "ran").exists()


def test_a_path_that_is_not_there_is_refused_at_the_start(runtime_dir: Path) -> None:
    """prxbus up --handlers names what is missing, and starts nothing."""
    done = prxbus("up", "--no-http", "--runtime-dir", str(runtime_dir), "--handlers", "no/such.py")
    assert done.returncode == 2
    assert "'no/such.py': there is no such file or folder" in done.stderr


def test_three_files_decide_together() -> None:
    """Their answers make one decision: the earliest denial holds, and every context is there in order."""
    with scene() as on:
        on.write("a.py", '@decide("tool_call_start", priority=30)\ndef a(e, c): return c.context("from a")\n')
        on.write("b.py", '@decide("tool_call_start", priority=20)\ndef b(e, c): return c.deny("b says no")\n')
        on.write(
            "c.py",
            '@decide("tool_call_start", priority=10)\ndef c(e, c): return c.deny("c", context="from c")\n',
        )
        with handlers(on) as service:
            assert service.said["handlers"] == 3
            decision = on.agent.ask(START, ASKED, timeout=20.0)
    assert (decision.by, decision.reason) == ("c.py:c", "c")
    assert [said.text for said in decision.contexts] == ["from c", "from a"]
    assert {heard.decider for heard in decision.heard} == {"python:a.py", "python:b.py", "python:c.py"}


def test_every_answer_arrives_as_it_was_given() -> None:
    """A rewrite, an output, a stop and a message of one handler are in the decision."""
    source = (
        '@decide("tool_call_start")\ndef all(event, ctx):\n'
        '    new = {"command": "ls"}\n'
        '    return ctx.ask("sure?", updated_input=new, output="o", stop="enough", message="m")\n'
    )
    with scene() as on:
        on.write("all.py", source)
        with handlers(on):
            decision = on.agent.ask(START, ASKED, timeout=20.0)
    assert (decision.verdict, decision.reason, decision.output) == ("ask", "sure?", "o")
    assert decision.updated_input == {"command": "ls"}
    assert (decision.stop, decision.stop_reason) == (True, "enough")
    assert [said.text for said in decision.system_messages] == ["m"]


def test_a_failure_is_its_handlers_own_and_points_at_the_users_line() -> None:
    """A raising guard costs its own answer only; the report has the traceback from its line on."""
    with scene() as on:
        path = on.write(
            "two.py",
            '@decide("tool_call_start", priority=1)\ndef bad(event, ctx):\n    raise KeyError("gone")\n'
            + GUARD,
        )
        with handlers(on):
            decision = on.agent.ask(START, ASKED, timeout=20.0)
            (letter,) = on.monitor.wait("prx.hooks.dead_letter", 1)
            runs = {run["hook"]: run for run in on.monitor.runs(2)}
    assert (decision.denied, decision.by) == (True, "two.py:guard")
    assert runs["two.py:bad"]["reason"] == "KeyError: 'gone' (two.py:4)"
    first, second, *_ = runs["two.py:bad"]["stderr"].splitlines()
    assert first.startswith("Traceback")
    assert second.strip() == f'File "{path}", line 4, in bad'
    assert runs["two.py:guard"]["status"] == "ok"
    assert (letter["hook"], letter["payload"]) == ("two.py:bad", ASKED)


@pytest.mark.parametrize("failure,verdict", [("open", "none"), ("closed", "deny")])
def test_a_failing_guard_means_what_its_policy_says(failure: str, verdict: str) -> None:
    """A guard that returns what is no answer has failed: no opinion when open, a denial when closed."""
    with scene() as on:
        on.write("yes.py", f'@decide("tool_call_start", failure="{failure}")\ndef yes(e, c): return True\n')
        with handlers(on):
            decision = on.agent.ask(START, ASKED, timeout=20.0)
            (run,) = on.monitor.runs(1)
    assert decision.verdict == verdict
    assert (run["status"], "returned True" in run["reason"]) == ("failed", True)


def test_filters_let_pass_what_they_name() -> None:
    """A handler for one tool and one agent is called for those events alone."""
    with scene() as on:
        on.write(
            "some.py",
            '@on("tool_call", tools=["Ba*"], agents=["a1"])\n'
            'def some(e, c): c.publish("seen.one", {"n": e.payload["n"]})\n',
        )
        with handlers(on), Subscriber(["seen.*"], runtime_dir=on.bus) as seen:
            for n, (tool, agent) in enumerate([("Read", "a1"), ("Bash", "a2"), ("Bash", "a1")]):
                on.agent.publish("prx.lifecycle.tool_call", {"tool": tool, "agent_id": agent, "n": n})
            (event,) = seen.batch(timeout=20.0)
            (run,) = on.monitor.runs(1)
    assert event.payload == {"n": 2}
    assert run["event_id"] == event.caused_by


def test_handlers_that_publish_to_each_other_stop() -> None:
    """Each publication is one level deeper than its cause: after depth 7 nothing more comes."""
    with scene() as on:
        on.write("ping.py", '@on("loop.ping")\ndef ping(e, c): c.publish("loop.pong", {"depth": e.depth})\n')
        on.write("pong.py", '@on("loop.pong")\ndef pong(e, c): c.publish("loop.ping", {"depth": e.depth})\n')
        with handlers(on), Subscriber(["loop.*"], runtime_dir=on.bus) as watching:
            on.agent.publish("loop.ping", {}, session_id="s9")
            seen: list[tuple[str, int, str | None]] = []
            while len(seen) < 8 and (events := watching.batch(timeout=30.0)):
                seen += [(e.topic, e.depth, e.session_id) for e in events]
            runs = on.monitor.runs(8)
            assert watching.batch(timeout=0.3) == []
    expected = [("loop.ping" if depth % 2 == 0 else "loop.pong", depth, "s9") for depth in range(8)]
    assert seen == expected
    assert {run["status"] for run in runs} == {"ok"}


def test_a_publisher_of_the_handlers_own_carries_depth_too() -> None:
    """What a handler publishes through another publisher is caused by the event it handles."""
    source = (
        "from broker.client import Publisher\n"
        "import os\n"
        "own = Publisher('own', runtime_dir=os.environ['OWN_BUS'], on_absent='block')\n"
        '@on("one")\nasync def one(e, c): own.publish("two.x", {})\n'.replace('"one"', '"one.x"')
    )
    with scene() as on:
        on.write("own.py", source)
        with handlers(on, OWN_BUS=on.bus), Subscriber(["two.x"], runtime_dir=on.bus) as seen:
            on.agent.publish("one.x", {})
            (event,) = seen.batch(timeout=20.0)
    assert (event.depth, event.caused_by is not None) == (1, True)


def test_an_installed_package_offers_handlers(tmp_path: Path) -> None:
    """An entry point of the group prxbus.handlers is loaded, with --installed alone."""
    (tmp_path / "corp_guards").mkdir()
    (tmp_path / "corp_guards" / "__init__.py").write_text("")
    (tmp_path / "corp_guards" / "rules.py").write_text("from subscribers.handlers import decide\n" + GUARD)
    info = tmp_path / "corp_guards-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: corp-guards\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[prxbus.handlers]\ncorp = corp_guards.rules\n")
    with scene() as on:
        with handlers(on, "--installed", PYTHONPATH=str(tmp_path)) as service:
            assert service.said["handlers"] == 1
            decision = on.agent.ask(START, ASKED, timeout=20.0)
        with handlers(on, PYTHONPATH=str(tmp_path)) as service:
            assert service.said["handlers"] == 0
    assert decision.by == "corp (installed):guard"


def test_a_named_folder_with_a_package_and_neighbours(tmp_path: Path) -> None:
    """Files import their neighbours relatively; a folder that is a package is one worker."""
    (tmp_path / "_rules.py").write_text('REASON = "from a neighbour"\n')
    (tmp_path / "near.py").write_text(
        "from subscribers.handlers import decide\nfrom ._rules import REASON\n"
        '@decide("tool_call_start")\ndef near(e, c): return c.deny(REASON)\n'
    )
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("from . import watching\n")
    (package / "watching.py").write_text(
        'from subscribers.handlers import on\n@on("tool_call")\ndef watch(e, c): pass\n'
    )
    with scene() as on, handlers(on, "--handlers", str(tmp_path)) as service:
        assert (service.said["handlers"], service.said["files"]) == (2, 2)
        assert on.agent.ask(START, ASKED, timeout=20.0).reason == "from a neighbour"
        on.agent.publish("prx.lifecycle.tool_call", {"tool": "Bash"})
        until(lambda: on.monitor.runs(2), "the report")
        assert {run["hook"] for run in on.monitor.runs(2)} == {"near.py:near", "pack:watch"}
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_worker_outlives_nobody() -> None:
    """When the service is killed its workers end too."""
    with scene() as on:
        on.write("guard.py", GUARD)
        with handlers(on) as service:
            (pid,) = service.pids()
            service.kill()
            until(lambda: gone(pid), "the worker's end")


def test_large_payloads_reach_handlers_whole() -> None:
    """An ask of a megabyte is read by its guard, and a large answer comes back."""
    source = (
        '@decide("tool_call_start")\ndef size(e, c):\n'
        '    return c.rewrite({"command": e.payload["arguments"]["command"][:500_000]})\n'
    )
    with scene() as on:
        on.write("size.py", source)
        with handlers(on):
            began = time.monotonic()
            asked = {"tool": "Bash", "arguments": {"command": "x" * 1_000_000}}
            decision = on.agent.ask(START, asked, timeout=30.0)
            assert time.monotonic() - began < 30.0
    assert decision.updated_input is not None
    assert len(decision.updated_input["command"]) == 500_000


def test_handlers_outlive_their_bus(runtime_dir: Path, tmp_path: Path) -> None:
    """After the broker was killed and has come back, the same workers are asked again, and see events."""
    path = tmp_path / "guard.py"
    source = "from subscribers.handlers import decide, on\n" + GUARD
    path.write_text(source + '@on("tool_call")\ndef seen(event, ctx): ctx.publish("it.was.seen", {})\n')
    with up(runtime_dir, "--handlers", str(path)) as (_, said):
        assert said["handlers"] == 2
        os.kill(said["processes"]["broker"], signal.SIGKILL)

        def denied() -> bool:
            try:
                with Publisher("agent", runtime_dir=runtime_dir, on_absent="raise") as agent:
                    return agent.ask(START, ASKED, timeout=5.0).denied
            except BusError:
                return False

        until(denied, "the guard's answer on the new bus")
        with (
            Subscriber(["it.was.seen"], runtime_dir=runtime_dir) as watching,
            Publisher("agent", runtime_dir=runtime_dir, on_absent="raise") as agent,
        ):

            def seen() -> bool:
                agent.publish("prx.lifecycle.tool_call", {"tool": "Bash"})
                return bool(watching.batch(timeout=0.2))

            until(seen, "an event on the new bus")
