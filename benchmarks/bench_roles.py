"""What does a hook of a role cost, beside a process for each event; and what does a bad one cost the others?

Round trips, one at a time: an agent's whole `ask()` about `tool_call_start` through one warm hook of a role,
as `prxbus up --role` runs it, beside starting `node hook.js`, which reads the event as JSON and writes what
it makes of it. The same for a hook in Python beside `python3 hook.py`. They take turns, so that all see the
same moments of the machine. `over HTTP` is the same hook asked through `POST /api/ask`, as Node's agents do.

Loading: from the start of `roles_service`, on a bus that runs, to its ready line, with 200 hooks of a file
each, less the same with a single one; beside the same modules in a bare interpreter: the modules' own time.

Loss: a hook that loops for ever, takes 2 GB, exits (`process.exit()`, `os._exit`), or leaves a rejected
promise. From the moment at which the bad hook is asked (the loop: at which its time is over) to the first
answer of all the others, asked again and again meanwhile; `lost` counts those that answer no more afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, NamedTuple

from .flow import scratch
from .measure import Cell, Goal, Plan, note, take_turns
from .servers import stop
from .up import broker_alone

NAME = "roles"
TOPIC = "prx.lifecycle.tool_call_start"
ARGUMENTS: Final = {"command": "ls -l", "description": "x" * 230}
HOOKS = 200
TURN = 50
TIMEOUT = 1.0
"""Seconds of a handler where one loops for ever."""


class Language(NamedTuple):
    """How hooks are written in a language, and how a process is started for one."""

    name: str
    suffix: str
    hook: str
    program: str
    command: tuple[str, ...]
    bare: str
    must: float


JAVASCRIPT = Language(
    "JavaScript",
    "js",
    "export default { onToolBefore: (ctx, { args }) => { args.seen = true; } };\n",
    'let text = "";\n'
    "process.stdin.on('data', (chunk) => { text += chunk; });\n"
    "process.stdin.on('end', () => {\n"
    "  const event = JSON.parse(text);\n"
    "  event.args.seen = true;\n"
    "  process.stdout.write(JSON.stringify(event));\n"
    "});\n",
    ("node",),
    "for (const path of process.argv.slice(1)) await import(path);\n",
    30,
)
PYTHON = Language(
    "Python",
    "py",
    "def on_tool_before(ctx, tool, args):\n    args['seen'] = True\n",
    "import json, sys\n"
    "event = json.load(sys.stdin)\n"
    "event['args']['seen'] = True\n"
    "json.dump(event, sys.stdout)\n",
    (sys.executable,),
    "import runpy, sys\nfor path in sys.argv[1:]:\n    runpy.run_path(path)\n",
    40,
)
LANGUAGES = (JAVASCRIPT, PYTHON)

BAD: Final[Mapping[str, Mapping[str, str]]] = {
    "js": {
        "loops": "export default { onChatMessage() { for (;;); } };\n",
        "takes 2 GB": "export default { onChatMessage() {\n"
        "  const kept = [];\n"
        "  while (kept.length < 2048) kept.push(new Array(131072).fill(kept.length));\n"
        "} };\n",
        "exits": "export default { onChatMessage() { process.exit(3); } };\n",
        "rejects": "export default { onChatMessage() { Promise.reject(new Error('no')); } };\n",
    },
    "py": {
        "loops": "def on_chat_message(ctx, text):\n    while True: pass\n",
        "takes 2 GB": "def on_chat_message(ctx, text):\n"
        "    kept = []\n    while len(kept) < 2048: kept.append(bytearray(1 << 20))\n",
        "exits": "import os\ndef on_chat_message(ctx, text):\n    os._exit(3)\n",
    },
}


def measure(plan: Plan) -> Iterator[Cell]:
    """Round trips, loading and loss, in each language; a quick run loses one hook of each."""
    languages = [each for each in LANGUAGES if each is PYTHON or shutil.which("node")]
    for language in languages:
        yield _round_trips(plan, language)
    for language in languages:
        yield _loading(plan, language)
    for language in languages:
        for fault in plan.some(list(BAD[language.suffix]), 4):
            yield _loss(plan, language, fault)


# -- round trips ----------------------------------------------------------------------------------------


def _round_trips(plan: Plan, language: Language) -> Cell:
    turns = 10 if plan.tiny else 300 if plan.quick else 1_000
    title = f"a {language.name} hook beside a process"
    cell = Cell(NAME, title, {"asks": turns}, {"p50_us": "us", "p99_us": "us"})
    cell.goals = [Goal("p50_us", "prxbus", "process", 1 / language.must, best="low")]
    for number in range(plan.rounds):
        with ExitStack() as stack:
            bus = stack.enter_context(
                _up(stack.enter_context(_role({f"hook.{language.suffix}": language.hook})))
            )
            ways: dict[str, Callable[[int], list[float]]] = {
                "prxbus": lambda count, bus=bus: _asks(bus, count),  # type: ignore[misc]
                "over HTTP": lambda count, bus=bus: _posts(bus, count),  # type: ignore[misc]
                "process": lambda count, language=language: _processes(language, max(3, count // 10)),  # type: ignore[misc]
            }
            take_turns(cell, number, plan, ways, turns, TURN)
    return cell


def _asks(bus: _Bus, count: int) -> list[float]:
    from broker.client import Publisher

    times = []
    with Publisher("benchmark", runtime_dir=bus.directory, on_absent="raise") as agent:
        for _ in range(count):
            began = time.perf_counter_ns()
            decision = agent.ask(TOPIC, {"tool": "bash", "args": ARGUMENTS}, timeout=5.0, session_id="s1")
            times.append((time.perf_counter_ns() - began) / 1e3)
            if decision.updated_input != {**ARGUMENTS, "seen": True}:
                raise RuntimeError(f"not edited: {decision}")
    return times


def _posts(bus: _Bus, count: int) -> list[float]:
    body = json.dumps({"topic": TOPIC, "payload": {"tool": "bash", "args": ARGUMENTS}, "session_id": "s1"})
    headers = {"Authorization": f"Bearer {bus.token}", "Content-Type": "application/json"}
    connection = HTTPConnection(bus.address.removeprefix("http://"), timeout=20)
    times = []
    try:
        for _ in range(count):
            began = time.perf_counter_ns()
            connection.request("POST", "/api/ask", body, headers)
            decision = json.loads(connection.getresponse().read())
            times.append((time.perf_counter_ns() - began) / 1e3)
            if decision.get("updated_input") != {**ARGUMENTS, "seen": True}:
                raise RuntimeError(f"not edited: {decision}")
    finally:
        connection.close()
    return times


def _processes(language: Language, count: int) -> list[float]:
    times = []
    event = {"tool": "bash", "args": ARGUMENTS}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / f"hook.{language.suffix}"
        script.write_text(language.program)
        for _ in range(count):
            began = time.perf_counter_ns()
            ended = subprocess.run(
                [*language.command, str(script)],
                input=json.dumps(event).encode(),
                stdout=subprocess.PIPE,
                check=True,
            )
            edited = json.loads(ended.stdout)
            times.append((time.perf_counter_ns() - began) / 1e3)
            if edited["args"] != {**ARGUMENTS, "seen": True}:
                raise RuntimeError(f"not edited: {edited}")
    return times


# -- loading --------------------------------------------------------------------------------------------


def _loading(plan: Plan, language: Language) -> Cell:
    """What 200 hooks add to the start, beside what their modules take in a bare interpreter."""
    number = 8 if plan.tiny else HOOKS
    units = {"s": "s", "beyond_s": "s"}
    cell = Cell(NAME, f"load {number} {language.name} hooks", {"hooks": number}, units)
    cell.goals = [Goal("beyond_s", "prxbus", "a second beyond", 1.0, best="low", yardstick=1.0)]
    for index in range(plan.rounds):
        with broker_alone() as bus, _many(language, number) as many, _many(language, 1) as one:
            empty = _start(bus, one, 1)
            own = _bare(language, many) - _bare(language, one)
            took = _start(bus, many, number) - empty
        note(cell, "modules alone", index, plan.rounds, {"s": own})
        note(cell, "prxbus", index, plan.rounds, {"s": took, "beyond_s": max(0.0, took - own)})
    return cell


@contextmanager
def _many(language: Language, number: int) -> Iterator[Path]:
    """A role with so many hooks, each a file of its own."""
    with _role({f"hook{place}.{language.suffix}": language.hook for place in range(number)}) as folder:
        yield folder


def _start(bus: str, role: Path, hooks: int) -> float:
    """Seconds from the start of the service to its ready line."""
    command = [sys.executable, "-P", "-m", "subscribers.runner.roles_service"]
    command += ["--runtime-dir", bus, "--role", str(role), "--log-level", "error"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline() or b"{}")
            took = time.perf_counter() - began
        finally:
            stop(process)
    if (said.get("role_hooks"), said.get("role_hooks_refused")) != (hooks, 0):
        raise RuntimeError(f"not loaded: {said}")
    return took


def _bare(language: Language, role: Path) -> float:
    """Seconds that an interpreter takes with these modules."""
    modules = sorted(str(path) for path in (role / "hooks").iterdir())
    option = ("--input-type=module", "-e") if language is JAVASCRIPT else ("-c",)
    began = time.perf_counter()
    subprocess.run(
        [*language.command, *option, language.bare, *modules], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began


# -- loss -----------------------------------------------------------------------------------------------


def _loss(plan: Plan, language: Language, fault: str) -> Cell:
    """One bad hook among others of its language."""
    others = 2 if plan.tiny else 8
    title = f"a {language.name} hook that {fault}"
    cell = Cell(NAME, title, {"others": others}, {"next_ms": "ms", "lost": ""})
    cell.goals = [
        Goal("next_ms", "prxbus", "a second", 1.0, best="low", yardstick=1_000.0),
        Goal("lost", "prxbus", "none", 0.0, best="low", yardstick=1.0),
    ]
    for number in range(plan.rounds):
        note(cell, "prxbus", number, plan.rounds, _lose(language, fault, others))
    return cell


def _lose(language: Language, fault: str, others: int) -> dict[str, float]:
    from threading import Thread

    from broker.client import Publisher

    suffix = language.suffix
    modules = {f"good{place}.{suffix}": _marks(suffix, place) for place in range(others)}
    with (
        _role({f"bad.{suffix}": BAD[suffix][fault], **modules}) as role,
        _up(role, PRXBUS_ROLES_TIMEOUT=str(TIMEOUT)) as bus,
        Publisher("benchmark", runtime_dir=bus.directory, on_absent="raise") as agent,
    ):

        def answered() -> int:
            """How many of the others take part in an event, in a session of its own."""
            decision = agent.ask(TOPIC, {"tool": "bash", "args": {}}, timeout=5.0, session_id="good")
            return len(decision.updated_input or {})

        if answered() != others:
            raise RuntimeError("the hooks did not take part before")
        harm = {"prompt": "now"}
        bad = Thread(
            target=lambda: agent.ask("prx.lifecycle.user_prompt", harm, timeout=20.0, session_id="bad")
        )
        began = time.perf_counter()
        bad.start()
        if fault == "loops":  # until then it has every right to run
            time.sleep(TIMEOUT)
            began = time.perf_counter()
        while answered() != others and time.perf_counter() - began < 20:
            pass
        next_ms = (time.perf_counter() - began) * 1e3
        bad.join()
        return {"next_ms": next_ms, "lost": float(others - answered())}


def _marks(suffix: str, place: int) -> str:
    """A good hook whose mark tells that it took part."""
    if suffix == "py":
        return f"def on_tool_before(ctx, tool, args):\n    args['seen{place}'] = True\n"
    return f"export default {{ onToolBefore: (ctx, {{ args }}) => {{ args.seen{place} = true; }} }};\n"


# -- the scene ------------------------------------------------------------------------------------------


class _Bus(NamedTuple):
    """A running bus with a role: its directory, and where its HTTP API is, with what token."""

    directory: str
    address: str
    token: str


@contextmanager
def _role(modules: Mapping[str, str]) -> Iterator[Path]:
    """A role whose hooks are these modules, for every event that the benchmarks ask about."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hooks").mkdir()
        entries = []
        for file, source in modules.items():
            (folder / "hooks" / file).write_text(source)
            events = "[chat.message]" if file.startswith("bad") else "[tool.execute.before]"
            entries.append(f"    - {{name: {Path(file).stem}, events: {events}, module: hooks/{file}}}\n")
        (folder / "role.yaml").write_text(f"name: Benchmark\nhooks:\n  custom:\n{''.join(entries)}")
        yield folder


@contextmanager
def _up(role: Path, **environ: str) -> Iterator[_Bus]:
    """`prxbus up` with a role."""
    with scratch() as bus:
        command = [str(Path(sys.executable).with_name("prxbus")), "up", "--json", "--http", "0"]
        command += ["--log-level", "error", "--runtime-dir", bus, "--role", str(role)]
        env = {**os.environ, **environ}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) as process:
            try:
                assert process.stdout is not None
                ready = json.loads(process.stdout.readline() or b"{}")
                if ready.get("role_hooks_refused") != 0:
                    raise RuntimeError(f"prxbus up did not start with its role: {ready}")
                yield _Bus(bus, ready["http"], Path(ready["http_token_file"]).read_text().strip())
            finally:
                stop(process)
