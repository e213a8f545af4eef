"""What ``attach`` writes into an agent's settings, and what ``detach`` takes out again: texts in, texts out.

    settings + entries  --attach-->  settings with our entries, everything else byte for byte
    those               --detach-->  settings without them

Decides what an entry of ours looks like, by what it is recognised, and which events are worth one. Refuses to
know where the settings lie and who wants them changed; it opens no file.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from ..dialects.codex_events import events_of
from ..dialects.codex_profiles import CLAUDE, CODEX, Profile
from ..dialects.json_edit import (
    Node,
    append_item,
    change_members,
    outline,
    remove_item,
    spliced,
    style_of,
)
from ..hooks.withheld import HOOK_TOKEN

SHIM_NAME: Final = "prxbus_hook.py"
"""Name of the hook command's file: a command that has it among its words is ours."""

WORDS: Final = 8
"""Words of a hook command: interpreter, its two options, file, dialect, socket, seconds, policy."""

NOTICE_SECONDS: Final = 3.0
"""Time for the events that an agent gives little of: it has other things to do when it ends."""

WHOLE: Final = 0
"""Limit of a text that the agent is not to shorten: each handler's own was kept before the texts met."""

_OURS_AT: Final = re.compile(r"https?://(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?/hooks/[a-z]+(?:[?#].*)?")

LEFT_OUT: Final[Mapping[str, str]] = {
    "WorktreeCreate": "its hook makes the worktree, and one that only watches would fail it",
    "MessageDisplay": "it comes with every piece of text that is shown",
    "FileChanged": "its matcher has to name the files",
}
"""Events that are never attached, each with why."""

_LATER: Final = frozenset({"Notification", "PostToolUseFailure", "Setup"})


class SettingsRefused(Exception):
    """Settings that cannot be changed safely; the text says what is wrong with them."""


class Wanted(NamedTuple):
    """What is to be attached. ``seconds_less`` keeps of an agent's time what the way back takes.

    ``python`` and ``shim`` are absolute paths, ``socket`` that of the bus. ``url`` is where HTTP hooks go,
    None for commands alone; ``authorization`` the value of their header. ``closed``: block without an answer.
    ``opens``: events that block so today need not go on doing so.
    """

    python: str
    shim: str
    socket: str
    events: tuple[str, ...]
    url: str | None = None
    authorization: str = f"Bearer ${HOOK_TOKEN}"
    closed: bool = False
    opens: bool = False


class Change(NamedTuple):
    """One line of a plan: ``what`` is ``add``, ``keep``, ``replace`` or ``remove``."""

    what: str
    event: str
    entry: str


class Plan(NamedTuple):
    """The settings as they will be, what changes in them, and how many hooks of others stay."""

    text: bytes
    changes: tuple[Change, ...]
    others: int


def default_events(profile: Profile) -> tuple[str, ...]:
    """The events that are attached unless others are named.

    Of Claude Code those that each version in use knows: an older one refuses settings with a name it has not
    heard of.
    """
    shared = {rule.name for rule in events_of(CODEX)} | _LATER
    return tuple(rule.name for rule in events_of(profile) if rule.name in shared)


def all_events(profile: Profile) -> tuple[str, ...]:
    """Every event of an agent that can be attached."""
    return tuple(rule.name for rule in events_of(profile) if rule.name not in LEFT_OUT)


def timeout_of(profile: Profile, event: str) -> float:
    """The seconds that an entry asks for: what the agent gives where nothing is said, and never too much."""
    limit = profile.timeouts.get(event, profile.timeout)
    return limit.default_s if limit.most_s is None else min(limit.most_s, NOTICE_SECONDS)


def blocks(profile: Profile, event: str) -> bool:
    """Whether "no" means something for an event, and does not keep the agent going for ever."""
    return profile.exit_two.get(event, "error") in ("block", "deny")


def shim_words(wanted: Wanted, profile: Profile, event: str) -> list[str]:
    """The words of the hook command for an event."""
    policy = "closed" if wanted.closed and blocks(profile, event) else "open"
    return command_words(wanted, profile.name, timeout_of(profile, event) - 1.0, policy)


def command_words(wanted: Wanted, dialect: str, seconds: float, policy: str) -> list[str]:
    """The words of a hook command that has ``seconds`` in all."""
    return [wanted.python, "-I", "-S", wanted.shim, dialect, wanted.socket, f"{seconds:g}", policy]


