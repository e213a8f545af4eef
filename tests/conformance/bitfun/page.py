"""BitFun's page on agent hooks, taken apart: its documents, script and table of causes, byte for byte.

The page is plain text without marks around its code; what is code is known by how it begins and ends.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


def find(pages: Path) -> str:
    """The text of the page among others."""
    return next(text for path in sorted(pages.iterdir()) if "bitfun hooks list" in (text := path.read_text()))


def documents(page: str) -> list[tuple[bytes, dict[str, Any]]]:
    """Every JSON document: its bytes and its value, in the page's order."""
    found = []
    for match in re.finditer(r"^\{", page, re.MULTILINE):
        value, end = json.JSONDecoder().raw_decode(page, match.start())
        found.append((page[match.start() : end].encode(), value))
    return found


def script(page: str) -> bytes:
    """The script ``protect.py``."""
    start = page.index("#!/usr/bin/env python3")
    end = page.index("sys.exit(0)\n", start) + len("sys.exit(0)\n")
    return page[start:end].encode()


def symptoms(page: str) -> list[str]:
    """The symptoms of the page's table of causes: eight rows, a symptom to each."""
    table = page[page.index("\n排查\n") : page.index("\n相关\n")]
    rows = table.split("现象 原因\n")[1].split("\n\n")[0].splitlines()
    return [row.split(" ")[0] if row[0] > "\u4e00" else " ".join(row.split(" ")[:2]) for row in rows]
