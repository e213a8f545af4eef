"""The rules of a PRX plugin's ``plugin.toml`` as data: keys, defaults, limits, diagnostic codes.

The reader (:mod:`.prx_plugin`) and the documents read these tables; nothing else states a number. Keys and
defaults are those of the PRX Hooks page and of the manifests that PRX's own plugins have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..hooks.diagnostics import Severity
from .document_rows import Key

FOLDER: Final = "plugins"
"""Folder of a workspace that holds one folder for each plugin."""
FILE_NAME: Final = "plugin.toml"

MAX_FILE_BYTES: Final = 262_144
"""Bytes of a ``plugin.toml`` (256 KiB)."""
MAX_PLUGINS: Final = 256
"""Entries of the folder ``plugins`` that are looked at, in the order of their names."""
MAX_WASM_BYTES: Final = 134_217_728
"""Bytes of a component (128 MiB), also of one written as text."""
MAX_CAPABILITIES: Final = 64
MAX_PATTERNS: Final = 256
"""Capabilities, and event patterns of all of them, that one manifest may have."""
MAX_CONFIG: Final = 256
"""Entries of ``[config]``."""
MAX_CONFIG_BYTES: Final = 65_536
"""Bytes of one value of ``[config]``."""
MAX_FOLDERS: Final = 16
"""Entries of ``filesystem_allowlist``."""
NAME_CHARACTERS: Final = 64
MAX_FUEL: Final = 2**63 - 1

DEFAULT_WASM: Final = "plugin.wasm"
EVERY_PATTERN: Final = "*"


@dataclass(frozen=True, slots=True)
class Limit:
    """A whole number of ``[resources]``: its default, its range, and what it bounds."""

    name: str
    default: int | None
    least: int
    most: int
    unit: str
    meaning: str


LIMITS: Final = (
    Limit("max_memory_mb", 64, 1, 4_096, "MiB", "linear memory, at any moment of a call"),
    Limit(
        "max_execution_time_ms",
        30_000,
        1,
        300_000,
        "ms",
        "time of one call, with a fresh instance",
    ),
    Limit("max_fuel", None, 1, MAX_FUEL, "instructions", "fuel of one call; unlimited unless set"),
    Limit("max_kv_storage_mb", 10, 0, 1_024, "MiB", "keys and values that the plugin keeps in `kv`"),
)


KEYS: Final = (
    Key("plugin.name", "string", "required", "who it is in reports and logs; unique in the workspace"),
    Key("plugin.version", "string", '""', "version, for people"),
    Key("plugin.description", "string", '""', "what it does, for people"),
    Key(
        "plugin.wasm",
        "string",
        f'"{DEFAULT_WASM}"',
        "the component in its folder: binary or text",
    ),
    Key("capabilities[].type", "string", "required", '"hook"; other types are ignored'),
    Key(
        "capabilities[].events",
        "array of strings",
        "required",
        "which events; the union of all blocks counts",
    ),
    *(
        Key(
            f"resources.{limit.name}",
            "whole number",
            "none" if limit.default is None else f"{limit.default}",
            limit.meaning,
        )
        for limit in LIMITS
    ),
    Key("permissions.required", "array of strings", "[]", "without any of them the plugin does not load"),
    Key("permissions.optional", "array of strings", "[]", "granted where the operator allows it"),
    Key(
        "permissions.filesystem_allowlist",
        "array of strings",
        "[]",
        "folders of the workspace that `filesystem` opens to it, each at its own name",
    ),
    Key("config", "table", "{}", "what the import `config` gives it; numbers and booleans become text"),
)

PLUGIN_KEYS: Final = ("name", "version", "description", "wasm")
CAPABILITY_KEYS: Final = ("type", "events", "name", "description", "priority", "schedule")
PERMISSION_KEYS: Final = ("required", "optional", "filesystem_allowlist", "http_allowlist")
TABLES: Final = ("plugin", "capabilities", "permissions", "resources", "config")
KEPT_PLUGIN_KEYS: Final = ("api_version", "author", "license")
KEPT_RESOURCE_KEYS: Final = ("max_http_requests_per_call", "pool_size")
"""Keys of real manifests that mean nothing to prxbus."""

CAPABILITY_TYPES: Final = ("hook", "tool", "middleware", "channel", "provider", "storage", "cron", "api")
"""What PRX knows. prxbus runs hooks."""

GRANTED: Final = ("log", "config", "kv", "storage", "events")
"""Permissions that every plugin has; naming them is harmless."""
WASI: Final = ("wasi", "filesystem", "network")
"""Permissions that the operator has to allow. The last two bring the first along."""

CODES: Final[dict[str, Severity]] = {
    # the file
    "file_too_large": "error",
    "not_toml": "error",
    "byte_order_mark": "warning",
    "unknown_key": "warning",
    "wrong_type": "error",
    # the plugin
    "missing_name": "error",
    "bad_name": "error",
    "missing_version": "warning",
    "api_version": "warning",
    "bad_wasm_path": "error",
    # its capabilities
    "no_hook": "error",
    "other_capability": "info",
    "missing_type": "error",
    "missing_events": "error",
    "too_many": "error",
    "unknown_event": "error",
    "bad_pattern": "error",
    "not_lifecycle": "error",
    "extension_event": "info",
    # its limits, permissions and values
    "out_of_range": "error",
    "unknown_permission": "error",
    "bad_folder": "error",
    "not_enforced": "warning",
    "too_long": "error",
    "more_findings": "warning",
}
"""Every code that reading a manifest can give, with its severity."""
