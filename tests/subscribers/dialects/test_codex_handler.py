"""One handler: its fields in each profile, what is wrong with it, and what Codex says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_handler import LONGEST_S
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, Profile
from subscribers.dialects.codex_spec import CodexDocument, CodexHandler

PATH = "/h/hooks.json"


def document(
    handler: object, profile: Profile = CODEX, event: str = "PreToolUse", **options: Any
) -> CodexDocument:
    """A document with one handler."""
    content = json.dumps({"hooks": {event: [{"hooks": [handler]}]}}).encode()
    return read_document(content, PATH, profile, **options)


def made(profile: Profile = CODEX, event: str = "PreToolUse", /, **fields: Any) -> CodexHandler:
    """The handler that fields make, of type command unless they say otherwise."""
    found = document({"type": "command", "command": "x", **fields}, profile, event)
    (handler,) = found.handlers
    return handler


def codes(found: CodexDocument) -> list[str]:
    """What is said, without what Codex would do with the file."""
    return [d.code for d in found.diagnostics if d.code != "upstream_refuses"]


def test_a_command_with_nothing_else() -> None:
    """Every other field has its default."""
    handler = made()
    assert (handler.kind, handler.command, handler.args, handler.shell) == ("command", "x", None, None)
    assert (handler.timeout_s, handler.timeout_is_own, handler.is_async) == (600.0, False, False)
    assert (handler.context_limit, handler.status_message, handler.on_failure) == (None, None, "continue")
    assert (handler.profile, handler.unsupported, handler.condition) == ("codex", None, None)


def test_a_command_with_everything_of_codex() -> None:
    """Each field is where it belongs."""
    handler = made(
        timeout=10,
        statusMessage="checking",
        additionalContextLimit=4096,
        commandWindows="y",
        **{"async": True},
    )
    assert (handler.timeout_s, handler.timeout_is_own, handler.is_async) == (10.0, True, True)
    assert (handler.status_message, handler.context_limit) == ("checking", 4096)
    assert handler.command_windows == "y"


def test_a_command_with_everything_of_claude() -> None:
    """Each field is where it belongs."""
    handler = made(
        CLAUDE,
        args=["a", "b"],
        shell="bash",
        onFailure="block",
        once=True,
        timeout=0.5,
        **{"if": "Bash(git *)"},
    )
    assert (handler.args, handler.shell, handler.on_failure) == (("a", "b"), "bash", "block")
    assert (handler.once, handler.timeout_s) == (True, 0.5)
    assert handler.condition is not None
    assert handler.condition.text == "Bash(git *)"
    rewakes = made(CLAUDE, asyncRewake=True)
    assert (rewakes.is_async, rewakes.rewakes) == (True, True)


@pytest.mark.parametrize(
    "profile,event,written,applied",
    [
        (CODEX, "Stop", None, 600.0),
        (CODEX, "Stop", 0, 1.0),
        (CODEX, "Stop", 7, 7.0),
        (CODEX, "Stop", 2**64 - 1, LONGEST_S),
        (CODEX, "SessionEnd", None, 1.0),
        (CODEX, "SessionEnd", 2, 2.0),
        (CODEX, "SessionEnd", 4, 3.0),
        (CODEX, "Interrupt", 600, 3.0),
        (BITFUN, "SessionEnd", 30, 3.0),
        (CLAUDE, "SessionEnd", None, 1.5),
        (CLAUDE, "SessionEnd", 10, 10.0),
        (CLAUDE, "SessionEnd", 100, 60.0),
        (CLAUDE, "UserPromptSubmit", None, 30.0),
        (CLAUDE, "MessageDisplay", None, 10.0),
        (CLAUDE, "PreToolUse", 0.25, 0.25),
    ],
)
def test_how_long_a_handler_may_run(profile: Profile, event: str, written: object, applied: float) -> None:
    """Seconds: its own, within the event's limits, else the event's default."""
    fields = {} if written is None else {"timeout": written}
    assert made(profile, event, **fields).timeout_s == applied


@pytest.mark.parametrize(
    "field,value,reason",
    [
        ("command", 7, "invalid type: integer `7`, expected a string"),
        ("command", None, "invalid type: null, expected a string"),
        ("timeout", 10.0, "invalid type: floating point `10.0`, expected u64"),
        ("timeout", -1, "invalid value: integer `-1`, expected u64"),
        ("timeout", "10", 'invalid type: string "10", expected u64'),
        ("timeout", True, "invalid type: boolean `true`, expected u64"),
        ("async", None, "invalid type: null, expected a boolean"),
        ("async", "yes", 'invalid type: string "yes", expected a boolean'),
        ("statusMessage", [], "invalid type: sequence, expected a string"),
        ("additionalContextLimit", {}, "invalid type: map, expected usize"),
        ("commandWindows", 7, "invalid type: integer `7`, expected a string"),
        ("type", 7, "invalid type: integer `7`, expected variant"),
        ("type", "http", "unknown variant `http`, expected one of `command`, `mcp_tool`, `prompt`, `agent`"),
    ],
)
def test_a_wrong_field_costs_the_handler_and_upstream_the_file(
    field: str, value: object, reason: str
) -> None:
    """With the reason in the words of Codex's reader."""
    handler = {"type": "command", "command": "x", field: value}
    found = document(handler)
    assert found.handlers == ()
    assert found.upstream_refusal == reason
    assert found.warnings == (f"failed to parse hooks config {PATH}: {reason}",)
    assert document(handler, strict=True).refused


