"""Hooks that are Python modules, in the process that holds them: what they are given, and do to others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from subscribers.hooks.module_hook import ModuleCall
from subscribers.runner.roles_hosts import PYTHON_PROGRAM
from subscribers.runtimes.module_calls import CALLS_PER_HOOK
from subscribers.runtimes.python_module_program import python_host_argv
from tests.integration.module_scene import PATIENCE_S, ModuleScene, Pending
from tests.integration.waiting import until

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.may_leak("the host of the module starts processes; its end is looked at when it is closed"),
]

LONG_S = 20.0
"""Time of a call that others are not to wait for."""

STEADY = "def on_tool_before(ctx, tool, args):\n    args['seen'] = True\n"


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleScene]:
    """A host with one hook that does nothing wrong."""
    argv = python_host_argv(memory_mb=256, log_level="debug", program=PYTHON_PROGRAM)
    scene = ModuleScene(tmp_path_factory.mktemp("role"), argv)
    scene.host.start()
    assert scene.hook("steady", STEADY).name == "loaded"
    yield scene
    pid = scene.host.pid
    scene.host.close(5.0)
    assert pid is not None
    assert not os.path.exists(f"/proc/{pid}")


def hook(on: ModuleScene, hook_id: str, source: str) -> None:
    """Have a hook loaded."""
    state = on.hook(hook_id, textwrap.dedent(source))
    assert (state.name, state.reason) == ("loaded", None)


def steady(on: ModuleScene) -> None:
    """Have the steady hook called."""
    returned = on.call("steady")
    assert (returned.status, returned.edit, returned.error) == ("ok", {"seen": True}, None)


# -- the contract -----------------------------------------------------------------------------


def test_a_handler_is_given_what_is_documented(on: ModuleScene) -> None:
    """Each handler gets the context and its input, and inject and log reach whoever listens."""
    source = """
        seen = []

        def on_load(ctx):
            ctx.inject("loaded")
            ctx.log.info("up", {"session": ctx.session_id, "agent": ctx.agent})

        def on_chat_message(ctx, text):
            ctx.inject(f"{ctx.hook_name}|{ctx.hookName}|{ctx.session_id}|{ctx.sessionID}|{ctx.agent}")
            ctx.inject(f"{text} {ctx.config['level']}")
            ctx.config["level"] += 1

        def onToolAfter(ctx, **given):
            ctx.log.warn("after", given)

        def on_event(ctx, given):
            ctx.log.debug(given["type"], size=len(given["properties"]))
    """
    on.write("all.py", textwrap.dedent(source))
    on.want("all", config={"level": 1})
    state = on.settled()["all"]
    assert state.handlers == ("onLoad", "onChatMessage", "onToolAfter", "onEvent")
    assert on.said("all", "up")[1:] == ("info", "up", {"session": None, "agent": None})
    assert ("all", None, "loaded") in on.injected
    for level in (1, 2):
        returned = on.call("all", "onChatMessage", {"text": "hi"})
        assert returned.injected == ("ALL|ALL|s1|s1|coder", f"hi {level}")
        assert returned.edit is None
    assert (
        on.call("all", "onChatMessage", {"text": "hi"}, session=None).injected[0].startswith("ALL|ALL|None")
    )
    given = {"tool": "edit", "args": {"path": "x"}, "output": "done"}
    assert on.call("all", "onToolAfter", given).status == "ok"
    assert on.said("all", "after")[3] == given
    on.call("all", "onEvent", {"type": "session.idle", "properties": {"a": 1}})
    assert on.said("all", "session.idle")[3] == {"size": 1}
    returned = on.call("all", "onToolBefore")
    assert (returned.status, returned.error) == ("absent", "its module has no onToolBefore")
    assert on.call("nobody").status == "absent"


def test_what_a_call_publishes_has_its_depth_and_cause(on: ModuleScene) -> None:
    """In the handler, where it awaits, in its tasks and threads of asyncio, and in whatever it starts."""
    source = """
    import asyncio, os, subprocess
    from broker.client.context import current

    show = "echo $PRXBUS_DEPTH $PRXBUS_CAUSE"

    def mine():
        return None if current.get() is None else "{0.depth} {0.event}".format(current.get())

    def forked():
        reading, writing = os.pipe()
        if not os.fork():
            os.dup2(writing, 1)
            os.execvp("sh", ["sh", "-c", show])
        os.close(writing)
        with open(reading) as stream:
            return stream.read()

    def on_load(ctx):
        ctx.log.info(f"at load {mine()}")

    def on_chat_message(ctx):
        bare = {"PATH": os.environ["PATH"]}
        for found in (
            mine(),
            subprocess.run(show, shell=True, capture_output=True, text=True).stdout,
            subprocess.run(show, shell=True, capture_output=True, text=True, env=bare).stdout,
            os.popen(show).read(),
            forked(),
        ):
            ctx.inject(found.strip())
        ctx.inject(str(os.system('exit "$PRXBUS_DEPTH"') >> 8))

    async def on_event(ctx):
        await asyncio.sleep(0.01)
        ctx.inject(mine())
        ctx.inject(await asyncio.create_task(asyncio.to_thread(mine)))
        started = await asyncio.create_subprocess_shell(show, stdout=subprocess.PIPE)
        ctx.inject((await started.communicate())[0].decode().strip())
    """
    hook(on, "caused", source)
    on.said("caused", "at load None")
    first, other = (on.begin("caused", "onEvent", {}, caused=each) for each in ((3, "a/1"), (5, "b/2")))
    assert first.result().injected == ("3 a/1",) * 3
    assert other.result().injected == ("5 b/2",) * 3
    said = on.begin("caused", "onChatMessage", {}, caused=(2, "c/3")).result()
    assert said.injected == (*("2 c/3",) * 5, "2")


def test_an_asynchronous_handler_may_wait_and_leave_a_task_behind(on: ModuleScene) -> None:
    """What the task injects later comes by itself; calls of one hook run together."""
    source = """
        import asyncio

        started = 0
        both = asyncio.Event()

        async def on_system_transform(ctx, system):
            global started
            started += 1
            if started == 2:
                both.set()
            await both.wait()
            asyncio.get_running_loop().create_task(later(ctx))
            return {"system": [*system, f"{started} at once"]}

        async def later(ctx):
            await asyncio.sleep(0.01)
            ctx.inject("later")
            raise KeyError("nobody waits")

        def on_event(ctx, type):
            return plain_looking(ctx)

        async def plain_looking(ctx):
            await asyncio.sleep(0)
            ctx.inject("awaited")
    """
    hook(on, "tasks", source)
    first = on.begin("tasks", "onSystemTransform", {"system": ["a"]})
    second = on.begin("tasks", "onSystemTransform", {"system": ["a"]}, session="s2")
    assert first.result().edit == second.result().edit == ["a", "2 at once"]
    until(lambda: ("tasks", "s2", "later") in on.injected, "what a task injects")
    assert "KeyError: 'nobody waits'" in on.said("tasks", "Task exception was never retrieved")[2]
    assert on.call("tasks", "onEvent", {"type": "x", "properties": {}}).injected == ("awaited",)


def test_an_error_is_told_with_the_users_own_line(on: ModuleScene) -> None:
    """The trace begins in the module; nothing else is the matter with the hook."""
    source = """
        import sys, threading

        def on_tool_before(ctx, tool, args):
            if tool == "exit":
                sys.exit(3)
            if tool == "deep":
                return on_tool_before(ctx, tool, args)
            if tool == "surrogate":
                args["x"] = "\\ud800"
                return
            if tool == "reassigned":
                return {"args": 3}
            if tool == "thread":
                threading.Thread(target=lambda: 1 / 0).start()
            if tool == "print":
                print("not a frame", flush=True)
                return args
            raise ValueError("no")
    """
    hook(on, "wrong", source)
    told = {
        tool: on.call("wrong", given={"tool": tool, "args": {}})
        for tool in ("raise", "exit", "deep", "surrogate", "reassigned", "thread", "print")
    }
    assert told["raise"].error == "ValueError: no"
    detail = told["raise"].detail or ""
    assert detail.splitlines()[1].strip() == f'File "{on.folder}/wrong.py", line 19, in on_tool_before'
    assert told["exit"].error == "SystemExit: 3"
    assert (told["deep"].error or "").startswith("RecursionError")
    assert (told["surrogate"].error or "").startswith("its args cannot be JSON")
    assert told["reassigned"].error == "its args are 3; they have to be an object"
    assert told["print"].status == "ok"
    assert {returned.status for tool, returned in told.items() if tool != "print"} == {"failed"}
    steady(on)
    assert "ZeroDivisionError" in on.said("wrong", "an exception in a thread")[2]


def test_two_hooks_that_share_a_file_share_nothing_else(on: ModuleScene) -> None:
    """Each has its own module and its own neighbours."""
    on.write("shared/_state.py", "calls = []\n")
    source = """
        from . import _state
        mine = []

        class Hook:
            def on_tool_before(self, ctx, args):
                mine.append(1)
                _state.calls.append(1)
                args["count"] = [len(mine), len(_state.calls)]
    """
    on.write("shared/counter.py", textwrap.dedent(source))
    for hook_id in ("one", "two"):
        on.want(hook_id, "shared/counter.py")
    on.settled()
    assert on.call("one").edit == {"count": [1, 1]}
    assert on.call("one").edit == {"count": [2, 2]}
    assert on.call("two").edit == {"count": [1, 1]}
    assert not list(on.folder.rglob("__pycache__"))


# -- loading ----------------------------------------------------------------------------------


def test_what_cannot_be_loaded_is_refused_and_the_others_are_not(on: ModuleScene) -> None:
    """Also what ends the process while it is loaded: once, and not again and again."""
    on.write("syntax.py", "def on_event(ctx:\n")
    on.write("ends.py", "import os\nos._exit(7)\n")
    on.write("signature.py", "def on_event(ctx, typ, properties): ...\n")
    on.write("raises.py", "def on_event(ctx): ...\ndef on_load(ctx):\n    raise ValueError('later')\n")
    for name in ("syntax", "signature", "raises", "ends", "missing"):
        on.want(name)
    states = on.settled()
    names = {name: states[name].name for name in ("syntax", "signature", "raises", "ends", "missing")}
    assert names == {
        "syntax": "refused",
        "signature": "refused",
        "raises": "loaded",
        "ends": "refused",
        "missing": "refused",
    }
    assert (states["syntax"].reason or "").startswith("syntax.py:1: SyntaxError")
    assert states["raises"].reason == "onLoad threw: ValueError: later"
    assert states["ends"].reason == "while it was being loaded, its process ended with 7"
    assert states["missing"].reason == "it cannot be read: No such file or directory"
    assert "'typ'" in (states["signature"].reason or "")
    steady(on)
    on.unwant("syntax", "signature", "raises", "ends", "missing")


def test_a_changed_hook_takes_over_and_the_one_before_is_disposed_once(on: ModuleScene) -> None:
    """A version that cannot be loaded leaves the one before in force."""
    source = """
        def on_tool_before(ctx, args):
            args["version"] = {0}
        def on_dispose(ctx):
            ctx.log.info("disposed {0}")
    """
    hook(on, "changing", source.format(1))
    hook(on, "changing", source.format(2))
    on.said("changing", "disposed 1")
    state = on.hook("changing", "import nowhere_to_be_found\n")
    assert (state.name, state.kept) == ("refused", True)
    assert on.call("changing").edit == {"version": 2}
    hook(on, "changing", source.format(3))
    assert on.call("changing").edit == {"version": 3}
    on.said("changing", "disposed 2")
    on.unwant("changing")
    on.said("changing", "disposed 3")
    assert on.call("changing").status == "absent"
    assert len([record for record in on.logs if record[2].startswith("disposed")]) == 3


# -- faults -----------------------------------------------------------------------------------

FAULTS = {
    "dies": ("import os\n    os.abort()", "lost", "its process was ended by SIGABRT"),
    "loops": ("while True: pass", "timeout", "on_tool_before does not end, with its time of 0.2 s over"),
    "holds": (
        "import re\n    re.match('(a+)+$', 'a' * 64 + 'b')",
        "timeout",
        "it held its process up: a call was not answered in time",
    ),
    "allocates": ("bytearray(2 << 30)", "lost", "on_tool_before ran out of memory"),
    "blocks": (
        "import time\n    time.sleep(1000)",
        "timeout",
        "on_tool_before does not end, with its time of 0.2 s over",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_hook_that_costs_its_process_is_quarantined_alone(on: ModuleScene, fault: str) -> None:
    """It is out, with the reason, until it changes; the others are served, meanwhile and afterwards."""
    body, status, reason = FAULTS[fault]
    how = "async def" if fault == "blocks" else "def"
    hook(on, fault, f"{how} on_tool_before(ctx, tool, args):\n    {body}\n")
    pending = on.begin(fault, timeout_s=0.2)
    steady(on)
    assert pending.result().status == status
    assert on.wait_for(fault, "quarantined").reason == reason
    steady(on)
    returned = on.call(fault)
    assert (returned.status, returned.error) == ("lost", f"it is quarantined: {reason}")
    hook(on, fault, STEADY)
    assert on.call(fault).status == "ok"
    on.unwant(fault)


@pytest.mark.parametrize("body", ["while True: pass", "import re\n    re.match('(a+)+$', 'a' * 64 + 'b')"])
def test_others_are_served_long_before_the_time_of_a_hanging_call_is_over(on: ModuleScene, body: str) -> None:
    """Also when it holds the interpreter's lock: another process takes over then."""
    hook(on, "hangs", f"def on_tool_before(ctx):\n    {body}\n")
    pid = on.host.pid
    began = time.monotonic()
    pending = on.begin("hangs", timeout_s=LONG_S)
    for _ in range(3):
        steady(on)
    assert time.monotonic() - began < LONG_S / 2
    assert not pending.is_over
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert pending.result().status == "lost"
    assert on.wait_for("hangs", "quarantined").reason == "its process was ended by SIGKILL"
    steady(on)


