"""How a question about a tool's result is put to commands and functions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.protocol.errors import SchemaError
from broker.protocol.events import Event
from subscribers.config.transforms import Table, Transform
from subscribers.hooks.invocation import Invocation
from subscribers.hooks.transform_chain import Fault, Passed, Value
from subscribers.runner.transform_steps import CommandStep, Question, command_handler, question
from subscribers.runtimes.reaper import Reaper
from subscribers.runtimes.spawn import StartFailed


def event_of(payload: Any, session: str | None = "s1") -> Event:
    """A tool's result as it comes from the bus."""
    return Event.of(
        "prx.lifecycle.tool_result", 2, bytes(16), 7, 0, session, "agent", None, orjson.dumps(payload)
    )


def asked(payload: Any, session: str | None = "s1") -> Question:
    """The question that this payload puts."""
    found = question(event_of(payload, session))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "payload",
    [
        {"agent_id": "a1", "tool": "Bash", "arguments": {"command": "ls"}, "output": "raw"},
        {"agent_id": "a1", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_output": "raw"},
    ],
)
def test_either_spelling_gives_the_pages_four_fields(payload: dict[str, Any]) -> None:
    """The canonical names and the page's own mean the same to every handler."""
    found = asked(payload)
    assert found.result[:5] == ("a1", "s1", "Bash", {"command": "ls"}, "raw")
    wanted = {"agent_id": "a1", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_output": "raw"}
    assert orjson.loads(found.line) == wanted
    assert found.payload == payload | wanted


def test_what_an_agent_leaves_out_is_unknown() -> None:
    """No agent, no tool, no session: null; no input: an empty object; strange types are unknown too."""
    bare = asked({"output": "raw"}, None).result
    assert bare == (None, None, None, {}, "raw", ())
    odd = asked({"output": {"a": 1}, "tool": 5, "agent": "main", "agent_name": "Main", "session": "s9"}, None)
    assert odd.result == ("main", "s9", None, {}, '{"a":1}', ("main", "Main"))


def test_no_output_is_no_question() -> None:
    """Where there is no output there is nothing to ask; bytes that are no object are an error."""
    assert question(event_of({"tool": "Bash"})) is None
    with pytest.raises(SchemaError):
        question(event_of([1]))


class Commands:
    """Makes steps of commands in a folder."""

    def __init__(self, folder: Path) -> None:
        self.reaper = Reaper()
        self.folder = folder

    def step(self, *words: str, enclose: Any = None) -> CommandStep:
        """One command."""
        table = Table.model_validate({"command": list(words)})
        transform = Transform("t", "/c/prxbus.toml", str(self.folder), table)
        return CommandStep(transform, self.reaper, "/run/bus", "/opt/bin", enclose)


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """Commands that start in an empty folder."""
    made = Commands(tmp_path)
    yield made
    made.reaper.close(time.monotonic())


def test_a_command_runs_where_its_file_says_and_inherits_nothing(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is the working directory; its environment is complete in itself, one level deeper."""
    monkeypatch.setenv("SECRET_TOKEN", "do-not-pass-on")
    script = """printf '{"content": "%s %s %s %s"}' "$PWD" "$PRXBUS_DEPTH" "$PRXBUS_CAUSE" "$SECRET_TOKEN" """
    found = asked({"output": "raw"})
    said = commands.step("/bin/sh", "-c", script).ask(found, 20.0)
    assert said == Value(f"{commands.folder} 3 {found.event.id} ")


def test_a_command_that_says_nothing_passes(commands: Commands) -> None:
    """Exit code 0 and no output leave the word to the next."""
    assert commands.step("true").ask(asked({"output": "raw"}), 20.0) == Passed()


def test_a_command_that_cannot_be_started_is_a_fault(commands: Commands) -> None:
    """A program that is not there, one that is not executable, a sandbox that fails."""
    (commands.folder / "plain").write_text("")
    for words, reason in ((["./gone"], "cannot be found"), (["./plain"], "not executable")):
        said = commands.step(*words).ask(asked({"output": "raw"}), 20.0)
        assert isinstance(said, Fault)
        assert said.kind == "not_started"
        assert reason in said.reason

    def enclose(_invocation: Invocation, _readable: tuple[str, ...]) -> Any:
        raise StartFailed("no room for another group")

    said = commands.step("true", enclose=enclose).ask(asked({"output": "raw"}), 20.0)
    assert said == Fault("not_started", "no room for another group")


def test_an_input_that_json_cannot_hold_is_a_fault(commands: Commands) -> None:
    """A command is not started for an input that cannot be written down."""
    found = asked({"output": "raw"})
    broken = Question(found.event, {}, found.result._replace(tool_input={"a": object()}))
    said = commands.step("true").ask(broken, 20.0)
    assert isinstance(said, Fault)
    assert (said.kind, said.reason) == ("not_started", "its input cannot be written as JSON: TypeError")


def test_a_table_becomes_a_link_of_the_chain(commands: Commands) -> None:
    """Its filters and its time are the handler's; records name its file and its words."""
    table = Table.model_validate(
        {"command": ["./redact", "a b"], "tools": ["Bash"], "agents": ["a*"], "timeout": 2.5, "name": "mine"}
    )
    transform = Transform("mine", "/c/prxbus.toml", "/c", table)
    step = CommandStep(transform, commands.reaper, "/run/bus", "/opt/bin", None)
    handler = command_handler(transform, step)
    assert (handler.name, handler.timeout_s, handler.tools, handler.agents) == (
        "mine",
        2.5,
        ("Bash",),
        ("a*",),
    )
    assert handler.what.who == ("mine", "command", "/c/prxbus.toml", None, "./redact 'a b'")
