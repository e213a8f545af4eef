"""The views that dialects take of canonical events, as data.

Decides, per dialect and event, the native name and where each documented field comes from: *by name*,
*derived* by one of the functions in ``catalogue_derivations``, or *constant*; what is unknown is filled
with a rule's default, usually null. It refuses to know how a view is computed (``projections``).

Sources: the hook pages of PRX, LibreFang, rolebox and BitFun, and the Codex contract, in the order in
which they list the fields. Claude Code's rows are Codex's without its extensions (``turn_id``, and
``model`` outside SessionStart).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from .catalogue_events import EVENTS, FAMILY

DIALECTS: Final = ("prx", "librefang", "rolebox", *FAMILY)

Extras = Literal["keep", "native", "drop"]


class Named(NamedTuple):
    """The value of the canonical field ``source``, under whichever spelling the payload has it."""

    source: str
    default: Any = None


class Derived(NamedTuple):
    """The value that the derivation of this name finds (``catalogue_derivations``)."""

    derivation: str
    default: Any = None


class Constant(NamedTuple):
    """A value that does not depend on the payload."""

    value: Any


class ViewField(NamedTuple):
    """One documented field of a view; when unknown, an ``optional`` one is absent, any other null."""

    name: str
    rule: Named | Derived | Constant
    optional: bool = False


class View(NamedTuple):
    """What one dialect makes of one event. ``extras`` is explained in ``projections``."""

    dialect: str
    event: str
    native: str
    fields: tuple[ViewField, ...]
    extras: Extras


# ---- spellings ----------------------------------------------------------------------------------------

_SPELLINGS: Final = {
    (spec.name, field.name): (
        field.name,
        *(other.name for other in spec.fields if other.alias_of == field.name),
    )
    for spec in EVENTS.values()
    for field in spec.fields
    if field.alias_of is None
}


def spellings(event: str, field: str) -> tuple[str, ...]:
    """The names under which a payload of ``event`` may carry ``field``, the canonical one first."""
    return _SPELLINGS.get((event, field), (field,))


# ---- PRX ----------------------------------------------------------------------------------------------


def _named(*names: str) -> tuple[ViewField, ...]:
    return tuple(ViewField(name, Named(name)) for name in names)


_PRX: Final[dict[str, tuple[ViewField, ...]]] = {
    "agent_start": (ViewField("agent", Derived("agent")), *_named("session")),
    "agent_end": (ViewField("success", Derived("run_success")), *_named("messages_count")),
    "llm_request": _named("provider", "model", "messages_count"),
    "llm_response": _named("provider", "model", "duration_ms", "success"),
    "tool_call_start": (*_named("tool"), ViewField("arguments", Derived("arguments_object"))),
    "tool_call": (
        *_named("tool"),
        ViewField("success", Derived("tool_success")),
        ViewField("output", Derived("output_text")),
    ),
    "turn_complete": (),
    "error": _named("component", "message"),
}

# ---- LibreFang ----------------------------------------------------------------------------------------

_LIBREFANG_NAMES: Final = {
    "agent_start": "agent:start",
    "agent_end": "agent:end",
    "agent_step": "agent:step",
    "session_start": "session:start",
    "session_end": "session:end",
    "session_reset": "session:reset",
    "gateway_startup": "gateway:startup",
    "tool_result": "transform_tool_result",
}
_AGENT_ID: Final = ViewField("agent_id", Derived("agent_id"))
# What the program really sends and its page does not have: its hooks find both.
_AGENT_NAME: Final = ViewField("agent_name", Named("agent"))
_RUN: Final = (_AGENT_ID, ViewField("session_id", Named("session")))

_LIBREFANG: Final[dict[str, tuple[ViewField, ...]]] = {
    "agent_start": (
        *_RUN,
        *_named("sender"),
        ViewField("message_preview", Derived("message_preview")),
        _AGENT_NAME,
    ),
    "agent_end": (
        *_RUN,
        ViewField("status", Derived("run_status")),
        ViewField("tokens_used", Derived("tokens_used")),
        *_named("steps", "duration_ms"),
        ViewField("response_preview", Derived("response_preview")),
        _AGENT_NAME,
        ViewField("latency_ms", Named("duration_ms")),
        ViewField("success", Derived("run_success")),
    ),
    "agent_step": (
        *_RUN,
        *_named("step_index"),
        ViewField("tool_call", Named("tool")),
        ViewField("step", Named("step_index")),
    ),
    "session_start": _RUN,
    "session_end": _RUN,
    "session_reset": (*_RUN, *_named("reset_reason", "message_count_cleared")),
    "gateway_startup": _named("version", "started_at"),
    "tool_result": (
        _AGENT_ID,
        ViewField("tool_name", Named("tool")),
        ViewField("tool_input", Derived("arguments_object")),
        ViewField("tool_output", Derived("output_text")),
    ),
}

# ---- rolebox ------------------------------------------------------------------------------------------

ROLEBOX_EVENT: Final = "event"
"""The name under which a rolebox hook subscribes to every event that has no handler of its own."""

_ROLEBOX_HANDLERS: Final = {
    "user_prompt": "chat.message",
    "tool_call_start": "tool.execute.before",
    "tool_call": "tool.execute.after",
    "system_transform": "system.transform",
}
_ROLEBOX_TYPES: Final = {  # of `event`; rolebox passes on its host's types, so that the host's names are used
    "session_start": "session.created",
    "session_end": "session.deleted",
    "session_reset": "session.reset",
    "turn_complete": "session.idle",
    "error": "session.error",
}
_ROLEBOX_TOOL: Final = (ViewField("tool", Named("tool")), ViewField("args", Named("arguments")))
_PROPERTIES: Final = ViewField("properties", Derived("properties"))

_ROLEBOX: Final[dict[str, tuple[ViewField, ...]]] = {
    "user_prompt": (ViewField("text", Named("prompt")),),
    "tool_call_start": _ROLEBOX_TOOL,
    "tool_call": (*_ROLEBOX_TOOL, *_named("output")),
    "system_transform": _named("system"),
    **{event: (ViewField("type", Constant(kind)), _PROPERTIES) for event, kind in _ROLEBOX_TYPES.items()},
}


def rolebox_event_view(event: str) -> View:
    """The view of an event that rolebox has no name for: ``onEvent`` gets its own type and its properties."""
    fields = (ViewField("type", Derived("own_type", default=event)), _PROPERTIES)
    return View("rolebox", event, event, fields, "drop")


# ---- Codex, BitFun, Claude Code -----------------------------------------------------------------------

_FAMILY_NAMES: Final = {
    "session_start": "SessionStart",
    "session_end": "SessionEnd",
    "user_prompt": "UserPromptSubmit",
    "tool_call_start": "PreToolUse",
    "permission_request": "PermissionRequest",
    "tool_call": "PostToolUse",
    "pre_compact": "PreCompact",
    "post_compact": "PostCompact",
    "subagent_start": "SubagentStart",
    "subagent_stop": "SubagentStop",
    "turn_complete": "Stop",
}
# By native name; a field without a row is taken by its own name.
_FAMILY_RULES: Final[dict[str, Named | Derived]] = {
    "session_id": Named("session"),
    "tool_name": Named("tool"),
    "tool_input": Derived("arguments_or_empty"),
    "tool_response": Named("output"),
    "permission_mode": Named("permission_mode", default="default"),
    "source": Named("source", default="startup"),
    "reason": Named("reason", default="other"),
    "stop_hook_active": Named("stop_hook_active", default=False),
}
# Field order as the contract lists it; "?" marks a field that is absent when unknown.
_SUBAGENT: Final = "agent_id? agent_type?"
_WHERE: Final = "transcript_path cwd hook_event_name"
_CODEX_TURN: Final = f"session_id turn_id {_SUBAGENT} {_WHERE} model permission_mode"
_CODEX_ROWS: Final = {
    "session_start": f"session_id {_WHERE} model permission_mode source",
    "session_end": f"session_id {_WHERE} reason",
    "user_prompt": f"{_CODEX_TURN} prompt",
    "tool_call_start": f"{_CODEX_TURN} tool_name tool_input tool_use_id",
    "permission_request": f"{_CODEX_TURN} tool_name tool_input",
    "tool_call": f"{_CODEX_TURN} tool_name tool_input tool_response tool_use_id",
    "pre_compact": f"session_id turn_id {_SUBAGENT} {_WHERE} model trigger",
    "post_compact": f"session_id turn_id {_SUBAGENT} {_WHERE} model trigger",
    "subagent_start": f"session_id turn_id {_WHERE} model permission_mode agent_id agent_type",
    "subagent_stop": (
        "session_id turn_id transcript_path agent_transcript_path cwd hook_event_name model permission_mode "
        "stop_hook_active agent_id agent_type last_assistant_message"
    ),
    "turn_complete": (
        f"session_id turn_id {_WHERE} model permission_mode stop_hook_active last_assistant_message"
    ),
    "interrupt": f"session_id turn_id {_WHERE} model permission_mode",
}
# Claude Code gains fields with its versions; what older ones do not send is optional, so that theirs pass.
_CLAUDE_TURN: Final = f"session_id {_WHERE} permission_mode prompt_id? scratchpad_dir? effort? {_SUBAGENT}"
_CLAUDE_ROWS: Final = {
    "session_start": f"session_id {_WHERE} permission_mode? source model",
    "session_end": f"session_id {_WHERE} reason",
    "user_prompt": f"{_CLAUDE_TURN} prompt",
    "tool_call_start": f"{_CLAUDE_TURN} tool_name tool_input tool_use_id mcp_server?",
    "permission_request": f"{_CLAUDE_TURN} tool_name tool_input mcp_server?",
    "tool_call": f"{_CLAUDE_TURN} tool_name tool_input tool_response tool_use_id mcp_server?",
    "pre_compact": f"session_id {_WHERE} {_SUBAGENT} trigger",
    "post_compact": f"session_id {_WHERE} {_SUBAGENT} trigger",
    "subagent_start": f"session_id {_WHERE} permission_mode? agent_id agent_type",
    "subagent_stop": (
        f"session_id {_WHERE} permission_mode stop_hook_active agent_id agent_type agent_transcript_path? "
        "last_assistant_message?"
    ),
    "turn_complete": f"session_id {_WHERE} permission_mode stop_hook_active last_assistant_message?",
}
_BITFUN_UNFILLED: Final[dict[tuple[str | None, str], Constant]] = {  # the page's table; None: in every event
    (None, "transcript_path"): Constant(None),
    ("subagent_stop", "agent_transcript_path"): Constant(None),
    ("subagent_stop", "stop_hook_active"): Constant(False),
    ("session_end", "reason"): Constant("other"),
    ("session_start", "source"): Constant("startup"),
}


def _family_fields(dialect: str, event: str, native: str, row: str) -> tuple[ViewField, ...]:
    fields = []
    for word in row.split():
        name = word.removesuffix("?")
        optional = name != word
        rule: Named | Derived | Constant
        if name == "hook_event_name":
            rule = Constant(native)
        elif optional:
            rule = Named(name)  # without a default: it is left out rather than made up
        else:
            rule = _FAMILY_RULES.get(name, Named(name))
        if dialect == "bitfun":
            rule = _BITFUN_UNFILLED.get((None, name)) or _BITFUN_UNFILLED.get((event, name)) or rule
        fields.append(ViewField(name, rule, optional))
    return tuple(fields)


# ---- the tables ---------------------------------------------------------------------------------------

DIALECT_EVENTS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "prx": MappingProxyType({event: event for event in _PRX}),
        "librefang": MappingProxyType(_LIBREFANG_NAMES),
        "rolebox": MappingProxyType({**_ROLEBOX_HANDLERS, **_ROLEBOX_TYPES}),
        "codex": MappingProxyType({**_FAMILY_NAMES, "interrupt": "Interrupt"}),
        "bitfun": MappingProxyType(_FAMILY_NAMES),
        "claude": MappingProxyType(_FAMILY_NAMES),
    }
)
"""Per dialect, the native name of each canonical event that its page documents."""


def _views() -> Iterator[View]:
    for event, native in DIALECT_EVENTS["prx"].items():
        # The page says "empty object" of turn_complete, so that nothing may follow there.
        yield View("prx", event, native, _PRX[event], "keep" if _PRX[event] else "drop")
    for event, native in DIALECT_EVENTS["librefang"].items():
        yield View("librefang", event, native, _LIBREFANG[event], "keep")
    for event, native in DIALECT_EVENTS["rolebox"].items():
        yield View("rolebox", event, native, _ROLEBOX[event], "drop")
    for dialect, rows in (("codex", _CODEX_ROWS), ("bitfun", _CODEX_ROWS), ("claude", _CLAUDE_ROWS)):
        for event, native in DIALECT_EVENTS[dialect].items():
            yield View(dialect, event, native, _family_fields(dialect, event, native, rows[event]), "native")


PROJECTIONS: Final[Mapping[tuple[str, str], View]] = MappingProxyType(
    {(view.dialect, view.event): view for view in _views()}
)
"""Every documented view by dialect and canonical event."""
