"""What came of a run, as a value: a dialect reads it, nobody catches it.

Decides the five ways a run can end and how a capped output stream reads as text. Refuses to know what an
exit code means to a dialect, and how the output was collected.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "failed", "signalled", "timeout", "not_started"]
"""How a run ended.

``ok``: exit code 0. ``failed``: another exit code. ``signalled``: ended by a signal that we did not send.
``timeout``: still running when it had to end. ``not_started``: no program ever ran, so nothing that looks
like an exit code may be read from it.
"""

_CONTINUATION = bytes(range(0x80, 0xC0))


@dataclass(frozen=True, slots=True)
class Captured:
    """An output stream of which only the beginning and the end were kept.

    ``head`` and ``tail`` are bytes as they came; ``total`` counts every byte that was seen. While nothing was
    left out, ``head`` holds all of it and ``tail`` is empty.
    """

    head: bytes = b""
    tail: bytes = b""
    total: int = 0

    @property
    def truncated(self) -> bool:
        """True if bytes between head and tail were left out."""
        return self.total > len(self.head) + len(self.tail)

    def text(self) -> str:
        """The stream as UTF-8 text: bad bytes become U+FFFD, and a cut is marked with the bytes it cost.

        A character that the cut itself split is dropped, not shown as a bad byte of the program.
        """
        if not self.truncated:
            return (self.head + self.tail).decode("utf-8", "replace")
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(self.head)
        split = len(self.tail[:3]) - len(self.tail[:3].lstrip(_CONTINUATION))
        tail = self.tail[split:].decode("utf-8", "replace")
        left_out = self.total - len(self.head) - len(self.tail)
        return f"{head}\n[... {left_out} bytes left out ...]\n{tail}"


NOTHING = Captured()
"""A stream that said nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended.

    ``exit_code`` is set for ``ok`` and ``failed``, ``signal`` (its number) for ``signalled``; a timeout has
    neither, because it is reported before the program is gone. ``duration_s`` is the time from asking for the
    start to the program's end, or to the timeout: a short program may be over before we hear of its exec.
    ``reason`` says in words why nothing was started, or why a run was ended although its time was not over.
    """

    status: Status
    exit_code: int | None
    signal: int | None
    duration_s: float
    stdout: Captured
    stderr: Captured
    reason: str | None = None

    @classmethod
    def not_started(cls, reason: str) -> Outcome:
        """The outcome of a program that never ran."""
        return cls("not_started", None, None, 0.0, NOTHING, NOTHING, reason)

    @classmethod
    def exited(cls, returncode: int, duration_s: float, stdout: Captured, stderr: Captured) -> Outcome:
        """The outcome of a program that ended by itself: its exit code, or minus the number of a signal."""
        if returncode < 0:
            return cls("signalled", None, -returncode, duration_s, stdout, stderr)
        return cls("failed" if returncode else "ok", returncode, None, duration_s, stdout, stderr)
