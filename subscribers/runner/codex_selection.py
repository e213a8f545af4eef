"""An event of the bus as the Codex family's hooks are to see it, and which handlers it starts.

    event -> each profile's name and payload for it -> matchers -> project, ``if``, doubles -> handlers

Decides whom an event is for; a remote workspace's is for nobody. Refuses to know how a handler is run.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from broker.protocol.events import Event

from ..dialects.codex_condition import Folders
from ..dialects.codex_events import EVENTS, matched_values
from ..dialects.codex_payload import event_for, payload_for
from ..dialects.codex_profiles import PROFILES, Profile
from ..dialects.codex_spec import CodexHandler
from ..sources.codex_documents import Snapshot
from ..sources.codex_layers import Layer, is_remote, is_within

_LOCK: Final = threading.Lock()
"""An index keeps its answers, and is for one thread at a time."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A handler that an event starts: its file's layer, what it reads, and the tool that it is about."""

    handler: CodexHandler
    profile: Profile
    layer: Layer
    body: bytes
    tool: str | None


@dataclass(frozen=True, slots=True)
class Selection:
    """What an event starts. ``remote``: the folder of another machine that it belongs to, so that nothing is.

    ``session`` is the session's id, empty where it has none. ``cwd`` is its folder as it was sent,
    ``tool_use`` the id of the tool call. ``strict``: nothing is said of answers but what the agent says.
    """

    chosen: tuple[Chosen, ...]
    session: str
    cwd: str | None
    tool_use: str | None = None
    remote: str | None = None
    strict: bool = False


def select(snapshot: Snapshot, name: str, event: Event, workspace: str | None, home: str) -> Selection:
    """The handlers that ``event`` starts, in order; ``name`` is its bare name, ``home`` the home directory.

    Raises what :attr:`Event.payload <broker.protocol.events.Event.payload>` raises, and ValueError.
    """
    payload = event.payload
    session = event.session_id or _text(payload.get("session")) or _text(payload.get("session_id")) or ""
    cwd = _text(payload.get("cwd"))
    found: list[Chosen] = []
    for profile_name, index in snapshot.indexes.items():
        profile = PROFILES[profile_name]
        native = event_for(profile, name, payload)
        if native is not None and native in index.events:
            found += _of_profile(native, profile, snapshot, payload, session, cwd, workspace, home)
    if found and cwd is not None and is_remote(cwd):
        return Selection((), session, cwd, remote=cwd)
    is_project = any(each.layer.scope == "project" for each in found)
    if is_project and cwd is not None and workspace is not None and not is_within(cwd, workspace):
        found = [each for each in found if each.layer.scope == "user"]
    found.sort(key=lambda each: each.handler.order)
    tool_use = _text(payload.get("tool_use_id"))
    chosen = tuple(_without_doubles(found))
    return Selection(chosen, session, cwd, tool_use, strict=snapshot.strict)


def _of_profile(
    native: str,
    profile: Profile,
    snapshot: Snapshot,
    payload: Mapping[str, Any],
    session: str,
    cwd: str | None,
    workspace: str | None,
    home: str,
) -> list[Chosen]:
    index = snapshot.indexes[profile.name]
    tool = _text(payload.get("tool")) or _text(payload.get("tool_name"))
    if tool is not None and EVENTS[native].matched == "tool_name":
        with _LOCK:
            if not index.select(native, matched_values(native, profile, {"tool_name": tool})):
                return []  # before the payload is made: most events are for nobody
    here = cwd or workspace or home
    body = payload_for(native, profile, payload, session_id=session or None, cwd=here)
    seen = orjson.loads(body)
    with _LOCK:
        handlers = index.select(native, matched_values(native, profile, seen))
    tool = _text(seen.get("tool_name"))
    folders = Folders(here, workspace or here, home)
    return [
        Chosen(handler, profile, snapshot.layers[handler.path], body, tool)
        for handler in handlers
        if handler.condition is None or _holds(handler, tool, seen, folders)
    ]


def _holds(handler: CodexHandler, tool: str | None, seen: Mapping[str, Any], folders: Folders) -> bool:
    """Whether a handler's ``if`` is met; on an event that is about no tool it never is."""
    assert handler.condition is not None
    return tool is not None and handler.condition.holds(tool, seen.get("tool_input"), folders)


def _without_doubles(found: list[Chosen]) -> list[Chosen]:
    """The handlers without those that stand in an earlier place already, where a profile runs them once."""
    seen: set[tuple[object, ...]] = set()
    kept: list[Chosen] = []
    for each in found:
        handler = each.handler
        identity = (
            *(handler.profile, handler.kind, handler.command, handler.args, handler.shell, handler.url),
            *(handler.server, handler.tool),
        )
        if each.profile.dedupes and identity in seen:
            continue
        seen.add(identity)
        kept.append(each)
    return kept


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
