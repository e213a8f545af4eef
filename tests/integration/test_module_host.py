"""The parent of a host of hook modules, whatever the host does: here it is a script that does one thing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from subscribers.hooks.module_hook import ModuleCall, ModuleReturn
from subscribers.hooks.module_plan import State
from subscribers.runtimes import module_channel, module_process
from subscribers.runtimes.module_host import ModuleHost
from tests.integration.module_scene import ModuleScene
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(120)

HOST = """
import json, os, socket, sys, time
channel = socket.socket(fileno=int(sys.argv[-1]))
turn = os.path.getsize(sys.argv[1])  # how many hosts there have been before
open(sys.argv[1], "a").write(".")

def say(**message):
    body = json.dumps(message).encode()
    channel.sendall(len(body).to_bytes(4, "big") + body)

def read(size):
    data = channel.recv(size, socket.MSG_WAITALL)
    return data if len(data) == size else sys.exit()

def loaded(message, handlers=("onToolBefore", "onEvent")):
    for hook in message.get("hooks", ()):
        if message["do"] == "load":
            say(**{"is": "loading", "hook": hook["id"]})
            say(**{"is": "loaded", "hook": hook["id"], "handlers": handlers})

def messages():
    while True:
        message = json.loads(read(int.from_bytes(read(4), "big")))
        if message["do"] == "end":
            sys.exit()
        yield message

say(**{"is": "ready", "version": "1.0"})
"""
SERVE = """
for message in messages():
    loaded(message)
    if message["do"] == "call":
        say(**{"is": "done", "n": message["n"], "edit": turn})
"""


@contextmanager
def hosts(folder: Path, then: str, head: str = HOST) -> Iterator[ModuleScene]:
    """A host that is this script, which wants hooks a and b."""
    script = folder / "host.py"
    script.write_text(head + then)
    (folder / "turns").touch()
    scene = ModuleScene(folder, [sys.executable, "-I", "-S", str(script), str(folder / "turns")], board=False)
    scene.host.start()
    scene.want("a")
    scene.want("b")
    try:
        yield scene
    finally:
        scene.host.close(2.0)


def ended_first_with(what: str) -> str:
    """A host that does ``what`` at its first call, and serves from then on."""
    answer = '    if message["do"] == "call"'
    return SERVE.replace(answer, f"{answer} and turn == 0:\n        {what}\n{answer}")


def test_a_host_is_started_and_called(tmp_path: Path) -> None:
    """Calls that come before it is there wait for it; it says which version it has."""
    with hosts(tmp_path, SERVE) as on:
        assert on.call("a").edit == 0
        assert on.host.version == "1.0"
        assert on.settled() == {name: State("loaded", ("onToolBefore", "onEvent")) for name in "ab"}
        assert on.told[:2] == [("a", State("loading")), ("b", State("loading"))]
        assert on.host.trouble is None
        with pytest.raises(RuntimeError, match="started already"):
            on.host.start()
        assert on.call("a", given={"text": "x" * 3_000_000}).edit == 0


def test_a_call_that_cannot_be_handed_over_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its input is longer than a frame may be; others are made."""
    monkeypatch.setattr(module_channel, "FRAME_BYTES", 1_000)
    with hosts(tmp_path, SERVE) as on:
        on.settled()
        returned = on.call("a", given={"text": "x" * 1_000})
        assert returned.status == "failed"
        assert (returned.error or "").startswith("its input cannot be handed over: 1,")
        assert on.call("a").edit == 0
        assert on.host.counters()["under_way"] == 0


def test_a_host_that_does_not_read_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that finds no room on its way there is sent when there is some."""
    monkeypatch.setattr(module_channel, "BACKLOG_BYTES", 2_000_000)
    what = "turn = -1; time.sleep(0.3); say(**{'is': 'done', 'n': message['n'], 'edit': 0}); continue"
    with hosts(tmp_path, ended_first_with(what)) as on:
        on.settled()
        calls = [on.begin("a", given={"text": "x" * 1_000_000}) for _ in range(8)]
        assert {call.result().status for call in calls} == {"ok"}


def test_a_single_call_under_way_is_to_blame_for_the_end(tmp_path: Path) -> None:
    """It is lost; the others' next calls are served by the next process."""
    with hosts(tmp_path, ended_first_with("sys.exit(3)")) as on:
        on.settled()
        returned = on.call("a")
        assert (returned.status, returned.error) == ("lost", "its process ended with 3")
        assert on.call("b").edit == 1
        assert on.host.states()["a"].reason == "its process ended with 3"
        assert on.host.counters() == {
            "under_way": 0,
            "dropped": 0,
            "lost": 1,
            "retried": 0,
            "restarts": 1,
        }


