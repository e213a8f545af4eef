"""The codes of what is said about hook files of the Codex family, with their severities, and fixed texts.

The reader (:mod:`.codex_file`) and the documents read these tables. It refuses to know when a thing is said.
"""

from __future__ import annotations

from typing import Final

from ..hooks.diagnostics import Severity

CODES: Final[dict[str, Severity]] = {
    # the file
    "file_too_large": "error",
    "not_json": "error",
    "not_toml": "error",
    "not_read": "error",
    "wrong_root": "error",
    "unknown_root_key": "error",
    "misplaced_event": "error",
    "other_system": "error",
    "wrong_hooks": "error",
    "wrong_description": "warning",
    "hooks_disabled": "info",
    "duplicate_key": "warning",
    "duplicate_event": "error",
    "upstream_refuses": "warning",
    "refused": "error",
    # an event and its groups
    "unknown_event": "error",
    "other_event": "error",
    "managed_key": "warning",
    "wrong_event_value": "error",
    "wrong_group": "error",
    "invalid_matcher": "error",
    "dead_matcher": "error",
    "ignored_matcher": "info",
    "ignored_group_key": "warning",
    "too_many_handlers": "error",
    # a handler
    "wrong_handler": "error",
    "unknown_type": "error",
    "not_run": "warning",
    "switched_off": "info",
    "wrong_type": "error",
    "missing_field": "error",
    "empty_command": "error",
    "nul": "error",
    "empty_target": "error",
    "unsupported_here": "error",
    "dead_condition": "error",
    "ignored_field": "warning",
    "foreign_field": "warning",
    "clamped_timeout": "warning",
    "small_timeout": "info",
    "sync_event": "warning",
    "ignored_limit": "warning",
    # many of them
    "more_findings": "warning",
}
"""Every code that reading a file can give, with its severity."""

MEANT: Final = {
    "timeoutSec": "timeout",
    "timeout_sec": "timeout",
    "timeoutSeconds": "timeout",
    "timeoutMs": "timeout",
    "timeout_ms": "timeout",
    "status_message": "statusMessage",
    "additional_context_limit": "additionalContextLimit",
    "commandwindows": "commandWindows",
    "run": "command",
    "cmd": "command",
}
"""Fields that no profile has, and the field that is meant."""

STATE_KEY: Final = "state"
"""The table of trust records beside the events in ``config.toml``; no event of this name will ever be."""

MANAGED_KEYS: Final = ("managed_dir", "windows_managed_dir")
"""Keys of an administrator's ``requirements.toml``, which is not read here."""

CLAUDE_SETTINGS: Final = frozenset(
    {"permissions", "env", "model", "statusLine", "enabledPlugins", "disableAllHooks", "apiKeyHelper"}
)
"""Keys of Claude Code's settings that no hook file of another profile has."""
