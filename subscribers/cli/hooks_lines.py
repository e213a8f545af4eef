"""What ``prxbus hooks`` prints: the list, a plan, what became of it.

Decides words and order. Every text of somebody else's (commands, paths, matchers) passes the terminal's
filter, so that none of it can move a cursor or turn the direction of a line. It refuses to know how anything
was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson

from broker.cli.terminal import printable

from ..sources.import_sources import TITLES

if TYPE_CHECKING:
    from ..hooks.import_draft import Skipped
    from ..hooks.import_plan import Plan, PlannedExternal, PlannedHandler
    from ..sources.import_actions import Done, FoundImport, FoundSource, Listing

_WIDTH: Final = 10

WORDS: Final = {
    "current": "current",
    "update_available": "an update is there",
    "external_changed": "a file it uses changed",
    "source_missing": "its source is gone",
    "source_unreadable": "its source cannot be read",
    "damaged": "damaged: nothing of it runs",
}
"""What each state is called."""


def list_lines(listing: Listing, *, refreshed: bool) -> Iterator[str]:
    """Imports, sources and faults."""
    yield "imports" if listing.imports else "imports: none"
    for found in listing.imports:
        yield from _import_lines(found)
    yield (
        "sources"
        if listing.sources
        else "sources: none (looked for Claude Code's settings and Codex's hooks)"
    )
    for source in listing.sources:
        yield from _source_lines(source)
    for diagnostic in listing.diagnostics:
        yield diagnostic.render()
    if listing.imports and not refreshed:
        yield "whether sources changed is looked at with --refresh"


def _import_lines(found: FoundImport) -> Iterator[str]:
    record = found.record
    switch = "enabled" if record.enabled else "disabled"
    counts = f"{_count(record.handlers, 'handler')}, {record.skipped} skipped"
    yield printable(f"  {record.id}  {record.scope}  {switch}  {WORDS[found.state]}  {counts}")
    yield printable(f"    from {record.path}, {record.imported_at}")
    if found.detail is not None:
        yield printable(f"    {found.detail}")


def _source_lines(found: FoundSource) -> Iterator[str]:
    source = found.source
    counts = _count(found.handlers, "handler") if found.fault is None else "not readable"
    yield printable(f"  {source.key}  {source.title}, {source.scope}  {counts}  {source.path}")
    if found.fault is not None:
        yield printable(f"    {found.fault}")
    if found.imported_as is not None:
        yield printable(f"    imported as {found.imported_as}")
    if found.is_attached:
        yield f"    {source.title} is attached and runs these itself: imported, they would run twice"


def list_document(listing: Listing) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "imports": [
            {
                "id": each.record.id,
                "source": each.record.key,
                "scope": each.record.scope,
                "profile": each.record.profile,
                "path": each.record.path,
                "enabled": each.record.enabled,
                "state": each.state,
                "detail": each.detail,
                "handlers": each.record.handlers,
                "skipped": each.record.skipped,
                "snapshot": each.folder,
                "fingerprint": each.record.fingerprint,
                "imported_at": each.record.imported_at,
            }
            for each in listing.imports
        ],
        "sources": [
            {
                "key": each.source.key,
                "agent": each.source.agent,
                "scope": each.source.scope,
                "path": each.source.path,
                "handlers": each.handlers,
                "fault": each.fault,
                "imported_as": each.imported_as,
                "attached": each.is_attached,
            }
            for each in listing.sources
        ],
        "diagnostics": [
            {
                "severity": each.severity,
                "code": each.code,
                "path": each.path,
                "message": each.message,
                "hint": each.hint,
            }
            for each in listing.diagnostics
        ],
    }


def plan_lines(plan: Plan) -> Iterator[str]:
    """Everything that a plan says."""
    source = plan.source
    agent = next((title for name, title in TITLES.items() if name == source.agent), source.agent)
    yield printable(f"plan for {source.key}: {agent}, {source.scope}, {source.path}")
    replaces = "new" if plan.replaces is None else f"replaces {plan.replaces[:12]}"
    switch = "enabled" if plan.enabled else "stays disabled"
    yield printable(f"  import {plan.import_id}, {replaces}, {switch}")
    yield printable(f"  copied to {plan.folder}")
    for warning in source.warnings:
        yield printable(f"  warning: {warning}")
    for handler in plan.handlers:
        yield from _handler_lines(handler, plan)
    if plan.skipped:
        yield f"skipped: {sum(each.count for each in plan.skipped)}"
        for each in plan.skipped:
            yield from _skipped_lines(each)
    yield f"fingerprint {plan.fingerprint}"


def _handler_lines(handler: PlannedHandler, plan: Plan) -> Iterator[str]:
    matcher = "" if handler.matcher is None else f"  matcher {handler.matcher!r}"
    yield printable(f"{handler.event}#{handler.group}.{handler.index}{matcher}  {handler.timeout_s:g} s")
    yield _row("command", handler.command)
    for number, argument in enumerate(handler.args or (), 1):
        yield _row(f"arg {number}", argument)
    if handler.command != handler.source_command:
        yield _row("written as", handler.source_command)
    if handler.args != handler.source_args:
        yield _row("", " ".join(map(repr, handler.source_args or ())))
    if handler.command_windows is not None:
        yield _row("on Windows", f"{handler.command_windows} (not run here)")
    for name, value in handler.fields.items():
        if name not in ("type", "command", "args", "timeout", "commandWindows", "command_windows"):
            yield _row(name, value if isinstance(value, str) else orjson.dumps(value).decode())
    files = {file.name: file for file in plan.files}
    for name in handler.copied:
        file = files[name]
        bit = ", executable" if file.executable else ""
        why = "" if file.why is None else f" (because {file.why} names it)"
        yield _row("copied", f"{file.path}: {file.size:,} bytes{bit}, sha256 {file.sha256}{why}")
    for external in handler.external:
        yield _row("external", _external(external))
    for said in handler.notes:
        yield _row("note", said)


def _external(external: PlannedExternal) -> str:
    where = external.path or external.shown
    state = f"sha256 {external.sha256}" if external.sha256 is not None else external.state
    return f"{where}: {state}; it stays there, and may change"


def _skipped_lines(skipped: Skipped) -> Iterator[str]:
    place = "".join(f".{number}" for number in (skipped.group, skipped.index) if number is not None)
    times = f" ({skipped.count} handlers)" if skipped.count > 1 else ""
    yield printable(
        f"  {skipped.event}{place.replace('.', '#', 1)}{times}: {skipped.reason} [{skipped.code}]"
    )
    if skipped.command is not None:
        yield _row("command", skipped.command)


def _row(name: str, text: str) -> str:
    return printable(f"    {name:<{_WIDTH}} {text}")


def outcome_line(done: Done, confirm: str) -> str:
    """What became of a plan, in one line; ``confirm`` is the command that carries it out."""
    plan = done.plan
    if done.outcome == "stale":
        said = "this is not the plan that was confirmed: nothing was written; look at it, and confirm with"
        return printable(f"{said}: {confirm}")
    if done.outcome == "preview":
        if plan.disposition == "empty":
            return "nothing of this source can be imported"
        if plan.disposition == "unchanged":
            return "this is what is imported already; nothing is to be done"
        return printable(f"nothing was written; confirm exactly this plan with: {confirm}")
    if done.outcome == "unchanged":
        return printable(f"{plan.import_id} is as it was: this is what is imported already")
    copies = f"{_count(len(plan.handlers), 'handler')}, {_count(len(plan.files), 'file')} copied"
    runs = "runs from the next event on" if plan.enabled else "stays disabled"
    verb = "repaired" if done.outcome == "repaired" else "imported" if plan.replaces is None else "updated"
    return printable(f"{plan.import_id} is {verb}: {copies}; it {runs}")


def plan_document(done: Done) -> dict[str, Any]:
    """A plan and what became of it, as plain data."""
    return {
        "outcome": done.outcome,
        "fingerprint": done.plan.fingerprint,
        "plan": done.plan.document(),
    }


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"
