"""The three profiles of the Codex hook contract, as one table: everything in which they differ.

``codex`` is Codex as its program behaves, ``bitfun`` what BitFun's page says where that is not the same,
``claude`` Claude Code as its hooks reference describes it. A profile is pure data: whoever reads a document,
runs a handler or judges a result looks a field up here and asks for no profile by name. The documents print
the same table. It refuses to know how any of it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from .codex_output_rules import BITFUN_OUTPUTS, CLAUDE_OUTPUTS, CODEX_OUTPUTS
from .codex_profile import MatcherRule, Opinion, Profile, TextLimit, TimeLimit

__all__ = [
    "BITFUN",
    "CLAUDE",
    "CODEX",
    "OWN_FILE_BYTES",
    "OWN_HANDLERS",
    "PROFILES",
    "MatcherRule",
    "Opinion",
    "Profile",
    "ProfileRow",
    "TextLimit",
    "TimeLimit",
    "profile_rows",
]

_TOOL_EVENTS: Final = frozenset({"PreToolUse", "PermissionRequest", "PostToolUse"})
_STOPS: Final = frozenset({"Stop", "SubagentStop"})
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})

_COMMAND: Final = frozenset({"type", "command", "timeout", "async", "statusMessage"})
_TOOL: Final = frozenset({"type", "server", "tool", "input", "timeout", "statusMessage"})
_ASKED: Final = frozenset({"type", "prompt", "model", "timeout"})
_CLAUDE_ALL: Final = frozenset({"if", "once"})

OWN_FILE_BYTES: Final = 16_777_216
"""Our bound where upstream has none (16 MiB)."""
OWN_HANDLERS: Final = 16_384
"""Our bound where upstream has none."""

CODEX: Final = Profile(
    name="codex",
    title="Codex, its program",
    user_file="prxbus/hooks.json",
    workspace_file=".prxbus/hooks.json",
    root_keys=frozenset({"description", "hooks"}),
    fault="file",
    reviews=True,
    reads_toml=True,
    own_texts=True,
    reports_unknown_events=False,
    max_file_bytes=OWN_FILE_BYTES,
    max_handlers=OWN_HANDLERS,
    types=frozenset({"command", "mcp_tool", "prompt", "agent"}),
    upstream_runs=frozenset({"command", "mcp_tool"}),
    runs=frozenset({"command"}),
    handler_keys=MappingProxyType(
        {
            "command": _COMMAND | {"commandWindows", "command_windows", "additionalContextLimit"},
            "mcp_tool": _TOOL,
        }
    ),
    null_is_absent=True,
    timeout_is_whole=True,
    timeout=TimeLimit(600.0),
    timeouts=MappingProxyType({"SessionEnd": TimeLimit(1.0, 3.0), "Interrupt": TimeLimit(1.0, 3.0)}),
    type_timeouts=_NONE,
    sync_events=frozenset({"SessionEnd"}),
    no_mcp_events=frozenset({"SessionEnd"}),
    no_http_events=frozenset(),
    default_type=None,
    matcher="search",
    tool_aliases=MappingProxyType({"apply_patch": ("Write", "Edit"), "spawn_agent": ("Agent",)}),
    dedupes=False,
    payload_values=MappingProxyType(
        {
            "permission_mode": ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"),
            "source": ("startup", "resume", "clear", "compact"),
            "trigger": ("auto", "manual"),
            "reason": ("other",),
        }
    ),
    payload_extras=False,
    shell=("$SHELL", "-c"),
    other_shell=("sh", "-lc"),
    async_at_once=8,
    scrubbed=(
        "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
        "NODE_REPL_AUTH_TOKEN",
        "OPENAI_FEDERATION_RULE_ID",
        "OPENAI_IDENTITY_TOKEN_FILE",
        "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
    ),
    project_variable=None,
    env_file_events=frozenset(),
    on_failure=False,
    on_failure_ignored=frozenset(),
    stop_continuations=None,
    outputs=CODEX_OUTPUTS,
    json_on_any_exit=False,
    plain_context=frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart"}),
    plain_fails=_STOPS | {"Interrupt"},
    context_events=frozenset(
        {"PreToolUse", "PostToolUse", "SessionStart", "UserPromptSubmit", "SubagentStart"}
    ),
    continue_false=MappingProxyType(
        {
            "PreToolUse": "unsupported",
            "PermissionRequest": "unsupported",
            "SubagentStart": "ignored",
            "SessionEnd": "ignored",
            "Interrupt": "invalid",
        }
    ),
    suppress_output_fails=_TOOL_EVENTS,
    exit_two=MappingProxyType(
        {
            "PreToolUse": "block",
            "PermissionRequest": "deny",
            "PostToolUse": "feedback",
            "UserPromptSubmit": "block",
            "Stop": "continue",
            "SubagentStop": "continue",
        }
    ),
    blank_exit_two_blocks=False,
    allow_alone="unsupported",
    ask="unsupported",
    defer="unsupported",
    approve="unsupported",
    rewrite_needs_allow=True,
    command_tools=frozenset({"Bash", "apply_patch"}),
    permission_reserved=frozenset({"updatedInput", "updatedPermissions", "interrupt"}),
    block_events=frozenset({"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop"}),
    post_block_replaces=True,
    post_on_error=False,
    failure_event=None,
    tool_output_fields=frozenset(),
    text=TextLimit(2_500, "tokens", spills=True),
    context_limit_field=True,
)

BITFUN: Final = replace(
    CODEX,
    name="bitfun",
    title="BitFun, its page",
    user_file="bitfun/config/hooks.json",
    workspace_file=".bitfun/config/hooks.json",
    fault="handler",
    reviews=False,
    reads_toml=False,
    own_texts=False,
    upstream_runs=frozenset({"command"}),
    handler_keys=MappingProxyType(
        {"command": _COMMAND | {"commandWindows", "command_windows"}, "mcp_tool": _TOOL}
    ),
    reports_unknown_events=True,
    max_file_bytes=1_048_576,
    max_handlers=2_048,
    timeouts=MappingProxyType({"SessionEnd": TimeLimit(1.0, 3.0)}),
    matcher="anchored",
    tool_aliases=_NONE,
    shell=("sh", "-c"),
    other_shell=("sh", "-c"),
    scrubbed=(),
    outputs=BITFUN_OUTPUTS,
    plain_fails=_STOPS,
    continue_false=MappingProxyType(
        {
            "PreToolUse": "block",
            "UserPromptSubmit": "block",
            **dict.fromkeys(
                (
                    "PermissionRequest",
                    "PostToolUse",
                    "SessionStart",
                    "SessionEnd",
                    "SubagentStart",
                    "SubagentStop",
                    "PreCompact",
                    "PostCompact",
                    "Stop",
                ),
                "ignored",
            ),
        }
    ),
    suppress_output_fails=frozenset(),
    allow_alone="allow",
    post_on_error=True,
    text=TextLimit(10_000, "bytes", spills=False),
    context_limit_field=False,
)

CLAUDE: Final = Profile(
    name="claude",
    title="Claude Code, its reference",
    user_file="prxbus/hooks.json",
    workspace_file=".prxbus/hooks.json",
    root_keys=None,
    fault="file",
    reviews=False,
    reads_toml=False,
    own_texts=False,
    reports_unknown_events=False,
    max_file_bytes=OWN_FILE_BYTES,
    max_handlers=OWN_HANDLERS,
    types=frozenset({"command", "http", "mcp_tool", "prompt", "agent"}),
    upstream_runs=frozenset({"command", "http", "mcp_tool", "prompt", "agent"}),
    runs=frozenset({"command", "http"}),
    handler_keys=MappingProxyType(
        {
            "command": _COMMAND | _CLAUDE_ALL | {"args", "shell", "asyncRewake", "onFailure"},
            "http": frozenset(
                {"type", "url", "headers", "allowedEnvVars", "timeout", "statusMessage", "onFailure"}
            )
            | _CLAUDE_ALL,
            "mcp_tool": _TOOL | _CLAUDE_ALL,
            "prompt": _ASKED | _CLAUDE_ALL | {"statusMessage", "continueOnBlock"},
            "agent": _ASKED | _CLAUDE_ALL | {"statusMessage"},
        }
    ),
    null_is_absent=False,
    timeout_is_whole=False,
    timeout=TimeLimit(600.0),
    timeouts=MappingProxyType(
        {
            "UserPromptSubmit": TimeLimit(30.0),
            "PreModelSwitch": TimeLimit(30.0),
            "PostModelSwitch": TimeLimit(30.0),
            "MessageDisplay": TimeLimit(10.0),
            "SessionEnd": TimeLimit(1.5, 60.0),
        }
    ),
    type_timeouts=MappingProxyType({"prompt": 30.0, "agent": 60.0}),
    sync_events=frozenset(),
    no_mcp_events=frozenset(),
    no_http_events=frozenset({"SessionStart", "Setup"}),
    default_type=None,
    matcher="list",
    tool_aliases=_NONE,
    dedupes=True,
    payload_values=_NONE,
    payload_extras=True,
    shell=("bash", "-c"),
    other_shell=("sh", "-c"),
    async_at_once=8,
    scrubbed=(),
    project_variable="CLAUDE_PROJECT_DIR",
    env_file_events=frozenset({"SessionStart", "Setup", "CwdChanged", "FileChanged"}),
    on_failure=True,
    on_failure_ignored=_STOPS | {"TaskCompleted", "TeammateIdle"},
    stop_continuations=8,
    outputs=CLAUDE_OUTPUTS,
    json_on_any_exit=True,
    plain_context=frozenset({"UserPromptSubmit", "UserPromptExpansion", "SessionStart", "PostModelSwitch"}),
    plain_fails=frozenset(),
    context_events=frozenset(
        {
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "SessionStart",
            "Setup",
            "UserPromptSubmit",
            "UserPromptExpansion",
            "SubagentStart",
            "Stop",
        }
    ),
    continue_false=MappingProxyType({"SessionEnd": "ignored"}),
    suppress_output_fails=frozenset(),
    exit_two=MappingProxyType(
        {
            "PreToolUse": "block",
            "PostToolUse": "feedback",
            "PostToolUseFailure": "feedback",
            "UserPromptSubmit": "block",
            "UserPromptExpansion": "block",
            "Stop": "continue",
            "SubagentStop": "continue",
            "PreCompact": "block",
            "TaskCreated": "block",
            "TaskCompleted": "block",
            "TeammateIdle": "continue",
            "WorktreeCreate": "block",
            "PostToolBatch": "block",
            "ConfigChange": "block",
            "PreModelSwitch": "block",
        }
    ),
    blank_exit_two_blocks=True,
    allow_alone="allow",
    ask="ask",
    defer="defer",
    approve="allow",
    rewrite_needs_allow=False,
    command_tools=frozenset(),
    permission_reserved=frozenset(),
    block_events=frozenset(
        {
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "UserPromptSubmit",
            "UserPromptExpansion",
            "Stop",
            "SubagentStop",
            "PreCompact",
            "PostToolBatch",
            "ConfigChange",
            "PreModelSwitch",
        }
    ),
    post_block_replaces=False,
    post_on_error=False,
    failure_event="PostToolUseFailure",
    tool_output_fields=frozenset({"updatedToolOutput", "updatedMCPToolOutput"}),
    text=TextLimit(10_000, "characters", spills=True, preview=2_000),
    context_limit_field=False,
)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {profile.name: profile for profile in (CODEX, BITFUN, CLAUDE)}
)
"""The profiles by name."""


class ProfileRow(NamedTuple):
    """One row of the printed table: what a field is about, and its value in each profile, in order."""

    about: str
    values: tuple[str, ...]


def profile_rows() -> Iterator[ProfileRow]:
    """The table of the documents: every field of :class:`Profile` that carries a sentence."""
    for part in fields(Profile):
        if "about" in part.metadata:
            values = (getattr(profile, part.name) for profile in PROFILES.values())
            yield ProfileRow(part.metadata["about"], tuple(_shown(value) for value in values))


def _shown(value: Any) -> str:
    """A value as a reader of the documents wants it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, TimeLimit):
        return f"{value.default_s:g}" + ("" if value.most_s is None else f", {value.most_s:g}")
    if isinstance(value, TextLimit):
        kept = "" if value.preview is None else f", {value.preview:,} of it shown"
        return f"{value.limit:,} {value.unit}, {'the rest in a file' if value.spills else 'cut'}{kept}"
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_shown(found)}" for key, found in value.items()) or "–"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "–"
    if isinstance(value, tuple):
        return " ".join(value) or "–"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