def test_of_several_calls_under_way_each_gets_a_strike(tmp_path: Path) -> None:
    """Nobody is quarantined for the first one."""
    wait_for_two = "calls = globals().setdefault('calls', [])\n        calls.append(1)\n        "
    what = f"{wait_for_two}if len(calls) < 2: continue\n        sys.exit(3)"
    with hosts(tmp_path, ended_first_with(what)) as on:
        on.settled()
        pending = [on.begin("a"), on.begin("b")]
        assert [each.result().status for each in pending] == ["lost", "lost"]
        assert on.call("a").edit == on.call("b").edit == 1


def test_a_lost_call_that_had_not_begun_is_made_again_once(tmp_path: Path) -> None:
    """And the hook of one that had begun is out at its second strike."""
    then = """
for message in messages():
    loaded(message)
    if message["do"] == "call":
        begun = message["hook"] == "b"
        say(**{"is": "lost", "n": message["n"], "started": begun, "reason": "its thread is gone"})
"""
    with hosts(tmp_path, then) as on:
        on.settled()
        returned = on.call("a")
        assert (returned.status, returned.error) == ("lost", "its thread is gone")
        assert on.host.counters()["retried"] == 1
        assert on.call("b").status == on.call("b").status == "lost"
        assert on.host.states()["b"].reason == "its thread is gone, for the second time"


def test_a_host_that_asks_for_it_is_replaced(tmp_path: Path) -> None:
    """The next one loads everything before it takes over."""
    then = """
for message in messages():
    loaded(message)
    if message["do"] == "call":
        say(**{"is": "done", "n": message["n"], "edit": turn})
        if turn == 0:
            say(**{"is": "quarantined", "hook": "b", "reason": "it hangs"})
            say(**{"is": "replace", "reason": "spoilt"})
"""
    with hosts(tmp_path, then) as on:
        on.settled()
        assert on.call("a").edit == 0
        until(lambda: on.call("a").edit == 1, "another process to take over")
        assert on.host.states()["b"] == State("quarantined", reason="it hangs")


@pytest.mark.parametrize("said", ["channel.sendall(bytes([0, 0, 0, 1, 65]))", "channel.close()"])
def test_a_host_that_does_not_speak_this_is_ended(tmp_path: Path, said: str) -> None:
    """The next one may do better."""
    with hosts(tmp_path, ended_first_with(f"{said}; time.sleep(100)")) as on:
        on.settled()
        assert on.call("a").status == "lost"
        assert on.call("b").edit == 1


def test_a_host_that_leaves_a_call_unanswered_is_ended(tmp_path: Path) -> None:
    """A little after its time; what is wrong in its messages is passed over."""
    what = 'say(nothing=1); say(**{"is": "done"}); say(**{"is": "loaded", "hook": []}); continue'
    with hosts(tmp_path, ended_first_with(what)) as on:
        on.settled()
        returned = on.call("a", timeout_s=0.1)
        assert (returned.status, returned.error) == ("timeout", "no answer within 0.1 s")
        assert on.call("b").edit == 1
        assert on.host.states()["a"].name == "quarantined"


def test_what_takes_too_long_to_be_ready_or_to_load_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process in the first case, the hook that it was loading in the second."""
    monkeypatch.setattr(module_process, "READY_S", 0.4)
    monkeypatch.setattr(module_process, "LOAD_S", 0.4)
    slow = HOST.replace('say(**{"is": "ready"', 'if turn == 0: time.sleep(100)\nsay(**{"is": "ready"')
    then = """
for message in messages():
    if turn == 1:
        say(**{"is": "loading", "hook": "a"})
        time.sleep(100)
    loaded(message)
    if message["do"] == "call":
        say(**{"is": "done", "n": message["n"], "edit": turn})
"""
    with hosts(tmp_path, then, slow) as on:
        assert on.call("b").edit == 2
        assert on.host.states()["a"].reason == "while it was being loaded, loading took longer than 0.4 s"


def test_a_program_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    """A call hears it when its time is over."""
    on = ModuleScene(tmp_path, ["/nowhere/to/be/found"])
    on.want("a")
    assert on.begin("a", timeout_s=0.05).is_over is False
    on.host.start()
    returned = on.call("a", timeout_s=0.05)
    on.host.close(1.0)
    reason = "its process cannot be started: No such file or directory: /nowhere/to/be/found"
    assert (returned.status, returned.error) == ("timeout", f"not begun in time: {reason}")


def test_a_listener_that_raises_costs_nobody_anything(tmp_path: Path) -> None:
    """What it raises is logged."""
    with hosts(tmp_path, SERVE) as on:
        on.settled()

        def fails(_: ModuleReturn) -> None:
            raise ValueError("mine")

        on.host.call("a", ModuleCall("onEvent", b"{}", None, None, 5.0), fails)
        assert on.call("a").edit == 0


def test_nothing_is_started_that_is_not_asked_for(tmp_path: Path) -> None:
    """A host that was never started ends at once."""
    host = ModuleHost([sys.executable], {}, name="idle")
    assert host.pid is None
    assert host.version is None
    host.close(0.1)