def test_what_is_repeated_of_a_file_is_bounded() -> None:
    """However long a wrong value is."""
    found = document({"type": "command", "command": "x", "timeout": "y" * 100_000})
    assert len(str(found.upstream_refusal)) < 1_100
    assert len(found.diagnostics[0].message) < 1_200


@pytest.mark.parametrize("field", ["timeout", "statusMessage", "additionalContextLimit", "commandWindows"])
def test_null_is_absence_where_codex_says_so(field: str) -> None:
    """And a fault for Claude Code."""
    assert made(**{field: None}) == made()
    found = document({"type": "command", "command": "x", "timeout": None}, CLAUDE)
    assert (found.handlers, codes(found)) == ((), ["wrong_type"])


@pytest.mark.parametrize(
    "handler,reason",
    [
        (7, "invalid type: integer `7`, expected internally tagged enum HookHandlerConfig"),
        ({}, "missing field `type`"),
        ({"type": "command"}, "missing field `command`"),
        ({"type": "mcp_tool", "server": "s"}, "missing field `tool`"),
        (
            {"type": "command", "command": "x", "command_windows": "y", "commandWindows": "z"},
            "duplicate field `commandWindows`",
        ),
        (
            {"type": "mcp_tool", "server": "s", "tool": "t", "input": {"a": [{"b": None}]}},
            "MCP hook input must be representable as TOML",
        ),
        (
            {"type": "mcp_tool", "server": "s", "tool": "t", "input": {"a": 2**63}},
            "MCP hook input must be representable as TOML",
        ),
    ],
)
def test_a_wrong_shape_costs_the_same(handler: object, reason: str) -> None:
    """What is missing, twice there, or no object."""
    found = document(handler)
    assert (found.handlers, found.upstream_refusal) == ((), reason)


@pytest.mark.parametrize("kind", ["prompt", "agent"])
def test_handlers_that_ask_a_model_are_skipped(kind: str) -> None:
    """Codex does not support them, whatever fields they have; Claude Code does, and that is said."""
    found = document({"type": kind, "prompt": 7, "bogus": None})
    assert found.warnings == (f"skipping {kind} hook in {PATH}: {kind} hooks are not supported yet",)
    assert (found.handlers, codes(found), found.upstream_refusal) == ((), ["not_run"], None)
    (said,) = document({"type": kind, "prompt": "x"}, CLAUDE).diagnostics
    assert said.message == f"Claude Code runs {kind} handlers, prxbus does not"


