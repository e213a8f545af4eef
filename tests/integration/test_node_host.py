"""Hooks that are JavaScript modules, in the process that holds them: what they are given, do and leave."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from subscribers.hooks.module_hook import Handler
from subscribers.runtimes.node_program import NodeProgram
from tests.integration.node_scene import NodeScene, node_hooks
from tests.integration.waiting import until

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.may_leak("the host of the module starts a process; its end is looked at when it is closed"),
]


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory, node: NodeProgram) -> Iterator[NodeScene]:
    """A host of two threads."""
    with node_hooks(node, tmp_path_factory.mktemp("role"), workers=2) as scene:
        yield scene


Given: TypeAlias = tuple[dict[str, Any], Handler]

BEFORE: Given = ({"tool": "edit", "args": {"a": 1, "b": {"c": [1]}}}, "onToolBefore")
SYSTEM: Given = ({"system": ["one", "two"]}, "onSystemTransform")

EXACT: Given = (
    {"tool": "edit", "args": {"id": 12345678901234567890, "list": [98765432109876543, '}"']}},
    "onToolBefore",
)
"""With numbers that JavaScript cannot hold: what is not edited keeps its own."""

EDITS: list[tuple[Given, str, Any]] = [
    (BEFORE, "", None),
    (BEFORE, "input.args.a = 2", {"a": 2, "b": {"c": [1]}}),
    (BEFORE, "input.args.b.c.push('ü')", {"a": 1, "b": {"c": [1, "ü"]}}),
    (BEFORE, "input.args = { n: 1 }", {"n": 1}),
    (BEFORE, "return { args: { n: 1 } }", {"n": 1}),
    (BEFORE, "delete input.args.a", {"b": {"c": [1]}}),
    (BEFORE, "input.args.a = 2; input.args.a = 1", None),
    (BEFORE, "const { a, b } = input.args; input.args = { b, a }", None),
    (BEFORE, "return input", None),
    (BEFORE, "return 'a text'", None),
    (BEFORE, "input.tool = 'other'", None),
    (BEFORE, "input.args.f = undefined", None),
    (EXACT, "input.args.list.push(3)", {"id": 12345678901234567890, "list": [98765432109876543, '}"', 3]}),
    (EXACT, "input.args.id = 1; delete input.args.list", {"id": 1}),
    (EXACT, "return { args: { ...input.args, new: [] } }", {**EXACT[0]["args"], "new": []}),
    (EXACT, "input.args.id = 12345678901234567891n", "TypeError: Do not know how to serialize a BigInt"),
    (BEFORE, "input.args = 'text'", "it left args that is not an object; the edit is dropped"),
    (BEFORE, "return { args: [1] }", "it left args that is not an object; the edit is dropped"),
    (BEFORE, "delete input.args", "it left args that is not an object; the edit is dropped"),
    (BEFORE, "input.args.self = input.args", "TypeError: Converting circular structure to JSON"),
    (BEFORE, "input.args.a = 1n", "TypeError: Do not know how to serialize a BigInt"),
    (BEFORE, "input.args.a = 2; throw new RangeError('no')", "RangeError: no"),
    (BEFORE, "throw { toString() { throw 1 } }", "threw { toString: [Function: toString] }"),
    (BEFORE, "return Promise.reject('why')", "threw 'why'"),
    (BEFORE, "return { then(done) { done({ args: { n: 1 } }) } }", {"n": 1}),
    (SYSTEM, "input.system.push('three')", ["one", "two", "three"]),
    (SYSTEM, "return input.system.push('three')", ["one", "two", "three"]),
    (SYSTEM, "return input.system.splice(0, 1)", ["two"]),
    (SYSTEM, "return input.system.filter((part) => part !== 'one')", ["two"]),
    (SYSTEM, "return { system: [] }", []),
    (SYSTEM, "input.system = ['x']", ["x"]),
    (SYSTEM, "input.system[0] = 'one'", None),
    (SYSTEM, "return [1]", "it left system that is not a list of texts; the edit is dropped"),
    (SYSTEM, "input.system = 'x'", "it left system that is not a list of texts; the edit is dropped"),
    (({"text": "hello"}, "onChatMessage"), "input.text = 'other'; return { args: { n: 1 } }", None),
    (({"tool": "edit"}, "onToolBefore"), "", None),
    (({"tool": "edit"}, "onToolBefore"), "input.args = { n: 1 }", {"n": 1}),
]
"""Calls: what is given, what the handler does, and the edit, or the error in words."""


def test_what_a_handler_leaves_is_its_edit(on: NodeScene) -> None:
    """In place, put there anew or returned; nothing where nothing changed; else an error."""
    handlers = [
        f"async (ctx, input) => {{ {body} }}" if at % 2 else f"(ctx, input) => {{ {body} }}"
        for at, (_, body, _) in enumerate(EDITS)
    ]
    for at, ((_, handler), _, _) in enumerate(EDITS):
        on.javascript(f"edit{at}", f"export default {{ {handler}: {handlers[at]} }}")
    on.settled()
    for at, ((given, handler), body, wanted) in enumerate(EDITS):
        returned = on.call(f"edit{at}", handler, given)
        if isinstance(wanted, str):
            assert (returned.status, returned.edit) == ("failed", None), body
            assert wanted in str(returned.error)
        else:
            assert (returned.status, returned.edit, returned.error) == ("ok", wanted, None), body
    on.unwant(*(f"edit{at}" for at in range(len(EDITS))))


def test_a_failure_points_at_the_users_line(on: NodeScene) -> None:
    """The trace of an error holds the lines of the module and none of the host."""
    on.javascript(
        "fails",
        "export default {\n  async onEvent() {\n    await null;\n    throw new Error('no\\nluck');\n  } }",
    )
    on.settled()
    returned = on.call("fails", "onEvent")
    assert (returned.status, returned.error) == ("failed", "Error: no luck")
    assert "fails.mjs:4:11" in str(returned.detail)
    assert "node_" not in str(returned.detail)
    assert "node:" not in str(returned.detail)


def test_the_context_is_real_in_every_handler(on: NodeScene) -> None:
    """Name, configuration, session and agent are given; what is not available is undefined."""
    source = """
        const told = (ctx) => [ctx.hookName, ctx.config?.k, ctx.sessionID, ctx.agent].map(String).join();
        let atLoad;
        export default {
          onLoad(ctx) { atLoad = told(ctx) },
          onEvent(ctx, { type, properties }) { [atLoad, told(ctx), type + properties.p].forEach(ctx.inject) },
        };
    """
    on.javascript("context", source, {"k": "v"})
    on.javascript("bare", source)
    on.settled()
    given = {"type": "session.idle", "properties": {"p": 1}}
    assert on.call("context", "onEvent", given).injected == (
        "CONTEXT,v,undefined,undefined", "CONTEXT,v,s1,coder", "session.idle1",
    )  # fmt: skip
    assert on.call("bare", "onEvent", given, session=None).injected[1] == "BARE,undefined,undefined,coder"


def test_what_a_call_starts_is_told_its_depth_and_cause(on: NodeScene) -> None:
    """In process.env, whatever it waits for, and in the environment of programs; outside of calls nothing."""
    source = """
    import { execFile, execFileSync } from 'node:child_process';
    import { env } from 'node:process';
    import { promisify } from 'node:util';
    const mine = () => `${process.env.PRXBUS_DEPTH} ${env.PRXBUS_CAUSE}`;
    const shell = ['-c', 'echo $PRXBUS_DEPTH $PRXBUS_CAUSE $MINE'];
    export default {
      onLoad(ctx) { process.env.MINE = 'm'; ctx.log.info(`at load ${mine()}`); },
      async onEvent(ctx) {
        ctx.inject(execFileSync('sh', shell, { encoding: 'utf8' }).trim());
        await new Promise((over) => setTimeout(over, 10));
        ctx.inject(mine());
        const { stdout } = await promisify(execFile)('sh', shell, { env: { ...process.env, MINE: 'n' } });
        ctx.inject(stdout.trim());
        setTimeout(() => ctx.inject(`later ${mine()}`), 50);
      },
    };"""
    on.javascript("caused", source)
    assert on.settled()["caused"].name == "loaded"
    on.said("caused", "at load undefined undefined")
    calls = [on.begin("caused", "onEvent", {}, caused=each) for each in ((3, "a/1"), (5, "b/2"))]
    for pending, mine in zip(calls, ("3 a/1", "5 b/2"), strict=True):
        assert pending.result().injected == (f"{mine} m", mine, f"{mine} n")
        late = ("caused", "s1", f"later {mine}")
        until(partial(on.injected.__contains__, late), f"{mine} in a timer")


RUDE = """
JSON.stringify = () => 'mine'
globalThis.JSON = null
globalThis.Promise = class {}
Promise.prototype.then = () => 1
Object.prototype.then = () => 1
Object.prototype.toJSON = () => 1
Array.prototype.toJSON = () => 1
Array.prototype.push = null
Array.prototype[Symbol.iterator] = null
Map.prototype.get = () => 1
String.prototype.slice = null
Object.keys = () => []
Reflect.apply = null
Atomics.load = () => 0
Buffer.from = null
globalThis.setTimeout = null
console.log = null
globalThis.console = null
process.exit = null
parentPort.postMessage({ guilty: 1, reason: 'not I' })
workerData.cells.fill(1)
"""
"""What would change the language, or speak, for all hooks of a thread."""

POLITE = """
const own = { toString: () => 'own', then: 1, toJSON: () => 'mine' }; own.hasOwnProperty = 1; own.valueOf = 2;
const list = [1, 2]; list.map = 1; list.toString = () => 'list'; list.toJSON = () => 'listed';
class Mine extends Map { get() { return 'mine'; } }
const error = new RangeError('x'); error.name = 'Named'; error.message = 'told';
function Old() {} Old.prototype = Object.create(Error.prototype); Old.prototype.toString = () => 'old';
Old.prototype.constructor = Old;
Error.stackTraceLimit = 20;
Array.prototype.lastOne ??= function () { return this.at(-1); };
globalThis.counted = 1; globalThis.counted += 1;
const quiet = Object.create(console); quiet.log = () => 'quiet';
""".replace("\n", " ")
SHOWN = "[`${own} ${list} ${new Mine().get()} ${error} ${new Old()}`, [7].lastOne(), counted, own, list]"


def test_no_hook_changes_what_all_share(on: NodeScene) -> None:
    """Each gets an error at its own line, and the others never notice; its own objects are its own affair."""
    imports = "import { parentPort, workerData } from 'node:worker_threads';\n"
    rude = RUDE.strip().splitlines()
    for number, line in enumerate(rude):
        on.javascript(f"rude{number}", f"{imports}export default {{\n onEvent() {{\n{line};\n }} }}")
    polite = f"{POLITE} export const onEvent = (ctx) => ctx.inject(JSON.stringify({SHOWN}));"
    on.javascript("polite", polite)
    on.settled()
    for number, line in enumerate(rude):
        said = on.call(f"rude{number}", "onEvent", {})
        assert said.status == "failed", line
        assert f"rude{number}.mjs:4" in str(said.detail), line
    assert on.call("polite", "onEvent", {}).injected == (
        '["own list mine Named: told old",7,2,"mine","listed"]',
    )
    assert {state.name for name, state in on.settled().items() if "rude" in name} == {"loaded"}
    assert on.host.counters()["restarts"] == 0


def test_what_is_injected_late_goes_its_own_way(on: NodeScene) -> None:
    """After its call, after its time and from onLoad: each text arrives once, with its session."""
    on.javascript(
        "late",
        """
        export default {
          onLoad(ctx) { ctx.inject('load') },
          onEvent(ctx) { setTimeout(ctx.inject, 5, 'after') },
          async onChatMessage(ctx, { ms }) {
            ctx.inject('early');
            await new Promise((over) => setTimeout(over, ms));
            ctx.inject('late');
          },
        };
        """,
    )
    until(lambda: ("late", None, "load") in on.injected, "the text of onLoad")
    on.settled()
    on.injected.clear()
    on.call("late", "onEvent", session="s7")
    until(lambda: ("late", "s7", "after") in on.injected, "the text of a timer")
    returned = on.call("late", "onChatMessage", {"ms": 200}, timeout_s=0.05, session="s8")
    assert (returned.status, returned.error) == ("timeout", "it was not done within 0.05 s")
    until(lambda: ("late", "s8", "late") in on.injected, "the text of a late call")
    assert [text for _, session, text in on.injected if session == "s8"] == ["early", "late"]


def test_logs_are_bounded_and_say_what_was_left_out(on: NodeScene) -> None:
    """Levels and fields arrive; beyond fifty records a second there is one that counts the others."""
    on.javascript(
        "logs",
        """
        const ring = {};
        ring.ring = ring;
        export default {
          onEvent({ log }) {
            log.warn('careful', { n: 1n, error: new Error('x'), list: [1] });
            log.debug({ toString: () => 'shown' }, 'text');
            log.info('ring', ring);
          },
          onChatMessage({ log }) { for (let n = 0; n < 300; n++) log.info('row') },
        };
        """,
    )
    on.settled()
    on.call("logs", "onEvent")
    _, level, _, fields = on.said("logs", "careful")
    assert (level, fields["n"], fields["list"], fields["error"].split("\n")[0]) == (
        "warn",
        "1",
        [1],
        "Error: x",
    )
    assert on.said("logs", "shown")[1::2] == ("debug", {"value": "text"})
    assert on.said("logs", "ring")[3].keys() == {"unwritable"}
    on.call("logs", "onChatMessage")
    left = on.said("logs", "more records of this hook were left out")[2]
    rows = [record for record in on.logs if record[:3] == ("logs", "info", "row")]
    assert len(rows) + int(left.split()[0]) == 300
    assert len(rows) <= 100  # of two seconds, where the clock turned


def test_what_goes_astray_is_logged_under_the_hooks_name(on: NodeScene) -> None:
    """A rejected promise and an exception in a timer or a callback are logged, and the hook stays."""
    on.javascript(
        "astray",
        """import { readFile } from 'node:fs';
        export default {
          onEvent(ctx) {
            Promise.reject(new Error('rejected'));
            setTimeout(() => { throw new Error('in a timer') }, 1);
            readFile('/', () => { throw 'no error' });
            ctx.inject('done');
          },
        };
        """,
    )
    on.settled()
    assert on.call("astray", "onEvent").injected == ("done",)
    _, level, _, fields = on.said("astray", "a promise was rejected and nobody looked: Error: rejected")
    assert level == "error"
    assert "astray.mjs:4:" in fields["detail"]
    on.said("astray", "an exception that nobody caught: Error: in a timer")
    on.said("astray", "an exception that nobody caught: threw 'no error'")
    assert on.call("astray", "onEvent").status == "ok"
    assert on.host.states()["astray"].name == "loaded"


def test_a_changed_module_takes_over_and_the_old_one_is_disposed_once(on: NodeScene) -> None:
    """The new instance serves with its new imports; the old one gets onDispose, and its timers end."""

    def source(version: int) -> str:
        return """
            import { v } from './lib/version.mjs';
            export default {
              onLoad({ log }) { setInterval(() => log.info('tick'), 60) },
              onEvent(ctx) { ctx.inject('VERSION:' + v) },
              onDispose({ log }) { log.info('disposed ' + v) },
            };
        """.replace("VERSION", str(version))

    on.write("lib/version.mjs", "export const v = 1")
    on.javascript("changes", source(1))
    on.settled()
    assert on.call("changes", "onEvent").injected == ("1:1",)
    on.write("lib/version.mjs", "export const v = 2")
    on.javascript("changes", source(2))
    on.settled()
    on.said("changes", "disposed 1")
    assert on.call("changes", "onEvent").injected == ("2:2",)
    on.javascript("changes", "export default {")
    assert on.settled()["changes"].kept
    assert on.call("changes", "onEvent").injected == ("2:2",)
    on.unwant("changes")
    on.said("changes", "disposed 2")
    seen = len(on.logs)
    on.call("steady", "onEvent")  # whatever was on its way has arrived
    assert [record[2] for record in on.logs[seen:] if record[0] == "changes"] == []
    said = [record[2] for record in on.logs if record[0] == "changes" and record[2] != "tick"]
    assert said == ["disposed 1", "disposed 2"]


def test_a_hook_is_disposed_when_its_calls_are_over(on: NodeScene) -> None:
    """A call under way ends before onDispose; one whose time is over is not waited for; a throw is told."""
    on.javascript(
        "leaves",
        """
        export default {
          async onEvent({ log }, { ms }) {
            await new Promise((over) => setTimeout(over, ms));
            log.info('ended');
          },
          onDispose({ log }) {
            log.info('disposed');
            throw new Error('of no use');
          },
        };
        """,
    )
    on.settled()
    on.call("leaves", "onEvent", {"ms": 100_000}, timeout_s=0.02)
    pending = on.begin("leaves", "onEvent", {"ms": 60})
    on.unwant("leaves")
    assert pending.result().status == "ok"
    on.said("leaves", "disposed")
    assert [record[2] for record in on.logs if record[0] == "leaves"][:2] == ["ended", "disposed"]


def test_a_thread_that_has_held_many_versions_is_renewed(on: NodeScene) -> None:
    """Node frees modules late: after a hundred dead ones a fresh thread takes over, nothing is missed."""
    on.javascript("often", "export default { onEvent(ctx) { ctx.inject('0') } }")
    on.settled()
    for turn in range(1, 130):
        on.javascript("often", f"export default {{ onEvent(ctx) {{ ctx.inject('{turn}') }} }}")
        if turn % 10 == 0:
            on.settled()
            assert on.call("often", "onEvent").injected == (str(turn),)
    on.settled()
    assert on.call("often", "onEvent").injected == ("129",)
    assert on.host.counters()["restarts"] == 0


def test_a_large_input_and_a_large_edit_pass(on: NodeScene) -> None:
    """Megabytes go in and out whole."""
    on.javascript(
        "large", "export default { onToolBefore(ctx, { args }) { args.out = args.text.toUpperCase() } }"
    )
    on.settled()
    text = "aü" * 1_000_000
    returned = on.call("large", given={"tool": "t", "args": {"text": text}})
    assert returned.edit == {"text": text, "out": text.upper()}


def test_what_modules_print_goes_to_standard_error(
    on: NodeScene, capfd: pytest.CaptureFixture[str], node: NodeProgram, tmp_path: Path
) -> None:
    """console and process.stdout end up there under the hook's name, bounded; no secret is seen."""
    with node_hooks(node, tmp_path, workers=1) as scene:
        scene.javascript(
            "prints",
            """
            console.log('at load', { a: 1 });
            export default {
              onEvent() {
                process.stdout.write('two\\nlines\\n');
                console.error('token', process.env.PRXBUS_API_TOKEN);
                for (let n = 0; n < 200; n++) console.log('row');
              },
            };
            """,
        )
        scene.settled()
        assert scene.call("prints", "onEvent").status == "ok"
        assert scene.call("prints", "onEvent").status == "ok"
    printed = capfd.readouterr().err.splitlines()
    assert printed[:4] == [
        "[PRINTS] at load { a: 1 }",
        "[PRINTS] two",
        "[PRINTS] lines",
        "[PRINTS] token undefined",
    ]
    assert printed.count("[PRINTS] row") <= 100
