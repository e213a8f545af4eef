"""A file of Python handlers looked at, and called, in a process of its own that ends when its time is over.

Loading a file executes it, so that only what was named is loaded. Decides how long that may take and what is
said of a file that cannot be. Refuses to load anything in this process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple

import msgpack

from broker.protocol.events import Event

from ..dialects.python_explanation import Function
from ..hooks.diagnostics import Diagnostic
from ..hooks.invocation import Invocation
from ..hooks.outcome import Outcome, Status
from ..hooks.withheld import without_secrets
from ..runtimes.child import run
from ..runtimes.reaper import Reaper

LOAD_SECONDS: Final = 30.0
"""How long loading a file may take: no longer than a worker may in service, and a little less."""

ANSWER_BYTES: Final = 67_108_864
"""Most that the process may tell."""

STDERR_CHARACTERS: Final = 500


class Lost(NamedTuple):
    """A call that the process did not outlive: what is told of its end, and after how many seconds."""

    status: Status
    reason: str
    seconds: float


class Probed(NamedTuple):
    """What came of it: the functions, or the ``error``; the ``calls`` that were asked for, in order.

    ``lost``: the call after these ended the process, and the others were not made. ``stderr`` is what the
    file and its functions printed.
    """

    functions: tuple[Function, ...]
    error: Diagnostic | None
    calls: tuple[Mapping[str, Any], ...] = ()
    stderr: str = ""
    lost: Lost | None = None


class Prober:
    """Starts the processes; a context, at whose end none of them is left."""

    def __init__(self, environ: Mapping[str, str], load_s: float = LOAD_SECONDS) -> None:
        self._environ = without_secrets(environ)
        self._load_s = load_s
        self._reaper = Reaper(adopts=False)

    def __enter__(self) -> Prober:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._reaper.close(time.monotonic())

    def probe(
        self,
        path: str,
        *,
        entry_point: str | None = None,
        call: tuple[Event, Sequence[int], str] | None = None,
        call_s: float = 0.0,
        is_replaced: bool = False,
    ) -> Probed:
        """Load a file, or what an installed package names as ``entry_point``; call some of its functions.

        ``call``: the event, the numbers of the functions, and the file's name in reports. ``call_s``: seconds
        that the calls may take together. ``is_replaced``: no transform is asked any more.
        """
        request = None if call is None else [list(call[0].parts()), list(call[1]), call[2], is_replaced]
        target = [path] if entry_point is None else ["--entry-point", entry_point]
        seconds = self._load_s + call_s
        outcome = run(
            Invocation(
                argv=(sys.executable, "-P", "-m", "subscribers.runner.python_probe", *target),
                env=self._environ,
                cwd=os.path.dirname(path) if entry_point is None and path.startswith("/") else "/",
                stdin=msgpack.packb(request, unicode_errors="backslashreplace"),
                timeout_s=seconds,
                grace_s=0.0,
                output_limit=ANSWER_BYTES,
            ),
            self._reaper,
        )
        return _read(path, outcome, seconds)


def _read(path: str, outcome: Outcome, seconds: float) -> Probed:
    stderr = outcome.stderr.text()
    if outcome.status == "not_started":
        return _failed(path, "cannot_load", f"no process can be started to load it: {outcome.reason}", stderr)
    how = f"signal {outcome.signal}" if outcome.exit_code is None else f"exit code {outcome.exit_code}"
    is_late = outcome.status == "timeout"
    values = _values(outcome.stdout.head + outcome.stdout.tail)
    try:
        facts = next(values)
        functions = tuple(_function(fields) for fields in facts["functions"])
        error = None if facts["error"] is None else Diagnostic(**facts["error"])
    except Exception:  # what it told was not ours: it ended itself, or was ended
        if is_late:
            return _failed(path, "load_timeout", f"it did not load within {seconds:g} s", stderr)
        return _failed(path, "cannot_load", f"it ended the process that loaded it ({how})", stderr)
    calls: list[Mapping[str, Any]] = []
    started: float | None = None
    for value in values:
        if isinstance(value, float):
            started = value
        else:
            calls.append(value)
            started = None
    lost = None
    if started is not None:
        reason = (
            "it did not end, and so its process was ended" if is_late else f"it ended its process ({how})"
        )
        lost = Lost("timeout" if is_late else "failed", reason, max(0.0, time.monotonic() - started))
    return Probed(functions, error, tuple(calls), stderr, lost)


def _values(told: bytes) -> Iterator[Any]:
    """What the process told, up to where it ended, or was ended, in the middle of a word."""
    unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=ANSWER_BYTES)
    unpacker.feed(told)
    yield from unpacker


def _function(fields: list[Any]) -> Function:
    return Function._make(tuple(each) if isinstance(each, list) else each for each in fields)


def _failed(path: str, code: str, message: str, stderr: str) -> Probed:
    hint = stderr.strip()[-STDERR_CHARACTERS:] or None
    return Probed((), Diagnostic("error", code, path, None, None, None, message, hint), stderr=stderr)
