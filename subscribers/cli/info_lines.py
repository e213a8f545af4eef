"""A role's information as JSON and as lines for people; both say the same.

Decides words and order. Knows no terminal. Text of a file is shown with its control characters escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from broker.cli.terminal import printable

from ..dialects.rolebox_rules import FUNCTIONS_FOLDER, OWN_FUNCTIONS
from ..dialects.rolebox_spec import RoleFunction
from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import diagnostic_document, text
from ..hooks.module_hook import SUFFIXES

if TYPE_CHECKING:
    from ..runner.role_info import HookInfo, IntegrityInfo, RoleInfo

SHOWN: Final = 20
"""Changed files that people are shown; ``--json`` has all."""
MARGIN: Final = "  "


def document(info: RoleInfo, *, accepted: bool = False) -> dict[str, Any]:
    """Everything as JSON."""
    role = info.role
    return {
        "role": text(role.id),
        "name": text(role.name),
        "description": text(role.role.description),
        "directory": text(role.directory),
        "status": "foreign" if role.role.foreign else "refused" if role.role.refused else "ok",
        "hooks": [_hook(hook) for hook in info.hooks],
        "functions": [_function(function, info) for function in role.functions],
        "diagnostics": [diagnostic_document(said) for said in info.diagnostics],
        "integrity": _integrity(info.integrity),
        "rolebox_lock": _lock(info),
        "accepted": accepted,
        "checked": info.checked,
        "passed": info.passed,
    }


def _hook(hook: HookInfo) -> dict[str, Any]:
    spec, module, state = hook.loaded.hook, hook.loaded.module, hook.state
    return {
        "name": text(spec.name),
        "events": list(spec.events),
        "phase": spec.phase,
        "priority": spec.priority,
        "tools": None if spec.tools is None else list(spec.tools),
        "event_types": None if spec.event_types is None else list(spec.event_types),
        "module": text(spec.module),
        "path": None if module is None else text(module.path),
        "language": None if module is None else SUFFIXES[module.path[module.path.rindex(".") :]],
        "loaded": None if state is None else state.name == "loaded",
        "handlers": [] if state is None else list(state.handlers),
        "without_handler": list(hook.without_handler),
        "problem": text(hook.problem),
        "detail": None if state is None else text(state.detail),
    }


def _function(function: RoleFunction, info: RoleInfo) -> dict[str, Any]:
    return {
        "name": function.name,
        "description": text(function.description),
        "file": text(function.path),
        "automatic": function.name in info.role.automatic,
        "locked": function.name in info.role.locked,
    }


def _integrity(found: IntegrityInfo) -> dict[str, Any]:
    return {
        "hash": None if found.now is None else found.now.hash,
        "accepted": None if found.record is None else found.record.hash,
        "accepted_at": None if found.record is None else found.record.accepted_at,
        "changed": list(found.changes.changed),
        "added": list(found.changes.added),
        "removed": list(found.changes.removed),
        "problem": text(found.problem),
        "passed": found.passed,
    }


def _lock(info: RoleInfo) -> dict[str, Any] | None:
    found = info.lock
    if found is None:
        return None
    return {
        "path": text(found.path),
        "registry": None if found.locked is None else text(found.locked.registry),
        "version": None if found.locked is None else text(found.locked.version),
        "expected": None if found.locked is None else text(found.locked.integrity),
        "actual": found.actual,
        "reason": text(found.reason),
        "passed": found.passed,
    }


def lines(info: RoleInfo, before: IntegrityInfo | None = None) -> Iterator[str]:
    """Everything for people. ``before``: how it stood before it was accepted just now."""
    role = info.role
    yield printable(f"{role.name}  ({role.directory})")
    if role.role.description:
        yield printable(f"{MARGIN}{role.role.description}")
    yield ""
    if info.hooks:
        yield "Hooks"
    for hook in info.hooks:
        yield from map(printable, _hook_lines(hook))
    yield from map(printable, _function_lines(info))
    of_hooks = {said for hook in info.hooks for said in _reasons(hook)}
    shown = [said for said in info.diagnostics if said.severity != "info" or role.role.refused]
    shown = [said for said in shown if said not in of_hooks]
    if shown:
        yield "Remarks"
        yield from (f"{MARGIN}{said.render()}" for said in shown)
    if role.role.foreign:
        yield ""
        yield "Not a role, and left alone: NOT in order"
        return
    yield "Integrity"
    yield from map(printable, _integrity_lines(info.integrity, before))
    yield from map(printable, _lock_lines(info))
    yield ""
    what = "Checked" if info.checked else "Looked at, modules not loaded (--check loads them)"
    yield f"{what}: {'in order' if info.passed else 'NOT in order'}"


def _hook_lines(hook: HookInfo) -> Iterator[str]:
    spec, state = hook.loaded.hook, hook.state
    label = "FAILED" if hook.problem is not None else "ok" if state is not None else "found"
    yield f"{MARGIN}{label:<8}{spec.name}  {', '.join(spec.events)}  {spec.module}"
    indent = f"{MARGIN}{' ' * 8}"
    if hook.loaded.module is None:
        yield from (f"{indent}{said.render()}" for said in _reasons(hook))
    if hook.problem is not None and not _reasons(hook):
        yield f"{indent}{hook.problem}"
    if state is not None and state.name == "loaded" and state.handlers:
        yield f"{indent}exports {', '.join(state.handlers)}"
        if state.reason is not None:
            yield f"{indent}{state.reason}"
    if hook.without_handler and hook.problem is None:
        yield f"{indent}no handler for {', '.join(hook.without_handler)}: nothing happens then"


def _reasons(hook: HookInfo) -> tuple[Diagnostic, ...]:
    """What was said of a hook whose module cannot be had. It stands with the hook, not among the remarks."""
    return hook.loaded.diagnostics if hook.loaded.module is None else ()


def _function_lines(info: RoleInfo) -> Iterator[str]:
    own = set(OWN_FUNCTIONS).difference(info.role.automatic)
    functions = [each for each in info.role.functions if each.path is not None or each.name not in own]
    if functions:
        yield "Functions"
    for function in functions:
        marks = ["with the first message"] if function.name in info.role.automatic else []
        marks += ["locked"] if function.name in info.role.locked else []
        marks += [] if function.path is not None else [f"no {FUNCTIONS_FOLDER}/{function.name}.md"]
        yield f"{MARGIN}{function.name}" + (f"  ({', '.join(marks)})" if marks else "")


def _integrity_lines(found: IntegrityInfo, before: IntegrityInfo | None) -> Iterator[str]:
    if found.now is None:
        yield f"{MARGIN}FAILED  it cannot be read as a whole: {found.problem}"
        return
    yield f"{MARGIN}{found.now.hash}"
    if before is not None:
        yield f"{MARGIN}recorded just now" + ("" if before.passed is not False else "; since the last time:")
        found = before if before.passed is False else found
    elif found.problem is not None:
        yield f"{MARGIN}not compared: {found.problem}"
    elif found.record is None:
        yield f"{MARGIN}nothing was accepted yet: look at the files, then add --accept"
    elif found.passed:
        yield f"{MARGIN}ok      as accepted at {found.record.accepted_at}"
    else:
        yield f"{MARGIN}FAILED  not what was accepted at {found.record.accepted_at}: {found.record.hash}"
    told = list(found.changes.told())
    yield from (f"{MARGIN}{' ' * 8}{path}" for path in told[:SHOWN])
    if len(told) > SHOWN:
        yield f"{MARGIN}{' ' * 8}and {len(told) - SHOWN} more"


def _lock_lines(info: RoleInfo) -> Iterator[str]:
    found = info.lock
    if found is None:
        return
    if found.passed:
        yield f"{MARGIN}ok      as {found.path} has it"
    elif found.passed is None:
        yield f"{MARGIN}cannot be verified by {found.path}: {found.reason}"
    else:
        expected = "" if found.locked is None else found.locked.integrity
        yield f"{MARGIN}FAILED  not what {found.path} has: {expected}, but {found.actual}"
