"""Codex's record of which handlers a person has reviewed: its keys, its hash, and what a record says.

It decides section 5.1 of the contract. It computes what Codex would compute and compares: it never writes a
record, for only a person may trust, and it refuses to know where records are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

import orjson

from .codex_spec import CodexHandler, TrustState

DEFAULT_CONTEXT_LIMIT: Final = 2_500
"""Tokens; a handler that says as much hashes as one that says nothing."""

TrustStatus: TypeAlias = Literal["untrusted", "trusted", "modified", "disabled"]
"""``untrusted``: nobody has reviewed it. ``modified``: it was reviewed and is another now. ``disabled``: a
person switched it off. Codex runs a handler of a user or project that is ``trusted``."""


def trust_key(source: str, event_key: str, group: int, index: int) -> str:
    """What Codex calls a handler: ``<source>:<event_snake_case>:<group>:<handler>``.

    ``source`` is the file's absolute path, or ``<plugin id>:<relative path>``. Keys are positional.
    """
    return f"{source}:{event_key}:{group}:{index}"


def trust_hash(event_key: str, matcher: str | None, handler: Mapping[str, Any]) -> str:
    """The hash that Codex compares, of a handler in normal form: ``sha256:`` and 64 hexadecimal digits.

    ``matcher`` is None where the event uses none or none is set; ``handler`` holds the fields that count,
    without those that are null. Raises TypeError for what JSON cannot hold.
    """
    identity: dict[str, Any] = {"event_name": event_key, "hooks": [handler]}
    if matcher is not None:
        identity["matcher"] = matcher
    return "sha256:" + sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)).hexdigest()


def command_identity(
    command: str, timeout: float, *, is_async: bool, status_message: str | None, context_limit: int | None
) -> dict[str, Any]:
    """A command handler in the form that is hashed.

    ``command`` after the choice for Windows, ``timeout`` in seconds after default and clamp, ``is_async`` as
    written.
    """
    identity: dict[str, Any] = {"type": "command", "command": command, "timeout": timeout, "async": is_async}
    if status_message is not None:
        identity["statusMessage"] = status_message
    if context_limit is not None and context_limit != DEFAULT_CONTEXT_LIMIT:
        identity["additionalContextLimit"] = context_limit
    return identity


def tool_identity(
    server: str, tool: str, tool_input: Mapping[str, Any], timeout: float, status_message: str | None
) -> dict[str, Any]:
    """An ``mcp_tool`` handler in the form that is hashed."""
    identity: dict[str, Any] = {"type": "mcp_tool", "server": server, "tool": tool, "timeout": timeout}
    identity["input"] = dict(tool_input)
    if status_message is not None:
        identity["statusMessage"] = status_message
    return identity


def read_states(table: object) -> dict[str, TrustState]:
    """The records of a ``[hooks.state]`` table; a malformed one is left out and harms no other."""
    found = {}
    for key, record in table.items() if isinstance(table, dict) else ():
        if not isinstance(record, dict) or not key.strip():
            continue
        enabled, trusted_hash = record.get("enabled"), record.get("trusted_hash")
        if isinstance(enabled, bool | None) and isinstance(trusted_hash, str | None):
            found[key] = TrustState(enabled, trusted_hash)
    return found


def merge_states(layers: Iterable[Mapping[str, TrustState]]) -> dict[str, TrustState]:
    """The records of several layers, field by field: what a later layer says counts."""
    merged: dict[str, TrustState] = {}
    for layer in layers:
        for key, state in layer.items():
            before = merged.get(key, TrustState())
            merged[key] = TrustState(
                before.enabled if state.enabled is None else state.enabled,
                state.trusted_hash or before.trusted_hash,
            )
    return merged


def trust_status(handler: CodexHandler, states: Mapping[str, TrustState]) -> TrustStatus:
    """What Codex would say of a handler that nobody manages."""
    state = states.get(handler.key, TrustState())
    if state.enabled is False:
        return "disabled"
    if state.trusted_hash is None:
        return "untrusted"
    return "trusted" if state.trusted_hash == handler.digest else "modified"
