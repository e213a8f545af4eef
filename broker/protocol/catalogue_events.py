"""The canonical events and their fields, as data.

Decides names: one event and one field per thing. Where the PRX page documents a thing its name is taken;
otherwise the name of the page that documents it. Another page's spelling of the same thing is listed as
an alias, with the type that its own page gives it, so that what a real agent sends can be published
unchanged. It refuses to know how a payload is checked (``catalogue``) and how a dialect sees it
(``projections``).

Source of every row: the hook pages of PRX, LibreFang, rolebox and BitFun; the Codex contract that the
last one refers to; Claude Code's hooks reference where it goes beyond Codex.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .catalogue_fields import ANY, ARRAY, BOOLEAN, INTEGER, NUMBER, OBJECT, STRING, EventSpec, Field

FAMILY: Final = ("codex", "bitfun", "claude")
"""The dialects that share the Codex contract."""

PERMISSION_MODES: Final = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")

# ---- who and where ------------------------------------------------------------------------------------

_SESSION = Field("session", STRING, "Id of the session; when absent, the envelope's session id is meant.")
_PRX_SESSION = _SESSION._replace(documented_by=("prx",))
_AGENT = Field(
    "agent", STRING, "Name or id of the agent that runs; stands in for `agent_id` where that is absent."
)
_PRX_AGENT = _AGENT._replace(documented_by=("prx",))


def _alias(name: str, canonical: str, types: tuple[str, ...], *documented_by: str) -> Field:
    return Field(name, types, f"Another spelling of `{canonical}`.", documented_by, alias_of=canonical)


def _agent_id(*documented_by: str) -> Field:
    return Field("agent_id", STRING, "Id of the agent (or subagent) that runs.", documented_by)


def _session_id(*documented_by: str) -> Field:
    return _alias("session_id", "session", STRING, *documented_by)


_LIBREFANG_RUN: Final = (_AGENT, _agent_id("librefang"), _SESSION, _session_id("librefang"))
"""LibreFang names the agent and the session in every event of a run or session."""

_AGENT_NAME = _alias("agent_name", "agent", STRING)
"""What LibreFang's program sends beside the id; its page does not say so."""

# ---- what the Codex family sends along with every event -----------------------------------------------

_MODEL = Field("model", STRING, "Model in use.", ("codex", "bitfun"))

CONTEXT_FIELDS: Final = (
    Field("transcript_path", STRING, "Path of the session's transcript; null when it has none.", FAMILY),
    Field("cwd", STRING, "Working directory of the session.", FAMILY),
    Field("hook_event_name", STRING, "The Codex family's own name of the event; its views set it.", FAMILY),
    Field("permission_mode", STRING, "How the agent asks for permission.", FAMILY, values=PERMISSION_MODES),
    Field("turn_id", STRING, "Id of the turn.", ("codex", "bitfun")),
    Field("prompt_id", STRING, "Id of the prompt being worked on.", ("claude",)),
    Field("scratchpad_dir", STRING, "Directory for the session's temporary files.", ("claude",)),
    Field("effort", OBJECT, "Reasoning effort, as an object with `level`.", ("claude",)),
)
"""Fields that accompany every event with a name in the Codex family (the README prints them once)."""

_SUBAGENT_MAYBE: Final = (
    _agent_id(*FAMILY),
    Field("agent_type", STRING, "Kind of subagent; absent outside one.", FAMILY),
)
_FAMILY_TURN: Final = (_SESSION, _session_id(*FAMILY), *_SUBAGENT_MAYBE, _MODEL, *CONTEXT_FIELDS)

# ---- roles --------------------------------------------------------------------------------------------

_ROLE = Field("role", STRING, "Role that the session plays, by name: whose rolebox hooks it fires.")
_PHASE = Field(
    "phase",
    STRING,
    "Which half of its rolebox hooks are meant, by an agent that asks twice; absent: both, in this order.",
    values=("before", "after"),
)

# ---- tools --------------------------------------------------------------------------------------------

_TOOL_USE_ID = Field("tool_use_id", STRING, "Links a call's start to its end.", FAMILY)
_MCP_SERVER = Field("mcp_server", OBJECT, "Server of an MCP tool: `name` and `source`.", ("claude",))


def _tool(*documented_by: str) -> Field:
    return Field("tool", STRING, "Name of the tool.", documented_by)


def _arguments(*documented_by: str) -> Field:
    return Field("arguments", OBJECT, "The tool's input.", documented_by)