def test_what_a_hook_forks_has_no_say(on: ModuleScene) -> None:
    """Its copy of the host ends when it comes back, and holds nothing open."""
    source = """
        import os, time
        def on_tool_before(ctx, tool, args):
            args["pid"] = os.fork()
        def on_event(ctx):
            if not os.fork():
                time.sleep(1000)
            os._exit(3)
    """
    hook(on, "forks", source)
    edit = on.call("forks").edit
    assert edit["pid"] > 0
    until(lambda: not _lives(edit["pid"]), "the end of a copy")
    assert on.call("forks", "onEvent", {}).error == "its process ended with 3"
    steady(on)


def test_a_hook_that_closes_what_is_not_its_own_is_quarantined(on: ModuleScene) -> None:
    """The channel was not its to close."""
    hook(on, "closes", "import os\ndef on_tool_before(ctx):\n    os.closerange(3, 1000)\n")
    assert on.call("closes").status == "lost"
    reasons = ("its process ended with 71", "it closed its channel")  # the latter if that takes it long
    assert on.wait_for("closes", "quarantined").reason in reasons
    steady(on)


def test_a_hook_that_uses_memory_up_bit_by_bit_is_out_at_the_second_time(on: ModuleScene) -> None:
    """It cannot be told at first whose it is; the others get a fresh process at once."""
    source = """
        kept = []
        def on_tool_before(ctx, tool, args):
            while True:
                kept.append(bytearray(8 << 20))
    """
    hook(on, "hoards", source)
    for _ in range(2):
        pids = {on.host.pid}
        assert on.call("hoards").error == "on_tool_before ran out of memory"
        until(lambda: on.host.pid not in pids, "another process")  # noqa: B023 - it is over before the next
        steady(on)
    state = on.wait_for("hoards", "quarantined")
    assert state.reason == "on_tool_before ran out of memory, for the second time"


