"""What stands in for a hook file that fails closed and cannot be used: a handler an event, that only denies.

While the service runs such a file keeps its last good content in force. One that cannot be used when the
service starts has none; which of its events were guarded is remembered in a file of the bus's directory. It
refuses to know why a file cannot be used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

import orjson

from ..dialects.codex_matcher import ALL
from ..dialects.codex_profiles import PROFILES, Profile
from ..dialects.codex_result import fails_closed
from ..dialects.codex_spec import CodexHandler
from .codex_layers import Layer

NAME: Final = "codex-guards.json"
"""In the bus's directory: which files fail closed on which events. There is none while no file does."""

BLOCKABLE: Final = ("PreToolUse", "PermissionRequest", "UserPromptSubmit")
"""What a file guards of which nothing is known but that it fails closed."""

FILE_BYTES: Final = 1_048_576
"""A larger record is none of ours."""

_SECONDS: Final = 1.0

Guarded = Mapping[str, tuple[str, ...]]
"""The events on which a file fails closed, by its path."""


def guards(handler: CodexHandler) -> bool:
    """Whether a failure of this handler is a denial."""
    return (
        handler.on_failure == "block"
        and not handler.is_async
        and fails_closed(handler.event, PROFILES[handler.profile])
    )


def guarded(handlers: Iterable[CodexHandler]) -> Guarded:
    """What each file guards."""
    found: dict[str, dict[str, None]] = {}
    for handler in handlers:
        if guards(handler):
            found.setdefault(handler.path, {})[handler.event] = None
    return {path: tuple(events) for path, events in found.items()}


def stand_ins(layer: Layer, why: str, known: Guarded, order: int) -> tuple[CodexHandler, ...]:
    """What denies in place of a file that cannot be used; nothing where it would not fail closed."""
    profile = PROFILES[layer.profile]
    events: Iterable[str] = ()
    if layer.on_failure == "block" or profile.on_failure:
        events = known.get(layer.path, ())
    if layer.on_failure == "block" and not events:
        events = BLOCKABLE
    fitting = [event for event in events if event in profile.outputs and fails_closed(event, profile)]
    said = f"{layer.path} fails closed and cannot be used: {why}"
    return tuple(_stand_in(layer, profile, event, said, order + n) for n, event in enumerate(fitting))


def _stand_in(layer: Layer, profile: Profile, event: str, why: str, order: int) -> CodexHandler:
    return CodexHandler(
        event=event,
        group=0,
        index=0,
        order=order,
        kind="refusal",
        timeout_s=_SECONDS,
        matches=ALL,
        path=layer.path,
        key=f"{layer.path}:{event}:refusal",
        digest="",
        profile=profile.name,
        command=why,
        on_failure="block",
    )


class GuardRecord:
    """The record in the folder ``runtime_dir``. Raises OSError where it cannot be written."""

    def __init__(self, runtime_dir: str) -> None:
        self.path = os.path.join(runtime_dir, NAME)

    def read(self) -> Guarded:
        """What was guarded when it was written last; what is malformed counts as nothing."""
        try:
            with open(self.path, "rb") as file:
                found = orjson.loads(file.read(FILE_BYTES))
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {
            path: tuple(event for event in events if isinstance(event, str))
            for path, events in found.items()
            if isinstance(events, list)
        }

    def write(self, found: Guarded) -> None:
        """Put down what is guarded now."""
        if not found:
            with suppress(FileNotFoundError):
                os.unlink(self.path)
            return
        fresh = f"{self.path}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(fresh, flags, 0o600), "wb") as file:
            file.write(orjson.dumps(dict(found)))
        os.replace(fresh, self.path)
