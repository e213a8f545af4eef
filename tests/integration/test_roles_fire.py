"""One event put to the hooks of a role without a bus, as ``prxbus fire`` does it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from subscribers.hooks.firing import Firing
from subscribers.runner.fire import event_of, fire
from subscribers.runner.inspection import explained, world
from tests.integration.roles_scene import Role, hook

MODULE = """
def on_tool_before(ctx, tool, args):
    ctx.log.info("called", order=ctx.config["order"])
    args["trace"] = [*args.get("trace", []), ctx.hook_name]
    if ctx.config.get("throws"):
        raise RuntimeError("no")

def on_tool_after(ctx, tool, args, output):
    ctx.inject(f"{ctx.session_id} {output}")
"""


@pytest.fixture(scope="module")
def role(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A role in Python."""
    made = Role(tmp_path_factory.mktemp("fire") / "coder")
    made.write("h.py", MODULE)
    made.write("broken.py", "import nothing_of_that_name\n")
    before = "tool.execute.before"
    made.hooks(
        hook("second", "h.py", before, "tool.execute.after", config={"order": 2}),
        hook("broken", "broken.py", before),
        hook("throws", "h.py", before, config={"order": 3, "throws": True}, priority=60),
        hook("first", "h.py", before, config={"order": 1}, phase="before"),
        hook("other", "h.py", before, config={"order": 0}, filter={"tools": ["edit"]}),
        hook("gone", "gone.py", before, filter={"tools": ["edit"]}),
        hook("twice", "h.py", before, config={"order": 4}, filter={"tools": ["read"]}),
        hook("twice", "h.py", before, config={"order": 5}, filter={"tools": ["edit"]}, priority=70),
        hook("without", "h.py", "event", config={"order": 0}),
    )
    return made.directory


def fired(
    role: Path, event: str, *, is_dry: bool = False, **payload: Any
) -> tuple[Firing, dict[str, tuple[str | None, str | None]]]:
    """The firing; of each hook the status of its run, and why there is none."""
    here = replace(world(os.environ), is_trial=True)
    files = explained([str(role)], None, here)
    content = orjson.dumps({"tool": "write", "args": {}, **payload})
    firing = fire(
        event_of(f"prx.lifecycle.{event}", content, "s"), files, here, str(role / "none"), is_dry=is_dry
    )
    (file,) = firing.files
    return firing, {
        each.handler.name: (None if each.outcome is None else each.outcome.status, each.reason)
        for each in file.fired
        if each.matched or each.handler.topics == (firing.topic,)
    }


def test_the_chain_runs_in_its_order_and_its_edits_are_one_decision(role: Path) -> None:
    """What fails is said of that hook alone; what its filter keeps out is not run."""
    firing, runs = fired(role, "tool_call_start")
    assert firing.decision.updated_input == {"trace": ["first", "second"]}
    assert firing.decision.changed_by == {"trace": "coder:second"}
    assert runs["first"] == runs["second"] == ("ok", None)
    assert runs["throws"] == ("failed", None)
    assert runs["broken"] == ("not_started", None)
    assert runs["other"] == (None, "its filter does not let this payload through")
    assert firing.has_failed
    printed = firing.files[0].printed.splitlines()
    assert printed == [
        f'hook:{name} | INFO | called {{"order":{order}}}'
        for name, order in (("second", 2), ("throws", 3), ("first", 1))
    ]


def test_one_phase_and_what_is_injected(role: Path) -> None:
    """The hooks of the other phase are not run; a text for the next prompt is shown as the run's output."""
    firing, runs = fired(role, "tool_call_start", phase="before")
    assert firing.decision.updated_input == {"trace": ["first"]}
    assert runs["second"] == (None, "it is of the other phase than the one that is asked for")
    firing, runs = fired(role, "tool_call", output="done")
    assert runs == {"second": ("ok", None)}
    outcomes = [each.outcome for each in firing.files[0].fired if each.outcome is not None]
    assert [outcome.stdout.text() for outcome in outcomes] == ["s done"]
    assert firing.decision.verdict == "none"
    _, runs = fired(role, "error", message="x")
    assert runs["without"] == (None, "its module has no onEvent")


def test_an_event_of_the_agents_own_reaches_those_that_listen_to_all_the_others(role: Path) -> None:
    """Whether the catalogue has it or not; of an event with a handler of its own they are told why not."""
    _, runs = fired(role, "deploy_done", is_dry=True)
    assert runs == {"without": (None, None)}
    firing, _ = fired(role, "tool_call", is_dry=True)
    (without,) = [each for each in firing.files[0].fired if each.handler.name == "without"]
    assert (without.matched, without.reason) == (False, "it is for the events without a handler of their own")


def test_a_dry_run_says_whom_a_filter_or_the_phase_keeps_out(role: Path) -> None:
    """What would not run is not said to run, and a broken hook that is not concerned fails nothing."""
    firing, runs = fired(role, "tool_call_start", is_dry=True, tool="edit", phase="before")
    assert {name for name, (_, reason) in runs.items() if reason is None} == {"first"}
    firing, runs = fired(role, "tool_call_start", is_dry=True)
    assert runs["first"] == runs["second"] == (None, None)
    assert runs["other"] == runs["gone"] == (None, "its filter does not let this payload through")
    assert [each.handler.name for each in firing.files[0].fired if each.is_broken] == []
    firing, runs = fired(role, "tool_call_start", tool="edit")
    assert runs["twice"] == ("ok", None)
    (gone,) = [each for each in firing.files[0].fired if each.handler.name == "gone"]
    assert gone.is_broken
    assert firing.decision.updated_input == {"trace": ["first", "second", "other", "twice"]}
