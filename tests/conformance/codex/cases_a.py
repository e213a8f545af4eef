"""Part A: what a hook file says, what its faults cost, and what Codex records of its handlers."""

from __future__ import annotations

import json
from typing import Any, Final, get_args

from subscribers.config.hook_files import HookFile
from subscribers.dialects.codex_explanation import explain
from subscribers.dialects.codex_file import read_document, read_entries
from subscribers.dialects.codex_profiles import CODEX
from subscribers.dialects.codex_spec import CodexDocument, CodexHandler, TrustState
from subscribers.dialects.codex_trust import command_identity, merge_states, read_states, trust_status
from subscribers.sources.codex_layers import Scope, Switches, layers
from subscribers.sources.codex_switches import BitFunSwitches
from tests.conformance.codex.conformance import Case
from tests.conformance.codex.host import Host, Tool, answers_with

JSON_FILE: Final = "/tmp/hooks.json"
TOML_FILE: Final = "/tmp/config.toml"
ECHO: Final = {"type": "command", "command": "echo hello"}
CONTEXT_EVENTS: Final = ("PreToolUse", "PostToolUse", "SessionStart", "UserPromptSubmit", "SubagentStart")


def load(document: object, path: str = JSON_FILE, **options: Any) -> CodexDocument:
    """A hook file, read strictly."""
    content = document.encode() if isinstance(document, str) else json.dumps(document).encode()
    return read_document(content, path, CODEX, strict=True, **options)


def group(event: str, *handlers: object, matcher: str | None = None) -> dict[str, Any]:
    """A file with one group."""
    found: dict[str, Any] = {"hooks": list(handlers)}
    if matcher is not None:
        found["matcher"] = matcher
    return {"hooks": {event: [found]}}


def only(document: CodexDocument) -> CodexHandler:
    """The one handler of a file of which there is nothing to warn."""
    assert document.warnings == ()
    (handler,) = document.handlers
    return handler


def refused(document: CodexDocument, text: str) -> None:
    """Nothing of the file is used, and the one warning says this."""
    assert document.refused
    assert document.handlers == ()
    (warning,) = document.warnings
    assert text in warning


def skipped(document: CodexDocument, *warnings: str) -> None:
    """The file is used, no handler of it is, and these are the warnings."""
    assert not document.refused
    assert document.handlers == ()
    assert document.warnings == warnings


# ---- A1: the document ------------------------------------------------------------------------------------


def a1_1() -> None:
    """Every field of a command handler is read."""
    hook = {"type": "command", "command": "x", "timeout": 10, "statusMessage": "checking"}
    document = {
        "description": "d",
        **group("PreToolUse", {**hook, "additionalContextLimit": 4096}, matcher="^Bash$"),
    }
    handler = only(load(document))
    assert (handler.event, handler.matcher, handler.command) == ("PreToolUse", "^Bash$", "x")
    assert (handler.timeout_s, handler.status_message, handler.context_limit) == (10.0, "checking", 4096)
    assert not handler.is_async


MCP: Final = {"type": "mcp_tool", "server": "s", "tool": "t"}


def a1_2() -> None:
    """Every field of a tool handler is read."""
    template = {"text": "${prompt}", "flag": True}
    handler = only(load(group("Stop", {**MCP, "input": template, "timeout": 30, "statusMessage": "m"})))
    assert (handler.kind, handler.server, handler.tool, handler.tool_input) == (
        "mcp_tool",
        "s",
        "t",
        template,
    )
    assert (handler.timeout_s, handler.status_message) == (30.0, "m")


def a1_3() -> None:
    """A null refuses the file wherever it stands in the input."""
    for value in ({"a": None}, {"a": {"b": None}}, {"a": [None]}):
        refused(load(group("Stop", {**MCP, "input": value})), "MCP hook input must be representable as TOML")


def a1_4() -> None:
    """An event at the root refuses the file."""
    refused(load({"SessionStart": []}), "unknown field `SessionStart`")


