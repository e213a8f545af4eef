"""The fields of a handler of the Codex family: of which type each is, and whether a value is of it.

It decides single values, whatever profile they stand in. It refuses to know what they lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from .codex_profiles import Profile

U64: Final = 2**64 - 1
"""The largest whole number that Codex reads."""


class FieldRule(NamedTuple):
    """What a field has to be: in our words, in Codex's, how that is tested, and whether null is absence."""

    what: str
    expected: str
    fits: Callable[[Any], bool]
    nullable: bool = False


def is_whole(value: Any) -> bool:
    """Whether a value is a number that counts something: whole, not negative, of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= U64


def is_positive(value: Any) -> bool:
    """Whether a value is a number above zero."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_headers(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in words


_TEXT: Final = FieldRule("a string", "a string", _is_text)
_FLAG: Final = FieldRule("true or false", "a boolean", _is_flag)
_OPTIONAL_TEXT: Final = _TEXT._replace(nullable=True)

RULES: Final[Mapping[str, FieldRule]] = {
    "command": _TEXT,
    "commandWindows": _OPTIONAL_TEXT,
    "command_windows": _OPTIONAL_TEXT,
    "timeout": FieldRule("whole seconds, without a fraction", "u64", is_whole, nullable=True),
    "async": _FLAG,
    "statusMessage": _OPTIONAL_TEXT,
    "additionalContextLimit": FieldRule("a whole number of tokens", "usize", is_whole, nullable=True),
    "server": _TEXT,
    "tool": _TEXT,
    "input": FieldRule("an object", "a map", lambda value: isinstance(value, dict)),
    "if": _TEXT,
    "args": FieldRule("an array of strings", "a sequence", _is_texts),
    "shell": FieldRule("bash or powershell", "a string", _one_of("bash", "powershell")),
    "asyncRewake": _FLAG,
    "once": _FLAG,
    "onFailure": FieldRule("block or continue", "a string", _one_of("block", "continue")),
    "url": _TEXT,
    "headers": FieldRule("an object of strings", "a map", _is_headers),
    "allowedEnvVars": FieldRule("an array of strings", "a sequence", _is_texts),
}
"""The fields that are read, of any type of handler."""

SECONDS: Final = FieldRule("a number of seconds above 0", "a number", is_positive)
"""``timeout`` where it may have a fraction."""


def fields_of(profile: Profile) -> dict[str, dict[str, FieldRule | None]]:
    """The fields that mean something to each type of handler; None: whatever they are, they are not read."""
    return {
        kind: {name: _rule_of(name, profile) for name in names}
        for kind, names in profile.handler_keys.items()
    }


def _rule_of(name: str, profile: Profile) -> FieldRule | None:
    rule = RULES.get(name) if name != "timeout" or profile.timeout_is_whole else SECONDS
    return rule if rule is None or profile.null_is_absent else rule._replace(nullable=False)


def reason_of(value: Any, rule: FieldRule) -> str:
    """Why Codex does not take a value for what it has to be."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and rule.fits in (is_whole, is_positive):
        return f"invalid value: integer `{value}`, expected {rule.expected}"
    return invalid_type(value, rule.expected)


def unexpected(value: Any) -> str:
    """A value as the reader of Codex names one that it did not expect."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"boolean `{'true' if value else 'false'}`"
    if isinstance(value, int):
        return f"integer `{value}`"
    if isinstance(value, float):
        return f"floating point `{value!r}`"
    if isinstance(value, str):
        return f'string "{value}"'
    return "sequence" if isinstance(value, list) else "map"


def invalid_type(value: Any, expected: str) -> str:
    """The reason of a value of the wrong type."""
    return f"invalid type: {unexpected(value)}, expected {expected}"
