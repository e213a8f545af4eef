"""What is told of a call of a role's hook: the report and the dead letter, and the line of the log.

Decides fields, and the names and messages of the page's log. Pure but for the log; when it is told, and who
publishes it, is known elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker.logs import Logger, get_logger

from ..dialects.rolebox_rules import NAME as DIALECT
from ..hooks.module_hook import HANDLER_OF, ModuleReturn
from ..hooks.module_plan import State
from ..hooks.outcome import NOTHING, Captured, Outcome, Status
from ..hooks.spec import HookSpec
from .roles_set import InForce, Missing
from .roles_view import Seen

OBSERVED: Final = "observed, decision ignored"
"""The reason of a run that would have been a decision, if anybody had asked."""

LOADER: Final = get_logger("hook:custom-loader")
REGISTRY: Final = get_logger("hook:custom-registry")

LOG_NAME_CHARACTERS: Final = 128

_TAKEN: Final = frozenset(
    {"self", "event", "level", "logger", "time", "timestamp", "role", "exc_info", "stack_info"}
)
"""Fields of a record that are the log's own; a hook's get another name."""

_LEVELS: Final = {"debug": "debug", "info": "info", "warn": "warning", "error": "error"}
_STATUS: Final[Mapping[str, Status]] = {
    "ok": "ok",
    "failed": "failed",
    "timeout": "timeout",
    "lost": "failed",
    "absent": "not_started",
}


def spec_of(hook: InForce, seen: Seen) -> HookSpec:
    """A hook in the shape that reports have for every hook."""
    return HookSpec(
        id=hook.link.label,
        dialect=DIALECT,
        path=hook.module.path,
        line=hook.line,
        event=seen.name,
        command=seen.handler,
        args=(),
        env={},
        cwd=None,
        timeout_s=hook.link.timeout_s,
        grace_s=0.0,
        stdin=False,
        name=hook.link.label,
    )


def outcome_of(said: ModuleReturn, *, is_ignored: bool) -> Outcome:
    """What came of a call in the shape that reports have for every run."""
    reason = said.error
    if is_ignored:
        reason = OBSERVED if reason is None else f"{reason} ({OBSERVED})"
    trace = (said.detail or "").encode("utf-8", "backslashreplace")
    stderr = Captured(trace, b"", len(trace)) if trace else NOTHING
    return Outcome(_STATUS[said.status], None, None, said.seconds, NOTHING, stderr, reason)


def log_failure(hook: InForce, seen: Seen, said: ModuleReturn) -> None:
    """A handler has thrown, was late, or is gone."""
    REGISTRY.warning(
        f'Custom hook "{hook.link.name}" failed on {seen.happening.event}',
        err=said.detail or said.error,
        role=hook.link.role,
        module=hook.module.path,
        status=said.status,
    )


def log_state(hook: InForce, state: State) -> None:
    """A hook was loaded, or cannot be, or is in force no longer."""
    name, kept = hook.link.name, {"kept": "the version before stays in force"} if state.kept else {}
    if state.name == "refused":
        LOADER.warning(
            "Failed to load custom hook module",
            modulePath=hook.module.path,
            err=state.detail or state.reason,
            reason=state.reason,
            hook=name,
            role=hook.link.role,
            **kept,
        )
    elif state.name == "quarantined":
        REGISTRY.warning(f'Custom hook "{name}" is quarantined', err=state.reason, role=hook.link.role)
    elif state.name == "loaded":
        REGISTRY.debug("Registered custom hook", name=name, events=sorted(hook.link.events))
        if state.reason is not None and state.handlers:
            REGISTRY.warning(
                f'Custom hook "{name}" onLoad threw', err=state.detail or state.reason, role=hook.link.role
            )
        without = sorted(event for event in hook.link.events if HANDLER_OF[event] not in state.handlers)
        if without:
            REGISTRY.warning(
                f'Custom hook "{name}" has no handler for {", ".join(without)}: nothing happens then',
                exports=state.handlers,
                role=hook.link.role,
                module=hook.module.path,
            )


def log_missing(missing: Missing) -> None:
    """A hook's module is not there, or may not be loaded."""
    LOADER.warning(
        "Failed to load custom hook module",
        modulePath=missing.module,
        err=missing.reason,
        hook=missing.name,
        role=missing.role,
    )


def hook_log(hook: InForce, level: str, message: str, fields: Mapping[str, Any]) -> None:
    """What a hook itself logs, under its own name."""
    log: Logger = get_logger(f"hook:{hook.link.name[:LOG_NAME_CHARACTERS]}", role=hook.link.role)
    own = {f"field_{name}" if name in _TAKEN else name: value for name, value in fields.items()}
    getattr(log, _LEVELS.get(level, "info"))(message, **own)