def test_an_asynchronous_call_is_cancelled_at_its_deadline(on: ModuleScene) -> None:
    """A handler that waits for ever costs nobody anything, and stays."""
    source = """
        import asyncio

        async def on_tool_before(ctx, args):
            try:
                await asyncio.sleep(args.get("s", 1000))
            finally:
                ctx.log.info("over")
    """
    hook(on, "waits", source)
    returned = on.call("waits", timeout_s=0.1)
    assert (returned.status, returned.error) == ("timeout", "on_tool_before did not end within 0.1 s")
    on.said("waits", "over")
    assert on.call("waits", given={"tool": "x", "args": {"s": 0}}).status == "ok"


def test_a_hook_gets_so_many_calls_at_a_time_and_no_more(on: ModuleScene) -> None:
    """What finds no room is dropped and counted; synchronous calls run one after the other."""
    source = """
        import os, threading, time
        here = threading.Lock()

        def on_tool_before(ctx, tool, args):
            assert here.acquire(blocking=False), "two at once"
            while not os.path.exists(__file__ + ".go"):
                time.sleep(0.002)
            here.release()
    """
    hook(on, "busy", source)
    before = on.host.counters()["dropped"]
    pending = [on.begin("busy") for _ in range(CALLS_PER_HOOK)]
    dropped = on.begin("busy").result()
    assert (dropped.status, dropped.error) == (
        "lost",
        "no room: 64 calls of it and 64 in all are under way already",
    )
    assert on.host.counters()["dropped"] == before + 1
    steady(on)
    assert not any(each.is_over for each in pending)
    on.write("busy.py.go", "")
    assert {each.result().status for each in pending} == {"ok"}
    assert on.host.counters()["under_way"] == 0