TABLES: Final = """
[[hooks.PreToolUse]]
matcher = "^Bash$"
[[hooks.PreToolUse.hooks]]
type = "command"
command = "x"
timeout = 10
"""


def a1_5() -> None:
    """Tables give what objects give."""
    found = only(load(TABLES, TOML_FILE))
    hook = {"type": "command", "command": "x", "timeout": 10}
    same = only(load(group("PreToolUse", hook, matcher="^Bash$")))
    assert (found.command, found.matcher, found.timeout_s) == (same.command, same.matcher, same.timeout_s)
    assert found.digest == same.digest


STATE: Final = '[hooks.state."k"]\nenabled = false\ntrusted_hash = "sha256:1"\n'


def a1_6() -> None:
    """Events and records stand in one table."""
    document = load(TABLES + STATE, TOML_FILE)
    assert len(document.handlers) == 1
    assert document.states == {"k": TrustState(False, "sha256:1")}


def windows(spelling: str) -> None:
    """A command for Windows, in either spelling."""
    handler = only(load(f'{TABLES}{spelling} = "y"\n', TOML_FILE))
    assert (handler.command, handler.command_windows) == ("x", "y")


def a1_10() -> None:
    """A limit that is not set is not written."""
    identity = command_identity("x", 600, is_async=False, status_message=None, context_limit=None)
    assert "additionalContextLimit" not in identity


# ---- A2: discovery ---------------------------------------------------------------------------------------


def a2_1() -> None:
    """A template stays one, and the listing shows the target."""
    handler = only(load(group("UserPromptSubmit", {**MCP, "input": {"q": "${prompt}"}})))
    assert handler.tool_input == {"q": "${prompt}"}
    content = json.dumps(group("UserPromptSubmit", {**MCP, "input": {"q": "${prompt}"}})).encode()
    (listed,) = explain(content, JSON_FILE, CODEX, strict=True).handlers
    assert (listed.command, listed.args) == ("s", ("t",))


def a2_2() -> None:
    """The end of a session calls no tools."""
    text = f"skipping MCP tool hook in {JSON_FILE}: SessionEnd MCP hooks are not supported"
    skipped(load(group("SessionEnd", MCP)), text)


def a2_3() -> None:
    """A limit is kept and hashed, the default not."""
    for event in CONTEXT_EVENTS:
        plain = only(load(group(event, ECHO)))
        for limit in (20_000, 0):
            handler = only(load(group(event, {**ECHO, "additionalContextLimit": limit})))
            assert handler.context_limit == limit
            assert handler.digest != plain.digest
        explicit = only(load(group(event, {**ECHO, "additionalContextLimit": 2_500})))
        assert (explicit.context_limit, explicit.digest) == (2_500, plain.digest)


def a2_4() -> None:
    """A limit where there is no context is ignored, and said."""
    document = load(group("Stop", {**ECHO, "additionalContextLimit": 4096}))
    assert document.handlers[0].context_limit is None
    (warning,) = document.warnings
    assert "for Stop hook" in warning
    assert JSON_FILE in warning


def a2_5() -> None:
    """A matcher that means nothing may be anything."""
    handler = only(load(group("UserPromptSubmit", ECHO, matcher="[")))
    assert (handler.matcher, handler.timeout_s, handler.order) == (None, 600.0, 0)


def a2_6() -> None:
    """A matcher that means something is kept."""
    handler = only(load(group("PreToolUse", ECHO, matcher="^Bash$")))
    assert (handler.matcher, handler.timeout_s, handler.is_async) == ("^Bash$", 600.0, False)


def a2_7() -> None:
    """The end of a session has three seconds, and waits."""
    hooks = ECHO, {**ECHO, "timeout": 600, "async": True}
    document = load(group("SessionEnd", *hooks, matcher="other"))
    assert [each.timeout_s for each in document.handlers] == [1.0, 3.0]
    assert [each.is_async for each in document.handlers] == [False, False]
    assert [each.matcher for each in document.handlers] == ["other", "other"]
    assert document.warnings == (
        f"clamping SessionEnd hook timeout to 3s in {JSON_FILE}",
        f"running async SessionEnd hook synchronously in {JSON_FILE}",
    )


