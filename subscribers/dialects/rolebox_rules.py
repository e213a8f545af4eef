"""The rules of a role.yaml as data: keys, events, limits, defaults and codes.

The reader (:mod:`.rolebox_file`), the explanation and the documents read these tables; nothing else states a
number. Keys and defaults of hooks are those of rolebox's page on hooks; the other keys of the file, which are
only known here so that a misspelled one can be told, are those of its reference of ``role.yaml``.

What its documents say of functions, and what is taken from it:

* ``functions`` are names that are *added* to rolebox's own three; ``disable_functions`` takes names away.
* A function is a Markdown file ``functions/<name>.md`` of the role: keys between two lines of dashes, then
  the instructions. One without instructions does not count. Its keys that matter here are ``description``,
  ``params`` (placeholders and their defaults), ``requires`` (functions without which its instructions are
  held back) and ``priority`` (50; a smaller one stands earlier in the prompt).
* ``|name|`` at the beginning of a line of a user's message activates a function, ``|a|b|`` several,
  ``|name:x,y|`` and ``|name key=x|`` give its parameters. Once active it stays so for the session.
* ``auto_activate`` lists functions that the first message of a session activates, ``locked`` keeps those
  from being deactivated. The page on hooks has a switch ``hooks.builtin.auto_activate`` instead, and speaks
  of functions that are *marked*; both forms count here, and so does the mark in a function's own file.

Of a function's life (gates, transitions, observers, continuation) nothing is done.
"""

from __future__ import annotations

import re
from typing import Final

from ..hooks.diagnostics import Severity
from ..hooks.module_hook import HANDLER_OF
from .document_rows import Key
from .rolebox_spec import Phase

NAME: Final = "rolebox"
FILE_NAME: Final = "role.yaml"
FUNCTIONS_FOLDER: Final = "functions"

EVENTS: Final = tuple(HANDLER_OF)
"""What a hook may listen for."""
TOOL_EVENTS: Final = ("tool.execute.before", "tool.execute.after")
PHASES: Final[tuple[Phase, ...]] = ("before", "after")

PRIORITY: Final = 50.0
PHASE: Final[Phase] = "after"
FUNCTION_PRIORITY: Final = 50.0

MAX_FILE_BYTES: Final = 1_048_576
MAX_DEPTH: Final = 32
"""Lists and mappings within each other."""
MAX_HOOKS: Final = 256
MAX_NAME: Final = 128
"""Characters of the name of a hook, a role or a function."""
MAX_DESCRIPTION: Final = 4_096
MAX_MODULE: Final = 4_096
"""Characters of the path of a module."""
MAX_EVENTS: Final = 64
"""Entries in the list of a hook's events, which has five at most if each is named once."""
MAX_FILTER: Final = 256
"""Names in a filter's list, and characters of each."""
MAX_FUNCTIONS: Final = 64
"""Functions of a role, rolebox's own among them."""
MAX_FUNCTION_BYTES: Final = 65_536
"""Bytes of a function's file."""
MAX_CONFIG_BYTES: Final = 65_536
"""Bytes of a hook's config, as JSON."""
MAX_CONFIG_VALUES: Final = 10_000
"""Values in a hook's config; what an alias repeats counts each time."""
MAX_MERGED: Final = 10_000
"""Keys that ``<<`` may bring into a file, all together."""
MAX_DIAGNOSTICS: Final = 200
"""Remarks that are kept of one file; the others are counted."""

OWN_FUNCTIONS: Final = ("plan", "execute", "loop")
"""Functions that every role has in rolebox. Their instructions are part of rolebox, not of prxbus."""
FUNCTION_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")

BUILTINS: Final = (
    "recovery",
    "session_error",
    "edit_error",
    "json_error",
    "context_window",
    "empty_response",
    "tool_pair_validation",
    "write_existing_file_guard",
    "bash_file_read_guard",
    "webfetch_redirect_guard",
)
"""Switches of hooks that are part of rolebox itself; known, and without effect here."""

OTHER_KEYS: Final = (
    "version",
    "color",
    "prompt",
    "prompt_file",
    "model",
    "mode",
    "variant",
    "temperature",
    "top_p",
    "skills",
    "opencode_skills",
    "references",
    "subagents",
    "open",
    "exports",
    "open_roles",
    "graph",
    "dispatch",
    "permission",
    "tools",
    "notifications",
    "copilot",
    "memory",
    "extensions",
)
"""Keys of a role that mean something to rolebox and nothing here."""

OWN_KEYS: Final = (
    "name",
    "description",
    "functions",
    "disable_functions",
    "auto_activate",
    "locked",
    "hooks",
)
"""Keys of a role that are read."""

SIGNS: Final = frozenset({*OWN_KEYS, *OTHER_KEYS}) - {
    "name",
    "description",
    "version",
    "mode",
    "color",
    "tools",
    "references",
    "permission",
    "open",
    "extensions",
    "notifications",
}
"""Keys by which a file is known as a role; the others stand in many files of that name."""

HOOKS_KEYS: Final = ("custom", "builtin", "recovery")
FILTER_KEYS: Final = ("tools", "eventTypes")


KEYS: Final = (
    Key("name", "string", "required", "what the hook is called in logs and reports, and `ctx.hookName`"),
    Key("description", "string", "", "a note for people"),
    Key("events", "list of strings", "required", ", ".join(f"`{event}`" for event in EVENTS)),
    Key("module", "string", "required", "its file: relative to the role's directory, or an absolute path"),
    Key("config", "mapping", "", f"`ctx.config`; at most {MAX_CONFIG_BYTES:,} bytes as JSON"),
    Key("filter.tools", "list of strings", "", "exact names of tools, for the two events of tools"),
    Key("filter.eventTypes", "list of strings", "", "exact types, for `event`"),
    Key("priority", "number", f"`{PRIORITY:g}`", "a smaller one runs earlier in its phase"),
    Key("phase", "string", f"`{PHASE}`", "`before` or `after` what the agent itself does"),
)
"""What an entry of ``hooks.custom`` may say."""

HOOK_KEYS: Final = tuple(dict.fromkeys(key.name.partition(".")[0] for key in KEYS))

CODES: Final[dict[str, Severity]] = {
    # the file
    "file_too_large": "error",
    "not_utf8": "error",
    "not_yaml": "error",
    "too_deep": "error",
    "several_documents": "error",
    "empty_file": "error",
    "wrong_root": "error",
    "foreign_file": "info",
    "byte_order_mark": "warning",
    # a key
    "unknown_key": "warning",
    "other_key": "info",
    "duplicate_key": "error",
    "missing_key": "error",
    "wrong_type": "error",
    "odd_type": "warning",
    "too_long": "error",
    "bad_character": "error",
    # a name
    "no_name": "info",
    "empty_name": "error",
    "same_name": "warning",
    "bad_function_name": "error",
    "unknown_function": "warning",
    "no_instructions": "warning",
    "not_provided": "info",
    # a hook
    "too_many": "error",
    "no_events": "error",
    "unknown_event": "error",
    "repeated_event": "warning",
    "unknown_phase": "error",
    "bad_number": "error",
    "empty_filter": "error",
    "unused_filter": "warning",
    "unknown_type": "warning",
    "no_json": "error",
    "config_too_large": "error",
    # a placeholder
    "no_such_variable": "warning",
    "not_replaced": "info",
    # many of them
    "more_findings": "warning",
}
"""Every code that reading a role can give, with its severity."""
