"""Edits of a PRX ``hooks.json``: text in, text out, and what would be refused.

It decides where an action goes, what of it is somebody else's (unknown keys stay), and which faults keep it
from being written. The judge is the reader of the runtime itself (:mod:`.prx_file`): what that one would
refuse is refused here. It refuses to know files, locks and how an action came by its id.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from ..hooks.diagnostics import Diagnostic, quote
from ..hooks.spec import HookSpec
from . import prx_rules as rules
from .findings import field_name
from .json_depth import MAX_DEPTH, is_too_deep
from .json_edit import (
    Node,
    Splice,
    Verbatim,
    append_item,
    change_members,
    outline,
    remove_item,
    spliced,
    style_of,
    verbatim,
)
from .json_text import BYTE_ORDER_MARK, JsonRefused, read_json
from .nearest import nearest
from .prx_file import event_name, parse

EMPTY: Final = b'{\n  "hooks": {}\n}\n'
"""The text of a file that is made for its first hook."""

MAX_LISTED: Final = 1_024
"""Events, and actions, of a file that can be edited: more than run, so that too many can be thinned out."""

ACTION_FIELDS: Final = tuple(field.name for field in rules.FIELDS if field.name != "enabled")
"""What an action may say beside what is kept about it."""

_BESIDE: Final = ("enabled", *rules.KEPT_FIELDS)
"""Keys of an action that stand beside it in an answer."""


class Fault(NamedTuple):
    """One reason why an edit is refused. ``field`` names what is wrong, such as ``action.timeout_ms``."""

    field: str
    code: str
    message: str
    hint: str | None


class EditRefused(Exception):
    """An edit that the runtime would not take: every reason, the first as the text."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults[0].message)
        self.faults = tuple(faults)


class FileRefused(Exception):
    """The file is broken, so that nothing in it can be edited; ``diagnostics`` say where and why."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(diagnostics[0].message)
        self.diagnostics = tuple(diagnostics)


@dataclass(frozen=True, slots=True)
class At:
    """Where an action stands: the event's key as it is spelled in the file, and its number in that list."""

    key: str
    index: int


class Action(NamedTuple):
    """An action of a file: its place, its event in canonical spelling, and everything that it says."""

    at: At
    event: str
    content: Mapping[str, Any]

    @property
    def documented(self) -> dict[str, Any]:
        """The documented fields of the action, in the order of the file; null ones are absent ones."""
        return {
            name: value for name, value in self.content.items() if name in ACTION_FIELDS and value is not None
        }

    @property
    def enabled(self) -> bool:
        """Whether it runs when its event comes."""
        return self.content.get("enabled") is not False


def check_action(event: str, action: Mapping[str, Any]) -> HookSpec:
    """What the runtime makes of an action that is to be written; raises :class:`EditRefused` otherwise.

    Stricter than a file in two things that would silently not happen: a blocked variable and an unknown key.
    """
    faults = [_unknown(name) for name in action if name not in ACTION_FIELDS]
    known = {name: value for name, value in action.items() if name in ACTION_FIELDS}
    parsed = parse(orjson.dumps({"hooks": {event: [known]}}), rules.FILE_NAME)
    faults += _faults(parsed.diagnostics, event, ("blocked_env",))
    if faults:
        raise EditRefused(faults)
    return parsed.specs[0]


def spec_of(text: bytes, action: Action) -> HookSpec:
    """What the runtime makes of an action of the file ``text``, as if it were enabled.

    What the file says for all actions holds, and what is only remarked upon runs. Raises
    :class:`EditRefused` for an action that the runtime does not run.
    """
    timeout = read_json(text.removeprefix(BYTE_ORDER_MARK)).get("timeout_ms")
    enabled = {
        name: value
        for name, value in action.content.items()
        if not (name == "enabled" and isinstance(value, bool))
    }
    whole = {
        "timeout_ms": timeout if isinstance(timeout, int | float) else None,
        "hooks": {action.event: [enabled]},
    }
    parsed = parse(orjson.dumps(whole), rules.FILE_NAME)
    faults = _faults(parsed.diagnostics, action.event)
    if faults:
        raise EditRefused(faults)
    return parsed.specs[0]


