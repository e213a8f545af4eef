"""The PRX Hooks page, taken apart: sentences, hook files and scripts, byte for byte.

The page is plain text without marks around its code; what is code is known by how it begins and ends.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_ENDS = re.compile(r"(?<=[。！？])")  # noqa: RUF001 - the page's own full stops
_STARTS = ("#!/bin/bash", "import os, json", "import sys, json")


def find(pages: Path) -> str:
    """The text of the page among others."""
    return next(text for path in sorted(pages.iterdir()) if "ZERO_HOOK_PAYLOAD" in (text := path.read_text()))


def sentences(page: str) -> list[str]:
    """Everything that says something in words: sentences, headings, rows of tables, comments in code."""
    lines = [line for line in page.splitlines() if _CHINESE.search(line)]
    return [found for line in lines for part in _ENDS.split(line) if (found := part.strip())]


def digest(sentence: str) -> str:
    """What a sentence is called in our table."""
    return hashlib.sha256(sentence.encode()).hexdigest()[:8]


def hook_files(page: str) -> list[tuple[bytes, dict[str, Any]]]:
    """Every ``hooks.json``: its bytes and its value."""
    found = []
    for match in re.finditer(r"^\{", page, re.MULTILINE):
        try:
            value, end = json.JSONDecoder().raw_decode(page, match.start())
        except ValueError:  # a brace that begins something else
            continue
        if isinstance(value.get("hooks"), dict):
            found.append((page[match.start() : end].encode(), value))
    return found


def scripts(page: str) -> list[bytes]:
    """Every script, in the page's order: from its first line to the next line of prose."""
    found, lines = [], page.splitlines()
    for start, line in enumerate(lines):
        if line in _STARTS:
            rest = lines[start:]
            end = next(
                (n for n, text in enumerate(rest) if _CHINESE.search(text) and not text.startswith("#")),
                len(rest),
            )
            found.append(("\n".join(rest[:end]).rstrip() + "\n").encode())
    return found
