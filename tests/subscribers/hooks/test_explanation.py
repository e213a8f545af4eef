"""The shape of an explanation: what fails a check, and JSON that anybody can rely on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.diagnostics import Diagnostic
from subscribers.hooks.explanation import (
    BROKEN,
    STATUSES,
    Explained,
    ExplainedFile,
    Handler,
    Status,
    counts,
    diagnostic_document,
    document,
    faulted,
)
from subscribers.hooks.explanation_schema import SCHEMA

FAULT = Diagnostic("error", "missing_command", "hooks.json", 3, None, "error#0.command", "no such file", None)
HANDLER = Handler("error", 0, "error#0", "shell", "ok")


def file(
    *handlers: Handler, diagnostics: tuple[Diagnostic, ...] = (), refused: bool = False
) -> ExplainedFile:
    """A file with these handlers."""
    explained = Explained(handlers, diagnostics, refused)
    return ExplainedFile("hooks.json", "prx", "its name is hooks.json", "/w", True, explained)


@pytest.mark.parametrize("status", STATUSES)
def test_a_file_is_broken_by_what_is_dead_or_refused(status: Status) -> None:
    """One dead or refused handler is enough; one that is skipped on purpose breaks nothing."""
    assert file(HANDLER, replace(HANDLER, status=status)).is_broken is (status in BROKEN)


def test_a_file_is_broken_by_an_error_that_no_handler_has() -> None:
    """A refused file and an error about the file break it, a warning does not."""
    assert file(refused=True).is_broken
    assert file(diagnostics=(FAULT,)).is_broken
    assert not file(diagnostics=(replace(FAULT, severity="warning"),)).is_broken


def test_the_first_reason_stays_the_status() -> None:
    """A handler that is skipped stays so whatever else is wrong, and everything is said."""
    skipped = faulted(HANDLER, "skipped", FAULT)
    assert faulted(skipped, "dead", FAULT).status == "skipped"
    assert faulted(skipped, "dead", FAULT).diagnostics == (FAULT, FAULT)


def test_handlers_are_counted_by_status() -> None:
    """Every status has a number, also none."""
    assert counts([file(HANDLER, HANDLER), file(faulted(HANDLER, "dead", FAULT))]) == {
        "ok": 2,
        "dead": 1,
        "skipped": 0,
        "refused": 0,
    }


def test_a_position_ends_with_what_is_known() -> None:
    """Path, line and column are joined as far as there are any."""
    assert diagnostic_document(FAULT)["position"] == "hooks.json:3"
    assert diagnostic_document(replace(FAULT, column=7))["position"] == "hooks.json:3:7"
    assert diagnostic_document(replace(FAULT, line=None))["position"] == "hooks.json"


def test_the_documented_fields_are_there() -> None:
    """The document has every field that its description promises, under these names."""
    (found,) = document([file(faulted(HANDLER, "dead", FAULT))])["files"]
    assert {"path", "dialect", "handlers", "diagnostics"} <= found.keys()
    (handler,) = found["handlers"]
    promised = {
        "event",
        "index",
        "name",
        "runtime",
        "command",
        "matcher",
        "timeout_s",
        "status",
        "diagnostics",
    }
    assert promised <= handler.keys()
    (diagnostic,) = handler["diagnostics"]
    assert {"severity", "code", "position", "message", "hint"} <= diagnostic.keys()


TEXT = st.text() | st.text(st.characters(categories=["Cs"]))
DIAGNOSTICS = st.builds(
    Diagnostic,
    st.sampled_from(["error", "warning", "info"]),
    st.from_regex("[a-z_]+", fullmatch=True),
    TEXT,
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 9),
    st.none() | TEXT,
    TEXT,
    st.none() | TEXT,
)
HANDLERS = st.builds(
    Handler,
    event=TEXT,
    index=st.integers(0, 9),
    name=TEXT,
    runtime=st.sampled_from(["shell", "wasm", "python", "transform"]),
    status=st.sampled_from(STATUSES),
    command=st.none() | TEXT,
    args=st.lists(TEXT).map(tuple),
    matcher=st.none() | TEXT,
    timeout_s=st.none() | st.floats(0, 300),
    executable=st.none() | TEXT,
    cwd=st.none() | TEXT,
    diagnostics=st.lists(DIAGNOSTICS, max_size=2).map(tuple),
    spec=st.none(),
)


@given(st.lists(HANDLERS, max_size=3), st.lists(DIAGNOSTICS, max_size=3), TEXT, st.booleans())
def test_every_explanation_is_json_of_the_schema(
    handlers: list[Handler], diagnostics: list[Diagnostic], path: str, refused: bool
) -> None:
    """Whatever a file and its name hold, also half characters, the document is valid by its own schema."""
    explained = Explained(tuple(handlers), tuple(diagnostics), refused)
    told = orjson.dumps(document([ExplainedFile(path, None, path, path, True, explained)]))
    jsonschema.validate(json.loads(told), SCHEMA)


def test_the_document_in_the_readme_is_one() -> None:
    """The example that the README shows is valid by the schema, and has every field that there is."""
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    blocks = [
        json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    ]
    (shown,) = (block for block in blocks if "files" in block)
    jsonschema.validate(shown, SCHEMA)
    (printed,) = document([file(faulted(HANDLER, "dead", FAULT))])["files"]
    assert list(shown["files"][0]) == list(printed)
    assert list(shown["files"][0]["handlers"][0]) == list(printed["handlers"][0])
    assert list(shown["files"][0]["handlers"][0]["diagnostics"][0]) == list(diagnostic_document(FAULT))


def test_the_schema_is_one() -> None:
    """The schema is valid by the schema of schemas, and refuses a document without handlers."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"files": [{"path": "x"}]}, SCHEMA)