def a2_8() -> None:
    """A handler that nobody reviewed runs, and is still said to be that."""
    document = group("PreToolUse", ECHO, matcher="Bash")
    handler = only(load(document))
    assert trust_status(handler, {}) == "untrusted"
    agent = Host(document, {"echo hello": answers_with("")})
    agent.turn("go", [Tool("Bash", {"command": "ls"}), "done"])
    assert [command for command, _ in agent.runs] == ["echo hello"]
    (listed,) = explain(json.dumps(document).encode(), JSON_FILE, CODEX, strict=True).handlers
    assert (listed.status, [each.code for each in listed.diagnostics]) == ("ok", ["review_untrusted"])


OFF: Final = '[hooks.state."/tmp/config.toml:pre_tool_use:0:0"]\nenabled = false\n'


def a2_9() -> None:
    """A handler that was switched off is listed and does not run."""
    read = read_entries((TABLES + OFF).encode(), TOML_FILE, CODEX, strict=True)
    assert (len(read.entries), read.document.handlers) == (1, ())


def a2_10() -> None:
    """A star matches everything."""
    assert only(load(group("PreToolUse", ECHO, matcher="*"))).matches.is_everything


def a2_11() -> None:
    """A list of names is kept."""
    assert only(load(group("PostToolUse", ECHO, matcher="Edit|Write"))).matcher == "Edit|Write"


def a2_12() -> None:
    """A malformed record harms no event."""
    bad = '[hooks.state."k"]\nenabled = "not a bool"\n'
    document = load(TABLES + bad, TOML_FILE)
    assert only(document).command == "x"
    assert document.states == {}


def a2_13() -> None:
    """The command is chosen for the platform."""
    document = group("PreToolUse", {**ECHO, "commandWindows": "there"})
    assert only(load(document)).command == "echo hello"
    assert only(load(document, windows=True)).command == "there"


# ---- A3: records -----------------------------------------------------------------------------------------


def a3_1() -> None:
    """A later layer says that it is on."""
    assert merge_states([{"k": TrustState(False)}, {"k": TrustState(True)}]) == {"k": TrustState(True)}


def a3_2() -> None:
    """Fields of several layers come together."""
    layers = [{"k": TrustState(False)}, {"k": TrustState(None, "sha256:1")}]
    assert merge_states(layers) == {"k": TrustState(False, "sha256:1")}


def a3_3() -> None:
    """A bad event does not lose the records."""
    document = load(f"[hooks]\nPreToolUse = 7\n{STATE}", TOML_FILE)
    assert document.states == {"k": TrustState(False, "sha256:1")}


def a3_4() -> None:
    """A bad record does not lose the good one."""
    assert read_states({"bad": {"enabled": 1}, "k": {"enabled": True}}) == {"k": TrustState(True)}


def a3_5() -> None:
    """Keys are positions, and what is skipped takes one up."""
    source = "demo@test:hooks/hooks.json"
    hooks = {
        "PreToolUse": [{"hooks": [ECHO, ECHO]}],
        "SessionStart": [{"hooks": [ECHO]}],
        "Stop": [{"hooks": [{"type": "prompt"}, {"type": "agent"}, ECHO]}],
    }
    document = load({"hooks": hooks}, source)
    assert [each.key for each in document.handlers] == [
        f"{source}:pre_tool_use:0:0",
        f"{source}:pre_tool_use:0:1",
        f"{source}:session_start:0:0",
        f"{source}:stop:0:2",
    ]


# ---- A4: the engine --------------------------------------------------------------------------------------


def a4_19() -> None:
    """A key of an administrator's file does nothing in a user's."""
    assert only(load(f"allow_managed_hooks_only = true\n{TABLES}", TOML_FILE)).command == "x"


def a4_25() -> None:
    """A malformed file is one warning with its path."""
    document = load({"SessionStart": []})
    refused(document, "unknown field `SessionStart`")
    assert JSON_FILE in document.warnings[0]