def _faults(found: Sequence[Diagnostic], event: str, also: Collection[str] = ()) -> list[Fault]:
    """The errors, and the warnings ``also``, that a file with one action of ``event`` gave."""
    event_field, action_field = field_name(("hooks", event)), field_name(("hooks", event, 0))
    faults = []
    for diagnostic in found:
        if diagnostic.severity == "error" or diagnostic.code in also:
            field = diagnostic.field or rules.FILE_NAME
            if field.startswith(action_field):
                field = "action" + field.removeprefix(action_field)
            elif field == event_field:
                field = "event"
            message = diagnostic.message.removesuffix("; the action runs without it")
            faults.append(Fault(field, diagnostic.code, message, diagnostic.hint))
    return faults


def _unknown(name: str) -> Fault:
    if name in _BESIDE:
        hint = f"write {name} beside action" if name == "enabled" else "leave it out"
        return Fault("action", "unknown_key", f"{quote(name)} is no field of an action", hint)
    near = nearest(name, ACTION_FIELDS)
    hint = f"the fields are {', '.join(ACTION_FIELDS)}" if near is None else f"did you mean {near}?"
    return Fault(field_name(("action", name)), "unknown_key", f"unknown field {quote(name)}", hint)


def read_actions(text: bytes) -> list[Action]:
    """Every action of a file that is an object, in file order, those that do not run included.

    Raises :class:`FileRefused` for a file of which nothing can be used, and for one with so much in it, or
    so deep, that it cannot be edited.
    """
    hooks = _hooks(text)
    if hooks is None:
        raise FileRefused(parse(text, rules.FILE_NAME).diagnostics)
    _check_number("events", len(hooks))
    _check_number("actions", sum(len(actions) for actions in hooks.values() if isinstance(actions, list)))
    actions = [
        Action(At(key, index), event_name(key), content)
        for key, actions in hooks.items()
        if isinstance(actions, list)
        for index, content in enumerate(actions)
        if isinstance(content, dict)
    ]
    for action in actions:
        if is_too_deep(action.content):
            field = field_name(("hooks", action.at.key, action.at.index))
            message = f"the action is nested more than {MAX_DEPTH} levels deep"
            raise _not_editable("too_deep", field, message, "remove what no hook needs")
    return actions


def _check_number(what: str, number: int) -> None:
    if number > MAX_LISTED:
        message = f"{number} {what} are more than {MAX_LISTED}"
        raise _not_editable(
            f"too_many_{what}", "hooks", message, f"leave at most {rules.MAX_ACTIONS} actions"
        )


def _not_editable(code: str, field: str, message: str, hint: str) -> FileRefused:
    return FileRefused([Diagnostic("error", code, rules.FILE_NAME, None, None, field, message, hint)])


def set_fields(text: bytes, changes: Mapping[At, Mapping[str, Any]]) -> bytes:
    """The text with these keys of these actions set; everything else keeps its bytes."""
    if not changes:
        return text
    mark, body = _body(text)
    root = outline(body)
    style = style_of(body, root)
    splices: list[Splice] = []
    for at, fields in changes.items():
        splices += change_members(body, _action(root, at), fields, style)
    return mark + spliced(body, splices)


def add_action(text: bytes, event: str, content: Mapping[str, Any] | Verbatim) -> bytes:
    """The text with one more action, the last of its event.

    Raises :class:`EditRefused` where the event's value in the file is no list, or the file would be too
    large.
    """
    value = content if isinstance(content, Verbatim) else dict(content)
    mark, body = _body(text)
    root = outline(body)
    style = style_of(body, root)
    hooks = root.member("hooks")
    if hooks is None or hooks.keys is None:
        splices = change_members(body, root, {"hooks": {event: [value]}}, style)
        return mark + spliced(body, splices)
    key, actions = _list_of(body, hooks, event)
    if actions is None:
        splices = change_members(body, hooks, {key: [value]}, style)
    else:
        if body[actions.start : actions.start + 1] != b"[":
            hint = "put [ and ] around it"
            raise EditRefused([Fault("event", "wrong_event_value", f"{quote(key)} holds no array", hint)])
        splices = append_item(body, actions, value, style)
    return mark + spliced(body, splices)


