"""A hooks.json explained: every action with whether it runs, and why not."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subscribers.dialects import prx_rules as rules
from subscribers.dialects.prx_explanation import explain
from subscribers.dialects.prx_file import parse
from subscribers.hooks.explanation import BROKEN, HANDLERS, Handler

GOOD = '{"command": "/bin/true"}'

FILES: Sequence[tuple[str, str, list[str], list[str]]] = [
    # what, the file's hooks, statuses, codes of the handlers and of the file
    ("a good action", '"error": [GOOD]', ["ok"], []),
    ("another spelling", '"Tool-Call": [GOOD]', ["ok"], []),
    ("two spellings", '"tool_call": [GOOD], "tool-call": [GOOD]', ["ok", "ok"], ["two_spellings"]),
    ("a disabled action", '"error": [{"command": "x", "enabled": false}]', ["skipped"], ["disabled"]),
    (
        "a disabled action with a fault",
        '"error": [{"command": "a;b", "enabled": false}]',
        ["refused"],
        ["metacharacter"],
    ),
    ("an unknown event", '"tool_cal": [GOOD, GOOD]', ["dead", "dead"], ["unknown_event"] * 2),
    ("an event of another system", '"agent:end": [GOOD]', ["dead"], ["unknown_event"]),
    ("a pattern", '"*": [GOOD]', ["dead"], ["unknown_event"]),
    ("an extension", '"session_start": [GOOD]', ["ok"], ["extension_event"]),
    ("an action that is none", '"error": [7, GOOD]', ["refused", "ok"], ["wrong_type"]),
    ("no command", '"error": [{}]', ["refused"], ["missing_command"]),
    ("an empty command", '"error": [{"command": " "}]', ["refused"], ["empty_command"]),
    ("shell text", '"error": [{"command": "a | b"}]', ["refused"], ["metacharacter"]),
    ("a folder outside", '"error": [{"command": "a", "cwd": ".."}]', ["refused"], ["cwd_escapes"]),
    ("seconds as text", '"error": [{"command": "a", "timeout_ms": "5"}]', ["refused"], ["wrong_type"]),
    ("no time at all", '"error": [{"command": "a", "timeout_ms": 0}]', ["refused"], ["timeout_range"]),
    ("arguments as text", '"error": [{"command": "a", "args": "-l"}]', ["refused"], ["wrong_type"]),
    (
        "a variable that is blocked",
        '"error": [{"command": "a", "env": {"PATH": ""}}]',
        ["ok"],
        ["blocked_env"],
    ),
    ("one action without its list", '"error": GOOD', [], ["wrong_event_value"]),
    ("no actions", '"error": [], "agent_end": null', [], []),
    ("an unknown key", '"error": [{"command": "a", "timeout": 5}]', ["ok"], ["unknown_key"]),
]


def handlers(text: str | bytes) -> tuple[Handler, ...]:
    """The handlers of a file."""
    return explain(text.encode() if isinstance(text, str) else text, "hooks.json").handlers


@pytest.mark.parametrize("hooks,statuses,codes", [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_each_kind_of_fault_has_its_status_and_its_reason(
    hooks: str, statuses: list[str], codes: list[str]
) -> None:
    """Each kind of action that a person can write has the status and the remarks of the table."""
    found = explain(f'{{"hooks": {{{hooks.replace("GOOD", GOOD)}}}}}'.encode(), "hooks.json")
    assert [handler.status for handler in found.handlers] == statuses
    said = [d.code for handler in found.handlers for d in handler.diagnostics]
    assert [*said, *(d.code for d in found.diagnostics)] == codes
    assert not found.refused


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hooks": []}', '{"hooks": 7}', "\ufeff[]"])
def test_a_file_of_which_nothing_can_be_used_is_refused(text: str) -> None:
    """It has no handlers, and an error says why."""
    found = explain(text.encode(), "hooks.json")
    assert found.refused
    assert found.handlers == ()
    assert [d.severity for d in found.diagnostics if d.severity == "error"]


def test_an_event_outside_of_hooks_is_shown_with_its_dead_actions() -> None:
    """Actions that stand beside ``hooks`` instead of in it are dead, and numbered after those within."""
    found = handlers(f'{{"error": [{GOOD}], "hooks": {{"error": [{GOOD}]}}}}')
    assert [(handler.name, handler.status) for handler in found] == [("error#0", "ok"), ("error#1", "dead")]
    assert [d.code for d in found[1].diagnostics] == ["misplaced_event"]


def test_every_handler_has_its_line() -> None:
    """A handler's line is where its action begins, runnable or not, behind a byte order mark too."""
    text = f'\ufeff{{"hooks": {{\n"error": [{GOOD},\n7],\n\n"tool_cal": [\n{GOOD}]}}}}'
    assert [handler.line for handler in handlers(text)] == [2, 3, 6]


TIMEOUTS = [
    # of the file, of the action, what counts, who said so
    (None, None, 30.0, "default"),
    (2000, None, 2.0, "file"),
    (2000, 500, 0.5, "own"),
    (None, 500, 0.5, "own"),
    (None, 1500.0, 1.5, "own"),
    ("x", None, 30.0, "default"),
    (0, None, 30.0, "default"),
]


