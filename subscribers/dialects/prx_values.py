"""Single values of a hook action: what each must be, whatever field it stands in.

Each check says what is wrong and reports whether the value can be used; it refuses to know what for.
"""

from __future__ import annotations

from typing import TypeVar

from ..hooks.diagnostics import quote
from . import prx_rules as rules
from .findings import Findings
from .json_positions import Path

T = TypeVar("T", bool, str, dict[str, object], list[object])

_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def kind(value: object) -> str:
    """The JSON name of a decoded value's type, for a message."""
    return _KINDS[type(value)]


def typed(
    value: object, wanted: type[T], what: str, where: Path, findings: Findings, hint: str | None = None
) -> T | None:
    """The value when it has the wanted type; else None, and a finding says so."""
    if isinstance(value, wanted):
        return value
    message = f"{what} is {_KINDS[wanted]}, not {kind(value)}"
    findings.say("wrong_type", where, message, hint)
    return None


def string(value: object, what: str, where: Path, findings: Findings, *, beside: str = "") -> str | None:
    """A string that a program can be given: no NUL, not too long together with ``beside``."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    text = typed(value, str, what, where, findings, f'write "{value}"' if is_number else "write a string")
    if text is None:
        return None
    if "\0" in text:
        findings.say("nul", where, f"{what} holds a NUL character, which would cut it short", "remove it")
        return None
    size = len(text.encode()) + len(beside.encode())
    if size > rules.MAX_STRING_BYTES:
        message = f"{what} has {size} bytes; a program can be given {rules.MAX_STRING_BYTES} in one string"
        findings.say("too_long", where, message, "put it into a file")
        return None
    return text


def is_variable_name(name: str, where: Path, findings: Findings) -> bool:
    """Whether an environment variable can have this name."""
    if "\0" in name:
        findings.say("nul", where, "the name of a variable holds a NUL character", "remove it", at="key")
        return False
    if not name or "=" in name:
        message = f"{quote(name)} cannot be the name of a variable"
        findings.say("bad_env_name", where, message, "a name is not empty and holds no =", at="key")
        return False
    return True


def check_metacharacters(command: str, where: Path, findings: Findings) -> None:
    """Find the first character that means something to a shell."""
    for character in command:
        meaning = rules.METACHARACTERS.get(character)
        if meaning is None and (character < " " or character == "\x7f"):
            meaning = "control character"
        if meaning is not None:
            message = f"command may not hold {quote(character)} ({meaning}): it is not run by a shell"
            hint = "put arguments into args, or shell code into a script and name the script"
            findings.say("metacharacter", where, message, hint)
            return


def check_inside(cwd: str, where: Path, findings: Findings) -> None:
    """Find a ``..`` that an absolute folder holds, or that leads a relative one out of the workspace."""
    steps = cwd.split("/")
    if cwd.startswith("/"):
        if ".." in steps:
            message = f"an absolute cwd may not hold ..: {quote(cwd)}"
            findings.say("cwd_escapes", where, message, "write the folder itself")
        return
    depth = 0
    for step in steps:
        depth += -1 if step == ".." else step not in ("", ".")
        if depth < 0:
            message = f"cwd leaves the workspace: {quote(cwd)}"
            findings.say("cwd_escapes", where, message, "write an absolute path for a folder outside")
            return


def timeout_ms(value: object, where: Path, findings: Findings, *, otherwise: str = "") -> int | None:
    """A whole number of milliseconds in range; ``otherwise`` says what counts when it is none.

    With ``otherwise`` the fault is the file's, not an action's.
    """
    fault = _timeout_fault(value)
    if fault is not None:
        code, message = fault
        limits = f"{rules.MIN_TIMEOUT_MS} to {rules.MAX_TIMEOUT_MS}"
        hint = f"write whole milliseconds, {limits}: 5000 is five seconds"
        findings.say("wrong_file_timeout" if otherwise else code, where, message + otherwise, hint)
        return None
    assert isinstance(value, int | float)
    number = int(value)
    if number < rules.SMALL_TIMEOUT_MS:
        message = f"timeout_ms is in milliseconds: {number} ms is less than most programs need to start"
        findings.say("small_timeout", where, message, f"write {number * 1_000} for {number} seconds")
    return number


def _timeout_fault(value: object) -> tuple[str, str] | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "wrong_type", f"timeout_ms is a number, not {kind(value)}"
    if value != int(value):
        return "wrong_type", f"timeout_ms is a whole number, not {value}"
    if not rules.MIN_TIMEOUT_MS <= value <= rules.MAX_TIMEOUT_MS:
        return "timeout_range", f"timeout_ms {value} is out of range"
    return None
