"""One action of a PRX ``hooks.json``: its fields checked, one by one, into a hook spec.

Every fault of an action is found, not only the first; an action with a fault does not run, and its siblings
never notice. The rules are those of :mod:`.prx_rules` and :mod:`.environment`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass

from ..hooks.diagnostics import quote
from ..hooks.spec import HookSpec
from . import prx_rules as rules
from .environment import blocked
from .findings import Findings
from .json_positions import Path
from .nearest import nearest
from .prx_values import check_inside, check_metacharacters, is_variable_name, string, timeout_ms, typed


@dataclass(frozen=True, slots=True)
class ActionPlace:
    """Where an action stands: its file, its event and number, and what the file says for all actions."""

    path: str
    where: Path
    event: str
    index: int
    default_timeout_ms: int


def read_action(value: object, place: ActionPlace, findings: Findings) -> HookSpec | None:
    """The spec of an action, its line not yet known; None when it will not run, and a finding says why."""
    where = place.where
    action = typed(value, dict, "an action", where, findings, 'write {"command": "/path/to/script"}')
    if action is None:
        return None
    errors_before = findings.errors
    unknown_keys(action, where, rules.ACTION_KEYS, findings)
    fields = _Fields(action, where, findings)
    timeout = fields.timeout()
    enabled = fields.boolean("enabled", default=True)
    spec = HookSpec(
        id=f"{place.event}#{place.index}",
        dialect=rules.NAME,
        path=place.path,
        line=None,
        event=place.event,
        command=fields.command(),
        args=fields.args(),
        env=fields.env(),
        cwd=fields.cwd(),
        timeout_s=(place.default_timeout_ms if timeout is None else timeout) / 1_000,
        grace_s=rules.GRACE_S,
        stdin=fields.boolean("stdin_json", default=False),
    )
    if findings.errors > errors_before:
        return None
    if not enabled:
        findings.say("disabled", where, "the action is disabled and does not run")
        return None
    return spec


def unknown_keys(
    value: Mapping[str, object], where: Path, known: tuple[str, ...], findings: Findings
) -> None:
    """Remark on every key that is not known, with the nearest known one."""
    for key in value:
        if key in known:
            continue
        near = None if findings.full else nearest(key, known)
        if near is None:
            hint = f"the keys here are {', '.join(known)}"
        elif near == "timeout_ms":
            hint = "did you mean timeout_ms, in milliseconds?"
        else:
            hint = f"did you mean {near}?"
        findings.say("unknown_key", (*where, key), f"unknown key {quote(key)} is ignored", hint, at="key")


class _Fields:
    """The fields of one action. A field with a fault gives its default: the action does not run anyway."""

    def __init__(self, action: Mapping[str, object], where: Path, findings: Findings) -> None:
        self._action = action
        self._where = where
        self._findings = findings

    def command(self) -> str:
        value, where, findings = self._at("command")
        if value is None:
            hint = "name an executable"
            if "hooks" in self._action:
                hint = "this is the shape of another system's file; a PRX action names its command directly"
            findings.say("missing_command", self._where, "the action has no command", hint)
            return ""
        text = string(value, "command", where, findings)
        command = "" if text is None else text.strip()
        if text is not None and not command:
            findings.say("empty_command", where, "the command is empty", "name an executable")
        check_metacharacters(command, where, findings)
        return command

    def args(self) -> tuple[str, ...]:
        value, where, findings = self._at("args")
        hint = "write an array of strings, one for each argument"
        args = [] if value is None else typed(value, list, "args", where, findings, hint) or []
        if self._too_many(args, rules.MAX_ARGS, "arguments", where):
            return ()
        texts = [string(arg, "an argument", (*where, index), findings) for index, arg in enumerate(args)]
        return tuple(text for text in texts if text is not None)

    def env(self) -> dict[str, str]:
        value, where, findings = self._at("env")
        hint = 'write an object, such as {"LOG_DIR": "/var/log"}'
        entries = {} if value is None else typed(value, dict, "env", where, findings, hint) or {}
        if self._too_many(entries, rules.MAX_ENV, "variables", where):
            return {}
        env = {}
        for name, content in entries.items():
            here = (*where, name)
            if not is_variable_name(name, here, findings):
                continue
            text = string(content, "a variable", here, findings, beside=f"{name}=")
            rule = blocked(name)
            if rule is not None:
                message = f"{quote(name)} cannot be set: {rule.reason}; the action runs without it"
                findings.say("blocked_env", here, message, "remove it", at="key")
            elif text is not None:
                env[name] = text
        return env

    def cwd(self) -> str | None:
        value, where, findings = self._at("cwd")
        if value is None:
            return None
        text = string(value, "cwd", where, findings)
        if text is not None and not text.strip():
            findings.say("empty_cwd", where, "cwd is empty: the workspace is used", "leave it out")
            return None
        check_inside(text or "", where, findings)
        return text

    def timeout(self) -> int | None:
        value, where, findings = self._at("timeout_ms")
        return None if value is None else timeout_ms(value, where, findings)

    def boolean(self, name: str, *, default: bool) -> bool:
        value, where, findings = self._at(name)
        found = default if value is None else typed(value, bool, name, where, findings, "write true or false")
        return default if found is None else found

    def _at(self, name: str) -> tuple[object, Path, Findings]:
        return self._action.get(name), (*self._where, name), self._findings

    def _too_many(self, values: Sized, limit: int, what: str, where: Path) -> bool:
        if len(values) <= limit:
            return False
        self._findings.say("too_many", where, f"{len(values)} {what} are more than {limit}", "use a script")
        return True
