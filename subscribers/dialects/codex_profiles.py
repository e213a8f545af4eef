"""The three profiles of the Codex hook contract, as one table: everything in which they differ.

``codex`` is Codex as its program behaves, ``bitfun`` what BitFun's page says where that is not the same,
``claude`` Claude Code as its hooks reference describes it. A profile is pure data: whoever reads a document,
runs a handler or judges a result looks a field up here and asks for no profile by name. The documents print
the same table, with the sentence that each field carries. It refuses to know how any of it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from .codex_output_rules import BITFUN_OUTPUTS, CLAUDE_OUTPUTS, CODEX_OUTPUTS, OutputRule

MatcherRule: TypeAlias = Literal["search", "anchored", "list"]
"""``search``: letters, digits, ``_`` and ``|`` are exact names, anything else is searched for.
``anchored``: every pattern has to match the whole value. ``list``: as ``search``, and blanks, ``-`` and ``,``
belong to names too, which ``,`` also separates."""

Fault: TypeAlias = Literal["file", "handler"]
"""What one wrong field costs upstream: the whole file, or the handler that it stands in."""

ContinueFalse: TypeAlias = Literal["stop", "block", "unsupported", "ignored", "invalid"]
"""What ``continue: false`` does. ``stop``: the event's own stop. ``block``: as a block, with the stop reason.
``unsupported``: the run failed, nothing else of it counts. ``invalid``: the output is no output of the
event."""

ExitTwo: TypeAlias = Literal["block", "deny", "feedback", "continue", "error"]
"""What exit code 2 does; stderr is the reason. ``feedback``: as ``PostToolUse`` blocks. ``continue``: the
turn goes on with it as the prompt. ``error``: an ordinary failure."""

Opinion: TypeAlias = Literal["unsupported", "allow", "ask", "defer"]
"""What a permission decision comes to; ``unsupported``: the run failed."""

SpillUnit: TypeAlias = Literal["tokens", "bytes", "characters"]


class TimeLimit(NamedTuple):
    """Seconds that a handler has where it names none, and the most that it can have; None: any."""

    default_s: float
    most_s: float | None = None


class TextLimit(NamedTuple):
    """How much of a text reaches the model, and what becomes of the rest.

    ``tokens`` are four bytes each. ``spills``: the whole text is saved to a file and named at the end;
    otherwise it is cut. ``preview`` is what is kept of a text that spills, in the same unit; None: ``limit``.
    """

    limit: int
    unit: SpillUnit
    spills: bool
    preview: int | None = None


def _about(text: str) -> Mapping[str, str]:
    """The sentence that the documents print for a field."""
    return {"about": text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One profile. Sets and mappings are keyed by hook event names; times are seconds."""

    name: str
    title: str = field(metadata=_about("follows"))

    # -- the document
    root_keys: frozenset[str] | None = field(
        metadata=_about("keys of the root; any other one refuses the file")
    )
    fault: Fault = field(metadata=_about("what one wrong field or type costs upstream"))
    reviews: bool = field(metadata=_about("a person has to review each handler, by its hash"))
    own_texts: bool = field(metadata=_about("its own warnings are known word for word"))
    reports_unknown_events: bool = field(metadata=_about("says that an event is unknown"))
    max_file_bytes: int = field(metadata=_about("largest file, bytes"))
    max_handlers: int = field(metadata=_about("handlers that are looked at, over all layers"))
    types: frozenset[str] = field(metadata=_about("types of handler that it knows"))
    upstream_runs: frozenset[str] = field(metadata=_about("types of handler that it runs itself"))
    runs: frozenset[str] = field(metadata=_about("types of handler that prxbus runs"))
    handler_keys: Mapping[str, frozenset[str]] = field(
        metadata=_about("fields of each type that mean something")
    )
    null_is_absent: bool = field(metadata=_about("an optional field may be null"))
    timeout_is_whole: bool = field(metadata=_about("`timeout` is a whole number"))
    timeout: TimeLimit = field(metadata=_about("`timeout`, seconds: default, most"))
    timeouts: Mapping[str, TimeLimit] = field(metadata=_about("`timeout` of single events"))
    type_timeouts: Mapping[str, float] = field(metadata=_about("default `timeout` of single types"))
    sync_events: frozenset[str] = field(metadata=_about("events on which `async` is not honoured"))
    no_mcp_events: frozenset[str] = field(metadata=_about("events on which `mcp_tool` is not supported"))
    no_http_events: frozenset[str] = field(metadata=_about("events on which `http` is not supported"))
    default_type: str | None = field(metadata=_about("`type` where there is none"))

    # -- matching
    matcher: MatcherRule = field(metadata=_about("how a matcher is read"))
    tool_aliases: Mapping[str, tuple[str, ...]] = field(
        metadata=_about("further names of a tool that matchers see")
    )
    dedupes: bool = field(metadata=_about("the same handler in several files runs once"))

    # -- payloads
    payload_values: Mapping[str, tuple[str, ...]] = field(
        metadata=_about("values of a payload's fields; what is none of them is sent as the first")
    )
    payload_extras: bool = field(metadata=_about("a complete payload keeps fields that are not listed"))

    # -- running
    shell: tuple[str, ...] = field(
        metadata=_about("shell of a command; `$SHELL` is the session's own, else `sh`")
    )
    async_at_once: int = field(metadata=_about("`async` handlers at a time, in one session"))
    scrubbed: tuple[str, ...] = field(metadata=_about("variables that a handler does not inherit"))
    project_variable: str | None = field(metadata=_about("variable with the project's folder"))
    env_file_events: frozenset[str] = field(
        metadata=_about("events with a file for further variables, `CLAUDE_ENV_FILE`")
    )
    on_failure: bool = field(metadata=_about("`onFailure` of a handler: a failure may block"))
    on_failure_ignored: frozenset[str] = field(metadata=_about("events on which `onFailure` does nothing"))
    stop_continuations: int | None = field(
        metadata=_about("continuations in a row that `Stop` hooks may ask for")
    )

    # -- results; `outputs` is what the handlers of each event may write, in a table of its own
    outputs: Mapping[str, OutputRule]
    json_on_any_exit: bool = field(metadata=_about("a JSON answer counts at every exit code"))
    plain_context: frozenset[str] = field(metadata=_about("events on which plain output becomes context"))
    plain_fails: frozenset[str] = field(metadata=_about("events on which plain output is an error"))
    context_events: frozenset[str] = field(metadata=_about("events whose `additionalContext` counts"))
    continue_false: Mapping[str, ContinueFalse] = field(
        metadata=_about("`continue: false`; `stop` where nothing is said")
    )
    suppress_output_fails: frozenset[str] = field(
        metadata=_about("events on which `suppressOutput` is an error")
    )
    exit_two: Mapping[str, ExitTwo] = field(metadata=_about("exit code 2; `error` where nothing is said"))
    blank_exit_two_blocks: bool = field(metadata=_about("exit code 2 with an empty stderr counts"))
    allow_alone: Opinion = field(metadata=_about("`permissionDecision: allow` without `updatedInput`"))
    ask: Opinion = field(metadata=_about("`permissionDecision: ask`"))
    defer: Opinion = field(metadata=_about("`permissionDecision: defer`"))
    approve: Opinion = field(metadata=_about("the old `decision: approve`"))
    rewrite_needs_allow: bool = field(metadata=_about("`updatedInput` counts only beside `allow`"))
    command_tools: frozenset[str] = field(
        metadata=_about("tools whose `updatedInput` needs a string `command`")
    )
    permission_reserved: frozenset[str] = field(
        metadata=_about("fields of a `PermissionRequest` decision that are errors")
    )
    block_events: frozenset[str] = field(metadata=_about("events on which `decision: block` counts"))
    post_block_replaces: bool = field(
        metadata=_about("a `PostToolUse` block replaces the result; otherwise it is added")
    )
    post_on_error: bool = field(metadata=_about("`PostToolUse` after an error result too"))
    failure_event: str | None = field(
        metadata=_about("event after a tool call that failed, where that is no `PostToolUse`")
    )
    tool_output_fields: frozenset[str] = field(
        metadata=_about("fields of `PostToolUse` that replace a tool's output")
    )
    text: TextLimit = field(metadata=_about("model-visible text"))
    context_limit_field: bool = field(metadata=_about("`additionalContextLimit` of a handler"))

    @property
    def agent(self) -> str:
        """The agent's name, for a message."""
        return self.title.partition(",")[0]


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
    root_keys=frozenset({"description", "hooks"}),
    fault="file",
    reviews=True,
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
    shell=("$SHELL", "-lc"),
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
    fault="handler",
    reviews=False,
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
    root_keys=None,
    fault="file",
    reviews=False,
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
        return ", ".join(f"{key}: {_shown(found)}" for key, found in value.items()) or "–"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "–"
    if isinstance(value, tuple):
        return " ".join(value) or "–"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
