"""The rules of a PRX ``hooks.json`` as data: fields, defaults, limits, refused characters, diagnostic codes.

The reader (:mod:`.prx_file`) and the documents read these tables; nothing else states a number. Fields and
defaults are those of the PRX Hooks page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..hooks.diagnostics import Severity

NAME: Final = "prx"
FILE_NAME: Final = "hooks.json"

MAX_FILE_BYTES: Final = 1_048_576
"""Bytes of a ``hooks.json`` (1 MiB)."""
MAX_ACTIONS: Final = 256
"""Actions of one file, over all events, refused and disabled ones counted."""
MAX_ARGS: Final = 128
MAX_ENV: Final = 128
"""Arguments, and environment entries, of one action."""
MAX_STRING_BYTES: Final = 131_071
"""Bytes of a command, an argument or a ``NAME=value`` pair: Linux cannot exec with a longer one."""

DEFAULT_TIMEOUT_MS: Final = 30_000
MIN_TIMEOUT_MS: Final = 1
MAX_TIMEOUT_MS: Final = 300_000
SMALL_TIMEOUT_MS: Final = 100
"""A timeout below this is accepted and remarked upon: seconds were probably meant."""
GRACE_S: Final = 5.0
"""Seconds from SIGTERM to SIGKILL.

The page's field table says SIGKILL at once; its section on timeouts wins.
"""

PAYLOAD_ENV_BYTES: Final = 8_192
"""Longest envelope, in bytes, inclusive, that travels in ``ZERO_HOOK_PAYLOAD``."""

PAGE_EVENTS: Final = (
    "agent_start",
    "agent_end",
    "llm_request",
    "llm_response",
    "tool_call_start",
    "tool_call",
    "turn_complete",
    "error",
)
"""The events of the page. Any other event of the catalogue may be named too, as a prxbus extension."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an action, for readers and for the documents."""

    name: str
    type: str
    default: str
    meaning: str


FIELDS: Final = (
    Field(
        "command",
        "string",
        "required",
        "absolute path, path relative to the workspace, or a name on the PATH",
    ),
    Field("args", "array of strings", "[]", f"arguments, at most {MAX_ARGS}"),
    Field("env", "object of strings", "{}", f"variables added to the clean environment, at most {MAX_ENV}"),
    Field("cwd", "string", "the workspace", "working directory; a relative one stays inside the workspace"),
    Field("timeout_ms", "whole number", f"{DEFAULT_TIMEOUT_MS}", f"{MIN_TIMEOUT_MS} to {MAX_TIMEOUT_MS} ms"),
    Field("stdin_json", "boolean", "false", "write the envelope to the standard input"),
    Field("enabled", "boolean", "true", "false: the action stays in the file and does not run"),
)
"""What an action may say. Optional fields may be null, which is the same as absent."""

KEPT_FIELDS: Final = ("id", "created_at", "updated_at")
"""Fields that programs which edit the file keep in an action; they mean nothing to a run."""

ACTION_KEYS: Final = (*(field.name for field in FIELDS), *KEPT_FIELDS)
FILE_KEYS: Final = ("hooks", "timeout_ms", "$schema")
"""Keys of the document itself. ``timeout_ms`` there is the default of its actions."""

METACHARACTERS: Final = {
    ";": "command separator",
    "|": "pipe",
    "&": "background, or a command list",
    "`": "command substitution",
    "$": "command substitution or a variable",
    "(": "subshell or command substitution",
    ")": "subshell or command substitution",
    "<": "redirection",
    ">": "redirection",
    "{": "grouping or brace expansion",
    "}": "grouping or brace expansion",
    "*": "file name pattern",
    "?": "file name pattern",
    "[": "file name pattern",
    "]": "file name pattern",
    "~": "home directory",
    "!": "negation or history",
    "#": "comment",
    "'": "quoting",
    '"': "quoting",
    "\\": "quoting",
    "\n": "line break",
    "\r": "line break",
    "\t": "tab",
}
"""Every character that ``command`` may not hold, wherever it stands, and what a shell would do with it.

Other control characters (below U+0020, and U+007F) are refused with them.
"""

CODES: Final[dict[str, Severity]] = {
    # the file
    "file_too_large": "error",
    "not_json": "error",
    "wrong_root": "error",
    "wrong_hooks": "error",
    "byte_order_mark": "warning",
    "no_hooks": "warning",
    "unknown_key": "warning",
    "misplaced_event": "error",
    "duplicate_key": "warning",
    "duplicate_event": "error",
    "wrong_file_timeout": "warning",
    "small_timeout": "warning",
    # an event
    "unknown_event": "error",
    "extension_event": "info",
    "two_spellings": "warning",
    "wrong_event_value": "error",
    "too_many_actions": "error",
    # an action
    "wrong_type": "error",
    "disabled": "info",
    "missing_command": "error",
    "empty_command": "error",
    "metacharacter": "error",
    "nul": "error",
    "too_long": "error",
    "too_many": "error",
    "bad_env_name": "error",
    "blocked_env": "warning",
    "cwd_escapes": "error",
    "empty_cwd": "warning",
    "timeout_range": "error",
    # many of them
    "more_findings": "warning",
}
"""Every code that reading a file can give, with its severity."""