def test_a_host_that_is_killed_is_back_at_once(on: ModuleScene) -> None:
    """Nobody is blamed when nothing was under way, and calls wait for it."""
    pid = on.host.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: on.host.pid != pid, "the end of a process that was killed")
    steady(on)
    assert on.settled()["steady"].name == "loaded"


def test_the_end_disposes_every_hook_and_leaves_no_process(tmp_path: Path) -> None:
    """Also when a hook's on_dispose hangs, and when one has started a program."""
    source = """
        import subprocess, time
        started = None
        def on_load(ctx):
            global started
            started = subprocess.Popen(["sleep", "1000"])
            ctx.log.info("started", pid=started.pid)
        def on_dispose(ctx):
            open(__file__ + ".disposed", "a").write(ctx.hook_name)
            {0}
    """
    scene = ModuleScene(tmp_path, python_host_argv())
    scene.host.start()
    for name, what in (("hangs", "time.sleep(1000)"), ("raises", "1 / 0"), ("ends", "pass")):
        assert scene.hook(name, textwrap.dedent(source.format(what))).name == "loaded"
    pids = [int(scene.said(name, "started")[3]["pid"]) for name in ("hangs", "raises", "ends")]
    call = scene.begin("hangs", "onEvent", {})
    scene.host.close(1.5)
    scene.host.close(1.5)
    assert call.result().status == "absent"
    for name in ("hangs", "raises", "ends"):
        assert (tmp_path / f"{name}.py.disposed").read_text() == name.upper()
    assert "ZeroDivisionError" in scene.said("raises", "onDispose threw")[2]
    until(lambda: not any(map(_lives, pids)), "the end of what hooks have started")
    assert scene.begin("ends").result().error == "the test host is being closed"


