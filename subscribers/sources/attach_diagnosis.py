"""What is wrong with the entries of ours in an agent's settings: what they name, and what keeps them still.

Decides from texts and a few facts of this machine whether the agent would come here with its events, and says
what to do where it would not. Refuses to try anything: that is the doctor's.
"""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from ..dialects.codex_file import read_document
from ..dialects.codex_profiles import CODEX, PROFILES
from ..dialects.codex_trust import read_states, trust_status
from ..hooks.withheld import HOOK_TOKEN
from .attach_files import Place
from .attach_plan import SettingsRefused, all_events, default_events, handlers_in, is_ours, read, words_of

NOT_SERVED: Final = "it calls the HTTP API, and none is served"

Level: TypeAlias = Literal["ok", "note", "fault"]


class Finding(NamedTuple):
    """One thing that was looked at; ``hint`` says what to do about it."""

    level: Level
    text: str
    hint: str | None = None


class Expected(NamedTuple):
    """How things are here: the hook command's file, the bus's socket, address and token of HTTP hooks.

    ``address`` is None where no API is served. ``exists`` says whether a path is a file. ``runtime_dir`` is
    what a command has to name to find this bus, None where it finds it so.
    """

    shim: str
    socket: str
    address: str | None
    token: str | None
    exists: Callable[[str], bool] = os.path.isfile
    runtime_dir: str | None = None


class Diagnosis(NamedTuple):
    """What was found in one file, and our entries by event."""

    findings: tuple[Finding, ...]
    entries: Mapping[str, Mapping[str, Any]]


def diagnose(place: Place, text: bytes, expected: Expected, codex_config: bytes | None = None) -> Diagnosis:
    """Look at the settings ``text`` of a place; ``codex_config`` is the user's ``config.toml`` of Codex."""
    try:
        settings = read(text)
    except SettingsRefused as error:
        return Diagnosis((Finding("fault", f"{place.path}: {error}", "mend the file"),), {})
    entries = {event: handler for event, handler in handlers_in(settings) if is_ours(handler)}
    if not entries:
        return Diagnosis((), {})
    faults = [
        *_switched_off(place, settings),
        *_outdated(place, entries, expected),
        *_missing(place, entries),
        *(_untrusted(place, text, codex_config) if place.profile == CODEX.name else ()),
    ]
    found = Finding("ok", f"{place.path}: {len(entries)} events come here")
    return Diagnosis((found, *faults), entries)


def _switched_off(place: Place, settings: Mapping[str, Any]) -> Iterator[Finding]:
    if settings.get("disableAllHooks") is True:
        yield Finding(
            "fault", f"{place.path}: disableAllHooks is true, so no hook runs", "take disableAllHooks out"
        )


def _outdated(
    place: Place, entries: Mapping[str, Mapping[str, Any]], expected: Expected
) -> Iterator[Finding]:
    """One finding for each reason, however many entries it is about."""
    reasons: dict[str, list[str]] = {}
    for event, handler in entries.items():
        for reason in _command_faults(handler, place, expected) or _http_faults(handler, expected):
            reasons.setdefault(reason, []).append(event)
    again = f"attach again: {_command_again(place, entries, expected)}"
    for reason, events in reasons.items():
        which = f" ({', '.join(events)})" if len(events) < len(entries) else ""
        port = _port(entries[events[0]])
        hint = f"serve it: prxbus up --http {port}" if reason == NOT_SERVED and port is not None else again
        yield Finding("fault", f"{place.path}: {reason}{which}", hint)