# ---- A5: the listing -------------------------------------------------------------------------------------


def a5_1() -> None:
    """The whole record of a handler."""
    text = TABLES.replace("^Bash$", "Bash").replace("timeout = 10", "timeout = 5")
    text += 'async = true\nstatusMessage = "m"\nadditionalContextLimit = 4096\n'
    handler = only(load(text, TOML_FILE))
    assert handler.key == f"{TOML_FILE}:pre_tool_use:0:0"
    assert (handler.is_async, handler.matcher, handler.timeout_s) == (True, "Bash", 5.0)
    assert (handler.status_message, handler.context_limit, handler.order) == ("m", 4096, 0)
    (listed,) = explain(text.encode(), TOML_FILE, CODEX, strict=True).handlers
    (review,) = listed.diagnostics
    assert (listed.status, review.code) == ("ok", "review_untrusted")
    assert handler.digest in review.message
    named = [HookFile(TOML_FILE, "codex", False)]
    found = layers("/c", None, Switches(), BitFunSwitches(), named, environ={})
    (layer,) = (each for each in found if each.path == TOML_FILE)
    assert (layer.scope, layer.off) == ("user", None)
    assert get_args(Scope) == ("user", "project")  # nothing else has hooks: none are managed


_MANAGED: Final = "nothing is managed: prxbus reads no administrator's requirements"
_PLUGINS: Final = "hooks of Codex's plugins are not read, and not imported"
_TOOLS: Final = "prxbus calls no tools of MCP servers: such handlers are listed and not run"
_REMOTE: Final = "prxbus has no remote executors"
_RECORDS: Final = "prxbus never writes Codex's records, and its own trust is a workspace's"
_LAYERS: Final = "prxbus reads files by name: its layers have no second form and no profiles of a user"

