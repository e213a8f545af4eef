"""A hook file of the Codex family explained: every handler that stands in it, and why one will not run.

What a file means is the reader's (:mod:`.codex_file`): a handler runs exactly when the reader made one of it.
For an agent that reviews handlers, each says what its record would have to hold. It refuses to know whether a
command exists: a shell finds that out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import Explained, Handler, Runtime, Status
from .codex_file import Read, read_entries
from .codex_groups import Entry
from .codex_profiles import PROFILES, Profile
from .codex_spec import CodexHandler, TrustState
from .codex_trust import merge_states, trust_status
from .explaining import by_place
from .findings import field_name

DEAD: Final = frozenset(
    {"unknown_event", "other_event", "invalid_matcher", "dead_matcher", "dead_condition", "unsupported_here"}
)
"""Remarks after which a handler will never be started."""

MEANT: Final = frozenset({"not_run", "switched_off"})
"""Remarks after which a handler does not run, as is meant."""

_STATES: Final = {
    "trusted": "it has been reviewed there",
    "untrusted": "it runs there only after you have reviewed it",
    "modified": "it was changed after you had reviewed it there, and does not run",
    "disabled": "you have switched it off there",
}


def explain(
    text: bytes,
    path: str,
    profile: Profile,
    *,
    strict: bool = False,
    states: Mapping[str, TrustState] | None = None,
) -> Explained:
    """Explain a hook file. Raises nothing; ``path`` is absolute and how diagnostics name the file.

    ``states`` are the records of trust that Codex's user has elsewhere; those that the file itself carries
    count with them.
    """
    read = read_entries(text, path, profile, strict=strict)
    document = read.document
    places = {place for entry in read.entries for place in _places(entry)}
    said, others = by_place(document.diagnostics, places)
    known = merge_states((document.states or {}, states or {}))
    handlers, numbers = [], dict.fromkeys((entry.event for entry in read.entries), 0)
    for entry in read.entries:
        remarks = [remark for place in _places(entry) for remark in said[place]]
        handlers.append(_handler(entry, numbers[entry.event], remarks, read, known))
        numbers[entry.event] += 1
    return Explained(tuple(handlers), others, document.refused)


def _places(entry: Entry) -> tuple[str, str, str]:
    """Where remarks on a handler may stand: at its event, at its group, at itself."""
    return (field_name(entry.where[:2]), field_name(entry.where[:3]), field_name(entry.where))


def _handler(
    entry: Entry, number: int, said: Sequence[Diagnostic], read: Read, states: Mapping[str, TrustState]
) -> Handler:
    """The handler that an entry is."""
    profile, handler = PROFILES[read.document.profile], entry.handler
    value = entry.value if isinstance(entry.value, dict) else {}
    command, matcher = value.get("command", value.get("url")), entry.matcher
    args = () if handler is None else handler.args or ()
    if handler is not None and handler.kind == "mcp_tool":
        command, args = handler.server, (handler.tool,)  # what it would call
    runtime: Runtime = "http" if value.get("type") == "http" else "shell"
    reviewed = () if handler is None or not profile.reviews else (_review(handler, profile, states),)
    return Handler(
        event=entry.event,
        index=number,
        name=f"{entry.event}#{entry.group}.{entry.index}",
        runtime=runtime,
        status=_status(entry, said, read),
        topics=() if entry.rule is None else (LIFECYCLE + entry.rule.canonical,),
        command=command if isinstance(command, str) else None,
        args=args,
        matcher=matcher if isinstance(matcher, str) else None,
        timeout_s=None if handler is None else handler.timeout_s,
        timeout_from=None if handler is None else "own" if handler.timeout_is_own else "default",
        line=entry.line,
        diagnostics=(*said, *reviewed),
        failure="closed" if handler is not None and handler.on_failure == "block" else "open",
    )


def _status(entry: Entry, said: Sequence[Diagnostic], read: Read) -> Status:
    codes = {diagnostic.code for diagnostic in said}
    if read.document.refused:
        return "refused"
    if entry.handler is not None:
        return "ok" if entry.handler.unsupported is None else "skipped"
    if codes & DEAD:
        return "dead"
    is_meant = codes & MEANT or any(d.code == "hooks_disabled" for d in read.document.diagnostics)
    is_faulty = any(diagnostic.severity == "error" for diagnostic in said)
    return "skipped" if is_meant and not is_faulty else "refused"


def _review(handler: CodexHandler, profile: Profile, states: Mapping[str, TrustState]) -> Diagnostic:
    """What the agent's own record says of a handler, and under which key and hash."""
    status = trust_status(handler, states)
    message = f"{profile.agent} knows it as {handler.key}, {handler.digest}: {_STATES[status]}"
    place = f"hooks.{handler.event}[{handler.group}].hooks[{handler.index}]"
    return Diagnostic("info", f"review_{status}", handler.path, handler.line, None, place, message, None)
