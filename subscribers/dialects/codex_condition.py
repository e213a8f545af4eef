"""Claude Code's ``if`` of a handler: one permission rule that a tool call has to meet.

It decides what a rule such as ``Bash(git *)`` means for a tool's name and input, after the syntax of
permission rules: wildcards for commands, paths as in ``.gitignore``, ``domain:`` for addresses. A rule that
is not understood is an error, and never one that everything meets; a command or path that is too long or too
involved to be judged meets every rule of its tool, for the handler may be a guard. It refuses to know who
calls a tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .codex_condition_commands import LONGEST, collapsed, commands
from .codex_condition_patterns import matches, path_matches

_RULE: Final = re.compile(r"\s*([A-Za-z_][\w*-]*)(?:\((.*)\))?\s*", re.ASCII | re.DOTALL)
_HOST: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://(?:[^/\\?#]*@)?(\[[^\]]*\]|[^/\\?#:]*)")

LONGEST_RULE: Final = 1_024
"""Characters of a rule."""
LONGEST_PATH: Final = 4_096
"""Characters of a path that are compared; no system opens a longer one, and it meets every rule."""

_FILE_TOOLS: Final[Mapping[str, str]] = {
    "Read": "file_path",
    "Edit": "file_path",
    "Write": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "Glob": "path",
    "Grep": "path",
}
_NAMED_TOOLS: Final[Mapping[str, str]] = {"Agent": "subagent_type", "Task": "subagent_type", "Skill": "skill"}
_EDITS: Final = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
"""Tools that a rule for ``Edit`` is about."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where relative paths of a rule lead: the session's folder, the project's, the user's own."""

    cwd: str = "/"
    project: str = "/"
    home: str = "/"


@dataclass(frozen=True, slots=True)
class Condition:
    """A permission rule.

    ``text`` is as written, ``tool`` the tool's name or a pattern of names, ``specifier`` what stands in
    brackets, None where that is nothing or everything. ``error`` is why it can never be met.
    """

    text: str
    tool: str = ""
    specifier: str | None = None
    error: str | None = None

    def holds(self, tool: str, tool_input: object, folders: Folders) -> bool:
        """Whether a tool call meets the rule."""
        if self.error is not None or not self._is_about(tool):
            return False
        if self.specifier is None:
            return True
        values = tool_input if isinstance(tool_input, Mapping) else {}
        return _tests(tool)(self.specifier, tool, values, folders)

    def _is_about(self, tool: str) -> bool:
        if self.tool == tool or (self.tool == "Edit" and tool in _EDITS):
            return True
        if self.tool.startswith("mcp__") and self.tool.count("__") == 1:
            return tool.startswith(f"{self.tool}__")  # a server's name stands for its tools
        return "*" in self.tool and matches(self.tool, tool)


def condition(text: str) -> Condition:
    """The rule that a text is. Raises nothing: see ``Condition.error``."""
    if len(text) > LONGEST_RULE:
        return Condition(text, error=f"it is longer than {LONGEST_RULE:,} characters")
    match = _RULE.fullmatch(text)
    if match is None:
        return Condition(text, error="it is no permission rule such as Bash(git *)")
    tool, specifier = match[1], match[2]
    specifier = None if specifier is None or specifier.strip() in ("", "*") else specifier.strip()
    if specifier is not None and (
        "*" in tool or tool not in {"Bash", "WebFetch", *_FILE_TOOLS, *_NAMED_TOOLS}
    ):
        return Condition(text, tool, specifier, f"a rule for {tool} has no brackets")
    if tool == "WebFetch" and specifier is not None and not specifier.startswith("domain:"):
        return Condition(text, tool, specifier, "a rule for WebFetch is written WebFetch(domain:example.com)")
    return Condition(text, tool, specifier)


_Test = Callable[[str, str, Mapping[str, Any], Folders], bool]


def _tests(tool: str) -> _Test:
    if tool == "Bash":
        return _is_command
    if tool == "WebFetch":
        return _is_address
    return _is_path if tool in _FILE_TOOLS else _is_name


def _is_command(specifier: str, _tool: str, values: Mapping[str, Any], _folders: Folders) -> bool:
    """Whether one of the commands of a command line is meant."""
    line = values.get("command")
    if not isinstance(line, str):
        return False
    found = commands(line)
    if found is None:
        return True
    patterns = _command_patterns(collapsed(specifier))
    return any(command.meets(pattern) for command in found for pattern in patterns)


def _command_patterns(specifier: str) -> tuple[str, ...]:
    """``git *`` and ``git:*`` are ``git`` and what follows a blank; any other ``*`` is any text."""
    stem = specifier.removesuffix(":*")
    if stem == specifier:
        stem = specifier.removesuffix(" *")
    if stem == specifier or "*" in stem:
        return (specifier,)
    return (stem, f"{stem} *")


def _is_address(specifier: str, _tool: str, values: Mapping[str, Any], _folders: Folders) -> bool:
    address = values.get("url")
    if not isinstance(address, str):
        return False
    if len(address) > LONGEST:
        return True
    match = _HOST.match(address)
    if match is None:
        return False
    domain = specifier.removeprefix("domain:").strip().lower()
    return matches(domain, match[1].lower().removesuffix("."))


def _is_name(specifier: str, tool: str, values: Mapping[str, Any], _folders: Folders) -> bool:
    name = values.get(_NAMED_TOOLS[tool])
    return isinstance(name, str) and matches(specifier, name)


def _is_path(specifier: str, tool: str, values: Mapping[str, Any], folders: Folders) -> bool:
    """Whether a file is meant, by the rules of ``.gitignore``; ``//`` begins an absolute path."""
    path = values.get(_FILE_TOOLS[tool])
    if not isinstance(path, str):
        return False
    if len(path) > LONGEST_PATH:
        return True
    path = _joined(folders.cwd, path)
    if specifier.startswith("//"):
        base, pattern = "", specifier[1:]
    elif specifier.startswith("~/"):
        base, pattern = folders.home, specifier[1:]
    elif specifier.startswith("/"):
        base, pattern = folders.project, specifier
    else:
        pattern = specifier.removeprefix("./")
        is_bare = "/" not in pattern.rstrip("/")
        base, pattern = folders.cwd, f"**/{pattern}" if is_bare else pattern
    base = base.rstrip("/")
    if path == base:
        return not pattern.strip("/")
    return path.startswith(f"{base}/") and path_matches(pattern, path[len(base) + 1 :])


def _joined(folder: str, path: str) -> str:
    """An absolute path with its ``.`` and ``..`` taken out."""
    steps: list[str] = []
    for step in (path if path.startswith("/") else f"{folder}/{path}").split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    return "/" + "/".join(steps)