def entry_for(wanted: Wanted, profile: Profile, event: str) -> dict[str, Any]:
    """The handler that is written for an event."""
    timeout = timeout_of(profile, event)
    shown = int(timeout) if timeout == int(timeout) else timeout
    closed = wanted.closed and blocks(profile, event)
    if wanted.url is None or profile.name != CLAUDE.name or event in profile.no_http_events:
        command = {"type": "command", "command": _command(wanted, profile, event), "timeout": shown}
        if profile.context_limit_field and event in profile.context_events:
            command["additionalContextLimit"] = WHOLE
        return command
    entry: dict[str, Any] = {
        "type": "http",
        "url": f"{wanted.url}?timeout={timeout - 1.0:g}{'&closed=1' if closed else ''}",
        "headers": {"Authorization": wanted.authorization},
        "timeout": shown,
    }
    if f"${HOOK_TOKEN}" in wanted.authorization:
        entry["allowedEnvVars"] = [HOOK_TOKEN]
    if closed and event not in profile.on_failure_ignored:
        entry["onFailure"] = "block"
    return entry


def _command(wanted: Wanted, profile: Profile, event: str) -> str:
    """The hook command as a shell's: what happens where it cannot even begin is the policy's to say.

    An interpreter ends with 2 when its file is gone, and so would block everything of an agent from which we
    were uninstalled without being detached. Where the policy is open, that is looked for first; where it is
    closed, an interpreter that is not there or does not start blocks like any other end without an answer.
    """
    words = shim_words(wanted, profile, event)
    command = shlex.join(words)
    if words[-1] == "closed":
        return f"{command} || exit 2"
    return f"test -f {shlex.quote(wanted.shim)} || exit 0; exec {command}"


def words_of(handler: Mapping[str, Any]) -> list[str]:
    """The words of a hook command of ours, from its interpreter on; empty for one of another form."""
    command = handler.get("command")
    words = shlex.split(command) if isinstance(command, str) else []
    for begin in range(len(words) - WORDS + 1):
        if words[begin + 1 : begin + 3] == ["-I", "-S"]:
            return words[begin : begin + WORDS]
    return []


def is_closed(handler: Mapping[str, Any]) -> bool:
    """Whether a handler of ours blocks without an answer."""
    url = handler.get("url")
    return "closed=1" in url if isinstance(url, str) else words_of(handler)[-1:] == ["closed"]


def is_ours(handler: object) -> bool:
    """Whether a handler in somebody's settings is one that we wrote."""
    if not isinstance(handler, dict):
        return False
    command, url = handler.get("command"), handler.get("url")
    if isinstance(url, str):
        return _OURS_AT.fullmatch(url) is not None
    if not isinstance(command, str) or SHIM_NAME not in command:
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return any(word.rpartition("/")[2] == SHIM_NAME for word in words)


