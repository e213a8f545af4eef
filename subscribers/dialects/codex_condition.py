"""Claude Code's ``if`` of a handler: one permission rule that a tool call has to meet.

It decides what a rule such as ``Bash(git *)`` means for a tool's name and input, after the syntax of
permission rules: wildcards for commands, paths as in ``.gitignore``, ``domain:`` for addresses. A rule that
is not understood is an error, and never one that everything meets; a command that is too involved to be
taken apart meets every rule of its tool, for the handler may be a guard. It refuses to know who calls a tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_RULE: Final = re.compile(r"\s*([A-Za-z_][\w*-]*)(?:\((.*)\))?\s*", re.ASCII | re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"(?:[A-Za-z_]\w*=(?:[^\s'\"]|'[^']*'|\"[^\"]*\")*\s+)+")
_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)")
_INVOLVED: Final = re.compile(r"\$\(|`|<\(|>\(|<<|[(){}]")
"""Substitutions, here-documents and groups: what is run cannot be told by splitting at operators."""
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_OPERATOR: Final = re.compile(r"&&|\|\||\|&|[;|&\n]")

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
        return "*" in self.tool and _wildcard(self.tool).fullmatch(tool) is not None


def condition(text: str) -> Condition:
    """The rule that a text is. Raises nothing: see ``Condition.error``."""
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
    pattern = _command_pattern(specifier)
    commands = _commands(line)
    return commands is None or any(pattern.fullmatch(command) is not None for command in commands)


def _command_pattern(specifier: str) -> re.Pattern[str]:
    """``git *`` and ``git:*`` are ``git`` and what follows a blank; any other ``*`` is any text."""
    stem = specifier.removesuffix(":*")
    if stem == specifier:
        stem = specifier.removesuffix(" *")
    if stem == specifier or "*" in stem:
        return _wildcard(specifier)
    return re.compile(rf"{re.escape(stem)}(?:\s.*)?", re.DOTALL)


def _commands(line: str) -> Iterator[str] | None:
    """The single commands of a command line, without assignments before them; None: too involved."""
    blank = _QUOTED.sub(lambda match: "_" * len(match[0]), line)
    has_substitution = _INVOLVED.search(blank) or re.search(r"\$\(|`", line)
    if has_substitution or "'" in blank or '"' in blank:
        return None
    return _split(line, blank)


def _split(line: str, blank: str) -> Iterator[str]:
    start = 0
    for operator in _OPERATOR.finditer(blank):
        yield _ASSIGNMENT.sub("", line[start : operator.start()].strip(), count=1)
        start = operator.end()
    yield _ASSIGNMENT.sub("", line[start:].strip(), count=1)


def _is_address(specifier: str, _tool: str, values: Mapping[str, Any], _folders: Folders) -> bool:
    address = values.get("url")
    match = _HOST.match(address) if isinstance(address, str) else None
    if match is None:
        return False
    domain = specifier.removeprefix("domain:").strip().lower()
    return _wildcard(domain).fullmatch(match[1].lower()) is not None


def _is_name(specifier: str, tool: str, values: Mapping[str, Any], _folders: Folders) -> bool:
    name = values.get(_NAMED_TOOLS[tool])
    return isinstance(name, str) and _wildcard(specifier).fullmatch(name) is not None


def _is_path(specifier: str, tool: str, values: Mapping[str, Any], folders: Folders) -> bool:
    """Whether a file is meant, by the rules of ``.gitignore``; ``//`` begins an absolute path."""
    path = values.get(_FILE_TOOLS[tool])
    if not isinstance(path, str):
        return False
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
        base, pattern = folders.cwd, f"/**/{pattern}" if is_bare else f"/{pattern}"
    return re.fullmatch(re.escape(base.rstrip("/")) + _glob(pattern), path, re.DOTALL) is not None


def _joined(folder: str, path: str) -> str:
    """An absolute path with its ``.`` and ``..`` taken out."""
    steps: list[str] = []
    for step in (path if path.startswith("/") else f"{folder}/{path}").split("/"):
        if step == "..":
            steps = steps[:-1]
        elif step not in ("", "."):
            steps.append(step)
    return "/" + "/".join(steps)


_GLOB_PARTS: Final = re.compile(r"/\*\*/|/\*\*\Z|\*|\?|[^*?/]+|/")
_GLOBS: Final = {"/**/": "/(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}


def _glob(pattern: str) -> str:
    """A pattern of ``.gitignore`` as a regular expression; what lies below a match is meant too."""
    parts = _GLOB_PARTS.findall(pattern.rstrip("/"))
    return "".join(_GLOBS.get(part) or re.escape(part) for part in parts) + "(?:/.*)?"


def _wildcard(pattern: str) -> re.Pattern[str]:
    """``*`` is any text, all else itself."""
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)
