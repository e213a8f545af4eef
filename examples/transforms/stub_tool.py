#!/usr/bin/env python3
"""Puts a fixed answer in place of a tool's, so that a test of an agent comes out the same each time.

A command, in any language: it reads one JSON line with agent_id, tool_name, tool_input and tool_output, and
writes {"content": "..."}; nothing written leaves the word to the next handler. In prxbus.toml, or in a
workspace's .prxbus/config.toml:

    [[transform]]
    command = ["./examples/transforms/stub_tool.py", "examples/transforms/stubs.json"]
    tools = ["mcp__*"]

The file holds a list for each tool; the first entry whose `when` is part of the tool's input is the answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def answer(stubs: dict[str, list[dict[str, Any]]], asked: dict[str, Any]) -> str | None:
    """The fixed answer for this tool and input, or None."""
    given = asked["tool_input"] or {}
    for stub in stubs.get(asked["tool_name"], []):
        if all(given.get(name) == value for name, value in stub.get("when", {}).items()):
            content = stub["content"]
            return content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    return None


def main() -> None:
    """Answer what is asked on standard input."""
    stubs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    content = answer(stubs, json.load(sys.stdin))
    if content is not None:
        json.dump({"content": content}, sys.stdout)


if __name__ == "__main__":
    main()