CASES: Final = (
    Case("A1.1", "every field of a command handler", a1_1),
    Case("A1.2", "every field of a tool handler", a1_2),
    Case("A1.3", "a null in a tool's input", a1_3),
    Case("A1.4", "an event outside of `hooks`", a1_4),
    Case("A1.5", "events as tables", a1_5),
    Case("A1.6", "events and records in one table", a1_6),
    Case("A1.7", "a managed folder beside the events", not_applicable=_MANAGED),
    Case("A1.8", "`command_windows`", lambda: windows("command_windows")),
    Case("A1.9", "`commandWindows`", lambda: windows("commandWindows")),
    Case("A1.10", "a limit that is not set is not written", a1_10),
    Case("A2.1", "a tool's template is kept, its target listed", a2_1),
    Case("A2.2", "no tools at the end of a session", a2_2),
    Case("A2.3", "the limit of a context is kept and hashed", a2_3),
    Case("A2.4", "the limit of an event without context", a2_4),
    Case("A2.5", "an invalid matcher where matchers mean nothing", a2_5),
    Case("A2.6", "a valid matcher of PreToolUse", a2_6),
    Case("A2.7", "the time of SessionEnd", a2_7),
    Case("A2.8", "an untrusted handler runs nevertheless, and is listed as that", a2_8),
    Case("A2.9", "a handler that was switched off", a2_9),
    Case("A2.10", "a star as a matcher", a2_10),
    Case("A2.11", "a valid matcher of PostToolUse", a2_11),
    Case("A2.12", "malformed records", a2_12),
    Case("A2.13", "the command of the platform", a2_13),
    Case("A2.14", "several sources of requirements", not_applicable=_MANAGED),
    Case("A2.15", "names in the path of a managed source", not_applicable=_MANAGED),
    Case("A2.16", "labels of Codex's layers", not_applicable=_LAYERS),
    Case("A3.1", "records of a later layer", a3_1),
    Case("A3.2", "records come together field by field", a3_2),
    Case("A3.3", "records beside a bad event", a3_3),
    Case("A3.4", "a bad record beside a good one", a3_4),
    Case("A3.5", "keys of a plugin's handlers", a3_5),
    Case(
        "A4.1",
        "the longest wait for an approval",
        not_applicable="an ask has one deadline, which the asker gives",
    ),
    Case("A4.2", "managed hooks while hooks are off", not_applicable=_MANAGED),
    Case("A4.3", "managed: an invalid matcher", not_applicable=_MANAGED),
    Case("A4.4", "managed: an invalid matcher without handlers", not_applicable=_MANAGED),
    Case("A4.5", "managed: an empty command", not_applicable=_MANAGED),
    Case("A4.6", "managed: an unsupported type", not_applicable=_MANAGED),
    Case("A4.7", "managed: an empty target", not_applicable=_MANAGED),
    Case("A4.8", "managed: tools at the end of a session", not_applicable=_MANAGED),
    Case("A4.9", "managed by nobody knows whom", not_applicable=_MANAGED),
    Case("A4.10", "managed and valid", not_applicable=_MANAGED),
    Case("A4.11", "a fault in a managed layer is a warning", not_applicable=_MANAGED),
    Case("A4.12", "managed hooks run from their folder", not_applicable=_MANAGED),
    Case("A4.13", "managed hooks on Windows", not_applicable=_MANAGED),
    Case("A4.14", "managed hooks of an unknown source", not_applicable=_MANAGED),
    Case("A4.15", "what a user switched off, and may not", not_applicable=_MANAGED),
    Case("A4.16", "a managed layer that a user switched off", not_applicable=_MANAGED),
    Case("A4.17", "a managed folder that is missing", not_applicable=_MANAGED),
    Case("A4.18", "only managed hooks: not asked for", not_applicable=_MANAGED),
    Case("A4.19", "only managed hooks: asked for in a user's file", a4_19),
    Case("A4.20", "only managed hooks: JSON and TOML", not_applicable=_MANAGED),
    Case("A4.21", "only managed hooks: plugins", not_applicable=_MANAGED),
    Case("A4.22", "only managed hooks: what remains", not_applicable=_MANAGED),
    Case("A4.23", "JSON and TOML in one layer", not_applicable=_LAYERS),
    Case("A4.24", "one folder of two profiles of a user", not_applicable=_LAYERS),
    Case("A4.25", "a malformed file is one warning", a4_25),
    Case("A4.26", "a plugin's environment", not_applicable=_PLUGINS),
    Case("A4.27", "a plugin's placeholders", not_applicable=_PLUGINS),
    Case("A4.28", "a plugin's warnings", not_applicable=_PLUGINS),
    Case("A4.29", "an executor's Stop hooks: when", not_applicable=_REMOTE),
    Case("A4.30", "an executor's Stop hooks: the first", not_applicable=_REMOTE),
    Case("A4.31", "an executor's Stop hooks: not awaited", not_applicable=_REMOTE),
    Case("A4.32", "a tool that decides", not_applicable=_TOOLS),
    Case("A5.1", "the whole record of a handler, its source, that it is on, no warnings", a5_1),
    Case("A5.2", "a plugin's handler, listed", not_applicable=_PLUGINS),
    Case("A5.3", "a plugin's tool handler, listed", not_applicable=_PLUGINS),
    Case("A5.4", "a plugin's warnings, listed", not_applicable=_PLUGINS),
    Case(
        "A5.5",
        "hooks switched on and off by folder",
        not_applicable="Codex's feature flags are its own; prxbus has hooks.enabled",
    ),
    Case(
        "A5.6",
        "linked worktrees",
        not_applicable="a workspace is the folder that the user named, whatever git thinks of it",
    ),
    Case("A5.7", "a handler is switched off and on again", not_applicable=_RECORDS),
    Case("A5.8", "trust is written while a session runs", not_applicable=_RECORDS),
    Case("A5.9", "a handler is switched off while a session runs", not_applicable=_RECORDS),
    Case("A5.10", "a plugin's new version", not_applicable=_PLUGINS),
    Case("A5.11", "a plugin's new version by itself", not_applicable=_PLUGINS),
    Case("A5.12", "listing prepares a session", not_applicable=_PLUGINS),
)
