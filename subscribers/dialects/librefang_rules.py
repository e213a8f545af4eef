"""The rules of a LibreFang ``HOOK.yaml`` as data: keys, events, patterns, limits, variables, codes.

The reader (:mod:`.librefang_file`), the dialect and the documents read these tables; nothing else states a
number. Keys, events and times are those of the LibreFang page; ``args``, which the page does not have and the
program does, is accepted too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..hooks.diagnostics import Severity

NAME: Final = "librefang"
FILE_NAME: Final = "HOOK.yaml"

MAX_FILE_BYTES: Final = 16_384
"""Bytes of a ``HOOK.yaml``: a hook needs a tenth of it, and a folder may hold many."""
MAX_DEPTH: Final = 16
"""Lists and mappings within each other; a hook needs two."""
ONE_DOCUMENT: Final = "a HOOK.yaml describes one hook"
"""Why there is no second document in it."""
MAX_ARGS: Final = 128
MAX_DIAGNOSTICS: Final = 200
"""Remarks that are kept of one file; the others are counted."""

TIMEOUT_S: Final = 5.0
"""Wall-clock seconds that a hook may take."""
GRACE_S: Final = 0.0
"""Seconds from SIGTERM to SIGKILL: the page knows no first warning, so that the group is killed at once."""

MAX_VARIABLE_BYTES: Final = 131_072
"""Longest ``NAME=value`` that Linux passes to a program, its closing NUL included."""

MAX_DATA_BYTES: Final = MAX_VARIABLE_BYTES - len("HOOK_EVENT_DATA=") - 1
"""Longest payload that travels in ``HOOK_EVENT_DATA``, inclusive; a longer one travels in a file."""

EVENTS: Final = {
    "agent:start": "agent_start",
    "agent:end": "agent_end",
    "agent:step": "agent_step",
    "session:start": "session_start",
    "session:end": "session_end",
    "session:reset": "session_reset",
    "gateway:startup": "gateway_startup",
}
"""The events that a ``HOOK.yaml`` may name, and the canonical event of each."""

_NATIVE: Final = {event: name for name, event in EVENTS.items()}


def native(event: str) -> str | None:
    """The page's name of a canonical event, or None when the page has none."""
    return _NATIVE.get(event)


PATTERNS: Final = {
    "agent:*": tuple(event for name, event in EVENTS.items() if name.startswith("agent:")),
    "session:*": tuple(event for name, event in EVENTS.items() if name.startswith("session:")),
    "*": tuple(EVENTS.values()),
}
"""The patterns of the page, and the canonical events that each stands for."""

TRANSFORM_EVENTS: Final = ("transform_tool_result", "tool_result")
"""What the page describes beside the events, and its canonical name: it rewrites, which no command can."""

PATTERN_CHARACTERS: Final = frozenset("*?[]{}!")

HOOK_VARIABLES: Final = {
    "HOOK_EVENT": "exact name of the event, such as `agent:end`",
    "HOOK_EVENT_DATA": (
        f"the payload as one JSON object; unset when it is longer than {MAX_DATA_BYTES:,} bytes"
    ),
    "HOOK_EVENT_DATA_FILE": "only then: a file (0600) with the same JSON, removed after the run",
    "PRXBUS_RUNTIME_DIR": "the bus that the event came from: `prxbus pub` and the client find it by this",
    "PRXBUS_DEPTH": "recursion depth of what the hook publishes: the depth of its event plus one",
    "PRXBUS_CAUSE": "id of the event, which becomes the cause of what the hook publishes",
}
"""Every variable that a hook gets besides the environment of ``prxbus up``."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a ``HOOK.yaml``, for readers and for the documents."""

    name: str
    type: str
    required: bool
    meaning: str


KEYS: Final = (
    Key("name", "string", True, "what the hook is called in the log and in reports"),
    Key("description", "string", False, "a note for people"),
    Key("events", "list of strings", True, "names of events, `agent:*`, `session:*` or `*`"),
    Key("command", "string", True, "the executable: relative to the hook's folder, or an absolute path"),
    Key("args", "list of strings", False, f"its arguments, at most {MAX_ARGS}, each as it is written"),
)
"""What a ``HOOK.yaml`` may say."""

CODES: Final[dict[str, Severity]] = {
    # the file
    "file_too_large": "error",
    "not_utf8": "error",
    "not_yaml": "error",
    "too_deep": "error",
    "several_documents": "error",
    "empty_file": "error",
    "wrong_root": "error",
    "foreign_file": "error",
    "byte_order_mark": "warning",
    # a key
    "unknown_key": "warning",
    "duplicate_key": "error",
    "missing_key": "error",
    "wrong_type": "error",
    "empty_name": "warning",
    "empty_command": "error",
    "bad_character": "error",
    "too_many": "error",
    # an event
    "no_events": "error",
    "unknown_event": "error",
    "unsupported_pattern": "error",
    "transform_event": "error",
    "extension_event": "info",
    "repeated_event": "warning",
    # many of them
    "more_findings": "warning",
}
"""Every code that reading a file can give, with its severity."""