@pytest.mark.parametrize("command", ["", " \t\n"])
def test_an_empty_command_is_skipped(command: str) -> None:
    """With Codex's warning."""
    found = document({"type": "command", "command": command})
    assert found.warnings == (f"skipping empty hook command in {PATH}",)
    assert (found.handlers, codes(found)) == ((), ["empty_command"])


@pytest.mark.parametrize("fields", [{"command": "a\0b"}, {"args": ["a\0"]}])
def test_a_command_can_hold_no_nul(fields: dict[str, Any]) -> None:
    """No program can be given one."""
    found = document({"type": "command", "command": "x", **fields}, CLAUDE)
    assert (found.handlers, codes(found)) == ((), ["nul"])


def test_session_end_is_clamped_and_waited_for() -> None:
    """Two warnings, in Codex's order."""
    found = document({"type": "command", "command": "x", "timeout": 600, "async": True}, CODEX, "SessionEnd")
    assert found.warnings == (
        f"clamping SessionEnd hook timeout to 3s in {PATH}",
        f"running async SessionEnd hook synchronously in {PATH}",
    )
    assert not found.handlers[0].is_async


def test_a_limit_that_means_nothing_is_said() -> None:
    """An event that cannot give context has the default."""
    found = document({"type": "command", "command": "x", "additionalContextLimit": 9}, CODEX, "Stop")
    assert found.warnings == (
        f"ignoring additionalContextLimit for Stop hook in {PATH}: this event cannot emit additionalContext",
    )
    assert found.handlers[0].context_limit is None


@pytest.mark.parametrize(
    "profile,field,code,says",
    [
        (CODEX, "timeoutSec", "ignored_field", "timeout is the field; it is in seconds"),
        (CODEX, "status_message", "ignored_field", "statusMessage is the field"),
        (CODEX, "statusMesage", "ignored_field", "did you mean statusMessage?"),
        (CODEX, "zzz", "ignored_field", "the fields are"),
        (CODEX, "if", "foreign_field", "Claude Code"),
        (CLAUDE, "commandWindows", "foreign_field", "Codex"),
        (BITFUN, "additionalContextLimit", "foreign_field", "Codex"),
    ],
)
def test_a_field_that_means_nothing_is_said(profile: Profile, field: str, code: str, says: str) -> None:
    """Codex is silent about each; the handler runs."""
    found = document({"type": "command", "command": "x", field: 1}, profile)
    (said,) = found.diagnostics
    assert said.code == code
    assert says in f"{said.message}; {said.hint}"
    assert len(found.handlers) == 1


def test_many_fields_that_mean_nothing_are_counted() -> None:
    """Beyond the bound nothing is looked up for a hint."""
    handlers = [{"type": "command", "command": "x", "zzz": 1} for _ in range(1_010)]
    content = json.dumps({"hooks": {"Stop": [{"hooks": handlers}]}}).encode()
    found = read_document(content, PATH, CODEX)
    assert len(found.handlers) == 1_010
    assert len(found.diagnostics) == 1_000


def test_an_http_handler() -> None:
    """Claude Code's alone."""
    found = document(
        {
            "type": "http",
            "url": " https://localhost:8/hooks ",
            "headers": {"Authorization": "Bearer $TOKEN"},
            "allowedEnvVars": ["TOKEN"],
            "onFailure": "block",
            "if": "Bash",
        },
        CLAUDE,
    )
    (handler,) = found.handlers
    assert (handler.kind, handler.url) == ("http", "https://localhost:8/hooks")
    assert (handler.headers, handler.allowed_env) == ({"Authorization": "Bearer $TOKEN"}, ("TOKEN",))
    assert (handler.on_failure, handler.condition is not None) == ("block", True)
    assert found.diagnostics == ()


