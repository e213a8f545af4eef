"""``prxbus demo``: a recorded agent session through a real bus, and what every hook did.

It starts a bus of its own in a temporary directory, replays the recording, watches like any monitor
and counts. Decides what is shown; everything that runs is the product itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from broker.cli.exits import DONE, FAILED, TIMED_OUT, CommandError
from broker.cli.options import add_json
from broker.client import Event, Publisher, Subscriber
from broker.protocol.topics import LIFECYCLE

from ..dialects import prx
from ..hooks.plan import Plan
from ..runner.reports import RUN_TOPIC

START_SECONDS: Final = 30.0
QUIET_SECONDS: Final = 30.0
"""How long without news the demo waits for the last hooks."""


class Recorded(NamedTuple):
    """One event of the recording."""

    after_ms: int
    topic: str
    session_id: str
    payload: dict[str, Any]


class Tally:
    """What has been seen: events by id, runs by hook. ``missed`` comes from the monitor's own account."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.runs: list[dict[str, Any]] = []
        self.missed = 0

    def see(self, event: Event) -> None:
        """Count one event of the bus."""
        if event.topic == RUN_TOPIC:
            self.runs.append(event.payload)
        elif event.source == "demo-agent":
            self.events.append(event)

    def count(self, *statuses: str) -> int:
        """Runs that ended in one of ``statuses``."""
        return sum(run["status"] in statuses for run in self.runs)

    def durations(self, hook: str | None = None) -> list[float]:
        """Milliseconds of the runs of one hook, or of all, that ended by themselves."""
        return sorted(
            run["duration_ms"]
            for run in self.runs
            if hook in (None, run["hook"]) and run["status"] in ("ok", "failed")
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``demo``."""
    add_json(parser, "only the result")
    parser.add_argument("--keep", action="store_true", help="keep the workspace with what the hooks wrote")


def run(options: argparse.Namespace) -> int:
    """Run the demonstration; 0 when nothing was lost."""
    import pydantic  # noqa: F401 - asked for before anything is started, so that a base install says so
    import rich  # noqa: F401

    recording = recorded()
    with _directories(keep=options.keep) as (directory, workspace), _bus(directory, workspace):
        plan = Plan.of(prx.parse((workspace / "hooks.json").read_bytes(), "hooks.json").specs)
        expected = sum(len(plan.for_event(each.topic.removeprefix(LIFECYCLE))) for each in recording)
        show = _Quiet() if options.json else _Timeline()
        show.begin(directory, workspace, len(recording), expected)
        started = time.monotonic()
        tally = _replay(recording, directory, expected, show)
        result = summary(tally, len(recording), expected, time.monotonic() - started)
        if options.json:
            print(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode())
        else:
            show.end(result, workspace if options.keep else None)
    if result["hooks"]["reported"] < expected:
        print(f"prxbus demo: only {result['hooks']['reported']} of {expected} runs reported", file=sys.stderr)
        return TIMED_OUT
    return DONE if result["events"]["lost"] == 0 else FAILED


def recorded() -> list[Recorded]:
    """The recording, in order."""
    lines = resources.files("subscribers.demo").joinpath("session.jsonl").read_bytes().splitlines()
    return [Recorded(**orjson.loads(line)) for line in lines]


def summary(tally: Tally, published: int, expected: int, seconds: float) -> dict[str, Any]:
    """The result as a document: events, hooks and the runs of each hook; times in ms."""
    hooks = sorted({run["hook"] for run in tally.runs})
    by_hook = {}
    for hook in hooks:
        runs = [run for run in tally.runs if run["hook"] == hook]
        by_hook[hook] = {
            "runs": len(runs),
            "ok": sum(run["status"] == "ok" for run in runs),
            "failed": sum(run["status"] in ("failed", "signalled", "not_started") for run in runs),
            "timed_out": sum(run["status"] == "timeout" for run in runs),
            **quantiles(tally.durations(hook)),
        }
    return {
        "seconds": round(seconds, 2),
        "events": {
            "published": published,
            "received": len(tally.events),
            "large": sum(event.claim is not None for event in tally.events),
            "lost": published - len(tally.events) + tally.missed,
        },
        "hooks": {
            "expected": expected,
            "reported": len(tally.runs),
            "ok": tally.count("ok"),
            "failed": tally.count("failed", "signalled", "not_started"),
            "timed_out": tally.count("timeout"),
            **quantiles(tally.durations()),
        },
        "by_hook": by_hook,
    }


def quantiles(values: list[float]) -> dict[str, float | None]:
    """Median and 99th percentile of sorted ``values``, None when there are none."""
    if not values:
        return {"p50_ms": None, "p99_ms": None}
    last = min(len(values) - 1, round(0.99 * (len(values) - 1)))
    return {"p50_ms": round(statistics.median(values), 1), "p99_ms": round(values[last], 1)}


def _replay(recording: list[Recorded], directory: str, expected: int, show: _Quiet) -> Tally:
    """Publish the recording at its pace and watch until every hook has reported."""
    tally = Tally()
    with (
        Subscriber([f"{LIFECYCLE}*", "prx.hooks.*"], name="demo-monitor", runtime_dir=directory) as monitor,
        Publisher("demo-agent", runtime_dir=directory, on_absent="raise") as agent,
    ):
        due = time.monotonic()
        for each in recording:
            due += each.after_ms / 1_000
            while (left := due - time.monotonic()) > 0:
                _watch(monitor, tally, show, left)
            agent.publish(each.topic, each.payload, session_id=each.session_id)
        news = time.monotonic()
        while (len(tally.events), len(tally.runs)) < (len(recording), expected) or len(tally.runs) < expected:
            if _watch(monitor, tally, show, 0.5):
                news = time.monotonic()
            elif time.monotonic() - news > QUIET_SECONDS:
                break
        tally.missed = monitor.stats["missed"]
    return tally


def _watch(monitor: Subscriber, tally: Tally, show: _Quiet, seconds: float) -> int:
    events = monitor.batch(timeout=seconds)
    for event in events:
        tally.see(event)
        show.event(event)
    return len(events)


@contextlib.contextmanager
def _directories(*, keep: bool) -> Iterator[tuple[str, Path]]:
    """A private runtime directory, and a copy of the demo's workspace for its hooks to write in."""
    root = tempfile.mkdtemp(prefix="prxbus-demo-")
    try:
        runtime, workspace = Path(root, "run"), Path(root, "workspace")
        runtime.mkdir(0o700)
        with resources.as_file(resources.files("subscribers.demo").joinpath("workspace")) as source:
            shutil.copytree(source, workspace)
        for script in workspace.glob("*.sh"):
            script.chmod(0o755)
        yield str(runtime), workspace
    finally:
        if not keep:
            shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def _bus(directory: str, workspace: Path) -> Iterator[None]:
    """``prxbus up`` for the demo, ready; stopped in order afterwards, also when we are killed."""
    program = (
        "import sys; from broker.lifeline import hold; hold(); "
        "from broker.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [
        *(sys.executable, "-P", "-c", program, "up", "--no-http", "--json", "--log-level", "error"),
        *("--runtime-dir", directory, "--workspace", str(workspace)),
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        if not ready or not process.stdout.readline():
            raise CommandError(f"the bus did not start (exit code {process.poll()})", "start_failed")
        yield
    finally:
        process.terminate()
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdin.close()
        process.stdout.close()


class _Quiet:
    """Shows nothing."""

    def begin(self, directory: str, workspace: Path, events: int, runs: int) -> None:
        """The replay begins."""

    def event(self, event: Event) -> None:
        """An event came."""

    def end(self, result: Mapping[str, Any], kept: Path | None) -> None:
        """Everything is counted."""


class _Timeline(_Quiet):
    """Shows each event and each run as a line, then the tables."""

    COLOURS: Final = {"ok": "green", "failed": "red", "timeout": "yellow"}

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False)
        self._lock = threading.Lock()
        self._started = time.monotonic()

    def begin(self, directory: str, workspace: Path, events: int, runs: int) -> None:
        """Say what will happen."""
        self._console.print(
            f"[bold]prxbus demo[/bold]: {events} events of a recorded coding session, {runs} hook runs\n"
            f"[dim]bus in {directory}, hooks of {os.path.join(workspace, 'hooks.json')}[/dim]\n",
            soft_wrap=True,
        )

    def event(self, event: Event) -> None:
        """One line for an event, indented ones for runs."""
        from rich.markup import escape

        at = f"[dim]{time.monotonic() - self._started:6.2f}s[/dim]"
        if event.topic == RUN_TOPIC:
            report = event.payload
            status = report["status"]
            colour = self.COLOURS.get(status, "red")
            took = f"{report['duration_ms']:7.1f} ms"
            words = escape(report["stderr"].strip()[:60])
            line = (
                f"{at}     └ {report['hook']:<18} [{colour}]{status:<8}[/{colour}] {took} [dim]{words}[/dim]"
            )
            self._console.print(line, no_wrap=True)
        elif event.source == "demo-agent":
            name = event.topic.removeprefix(LIFECYCLE)
            self._console.print(f"{at}  [cyan]{name:<16}[/cyan] {escape(_gist(event))}", no_wrap=True)

    def end(self, result: Mapping[str, Any], kept: Path | None) -> None:
        """The tables."""
        from rich.table import Table

        table = Table(title="hooks", title_justify="left", box=None, header_style="bold")
        for column in ("hook", "runs", "ok", "failed", "timed out", "p50 ms", "p99 ms"):
            table.add_column(column, justify="left" if column == "hook" else "right")
        for hook, row in [
            *result["by_hook"].items(),
            ("all", {**result["hooks"], "runs": result["hooks"]["reported"]}),
        ]:
            cells = (row["runs"], row["ok"], row["failed"], row["timed_out"], row["p50_ms"], row["p99_ms"])
            table.add_row(hook, *("-" if cell is None else str(cell) for cell in cells))
        events = result["events"]
        self._console.print()
        self._console.print(table)
        colour = "green" if events["lost"] == 0 else "red"
        self._console.print(
            f"\n{events['published']} events published, {events['received']} received "
            f"({events['large']} by claim check), [{colour}]lost {events['lost']}[/{colour}], "
            f"in {result['seconds']} s"
        )
        if kept is not None:
            self._console.print(f"what the hooks wrote is in {kept}")


def _gist(event: Event) -> str:
    """What a payload is about, in a few words."""
    if event.claim is not None:
        return f"{event.claim.size:,} bytes by claim check"
    payload = event.payload
    parts = [str(payload[name]) for name in ("tool", "model", "component") if name in payload]
    arguments = payload.get("arguments")
    if isinstance(arguments, dict) and arguments:
        parts.append(str(next(iter(arguments.values()))))
    if "duration_ms" in payload:
        parts.append(f"{payload['duration_ms']} ms")
    if "message" in payload:
        parts.append(str(payload["message"]))
    if payload.get("success") is False:
        parts.append("failed")
    return " ".join(" ".join(parts).split())[:70]
