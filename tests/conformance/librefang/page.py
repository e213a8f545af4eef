"""The LibreFang page on hooks, taken apart: its tables, its hook file and its script, byte for byte."""

from __future__ import annotations

import re
from pathlib import Path

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_FIELD = re.compile(r"([a-z_]+?)(?:string|integer|object)")


def find(pages: Path) -> str:
    """The text of the page among others."""
    return next(text for path in sorted(pages.iterdir()) if "HOOK_EVENT_DATA" in (text := path.read_text()))


def hook_file(page: str) -> bytes:
    """The page's HOOK.yaml."""
    start = page.index("name: notify-on-agent-end")
    end = page.index("command: ./run.sh\n", start) + len("command: ./run.sh\n")
    return page[start:end].encode()


def script(page: str) -> bytes:
    """The page's run.sh: from its first line to the next line of prose."""
    lines = page[page.index("#!/usr/bin/env bash") :].splitlines()
    end = next(number for number, line in enumerate(lines) if _CHINESE.search(line))
    return ("\n".join(lines[:end]).rstrip() + "\n").encode()


def command_line(page: str) -> str:
    """The line that makes the script executable."""
    return next(line for line in page.splitlines() if line.startswith("chmod +x "))


def tree(page: str) -> list[str]:
    """The files of the page's example of a home, as paths below it."""
    block = page[page.index("~/.librefang/hooks/\n") :].split("\n\n", maxsplit=1)[0].splitlines()[1:]
    found, folder = [], ""
    for line in block:
        if line.strip().endswith("/"):
            folder = line.strip()
        else:
            found.append(folder + line.strip())
    return found


def events(page: str) -> list[str]:
    """The names in the table of events."""
    names = (re.match(r"[a-z]+:[a-z]+?(?=[A-Z\u4e00-\u9fff])", line) for line in _table(page, "agent:start"))
    return [match[0] for match in names if match is not None]


def patterns(page: str) -> dict[str, list[str]]:
    """The rows of the table of patterns; none for the pattern of all, which is in words."""
    found = {}
    for line in _table(page, "agent:*"):
        start, star, names = line.partition("*")
        found[start + star] = re.findall(r"[a-z]+:[a-z]+", names)
    return found


def fields(page: str) -> dict[str, list[str]]:
    """The documented fields of each event, in their order."""
    found: dict[str, list[str]] = {}
    name = ""
    for block in page.split("\n\n"):
        head, *rows = block.splitlines() or [""]
        if re.fullmatch(r"[a-z]+[:_][a-z_]+", head):
            name = head
        matches = [_FIELD.match(row) for row in rows]
        if matches and all(matches) and _CHINESE.match(head):
            found[name] = [match[1] for match in matches if match is not None]
    return found


def _table(page: str, first: str) -> list[str]:
    """The rows of the table whose first row begins so."""
    tables = (block.splitlines() for block in page.split("\n\n"))
    return next(
        rows for _, *rows in (table for table in tables if table) if rows and rows[0].startswith(first)
    )
