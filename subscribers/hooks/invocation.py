"""What a runtime is asked to run: one process, described completely.

Decides which facts a run needs and what makes them nonsense. Refuses to know any hook file, any event
and how a process is started: a dialect writes an invocation, a runtime executes it, neither sees the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

OUTPUT_LIMIT = 65_536
"""Bytes that are kept of each output stream unless the dialect says otherwise."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of one program. Nothing is inherited: what is not named here, the child does not get.

    ``argv``: the program, an absolute path, and its arguments.
    ``env``: the whole environment of the child.
    ``cwd``: the directory it starts in, an absolute path.
    ``stdin``: the bytes it can read from its standard input, or None for ``/dev/null``.
    ``timeout_s``: seconds from exec until the run counts as timed out.
    ``grace_s``: seconds between SIGTERM and SIGKILL after that; 0 means SIGKILL at once.
    ``output_limit``: bytes kept of stdout and of stderr, half of them the first and half the last.
    ``marker``: the name of a variable in ``env`` whose value no other run has, or None. After a timeout, a
    descendant that left the process group and lost its parents is still recognised by it.
    ``bounds_leftovers``: what the program leaves running when it exits is ended when ``timeout_s`` is over.

    Raises ValueError for values that no kernel or clock could honour: they are mistakes of the dialect.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stdin: bytes | None
    timeout_s: float
    grace_s: float
    output_limit: int = OUTPUT_LIMIT
    marker: str | None = None
    bounds_leftovers: bool = False

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0].startswith("/"):
            raise ValueError(f"argv must begin with the absolute path of a program, not {self.argv[:1]!r}")
        if not self.cwd.startswith("/"):
            raise ValueError(f"cwd must be an absolute path, not {self.cwd!r}")
        if not (0 < self.timeout_s < math.inf):
            raise ValueError(f"timeout_s must be a positive number of seconds, not {self.timeout_s!r}")
        if not (0 <= self.grace_s < math.inf):
            raise ValueError(f"grace_s must be 0 or a number of seconds, not {self.grace_s!r}")
        if self.output_limit < 0:
            raise ValueError(f"output_limit must be 0 or more bytes, not {self.output_limit!r}")
        if self.marker is not None and not self.env.get(self.marker):
            raise ValueError(f"marker names {self.marker!r}, which env does not set")