def _command_again(place: Place, entries: Mapping[str, Mapping[str, Any]], expected: Expected) -> str:
    """The command that attaches the same events in the same way, to what is here now."""
    profile = PROFILES[place.profile]
    posted = [str(handler["url"]) for handler in entries.values() if handler.get("type") == "http"]
    sent = [str(_authorization(handler)) for handler in entries.values()]
    is_closed = any("closed=1" in urlsplit(url).query for url in posted) or any(
        words_of(handler)[-1:] == ["closed"] for handler in entries.values()
    )
    flags = {"--http": bool(posted), "--token-variable": any(f"${HOOK_TOKEN}" in each for each in sent)}
    words = ["prxbus", "attach", place.agent]
    words += [] if place.project is None else ["--project", place.project]
    words += [flag for flag, holds in (*flags.items(), ("--fail-closed", is_closed)) if holds]
    events = [name for name in all_events(profile) if name in entries]
    if set(events) != set(default_events(profile)):
        words += ["--events", "all" if len(events) == len(all_events(profile)) else ",".join(events)]
    words += [] if expected.runtime_dir is None else ["--runtime-dir", expected.runtime_dir]
    return shlex.join(words)


def _port(handler: Mapping[str, Any]) -> int | None:
    try:
        return urlsplit(str(handler.get("url"))).port
    except ValueError:
        return None


def _authorization(handler: Mapping[str, Any]) -> object:
    headers = handler.get("headers")
    return headers.get("Authorization") if isinstance(headers, dict) else None


def _command_faults(handler: Mapping[str, Any], place: Place, expected: Expected) -> list[str]:
    if handler.get("type") != "command":
        return []
    words = words_of(handler)
    if not words:
        return ["a command of ours has another form than this version writes"]
    python, shim, dialect, socket = words[0], words[3], words[4], words[5]
    faults = []
    if not expected.exists(python):
        faults.append(f"its interpreter {python} is not there")
    if not expected.exists(shim):
        faults.append(f"its file {shim} is not there")
    elif shim != expected.shim:
        faults.append(f"its file {shim} is that of another installation")
    if dialect != place.profile:
        faults.append(f"it speaks as {dialect}")
    if socket != expected.socket:
        faults.append(f"it calls the bus at {socket}, and this one is at {expected.socket}")
    return faults


def _http_faults(handler: Mapping[str, Any], expected: Expected) -> list[str]:
    if handler.get("type") != "http":
        return []
    called = urlsplit(str(handler.get("url")))
    address = f"{called.scheme}://{called.netloc}"
    if expected.address is None:
        return [NOT_SERVED]
    if address != expected.address:
        return [f"it calls {address}, and the HTTP API is at {expected.address}"]
    sent = _authorization(handler)
    if isinstance(sent, str) and "$" not in sent and sent != f"Bearer {expected.token}":
        return ["its token is not the one of this user's bus"]
    return []


def _missing(place: Place, entries: Mapping[str, Any]) -> Iterator[Finding]:
    profile = PROFILES[place.profile]
    missing = [event for event in default_events(profile) if event not in entries]
    if missing:
        yield Finding("note", f"{place.path}: these events do not come here: {', '.join(missing)}")


def _untrusted(place: Place, text: bytes, config: bytes | None) -> Iterator[Finding]:
    """What Codex itself would say of our entries."""
    try:
        table = tomllib.loads("" if config is None else config.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        yield Finding("fault", f"config.toml of Codex cannot be read: {error}", "mend it")
        return
    features = table.get("features")
    if isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks")):
        yield Finding(
            "fault", "config.toml of Codex turns hooks off ([features] hooks = false)", "turn them on"
        )
    hooks = table.get("hooks")
    states = read_states(hooks.get("state") if isinstance(hooks, dict) else None)
    document = read_document(text, place.path, CODEX, strict=True)
    if document.refused:
        why = "; ".join(each.message for each in document.diagnostics if each.severity == "error")
        yield Finding("fault", f"{place.path}: Codex refuses the whole file: {why}", "mend the file")
    ours = [each for each in document.handlers if is_ours({"command": each.command})]
    for status in ("untrusted", "modified", "disabled"):
        events = [each.event for each in ours if trust_status(each, states) == status]
        if events:
            which = "all of them" if len(events) == len(ours) else ", ".join(events)
            yield Finding(
                "fault",
                f"{place.path}: Codex does not run our hooks, they are {status}: {which}",
                "start Codex, and trust them when it asks"
                if status != "disabled"
                else "enable them in Codex: /hooks",
            )