@pytest.mark.parametrize(
    "event,fields,code",
    [
        ("SessionStart", {}, "unsupported_here"),
        ("Stop", {"url": "ftp://x"}, "unsupported_here"),
        ("Stop", {"headers": {"a": 1}}, "wrong_type"),
        ("Stop", {"allowedEnvVars": [1]}, "wrong_type"),
        ("Stop", {"if": "Bash"}, "dead_condition"),
    ],
)
def test_an_http_handler_that_cannot_run(event: str, fields: dict[str, Any], code: str) -> None:
    """Where it is never called, or cannot be."""
    found = document({"type": "http", "url": "http://x", **fields}, CLAUDE, event)
    assert (found.handlers, codes(found)) == ((), [code])


@pytest.mark.parametrize(
    "rule,event", [("Bash(", "PreToolUse"), ("Bash", "SessionStart"), ("Bash", "Notification")]
)
def test_a_condition_that_is_never_met(rule: str, event: str) -> None:
    """No rule, or an event without a tool: the handler never runs."""
    found = document({"type": "command", "command": "x", "if": rule}, CLAUDE, event)
    assert (found.handlers, codes(found)) == ((), ["dead_condition"])


@pytest.mark.parametrize("event,fields", [("Stop", {}), ("PreToolUse", {"async": True})])
def test_a_failure_policy_that_does_nothing(event: str, fields: dict[str, Any]) -> None:
    """It is said, and the handler has none."""
    found = document({"type": "command", "command": "x", "onFailure": "block", **fields}, CLAUDE, event)
    assert (found.handlers[0].on_failure, codes(found)) == ("continue", ["ignored_field"])


def test_a_tool_handler_is_listed_and_not_run() -> None:
    """With its template as it was written."""
    found = document(
        {"type": "mcp_tool", "server": "s", "tool": "t", "input": {"a": "${prompt}"}, "timeout": 30}
    )
    (handler,) = found.handlers
    assert (handler.kind, handler.server, handler.tool) == ("mcp_tool", "s", "t")
    assert (handler.tool_input, handler.timeout_s) == ({"a": "${prompt}"}, 30.0)
    assert handler.unsupported == "Codex runs mcp_tool handlers, prxbus does not"
    assert codes(found) == ["not_run"]


@pytest.mark.parametrize(
    "event,fields,warning",
    [
        ("Stop", {"server": " "}, "server and tool must not be empty"),
        ("Stop", {"tool": ""}, "server and tool must not be empty"),
        ("SessionEnd", {}, "SessionEnd MCP hooks are not supported"),
    ],
)
def test_a_tool_handler_that_cannot_be(event: str, fields: dict[str, Any], warning: str) -> None:
    """With Codex's warning."""
    found = document({"type": "mcp_tool", "server": "s", "tool": "t", **fields}, CODEX, event)
    assert found.handlers == ()
    assert found.warnings == (f"skipping MCP tool hook in {PATH}: {warning}",)


def test_a_tool_input_of_great_depth_is_refused() -> None:
    """It could not be hashed."""
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    found = document({"type": "mcp_tool", "server": "s", "tool": "t", "input": {"a": deep}})
    assert (found.handlers, codes(found)) == ((), ["unsupported_here"])


def test_a_tool_handler_of_claude_with_a_rule_that_is_none() -> None:
    """It is not even listed."""
    found = document({"type": "mcp_tool", "server": "s", "tool": "t", "if": "("}, CLAUDE)
    assert found.handlers == ()


def test_what_two_handlers_have_in_common() -> None:
    """What they run and when, not where they stand."""
    assert made().identity == made(timeout=5).identity
    assert made(CLAUDE).identity != made(CLAUDE, **{"if": "Bash"}).identity
    assert made(CLAUDE).identity != made(CLAUDE, args=[]).identity
