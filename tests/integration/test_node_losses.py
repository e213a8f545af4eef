"""JavaScript hooks that hold up, end or exhaust what they share with others: who is lost, and who is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from subscribers.runtimes.node_program import NodeProgram
from tests.integration.node_scene import NodeScene, node_hooks
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(120)

LONG_S = 3.0
"""Time of a call that holds up its thread, in which the others are to be served."""

STEADY = """
let n = 0;
export default { onLoad(ctx) { ctx.log.info('loaded') }, onEvent(ctx) { ctx.inject(String(++n)) } };
"""


def with_steady_ones(scene: NodeScene, **bad: str) -> None:
    """Load hooks that do nothing wrong beside those that do."""
    scene.write("steady.mjs", STEADY)
    for name in ("steady1", "steady2"):
        scene.want(name, "steady.mjs")
    for name, source in bad.items():
        scene.javascript(name, source)
    states = scene.settled()
    assert {states[name].name for name in ("steady1", "steady2", *bad)} == {"loaded"}


def test_hooks_that_hold_up_their_thread_lose_only_themselves(node: NodeProgram, tmp_path: Path) -> None:
    """Loops, waits and promises without end: the others answer while these calls still have time, also calls
    that were waiting behind them; when it is over, each is quarantined with its handler and time.
    """
    bad = {
        "loop": "export default { onEvent() { for (;;); } }",
        "later": """export default {
            async onEvent() { await new Promise((over) => setTimeout(over, 5)); for (;;); } }""",
        "promises": "export default { async onEvent() { for (;;) await null; } }",
        "waits": """export default {
            onEvent() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) } }""",
    }
    with node_hooks(node, tmp_path, workers=3) as scene:  # two hooks a thread, steady ones first
        with_steady_ones(scene, **bad)
        pending = [scene.begin(name, "onEvent", timeout_s=LONG_S) for name in bad]
        for name in ("steady1", "steady2"):
            assert scene.call(name, "onEvent").status == "ok"
            assert scene.call(name, "onEvent").status == "ok"
        assert not any(call.is_over for call in pending)
        for call in pending:
            assert call.result().status == "timeout"
        for name in bad:
            reason = f"it held up its thread in onEvent for longer than its time of {LONG_S:g} s"
            assert scene.wait_for(name, "quarantined").reason == reason
        assert scene.call("loop", "onEvent").status == "lost"
        assert scene.call("steady1", "onEvent").status == "ok"
        assert scene.host.counters()["restarts"] == 0


def test_hooks_that_take_too_much_memory_lose_only_themselves(node: NodeProgram, tmp_path: Path) -> None:
    """In the heap, in buffers at once, over time and from a timer: quarantined, and the others go on. What is
    too large to be had at all is an error of that call.
    """
    bad = {
        "heap": """const kept = [];
            export default { onEvent() { for (;;) kept.push(new Array(1e5).fill(Math.random())) } }""",
        "buffers": """const kept = [];
            export default {
              onEvent() { for (let n = 0; n < 90; n++) kept.push(Buffer.alloc(8 << 20, 1)) } }""",
        "slowly": """const kept = [], turn = () => new Promise((over) => setTimeout(over, 1));
            export default {
              async onEvent() { for (;;) { kept.push(Buffer.alloc(8 << 20, 1)); await turn(); } } }""",
        "timer": """const kept = [];
            export default { onEvent() { setInterval(() => kept.push(new ArrayBuffer(8 << 20)), 1) } }""",
        "huge": "export default { onEvent() { return Buffer.alloc(2 ** 31, 1) } }",
    }
    with node_hooks(node, tmp_path, workers=1, memory_mb=64) as scene:
        with_steady_ones(scene, **bad)
        huge = scene.call("huge", "onEvent")
        assert (huge.status, "llocat" in str(huge.error)) == ("failed", True)
        reasons = {}
        for name in ("heap", "buffers", "slowly", "timer"):
            pending = scene.begin(name, "onEvent")
            reasons[name] = str(scene.wait_for(name, "quarantined").reason)
            assert pending.result().status == ("ok" if name == "timer" else "lost")
            for steady in ("steady1", "steady2"):
                assert scene.call(steady, "onEvent").status == "ok"
        assert reasons["heap"] == reasons["buffers"] == "it used more than 64 MB of memory"
        assert all("MB of buffers, more than 64 MB" in reasons[name] for name in ("slowly", "timer"))
        assert scene.host.states()["huge"].name == "loaded"
        assert scene.host.counters()["restarts"] == 0


def test_hooks_that_end_what_they_share_lose_only_themselves(node: NodeProgram, tmp_path: Path) -> None:
    """process.exit, also in a timer, and signals to the own process cost the hook alone: the others keep even
    their state.
    """
    bad = {
        "exits": "export default { onEvent() { process.exit(3) } }",
        "exits_later": "export default { onEvent() { setTimeout(() => process.exit(), 1) } }",
        "kills": "export default { onEvent() { process.kill(process.pid, 'SIGKILL') } }",
        "aborts": "export default { onEvent() { process.abort() } }",
    }
    with node_hooks(node, tmp_path, workers=1) as scene:
        with_steady_ones(scene, **bad)
        for name in bad:
            scene.call(name, "onEvent")
        assert scene.wait_for("exits", "quarantined").reason == "it called process.exit(3)"
        assert scene.wait_for("exits_later", "quarantined").reason == "it called process.exit()"
        assert "it sent SIGKILL to the process" in str(scene.wait_for("kills", "quarantined").reason)
        aborted = scene.call("aborts", "onEvent")
        assert (aborted.status, "abort() is not supported" in str(aborted.error)) == ("failed", True)
        assert scene.call("steady1", "onEvent").injected == ("1",)
        assert scene.call("steady1", "onEvent").injected == ("2",)
        assert scene.host.counters()["restarts"] == 0


def test_a_hook_that_ends_the_whole_process_is_to_blame_alone(node: NodeProgram, tmp_path: Path) -> None:
    """Another process takes over with all the others."""
    kill = "import { execFileSync } from 'node:child_process'; export default { onEvent() { KILL } }".replace(
        "KILL", "execFileSync('kill', ['-9', String(process.pid)])"
    )
    with node_hooks(node, tmp_path, workers=1) as scene:
        with_steady_ones(scene, kills=kill)
        assert scene.call("kills", "onEvent").status == "lost"
        assert scene.call("steady1", "onEvent").status == "ok"
        assert scene.host.states()["kills"].name == "quarantined"
        assert scene.host.counters()["restarts"] == 1


def test_a_hook_that_never_answers_is_quarantined_after_three_times(
    node: NodeProgram, tmp_path: Path
) -> None:
    """It holds up nobody, so that one late call, or two, are forgiven; an answer in time begins anew."""
    never = "export default { async onEvent(ctx, { ok }) { if (!ok) await new Promise(() => {}) } }"
    with node_hooks(node, tmp_path, workers=1) as scene:
        with_steady_ones(scene, never=never)
        late = [scene.call("never", "onEvent", {"ok": ok}, timeout_s=0.1).status for ok in (0, 0, 1, 0, 0)]
        assert late == ["timeout", "timeout", "ok", "timeout", "timeout"]
        assert scene.host.states()["never"].name == "loaded"
        assert scene.call("never", "onEvent", {"ok": 0}, timeout_s=0.1).status == "timeout"
        assert (
            scene.wait_for("never", "quarantined").reason == "3 calls in a row did not end within their time"
        )
        assert scene.call("steady1", "onEvent").injected == ("1",)


def test_dead_versions_of_large_modules_fill_no_thread(node: NodeProgram, tmp_path: Path) -> None:
    """Versions of a module that are gone are freed before they fill the heap of their thread."""
    large = """const big = new Array(1e6).fill(VERSION + 0.5);
        export default { onEvent: (ctx) => ctx.inject(big[9]) }"""
    with node_hooks(node, tmp_path, workers=1, memory_mb=64) as scene:
        with_steady_ones(scene)
        for version in range(14):  # of 8 MB each
            scene.javascript("large", large.replace("VERSION", str(version)))
            assert scene.settled()["large"].name == "loaded"
            assert scene.call("large", "onEvent").injected == (f"{version}.5",)
        assert not any("memory" in str(record) for record in scene.logs)
        assert scene.call("steady1", "onEvent").injected == ("1",)


def test_code_of_a_hook_that_is_gone_holds_up_nobody(node: NodeProgram, tmp_path: Path) -> None:
    """What it had begun before it was unloaded ends with the thread, and nobody is blamed."""
    ghost = """import { setTimeout } from 'node:timers/promises';
        export default { onEvent() { setTimeout(100).then(() => { for (;;); }) } }"""
    with node_hooks(node, tmp_path, workers=1) as scene:
        with_steady_ones(scene, ghost=ghost)
        scene.call("ghost", "onEvent")
        scene.unwant("ghost")
        until(
            lambda: len([1 for r in scene.logs if r[::2] == ("steady1", "loaded")]) == 2,
            "onLoad to run again",
        )
        assert scene.call("steady1", "onEvent").injected == ("1",)
        assert {state.name for state in scene.host.states().values()} == {"loaded"}
        assert scene.host.counters()["restarts"] == 0


def test_a_hook_that_comes_back_in_time_goes_on_apart(node: NodeProgram, tmp_path: Path) -> None:
    """A handler that works for long in one go is no fault: it ends, is loaded again in a thread of its own,
    keeps its state there, and the others do not wait for it any more.
    """
    slow = """let n = 0;
        export default {
          onEvent(ctx, { ms }) {
            const end = Date.now() + ms;
            while (Date.now() < end);
            ctx.inject(String(++n));
          },
        }"""
    with node_hooks(node, tmp_path, workers=1) as scene:
        with_steady_ones(scene, slow=slow)
        first = scene.begin("slow", "onEvent", {"ms": 900})
        assert scene.call("steady1", "onEvent").status == "ok"
        assert not first.is_over
        assert first.result().injected == ("1",)
        assert scene.call("slow", "onEvent", {"ms": 0}).injected == ("1",)
        until(
            lambda: len([1 for r in scene.logs if r[::2] == ("steady1", "loaded")]) == 2,
            "onLoad to run again",
        )
        second = scene.begin("slow", "onEvent", {"ms": 600})
        assert scene.call("steady1", "onEvent").injected == ("2",)
        assert second.result().injected == ("2",)
        assert scene.call("slow", "onEvent", {"ms": 0}).injected == ("3",)


def test_a_module_that_holds_up_its_thread_at_load_is_refused(node: NodeProgram, tmp_path: Path) -> None:
    """A loop or a promise without end at the top level, or in onLoad: the others load and serve."""
    with node_hooks(node, tmp_path, workers=1, load_ms=600) as scene:
        scene.javascript("loop", "for (;;);")
        scene.javascript("never", "await new Promise(() => {}); export default {}")
        scene.javascript("onload", "export default { onLoad: () => new Promise(() => {}), onEvent() {} }")
        scene.javascript("fine", STEADY)
        states = scene.settled()
        assert (states["loop"].name, states["never"].name) == ("refused", "refused")
        assert "it held up its thread for" in str(states["loop"].reason)
        assert states["never"].reason == "Error: its module was not done after 600 ms"
        assert states["onload"].reason == "onLoad threw: Error: onLoad was not done after 600 ms"
        assert scene.call("onload", "onEvent").status == "ok"
        assert scene.call("fine", "onEvent").status == "ok"
