"""Hooks of roles that hang, end their process, take all memory or break: only they are lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.testing import running_broker
from tests.integration.roles_scene import Agent, Role, Roles, agent, elapsed, fresh, hook, roles
from tests.integration.waiting import until

BAD_JS = """
export default {
  onToolBefore: (ctx, { args }) => {
    if (args.bad !== ctx.hookName) return;
    if (args.bad === "js-loops") for (;;) {}
    if (args.bad === "js-exits") process.exit(3);
    const kept = [];
    if (args.bad === "js-allocates") for (;;) kept.push(new Array(1e6).fill(Math.random()));
    if (args.bad === "js-rejects") Promise.reject(new Error("left behind"));
    if (args.bad === "js-throws") throw new Error("no");
  },
};
"""
BAD_PY = """
import os, time

def on_tool_before(ctx, tool, args):
    if args.get("bad") != ctx.hook_name:
        return
    if args["bad"] == "py-loops":
        while True:
            pass
    if args["bad"] == "py-exits":
        os._exit(3)
    if args["bad"] == "py-allocates":
        kept = []
        while True:
            kept.append(bytearray(2**26))
    if args["bad"] == "py-throws":
        raise RuntimeError("no")
"""
GOOD_JS = "export const onToolBefore = (ctx, { args }) => { args.js = true; };"
GOOD_PY = "def on_tool_before(ctx, tool, args):\n    args['py'] = True\n"

JS = ("js-throws", "js-rejects", "js-loops", "js-exits", "js-allocates")
PY = ("py-throws", "py-exits", "py-allocates", "py-loops")
STAYS = {"js-throws", "js-rejects", "py-throws"}
"""What it did is an error of one call: the hook is called again."""


@pytest.fixture
def faulty(require_tool: Callable[[str], str]) -> Iterator[tuple[Roles, Agent]]:
    """A role with bad hooks of every kind, and two good ones behind them."""
    require_tool("node")
    with fresh() as folder, running_broker(Path(folder, "bus")) as bus, agent(bus) as asking:
        role = Role(Path(folder, "faulty"))
        for name, text in (
            ("bad.js", BAD_JS),
            ("bad.py", BAD_PY),
            ("good.js", GOOD_JS),
            ("good.py", GOOD_PY),
        ):
            role.write(name, text)
        role.hooks(
            *(hook(name, "bad.js", "tool.execute.before") for name in JS),
            *(hook(name, "bad.py", "tool.execute.before") for name in PY),
            hook("good-js", "good.js", "tool.execute.before", priority=60),
            hook("good-py", "good.py", "tool.execute.before", priority=60),
        )
        options = ("--timeout", "0.5", "--memory-mb", "64")
        with roles(bus, Path(folder, "log"), role.directory, options=options) as running:
            yield running, asking


def test_only_the_bad_hook_is_lost_and_the_others_serve_the_next_event_within_a_second(
    faulty: tuple[Roles, Agent],
) -> None:
    """Whatever one does; those that only fail a call stay, the others are quarantined with a reason."""
    running, asking = faulty
    assert running.said["role_hooks"] == len(JS) + len(PY) + 2
    for bad in (*JS, *PY):
        asking.args(arguments={"bad": bad}, timeout=10)
        began = time.monotonic()
        assert asking.args(arguments={}, timeout=10) == {"js": True, "py": True}, bad
        assert elapsed(began) < 1.0, bad
    for bad in {*JS, *PY} - STAYS:
        running.until_logged("hook:custom-registry", f'Custom hook \\"{bad}\\" is quarantined')
    lines = running.lines("hook:custom-registry", "is quarantined")
    lost = [line for line in lines if line["event"].endswith("is quarantined")]
    assert len(lost) == len({*JS, *PY} - STAYS)
    assert all(line["err"] for line in lost)
    running.until_logged("hook:custom-registry", 'Custom hook \\"js-throws\\" failed on tool.execute.before')
    running.until_logged("hook:js-rejects", "left behind")


def test_changes_come_into_force_and_what_breaks_leaves_what_was_there(
    require_tool: Callable[[str], str],
) -> None:
    """A module, a role file, a hook that goes and one that comes; each disposed once."""
    require_tool("node")
    with fresh() as folder, running_broker(Path(folder, "bus")) as bus, agent(bus) as asking:
        role = Role(Path(folder, "changing"))
        versions = (
            "module.exports = {{ onToolBefore: (ctx, {{ args }}) => {{ args.js = {0}; }},"
            " onDispose: (ctx) => ctx.log.info('disposed {0}') }};"
        )
        role.write("h.cjs", versions.format(1))
        role.write("h.py", GOOD_PY + "def on_dispose(ctx):\n    ctx.log.info('disposed py')\n")
        js, py = (hook(name, f"h.{name}", "tool.execute.before") for name in ("cjs", "py"))
        role.hooks(js, py)
        with roles(bus, Path(folder, "log"), role.directory) as running:
            assert asking.args(arguments={}) == {"js": 1, "py": True}
            role.write("h.cjs", versions.format(2))
            until(lambda: asking.args(arguments={}) == {"js": 2, "py": True}, "the edited module")
            role.write("h.cjs", "this is no JavaScript")
            running.until_logged("hook:custom-loader", "Failed to load custom hook module")
            role.write("role.yaml", "hooks: {custom: [")
            running.until_logged("subscribers.roles", "what it said before stays in force")
            assert asking.args(arguments={}) == {"js": 2, "py": True}
            role.hooks(py)
            until(lambda: asking.args(arguments={}) == {"py": True}, "the removed hook to be gone")
            said = len(running.lines("subscribers.roles", "roles are in force"))
            running.hang_up()
            running.until_logged("subscribers.roles", "roles are in force", said + 1)
            assert asking.args(arguments={}) == {"py": True}
        assert [line["event"] for line in running.lines("hook:cjs")] == ["disposed 1", "disposed 2"]
        assert [line["event"] for line in running.lines("hook:py")] == ["disposed py"]


def test_two_hundred_hooks_of_both_languages_are_loaded_and_called(
    require_tool: Callable[[str], str],
) -> None:
    """Each has its own instance, and each has its turn in one ask."""
    require_tool("node")
    with fresh() as folder, running_broker(Path(folder, "bus")) as bus, agent(bus) as asking:
        role = Role(Path(folder, "many"))
        role.write("h.js", "export const onToolBefore = (ctx, { args }) => { args.js += 1; };")
        role.write("h.py", "def on_tool_before(ctx, tool, args):\n    args['py'] += 1\n")
        modules = ("h.js", "h.py")
        role.hooks(*(hook(f"h{n}", modules[n % 2], "tool.execute.before") for n in range(200)))
        with roles(bus, Path(folder, "log"), role.directory) as running:
            assert running.said["role_hooks"] == 200
            assert asking.args(arguments={"js": 0, "py": 0}) == {"js": 100, "py": 100}
