"""What a profile of the Codex hook contract is: one field for everything in which agents differ.

Each field carries the sentence that the documents print for it. It decides shapes; the values are in
:mod:`.codex_profiles`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from .codex_output_rules import OutputRule

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

    # -- where prxbus reads files that are in the profile by their place
    user_file: str = field(metadata=_about("the user's file, in the folder of configurations"))
    workspace_file: str = field(metadata=_about("the file of a workspace"))

    # -- the document
    root_keys: frozenset[str] | None = field(
        metadata=_about("keys of the root; any other one refuses the file")
    )
    fault: Fault = field(metadata=_about("what one wrong field or type costs upstream"))
    reviews: bool = field(metadata=_about("a person has to review each handler, by its hash"))
    reads_toml: bool = field(metadata=_about("reads the table `[hooks]` of a `config.toml`"))
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
    shell: tuple[str, str] = field(
        metadata=_about("shell of a command; `$SHELL` is the session's own, which its environment names")
    )
    other_shell: tuple[str, str] = field(metadata=_about("shell where that one is not known or not there"))
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
