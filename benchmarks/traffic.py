"""What is sent: topics and payloads, the same for every contender, made without randomness.

Decides sizes and contents; refuses to know who sends them. A payload is a JSON object, because that is what
an agent's event is. The bytes variant hands the finished JSON to the contender; the dict variant makes it
encode and decode with orjson.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from .pace import stamp

TOPIC = "prx.lifecycle.tool_call"
_TEXT = "src/server/session.py: 41 passed, 2 skipped in 3.07s; coverage 93 percent of 1,204 lines. "


@dataclass(frozen=True)
class Traffic:
    """One kind of event. `window` is how many events may be on their way to the slowest subscriber."""

    name: str
    payload: bytes
    window: int
    as_dict: bool = False
    topic: str = TOPIC

    @property
    def fields(self) -> dict[str, Any]:
        """The payload as a fresh dict, for the variants that encode it on every publish."""
        decoded: dict[str, Any] = orjson.loads(self.payload)
        return decoded


def _padded(fields: dict[str, Any], size: int) -> bytes:
    """`fields` with an "output" that brings the JSON to exactly `size` bytes."""
    room = size - len(orjson.dumps({**fields, "output": ""}))
    if room < 0:
        raise ValueError(f"{size} bytes are too few: the other fields need {size - room}")
    return orjson.dumps({**fields, "output": (_TEXT * (room // len(_TEXT) + 1))[:room]})


def _small(size: int) -> bytes:
    return _padded({"tool": "Bash", "success": True}, size)


def _agent_like() -> dict[str, Any]:
    """A finished tool call as a coding agent reports it: nested arguments, several types, a short output."""
    return {
        "tool": "Edit",
        "success": True,
        "tool_call_id": "toolu_01A9f3kQ7pXvT5mZrB2cYh6N",
        "duration_ms": 184,
        "step_index": 12,
        "arguments": {
            "file_path": "/home/dev/project/src/server/session.py",
            "old_string": "def close(self):\n    self.socket.close()\n",
            "new_string": "def close(self, linger=1000):\n    self.socket.close(linger)\n",
            "replace_all": False,
        },
        "usage": {"input_tokens": 18432, "output_tokens": 211, "cached": 16384, "cost_usd": 0.0142},
        "tags": ["edit", "python", "session"],
        "parent": None,
    }


# Bounded by bytes for large events. For small ones by the smallest queue of any contender (prxbus: 4,000 in
# the broker), halved because ZeroMQ gives room back in halves: a starved subscriber must not lose anything.
_WINDOWS = {300: 2048, 4096: 1024, 65_536: 128}
SIZES = tuple(_WINDOWS)


def bytes_of(size: int) -> Traffic:
    """Finished JSON of exactly `size` bytes."""
    return Traffic(f"bytes {_spell(size)}", _small(size), _WINDOWS.get(size, 1024))


def dict_small() -> Traffic:
    """A dict whose JSON is exactly 300 bytes."""
    small: dict[str, Any] = {
        "tool": "Bash",
        "success": True,
        "duration_ms": 132,
        "arguments": {"command": "pytest -q tests/server", "timeout": 120000},
        "exit_code": 0,
    }
    return Traffic("dict 300 B", _padded(small, 300), _WINDOWS[300], as_dict=True)


def dict_tool_call() -> Traffic:
    """A dict as a coding agent would publish it after a tool call, about 1 KiB of nested JSON."""
    return Traffic("dict tool_call 1 KiB", _padded(_agent_like(), 1024), 2048, as_dict=True)


def stamped(size: int) -> Traffic:
    """JSON of exactly `size` bytes that begins with the stamp field of a latency run."""
    return Traffic(f"stamped {_spell(size)}", stamp(_padded({"at": "0" * 19, "tool": "Bash"}, size), 0), 1024)


def _spell(size: int) -> str:
    return f"{size // 1024} KiB" if size >= 1024 else f"{size} B"