def test_a_hook_that_spoils_what_others_need_costs_a_process_and_nobody_else(on: ModuleScene) -> None:
    """One takes all threads, one closes where everybody prints: an asynchronous hook begins all the same."""
    source = """
    import sys, threading, time

    def on_tool_before(ctx, tool, args):
        sys.stdout.close()
        threads = [threading.Thread(target=time.sleep, args=(600,), daemon=True) for _ in range(1_000)]
        for thread in threads:
            thread.start()
    """
    hook(on, "takes_all", source)
    printing = "async def on_tool_before(ctx, tool, args):\n    print('printed')\n    args['seen'] = True"
    hook(on, "waits", printing)
    before = on.host.counters()["restarts"]
    assert on.call("takes_all").error == "RuntimeError: can't start new thread"
    assert on.call("waits").edit == {"seen": True}
    assert on.host.counters()["restarts"] == before + 1
    on.unwant("takes_all", "waits")


@pytest.mark.parametrize("given", ['"\\ud800"', "[" * 900 + "]" * 900], ids=["half", "deep"])
def test_an_input_that_cannot_be_written_again_fails_one_call(on: ModuleScene, given: str) -> None:
    """It spoils neither the process nor the next call."""
    before, pending = on.host.counters()["restarts"], Pending()
    content = f'{{"tool":"Bash","args":{{"a":{given}}}}}'.encode()
    on.host.call("steady", ModuleCall("onToolBefore", content, None, None, PATIENCE_S), pending.done)
    said = pending.result()
    assert (said.status, str(said.error)[:32]) == ("failed", "its input cannot be handed over:")
    steady(on)
    assert on.host.counters()["restarts"] == before


PARENT = """
import sys, time
from pathlib import Path
from subscribers.runtimes.python_module_program import python_host_argv
from tests.integration.module_scene import ModuleScene

on = ModuleScene(Path(sys.argv[1]), python_host_argv())
on.host.start()
on.want("stands")
on.settled()
on.begin("stands")
time.sleep(600)
"""


def test_nothing_outlives_the_end_of_whoever_has_started_a_host(tmp_path: Path) -> None:
    """Neither a host whose interpreter's lock is held, nor what a hook has started in the background."""
    noted = tmp_path / "started"
    source = f"""
    import pathlib, re, subprocess

    def on_tool_before(ctx, tool, args):
        started = subprocess.Popen(["sleep", "600"])
        pathlib.Path({str(noted)!r}).write_text(str(started.pid))
        re.match("(a+)+$", "a" * 64 + "b")
    """
    (tmp_path / "stands.py").write_text(textwrap.dedent(source))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], env=environment) as parent:
        until(lambda: noted.exists() and noted.read_text(), "a hook to begin")
        started = int(noted.read_text())
        host = os.getpgid(started)
        parent.kill()
    until(lambda: not _lives(started) and not _lives(host), "all to be gone")


def test_secrets_of_ours_are_not_in_its_environment(on: ModuleScene) -> None:
    """A module is somebody else's code."""
    hook(on, "environ", "import os\ndef on_tool_before(ctx, args):\n    args.update(os.environ)\n")
    edit = on.call("environ").edit
    assert "PATH" in edit
    assert "PRXBUS_API_TOKEN" not in edit


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


assert PATIENCE_S > LONG_S
