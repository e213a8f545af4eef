"""The rolebox page on hooks, taken apart: its samples byte for byte, its tables, its log lines."""

from __future__ import annotations

import re
from pathlib import Path


def find(pages: Path) -> str:
    """The text of the page among others."""
    return next(text for path in sorted(pages.iterdir()) if "onSystemTransform" in (text := path.read_text()))


def blocks(page: str, language: str) -> list[str]:
    """The samples of one language, in order: what stands below its name, up to the next line of prose."""
    found = []
    for match in re.finditer(rf"^{language}\n\n", page, re.MULTILINE):
        taken: list[str] = []
        for line in page[match.end() :].splitlines():
            if taken and not taken[-1] and _is_prose(line):
                break
            taken.append(line)
        found.append("\n".join(taken).rstrip() + "\n")
    return found


def schema_file(page: str) -> bytes:
    """The role.yaml that shows every field."""
    return _only(page, "yaml", "my-quality-checker")


def example_file(page: str) -> bytes:
    """The role.yaml of the complete example."""
    return _only(page, "yaml", "name: Quality-Conscious Coder")


def example_module(page: str) -> bytes:
    """Its module."""
    return _only(page, "javascript", "// hooks/no-console-log.js")


def warning(page: str, tool: str) -> str:
    """What the complete example warns of."""
    said = re.search(r"ctx\.inject\(`(.*)`\)", example_module(page).decode())
    assert said is not None
    return said[1].replace("${tool}", tool)


def lifecycle_module(page: str) -> bytes:
    """The module with onLoad and onDispose."""
    return _only(page, "javascript", "// hooks/lifecycle-example.js")


def priority_file(page: str) -> bytes:
    """The hooks of the sample on priorities."""
    return _only(page, "yaml", "early-checker")


def builtin_file(page: str) -> bytes:
    """The switch ``auto_activate``."""
    return _only(page, "yaml", "builtin:")


def filter_fragment(page: str) -> str:
    """The two filters, as a part of a hook."""
    return _only(page, "yaml", "filter:\n  tools: [write, edit] ").decode()


def correction_code(page: str) -> str:
    """The page's own implementation of ``inject``."""
    return _only(page, "typescript", "function appendCorrection").decode()


def command_line(page: str) -> str:
    """The command that checks a role."""
    return _only(page, "bash", "rolebox info").decode().strip()


def fields(page: str) -> dict[str, tuple[str, str]]:
    """Type and default of each field of a hook, from the table of fields."""
    rows = _table(page, "字段\t类型\t默认值\t说明")
    return {row[0].strip("`"): (row[1], row[2].strip("`")) for row in rows}


def handlers(page: str) -> dict[str, tuple[str, ...]]:
    """The members of each handler's second argument, from the table of handlers."""
    found = {}
    for row in _table(page, "方法\t触发时机\t输入参数"):
        name, _, arguments = row[0].strip("`").partition("(")
        members = re.search(r"\{(.*)\}", arguments)
        found[name] = tuple(re.findall(r"\w+", members[1])) if members else ()
    return found


def context(page: str) -> tuple[str, ...]:
    """What a handler's ctx has, from its table."""
    return tuple(re.split(r"\W", row[0].strip("`"))[0] for row in _table(page, "属性\t类型\t说明"))


def log_lines(page: str) -> list[tuple[str, str, str]]:
    """Logger, level and message of the page's examples of log lines."""
    return re.findall(r"^(hook:[\w-]+) \| (\w+) \| (.+)$", page, re.MULTILINE)


def messages(page: str) -> dict[str, list[str]]:
    """The typical messages of each logger, from the table of loggers."""
    rows = _table(page, "日志前缀\t来源\t典型消息")
    return {row[0].strip("`"): re.findall(r"`([^`]+)`", row[2]) for row in rows}


def _only(page: str, language: str, words: str) -> bytes:
    """The one sample of a language that has these words."""
    (found,) = (block for block in blocks(page, language) if words in block)
    return found.encode()


def _table(page: str, head: str) -> list[list[str]]:
    """The rows below a table's head."""
    rows = page[page.index(head) + len(head) :].split("\n\n", maxsplit=1)[0]
    return [line.split("\t") for line in rows.strip("\n").splitlines()]


def _is_prose(line: str) -> bool:
    """Whether a line behind an empty one goes on with the page and not with the sample."""
    return bool(line) and not line.startswith((" ", "//", "#", "}"))