def handlers_in(settings: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every handler in parsed settings with its event; what has another shape is passed over."""
    hooks = settings.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for handler in handlers if isinstance(handlers, list) else ():
                if isinstance(handler, dict):
                    yield event, handler


def attach(text: bytes | None, wanted: Wanted, profile: Profile) -> Plan:
    """Settings with one entry of ours for each wanted event; ``text`` is None where there is no file.

    Raises :class:`SettingsRefused`, also where an event would no longer be blocked without an answer and
    nobody has said that this is meant.
    """
    text = b"{}\n" if text is None or not text.strip() else text
    entries = {event: entry_for(wanted, profile, event) for event in wanted.events}
    before = {
        event: [h for e, h in handlers_in(read(text)) if e == event and is_ours(h)] for event in entries
    }
    opened = [e for e, entry in entries.items() if any(map(is_closed, before[e])) and not is_closed(entry)]
    if opened and not wanted.opens:
        raise SettingsRefused(
            f"{', '.join(opened)} {'is' if len(opened) == 1 else 'are'} blocked without an answer today; "
            "--fail-closed keeps that, --fail-open gives it up"
        )
    kept = {event for event, entry in entries.items() if before[event] == [entry]}
    text, removed = _without_ours(text, keep=kept)
    changes = [Change("keep", event, describe(entries[event])) for event in entries if event in kept]
    for event, entry in entries.items():
        if event not in kept:
            text = _with_group(text, event, {"hooks": [entry]})
            changes.append(Change("replace" if before[event] else "add", event, describe(entry)))
    changes += [Change("remove", event, shown) for event, shown in removed if event not in entries]
    if wanted.url is not None and profile.name == CLAUDE.name:
        text = _allowing(text, wanted)
    return Plan(text, tuple(changes), _others(text))


def detach(text: bytes) -> Plan:
    """Settings without any entry of ours. Raises :class:`SettingsRefused`."""
    text, removed = _without_ours(text, keep=())
    settings = read(text)
    for name, ours in (("allowedHttpHookUrls", _is_address), ("httpHookAllowedEnvVars", _is_variable)):
        for index, value in reversed(list(enumerate(settings.get(name) or ()))):
            if isinstance(value, str) and ours(value):
                node = outline(text).member(name)
                assert node is not None
                text = spliced(text, remove_item(node, index))
    return Plan(text, tuple(Change("remove", event, shown) for event, shown in removed), _others(text))


def describe(handler: Mapping[str, Any]) -> str:
    """A handler in one line, without what is secret in it."""
    shown = handler.get("url") or handler.get("command") or handler.get("type")
    return f"{handler.get('type', '?')}: {shown}"


def read(text: bytes) -> dict[str, Any]:
    """Parsed settings. Raises :class:`SettingsRefused` for what is not the settings of such an agent."""
    try:
        settings = orjson.loads(text)
        json.loads(text, object_pairs_hook=_without_doubles)
    except orjson.JSONDecodeError as error:
        raise SettingsRefused(f"it is not JSON: {error}; mend it first") from None
    if not isinstance(settings, dict):
        raise SettingsRefused("it is not a JSON object")
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise SettingsRefused("its 'hooks' is not an object")
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise SettingsRefused(f"its 'hooks.{event}' is not an array")
    return settings


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different; of others it could not be said what is to change."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SettingsRefused(f"it has the key {twice!r} twice in one object; take one of them out first")
    return found


def _without_ours(text: bytes, keep: Iterable[str]) -> tuple[bytes, list[tuple[str, str]]]:
    """Take our handlers out, with groups and keys that hold nothing else; one at a time, the last first."""
    removed: list[tuple[str, str]] = []
    kept = set(keep)
    while (found := _last_of_ours(read(text), kept)) is not None:
        event, group, index, handler, alone = found
        removed.append((event, describe(handler)))
        root = outline(text)
        hooks = _member(root, "hooks")
        groups = _member(hooks, event)
        if not alone:
            text = spliced(text, remove_item(_member(groups.children[group], "hooks"), index))
        elif len(groups.children) > 1:
            text = spliced(text, remove_item(groups, group))
        elif len(hooks.children) > 1 or kept:
            text = spliced(text, change_members(text, hooks, {}, style_of(text, root), without=(event,)))
        else:
            text = spliced(text, change_members(text, root, {}, style_of(text, root), without=("hooks",)))
    removed.reverse()
    return text, removed


def _last_of_ours(
    settings: Mapping[str, Any], kept: set[str]
) -> tuple[str, int, int, dict[str, Any], bool] | None:
    """Event, group, index and handler of the last one that is to go, and whether its group holds no other."""
    for event, groups in reversed(settings.get("hooks", {}).items()):
        for number, group in reversed(list(enumerate(groups)) if event not in kept else []):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for index, handler in reversed(list(enumerate(handlers if isinstance(handlers, list) else ()))):
                if is_ours(handler):
                    assert isinstance(handlers, list)
                    return event, number, index, handler, len(handlers) == 1
    return None


def _with_group(text: bytes, event: str, group: dict[str, Any]) -> bytes:
    root = outline(text)
    style = style_of(text, root)
    hooks = root.member("hooks")
    if hooks is None:
        return spliced(text, change_members(text, root, {"hooks": {event: [group]}}, style))
    groups = hooks.member(event)
    if groups is None:
        return spliced(text, change_members(text, hooks, {event: [group]}, style))
    return spliced(text, append_item(text, groups, group, style))


def _allowing(text: bytes, wanted: Wanted) -> bytes:
    """Add our address, and our variable, to lists of what is allowed; a list that is not there allows all."""
    settings = read(text)
    needed = [("allowedHttpHookUrls", f"{wanted.url}*")]
    if f"${HOOK_TOKEN}" in wanted.authorization:
        needed.append(("httpHookAllowedEnvVars", HOOK_TOKEN))
    for name, value in needed:
        allowed = settings.get(name)
        if isinstance(allowed, list) and value not in allowed:
            root = outline(text)
            text = spliced(text, append_item(text, _member(root, name), value, style_of(text, root)))
    return text


def _is_address(pattern: str) -> bool:
    return _OURS_AT.fullmatch(pattern.removesuffix("*")) is not None


def _is_variable(value: str) -> bool:
    return value == HOOK_TOKEN


def _member(node: Node, name: str) -> Node:
    found = node.member(name)
    assert found is not None
    return found


def _others(text: bytes) -> int:
    return sum(not is_ours(handler) for _, handler in handlers_in(read(text)))


def chosen_events(profile: Profile, names: Sequence[str]) -> tuple[str, ...]:
    """The named events in the order of the contract; raises :class:`SettingsRefused` for what cannot be."""
    known = {rule.name for rule in events_of(profile)}
    for name in names:
        if name in LEFT_OUT and name in known:
            raise SettingsRefused(f"{name} cannot be attached: {LEFT_OUT[name]}")
        if name not in known:
            raise SettingsRefused(
                f"{profile.name} has no event {name!r}; there are {', '.join(sorted(known))}"
            )
    return tuple(rule.name for rule in events_of(profile) if rule.name in set(names))