def replace_action(
    text: bytes, action: Action, event: str, documented: Mapping[str, Any], fields: Mapping[str, Any]
) -> bytes:
    """The text with the action's documented fields replaced by ``documented`` and ``fields`` set beside them.

    What is neither, or says the same already, keeps its bytes. Under another event the action becomes the
    last one there. Raises :class:`EditRefused` where that event's value in the file is no list.
    """
    gone = [name for name in action.content if name in ACTION_FIELDS and name not in documented]
    mark, body = _body(text)
    root = outline(body)
    changed = {
        name: value
        for name, value in {**documented, **fields}.items()
        if name not in action.content or not _same(action.content[name], value)
    }
    node = _action(root, action.at)
    body = spliced(body, change_members(body, node, changed, style_of(body, root), gone))
    if event == action.event:
        return mark + body
    moved = verbatim(body, _action(outline(body), action.at))
    return add_action(remove_action(mark + body, action.at), event, moved)


def remove_action(text: bytes, at: At) -> bytes:
    """The text without this action."""
    mark, body = _body(text)
    root = outline(body)
    return mark + spliced(body, remove_item(_actions(root, at.key), at.index))


def check_file(text: bytes) -> None:
    """Raise :class:`EditRefused` for a whole file in which the runtime or an edit would refuse anything."""
    found: Sequence[Diagnostic] = [
        d for d in parse(text, rules.FILE_NAME).diagnostics if d.severity == "error"
    ]
    if not found:
        try:
            read_actions(text)
        except FileRefused as error:
            found = error.diagnostics
    if found:
        raise EditRefused([Fault(d.field or rules.FILE_NAME, d.code, _placed(d), d.hint) for d in found])


def fits(text: bytes) -> bool:
    """Whether a file of this text is one that the runtime reads."""
    return len(text) <= rules.MAX_FILE_BYTES


def check_size(text: bytes) -> None:
    """Raise :class:`EditRefused` for a file of more bytes than the runtime reads."""
    if not fits(text):
        message = f"the file would have {len(text)} bytes, more than {rules.MAX_FILE_BYTES}"
        raise EditRefused([Fault("action", "file_too_large", message, "put what is long into scripts")])


def check_room(text: bytes) -> None:
    """Raise :class:`EditRefused` for a file that has grown beyond what the runtime reads and runs."""
    check_size(text)
    hooks = _hooks(text) or {}
    if sum(len(actions) for actions in hooks.values() if isinstance(actions, list)) <= rules.MAX_ACTIONS:
        return
    if any(found.code == "too_many_actions" for found in parse(text, rules.FILE_NAME).diagnostics):
        message = f"a file has at most {rules.MAX_ACTIONS} actions, and this one would have more"
        raise EditRefused([Fault("action", "too_many_actions", message, "delete one first")])


def _hooks(text: bytes) -> dict[str, Any] | None:
    """The events of a file and what they hold; None for a file that the runtime refuses as a whole."""
    if len(text) > rules.MAX_FILE_BYTES:
        return None
    try:
        root = read_json(text.removeprefix(BYTE_ORDER_MARK))
    except JsonRefused:
        return None
    hooks = root.get("hooks") if isinstance(root, dict) else False
    if hooks is None:
        return {}
    return hooks if isinstance(hooks, dict) else None


def _placed(diagnostic: Diagnostic) -> str:
    if diagnostic.line is None:
        return diagnostic.message
    return f"line {diagnostic.line}, column {diagnostic.column}: {diagnostic.message}"


def _body(text: bytes) -> tuple[bytes, bytes]:
    """The byte order mark, or nothing, and the JSON after it."""
    body = text.removeprefix(BYTE_ORDER_MARK)
    return text[: len(text) - len(body)], body


def _list_of(body: bytes, hooks: Node, event: str) -> tuple[str, Node | None]:
    """The key under which an event's actions stand and their list; a key with null counts as none."""
    key = next((key for key, _ in hooks.keys or () if event_name(key) == event), event)
    found = hooks.member(key)
    if found is not None and body[found.start : found.end] == b"null":
        return key, None
    return key, found


def _actions(root: Node, key: str) -> Node:
    hooks = root.member("hooks")
    assert hooks is not None  # an action was read from it
    actions = hooks.member(key)
    assert actions is not None
    return actions


def _action(root: Node, at: At) -> Node:
    return _actions(root, at.key).children[at.index]


def _same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: 1 and true are not."""
    return orjson.dumps(one) == orjson.dumps(other)