def _output(*documented_by: str) -> Field:
    return Field(
        "output", ANY, "What the tool returned; views that promise text get compact JSON.", documented_by
    )


_FAMILY_TOOL: Final = (
    _alias("tool_name", "tool", STRING, *FAMILY),
    _alias("tool_input", "arguments", ANY, *FAMILY),
    _MCP_SERVER,
)

# ---- ends ---------------------------------------------------------------------------------------------

_LAST_MESSAGE = Field(
    "last_assistant_message", STRING, "The agent's final text; null when there is none.", FAMILY
)
_STOP_ACTIVE = Field("stop_hook_active", BOOLEAN, "A stop hook has already continued this turn.", FAMILY)
_TRIGGER = Field("trigger", STRING, "What asked for compaction.", FAMILY, values=("manual", "auto"))
_MESSAGES_COUNT = Field("messages_count", NUMBER, "Messages in the conversation.", ("prx",))
_PROVIDER = Field("provider", STRING, "Provider of the model.", ("prx",))
_LLM_MODEL = Field("model", STRING, "Model that is asked.", ("prx",))
_COMPACT: Final = (_TRIGGER, *_FAMILY_TURN)

_SPECS: Final = (
    EventSpec(
        "gateway_startup",
        "`prxbus up` is ready: the broker answers and every subscriber has reported in.",
        (
            Field("version", STRING, "Version of the program that started.", ("librefang",)),
            Field("started_at", STRING, "UTC time at which start-up was complete, ISO 8601.", ("librefang",)),
        ),
    ),
    EventSpec(
        "session_start",
        "A session is created, or resumed for the first time in the agent's lifetime.",
        (
            *_LIBREFANG_RUN[:3],
            _session_id("librefang", *FAMILY),
            Field(
                "source",
                STRING,
                "Why the session starts.",
                FAMILY,
                values=("startup", "resume", "clear", "compact", "fork"),
            ),
            _MODEL._replace(documented_by=FAMILY),
            _ROLE,
            *CONTEXT_FIELDS,
        ),
    ),
    EventSpec(
        "session_end",
        "A session is closed.",
        (
            *_LIBREFANG_RUN[:3],
            _session_id("librefang", *FAMILY),
            Field(
                "reason",
                STRING,
                "Why the session ends.",
                FAMILY,
                values=("clear", "resume", "logout", "prompt_input_exit", "other"),
            ),
            *CONTEXT_FIELDS,
        ),
    ),
    EventSpec(
        "session_reset",
        "A session's history is cleared, by a policy or by hand.",
        (
            *_LIBREFANG_RUN,
            Field(
                "reset_reason",
                STRING,
                "What cleared the session.",
                ("librefang",),
                values=("idle", "daily", "suspended", "manual"),
            ),
            Field("message_count_cleared", INTEGER, "History messages removed.", ("librefang",)),
        ),
    ),
    EventSpec(
        "agent_start",
        "The agent's loop begins a new turn or request.",
        (
            _PRX_AGENT,
            _PRX_SESSION,
            _agent_id("librefang"),
            _AGENT_NAME,
            _session_id("librefang"),
            Field("sender", STRING, "Who sent the message that started the run.", ("librefang",)),
            Field(
                "message_preview",
                STRING,
                "The inbound message; LibreFang sees 120 characters.",
                ("librefang",),
            ),
            Field("prompt", STRING, "The whole inbound message, from which the preview can be cut."),
            _ROLE,
        ),
    ),
    EventSpec(
        "agent_step",
        "Each reasoning step within a run.",
        (
            *_LIBREFANG_RUN,
            Field("step_index", INTEGER, "Number of the step in this run, from zero.", ("librefang",)),
            _alias("step", "step_index", INTEGER),
            _tool(),
            _alias("tool_call", "tool", STRING, "librefang"),
        ),
    ),
    EventSpec(
        "agent_end",
        "The agent's loop ends, in success, error or at the step limit.",
        (
            Field("success", BOOLEAN, "Whether the run succeeded.", ("prx",)),
            _MESSAGES_COUNT,
            *_LIBREFANG_RUN,
            _AGENT_NAME,
            Field(
                "status", STRING, "How the run ended.", ("librefang",), values=("ok", "error", "max_steps")
            ),
            Field("tokens_used", INTEGER, "Tokens of prompts and completions.", ("librefang",)),
            Field("input_tokens", INTEGER, "Tokens of prompts; where `tokens_used` is absent, part of it."),
            Field("output_tokens", INTEGER, "Tokens of completions; likewise."),
            Field("steps", INTEGER, "Reasoning steps taken.", ("librefang",)),
            Field("duration_ms", NUMBER, "Wall-clock time of the run in milliseconds.", ("librefang",)),
            _alias("latency_ms", "duration_ms", NUMBER),
            Field(
                "response_preview",
                STRING,
                "The final response; LibreFang sees 120 characters.",
                ("librefang",),
            ),
            Field("last_assistant_message", STRING, "The whole response, from which the preview can be cut."),
        ),
    ),
    EventSpec(
        "user_prompt",
        "The user has sent a message, before the agent works on it.",
        (
            Field("prompt", STRING, "The message.", FAMILY),
            _alias("text", "prompt", STRING, "rolebox"),
            _PHASE,
            *_FAMILY_TURN,
        ),
    ),
    EventSpec(
        "system_transform",
        "The system prompt is being built; a handler may change it.",
        (Field("system", ARRAY, "The parts of the system prompt, in order.", ("rolebox",)), _PHASE),
    ),
    EventSpec(
        "llm_request",
        "Before a request goes to the model's provider.",
        (_PROVIDER, _LLM_MODEL, _MESSAGES_COUNT),
    ),
    EventSpec(
        "llm_response",
        "After the model has answered.",
        (
            _PROVIDER,
            _LLM_MODEL,
            Field("duration_ms", NUMBER, "Time the answer took, in milliseconds.", ("prx",)),
            Field("success", BOOLEAN, "Whether there was an answer.", ("prx",)),
        ),
    ),
    EventSpec(
        "tool_call_start",
        "Before a tool runs; a handler may refuse it or change its input.",
        (
            _tool("prx", "rolebox"),
            _arguments("prx"),
            _alias("args", "arguments", ANY, "rolebox"),
            _PHASE,
            _TOOL_USE_ID,
            *_FAMILY_TOOL,
            *_FAMILY_TURN,
        ),
    ),
    EventSpec(
        "permission_request",
        "The agent is about to ask the user whether a tool may run.",
        (_tool(), _arguments(), *_FAMILY_TOOL, *_FAMILY_TURN),
    ),
    EventSpec(
        "tool_call",
        "After a tool has run.",
        (
            _tool("prx", "rolebox"),
            Field("success", BOOLEAN, "Whether the tool succeeded.", ("prx",)),
            _output("prx", "rolebox"),
            _arguments(),
            _alias("args", "arguments", ANY, "rolebox"),
            _PHASE,
            _TOOL_USE_ID,
            *_FAMILY_TOOL,
            _alias("tool_response", "output", ANY, *FAMILY),
            *_FAMILY_TURN,
        ),
    ),
    EventSpec(
        "tool_result",
        "A tool's raw result, before it enters the conversation; a handler may rewrite it.",
        (
            *_LIBREFANG_RUN[:2],
            _SESSION,
            _tool(),
            _alias("tool_name", "tool", STRING, "librefang"),
            _arguments(),
            _alias("tool_input", "arguments", OBJECT, "librefang"),
            _output(),
            _alias("tool_output", "output", STRING, "librefang"),
        ),
    ),
    EventSpec("pre_compact", "Before the conversation is compacted.", _COMPACT),
    EventSpec("post_compact", "After the conversation was compacted.", _COMPACT),
    EventSpec("subagent_start", "A subagent starts.", _FAMILY_TURN),
    EventSpec(
        "subagent_stop",
        "A subagent has finished.",
        (
            Field("agent_transcript_path", STRING, "Path of the subagent's own transcript.", FAMILY),
            _STOP_ACTIVE,
            _LAST_MESSAGE,
            *_FAMILY_TURN,
        ),
    ),
    EventSpec(
        "turn_complete",
        "A whole turn is over: every tool has been dealt with.",
        (_STOP_ACTIVE, _LAST_MESSAGE, *_FAMILY_TURN),
    ),
    EventSpec(
        "error",
        "Anything failed while the agent was working.",
        (
            Field("component", STRING, "Which part failed.", ("prx",)),
            Field("message", STRING, "What went wrong.", ("prx",)),
        ),
    ),
    EventSpec("interrupt", "The user has interrupted the running turn.", _FAMILY_TURN),
)

EVENTS: Final[Mapping[str, EventSpec]] = MappingProxyType({spec.name: spec for spec in _SPECS})
"""Every canonical event by its bare name, in the order of an agent's life."""