@pytest.mark.parametrize("of_file,own,seconds,origin", TIMEOUTS)
@pytest.mark.parametrize("enabled", [True, False])
def test_a_timeout_is_told_with_its_origin(
    of_file: object, own: object, seconds: float, origin: str, enabled: bool
) -> None:
    """Its own stands above the file's, the file's above the default; a disabled action's is known too."""
    action = {"command": "true", "timeout_ms": own, "enabled": enabled}
    (found,) = handlers(json.dumps({"timeout_ms": of_file, "hooks": {"error": [action]}}))
    assert (found.timeout_s, found.timeout_from) == (seconds, origin)


def test_a_timeout_that_is_none_is_not_known() -> None:
    """Of an action that is refused for its timeout no time is told."""
    (found,) = handlers('{"hooks": {"error": [{"command": "true", "timeout_ms": 0}]}}')
    assert (found.timeout_s, found.timeout_from) == (None, None)


def test_what_would_run_is_shown_as_written() -> None:
    """Command and arguments are those of the file; what is no text is left out."""
    (found,) = handlers('{"hooks": {"error": [{"command": "./a", "args": ["-l", 7]}]}}')
    assert (found.command, found.args, found.topics) == ("./a", ("-l",), ("prx.lifecycle.error",))
    (found,) = handlers('{"hooks": {"error": [{"command": "./a", "args": ["-l"]}]}}')
    assert (found.command, found.args, found.topics) == ("./a", ("-l",), ("prx.lifecycle.error",))
    (found,) = handlers('{"hooks": {"eror": [{"command": 7}]}}')
    assert (found.command, found.topics) == (None, ())


def test_actions_beyond_the_limit_say_so() -> None:
    """Of more actions than a file may have the first run, and each other one says why it does not."""
    many = ",".join([GOOD] * (rules.MAX_ACTIONS + 2))
    found = handlers(f'{{"hooks": {{"error": [{many}], "agent_end": [{GOOD}, {GOOD}]}}}}')
    beyond = [handler for handler in found if handler.status == "refused"]
    assert len(found) - len(beyond) == rules.MAX_ACTIONS
    assert [[d.code for d in handler.diagnostics] for handler in beyond] == [["too_many_actions"]] * 4


def test_a_listing_has_an_end() -> None:
    """A file of endless actions is listed up to a bound, and the rest is told."""
    many = ",".join([GOOD] * (HANDLERS + 5))
    found = explain(f'{{"hooks": {{"nothing": [{many}]}}}}'.encode(), "hooks.json")
    assert len(found.handlers) == HANDLERS
    assert [d.code for d in found.diagnostics] == ["more_handlers"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 400_000) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
ACTIONS = VALUES | st.fixed_dictionaries(
    {},
    optional={
        "command": st.sampled_from(["true", "a;b", "", "./x"]) | VALUES,
        "args": st.lists(st.text(max_size=3), max_size=2) | VALUES,
        "timeout_ms": st.integers(-1, 400_000) | VALUES,
        "enabled": st.booleans() | VALUES,
        "cwd": st.sampled_from(["..", "x"]) | VALUES,
    },
)
EVENTS = st.sampled_from(["tool_call", "tool-call", "error", "session_start", "erorr", "*"]) | st.text(
    max_size=5
)
DOCUMENTS = st.fixed_dictionaries(
    {"hooks": VALUES | st.dictionaries(EVENTS, st.lists(ACTIONS, max_size=3) | VALUES, max_size=3)},
    optional={"timeout_ms": VALUES, "error": VALUES | st.lists(ACTIONS, max_size=2)},
)


@given(DOCUMENTS)
def test_an_explanation_agrees_with_the_reader(document: object) -> None:
    """A handler is ok exactly when the reader made a spec of it, with that spec's timeout and line."""
    text = json.dumps(document).encode()
    specs = parse(text, "hooks.json").specs
    alive = [handler for handler in explain(text, "hooks.json").handlers if handler.status == "ok"]
    assert [handler.spec for handler in alive] == list(specs)
    assert [(handler.timeout_s, handler.line) for handler in alive] == [(s.timeout_s, s.line) for s in specs]


@given(DOCUMENTS)
def test_nothing_is_said_twice_or_lost(document: object) -> None:
    """Every remark of the reader is in the explanation, and every broken handler has an error."""
    text = json.dumps(document).encode()
    found = explain(text, "hooks.json")
    told = {*found.diagnostics, *(d for handler in found.handlers for d in handler.diagnostics)}
    assert told == set(parse(text, "hooks.json").diagnostics)
    for handler in found.handlers:
        if handler.status in BROKEN:
            assert any(d.severity == "error" for d in handler.diagnostics)


@given(st.binary() | st.text().map(str.encode))
@example(b'{"hooks": {"error": [1e999]}}')
@example(b'{"hooks": {"error": ["\\ud800"]}}')
@example(b"[" * 100_000)
def test_any_bytes_give_an_explanation(text: bytes) -> None:
    """No bytes make it raise."""
    found = explain(text, "hooks.json")
    assert found.refused or all(handler.line for handler in found.handlers)
