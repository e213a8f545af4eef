"""The catalogue on the command line."""

from __future__ import annotations

import json

import pytest

from broker.cli.main import main
from broker.protocol.catalogue import EVENTS
from broker.protocol.schema import all_schemas, event_schema


def test_without_an_event_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each event: its topic and when it happens."""
    assert main(["schema"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [spec.topic for spec in EVENTS.values()]
    assert lines[0].endswith(next(iter(EVENTS.values())).when)


@pytest.mark.parametrize("name", ["tool_call", "prx.lifecycle.tool_call"])
def test_an_event_is_printed_as_json_schema(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By its name or its topic; --json only takes the indents away."""
    assert main(["schema", name]) == 0
    indented = capsys.readouterr().out
    assert main(["schema", name, "--json"]) == 0
    flat = capsys.readouterr().out
    assert json.loads(indented) == json.loads(flat) == event_schema("tool_call")
    assert len(flat.splitlines()) == 1 < len(indented.splitlines())


def test_all_schemas_are_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """--json without an event prints every schema by name."""
    assert main(["schema", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == all_schemas()


def test_an_unknown_event_is_a_usage_error_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped name is told what was probably meant."""
    assert main(["schema", "tool_cal"]) == 2
    assert "no event 'tool_cal' in the catalogue; did you mean 'tool_call'?" in capsys.readouterr().err
