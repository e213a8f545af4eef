"""What each event's handlers may write, as data: the keys, their types, and the texts that go with them.

It is the table that ``codex_output`` checks a document against, and ``codex_result`` and ``codex_render``
read and write one by. What a key leads to is in :mod:`.codex_profiles`; this is the shape of answers alone.

Sources: the Codex contract (sections 4 and 6) and Claude Code's hooks reference, which it quotes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["text", "flag", "any", "object", "list"] | tuple[str, ...]
"""What a key may hold. All but a ``flag`` may be null; a tuple lists the words that are allowed."""

Keys: TypeAlias = Mapping[str, Kind]

Refusal: TypeAlias = Literal[
    "permission", "request", "decision", "continue", "context", "exit", "action", "nothing"
]
"""How an agent is told no: a permission decision, an answer to its request, ``decision: "block"``,
``continue: false``, a context (it is too late for anything else), exit code 2, an action; or there is nothing
that could be refused."""

UNIVERSAL: Final[Keys] = MappingProxyType(
    {"continue": "flag", "stopReason": "text", "suppressOutput": "flag", "systemMessage": "text"}
)
"""The keys that nearly every event knows."""

SPECIFIC_EVENTS: Final = (
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SessionStart",
    "UserPromptSubmit",
    "SubagentStart",
    "SubagentStop",
    "Stop",
)
"""The ten names that Codex accepts as ``hookEventName``, whichever event runs."""


class OutputRule(NamedTuple):
    """What the handlers of one event may answer.

    ``label`` stands in "hook returned invalid ... JSON output". ``keys`` are those of the document,
    ``specific`` those of ``hookSpecificOutput`` beside ``hookEventName`` (None: there is no such key),
    ``request`` those of its ``decision``; ``names`` are the events that ``hookEventName`` may say.

    ``plain_error`` is what is said of other text than JSON where that fails, if not that the JSON is invalid.
    ``missing`` is what exit code 2 should have written to stderr. ``default_reason`` is the reason of a
    denial that has none and counts nevertheless; None: it fails. ``lone_reason``: a reason without a decision
    fails too. ``raw_reason``: a reason stays as it was written, elsewhere it is trimmed. ``stop_text`` is
    said where ``continue: false`` came without a reason; ``prevents``: it keeps what was about to happen from
    happening. ``shows_stderr``: a failed run is told by its stderr. ``silent``: nothing that a handler writes
    counts. ``refusal`` is how the agent is told no.
    """

    label: str
    keys: Keys = UNIVERSAL
    specific: Keys | None = None
    request: Keys | None = None
    names: tuple[str, ...] = SPECIFIC_EVENTS
    plain_error: str | None = None
    missing: str = "a reason"
    default_reason: str | None = None
    lone_reason: bool = False
    raw_reason: bool = False
    stop_text: str | None = None
    prevents: bool = False
    shows_stderr: bool = False
    silent: bool = False
    refusal: Refusal = "nothing"


_BLOCK: Final[Keys] = MappingProxyType({**UNIVERSAL, "decision": ("block",), "reason": "text"})
_CONTEXT: Final[Keys] = MappingProxyType({"additionalContext": "text"})
_DENIED: Final = "PermissionRequest hook denied approval"

_SESSION_START: Final = OutputRule("session start", specific=_CONTEXT, refusal="continue")
_STOP: Final = OutputRule("stop hook", keys=_BLOCK, missing="a continuation prompt", refusal="decision")
_PRE_COMPACT: Final = OutputRule(
    "PreCompact hook",
    stop_text="PreCompact hook stopped execution",
    prevents=True,
    shows_stderr=True,
    refusal="continue",
)

CODEX_OUTPUTS: Final[Mapping[str, OutputRule]] = MappingProxyType(
    {
        "PreToolUse": OutputRule(
            "pre-tool-use",
            keys={**UNIVERSAL, "decision": ("approve", "block"), "reason": "text"},
            specific={
                "permissionDecision": ("allow", "deny", "ask"),
                "permissionDecisionReason": "text",
                "updatedInput": "any",
                "additionalContext": "text",
            },
            missing="a blocking reason",
            lone_reason=True,
            prevents=True,
            refusal="permission",
        ),
        "PermissionRequest": OutputRule(
            "permission-request",
            specific={"decision": "object"},
            request={
                "behavior": ("allow", "deny"),
                "updatedInput": "any",
                "updatedPermissions": "any",
                "message": "text",
                "interrupt": "flag",
            },
            missing="a denial reason",
            default_reason=_DENIED,
            prevents=True,
            refusal="request",
        ),
        "PostToolUse": OutputRule(
            "post-tool-use",
            keys=_BLOCK,
            specific={**_CONTEXT, "updatedMCPToolOutput": "any"},
            missing="feedback",
            lone_reason=True,
            raw_reason=True,
            stop_text="PostToolUse hook stopped execution",
            refusal="decision",
        ),
        "PreCompact": _PRE_COMPACT,
        "PostCompact": _PRE_COMPACT._replace(
            label="PostCompact hook",
            stop_text="PostCompact hook stopped execution",
            prevents=False,
            refusal="nothing",
        ),
        "SessionStart": _SESSION_START,
        "SessionEnd": OutputRule("session end", silent=True, shows_stderr=True),
        "UserPromptSubmit": OutputRule(
            "user prompt submit",
            keys=_BLOCK,
            specific=_CONTEXT,
            missing="a blocking reason",
            prevents=True,
            raw_reason=True,
            refusal="decision",
        ),
        "SubagentStart": _SESSION_START._replace(label="subagent start", refusal="nothing"),
        "SubagentStop": _STOP._replace(label="subagent stop hook"),
        "Stop": _STOP,
        "Interrupt": OutputRule(
            "interrupt hook",
            keys={"systemMessage": "text"},
            plain_error="Interrupt hook returned non-JSON stdout",
        ),
    }
)
"""The events of Codex: sections 4.1 to 4.5 of the contract."""

BITFUN_OUTPUTS: Final[Mapping[str, OutputRule]] = MappingProxyType(
    {name: rule for name, rule in CODEX_OUTPUTS.items() if name != "Interrupt"}
)
"""The same events but one."""

_CLAUDE: Final = OutputRule(
    "",
    keys=MappingProxyType(
        {**UNIVERSAL, "decision": ("approve", "block"), "reason": "text", "terminalSequence": "text"}
    ),
    specific=MappingProxyType({}),
    default_reason="Blocked by hook",
)
_BLOCKS: Final = _CLAUDE._replace(specific=_CONTEXT, refusal="decision")
_REFUSES: Final = _CLAUDE._replace(refusal="exit")
_TELLS: Final = _CLAUDE._replace(specific=_CONTEXT)
_WATCHES: Final = _CLAUDE._replace(specific=MappingProxyType({"watchPaths": "list"}))
_ANSWERS: Final = _CLAUDE._replace(
    specific=MappingProxyType({"action": ("accept", "decline", "cancel"), "content": "object"}),
    prevents=True,
    refusal="action",
)

_CLAUDE_RULES: Final[Mapping[str, OutputRule]] = {
    "PreToolUse": _BLOCKS._replace(
        specific={
            "permissionDecision": ("allow", "deny", "ask", "defer"),
            "permissionDecisionReason": "text",
            "updatedInput": "object",
            "additionalContext": "text",
        },
        prevents=True,
        refusal="permission",
    ),
    "PermissionRequest": _CLAUDE._replace(
        specific={"decision": "object"},
        request={
            "behavior": ("allow", "deny"),
            "updatedInput": "object",
            "updatedPermissions": "list",
            "message": "text",
            "interrupt": "flag",
        },
        default_reason=_DENIED,
        prevents=True,
        refusal="request",
    ),
    "PostToolUse": _BLOCKS._replace(
        specific={
            **_CONTEXT,
            "updatedToolOutput": "any",
            "updatedMCPToolOutput": "any",
            "classifierContext": "text",
        },
    ),
    "PostToolUseFailure": _TELLS._replace(refusal="context"),
    "PostToolBatch": _BLOCKS,
    "PreCompact": _BLOCKS._replace(specific=MappingProxyType({}), prevents=True),
    "PostCompact": _CLAUDE,
    "SessionStart": _TELLS._replace(
        specific={
            **_CONTEXT,
            "initialUserMessage": "text",
            "sessionTitle": "text",
            "watchPaths": "list",
            "reloadSkills": "flag",
        },
        refusal="continue",
    ),
    "SessionEnd": _CLAUDE._replace(silent=True),
    "Setup": _TELLS,
    "UserPromptSubmit": _BLOCKS._replace(
        specific={**_CONTEXT, "sessionTitle": "text", "suppressOriginalPrompt": "flag"},
        prevents=True,
    ),
    "UserPromptExpansion": _BLOCKS._replace(prevents=True),
    "SubagentStart": _TELLS,
    "SubagentStop": _BLOCKS,
    "Stop": _BLOCKS,
    "StopFailure": _CLAUDE._replace(silent=True),
    "PermissionDenied": _CLAUDE._replace(specific={"retry": "flag"}),
    "Notification": _CLAUDE,
    "MessageDisplay": _CLAUDE._replace(specific={"displayContent": "text"}),
    "TaskCreated": _REFUSES._replace(prevents=True),
    "TaskCompleted": _REFUSES._replace(prevents=True),
    "TeammateIdle": _REFUSES,
    "InstructionsLoaded": _CLAUDE,
    "ConfigChange": _BLOCKS._replace(prevents=True),
    "CwdChanged": _WATCHES,
    "DirectoryAdded": _CLAUDE,
    "FileChanged": _WATCHES,
    "WorktreeCreate": _REFUSES._replace(specific={"worktreePath": "text"}, prevents=True),
    "WorktreeRemove": _CLAUDE,
    "PreModelSwitch": _BLOCKS._replace(prevents=True),
    "PostModelSwitch": _TELLS,
    "Elicitation": _ANSWERS,
    "ElicitationResult": _ANSWERS,
}

CLAUDE_OUTPUTS: Final[Mapping[str, OutputRule]] = MappingProxyType(
    {name: rule._replace(label=name, names=tuple(_CLAUDE_RULES)) for name, rule in _CLAUDE_RULES.items()}
)
"""The events of Claude Code: sections 6.2 to 6.5 of the contract."""

PASSED_ON: Final = frozenset(
    {
        *UNIVERSAL,
        "decision",
        "reason",
        "hookSpecificOutput",
        "hookEventName",
        "additionalContext",
        "permissionDecision",
        "permissionDecisionReason",
        "updatedInput",
        "updatedToolOutput",
        "updatedMCPToolOutput",
        "behavior",
        "message",
        "interrupt",
    }
)
"""The keys whose meaning a decision of the bus can carry; a run says of any other that it is lost."""
