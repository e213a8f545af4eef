"""What a handler of a Python hook module is given beside its input: who it is, ``inject`` and ``log``.

``ctx.hook_name``, ``ctx.config``, ``ctx.session_id``, ``ctx.agent``, ``ctx.inject(text)`` and ``ctx.log``;
the names that the documentation of rolebox uses, ``hookName`` and ``sessionID``, are there, too. A context
may be used from any thread and at any time later: what is injected when the call has been told of goes on
its own.

Decides what may be injected and logged, how large, and how often. Refuses to know how it travels.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from broker.protocol.errors import shown

from .python_traceback import sayable

A_SECOND: Final = 50
"""Records of one hook that are passed on in a second, and texts that no call carries; the rest is counted."""

MESSAGE_CHARACTERS: Final = 8_192
FIELDS_BYTES: Final = 16_384
INJECT_BYTES: Final = 65_536
"""Longest text, and most of all texts of one call, that ``inject`` takes."""

LEVELS: Final = {"debug": 10, "info": 20, "warn": 30, "error": 40}

Send = Callable[[Mapping[str, Any]], object]
"""Sends a frame."""


class Allowance:
    """So many of something in a second; what is beyond it is counted. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._second = 0
        self._count = self._beyond = 0

    def take(self) -> tuple[bool, int]:
        """Whether one more is allowed, and how many were not in the seconds before, if that is news."""
        with self._lock:
            second, beyond = int(time.monotonic()), 0
            if second != self._second:
                self._second, self._count = second, 0
                beyond, self._beyond = self._beyond, 0
            self._count += 1
            is_allowed = self._count <= A_SECOND
            self._beyond += not is_allowed
            return is_allowed, beyond

    def rest(self) -> int:
        """How many were not allowed, if that has not been said."""
        with self._lock:
            beyond, self._beyond = self._beyond, 0
            return beyond


class HookLog:
    """The log of one hook. Thread-safe."""

    def __init__(self, hook_id: str, level: str, send: Send) -> None:
        self._hook_id = hook_id
        self._least = LEVELS[level]
        self._send = send
        self._records = Allowance()

    def debug(self, message: object, fields: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Say what helps to find a fault."""
        self.write("debug", message, fields, more)

    def info(self, message: object, fields: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Say what happened."""
        self.write("info", message, fields, more)

    def warn(self, message: object, fields: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Say what somebody should look at."""
        self.write("warn", message, fields, more)

    def warning(self, message: object, fields: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """The same as :meth:`warn`, as Python calls it."""
        self.write("warn", message, fields, more)

    def error(self, message: object, fields: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Say what went wrong."""
        self.write("error", message, fields, more)

    def write(self, level: str, message: object, fields: object = None, more: object = None) -> None:
        """Pass a record on, unless it is below the level that is wanted, or one too many."""
        if LEVELS[level] < self._least:
            return
        is_allowed, left_out = self._records.take()
        self._tell_left_out(left_out)
        if is_allowed:
            self._record(level, _text(message), _fields(fields, more))

    def flush(self) -> None:
        """Say how many records were left out, if that has not been said."""
        self._tell_left_out(self._records.rest())

    def _tell_left_out(self, count: int) -> None:
        if count:
            most = f"more than {A_SECOND} in a second"
            self._record("warn", f"{count} records of this hook were left out: {most}", {})

    def _record(self, level: str, message: str, fields: Any) -> None:
        self._send({"is": "log", "hook": self._hook_id, "level": level, "message": message, "fields": fields})


def _text(message: object) -> str:
    try:
        text = sayable(message if isinstance(message, str) else str(message))
    except Exception as error:  # a class of the user's own may do anything when it is looked at
        return f"<{type(message).__name__}: {type(error).__name__} when shown>"
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[:MESSAGE_CHARACTERS]}..."


def _fields(fields: object, more: object) -> Any:
    """What stands beside a message, as JSON has it."""
    found = dict(fields) if isinstance(fields, Mapping) else {} if fields is None else {"value": fields}
    if isinstance(more, Mapping):
        found.update(more)
    if not found:
        return found
    try:
        told = orjson.dumps(found, default=_text, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, ValueError) as error:
        return {"fields": f"cannot be JSON: {shown(error, 200)}"}
    if len(told) > FIELDS_BYTES:
        return {"fields": f"left out: {len(told):,} bytes, at most {FIELDS_BYTES:,}"}
    return orjson.loads(told)


class Injected:
    """Texts that a call injects until it is told of. Thread-safe."""

    __slots__ = ("_bytes", "_later", "_lock", "_texts")

    def __init__(self, later: Callable[[str], object]) -> None:
        self._later = later
        self._lock = threading.Lock()
        self._texts: list[str] | None = []
        self._bytes = 0

    def add(self, text: str, size: int) -> bool:
        """Take a text, for the call or to be sent by itself; False if it is one too many."""
        with self._lock:
            if self._texts is not None:
                self._bytes += size
                if self._bytes > INJECT_BYTES:
                    return False
                self._texts.append(text)
                return True
        self._later(text)
        return True

    def close(self) -> list[str]:
        """What was injected; what comes from now on is sent by itself."""
        with self._lock:
            texts, self._texts = self._texts, None
        return texts or []


class Context:
    """Given to a handler for one call.

    ``config`` is the hook's own: what a handler changes in it stays changed for this hook alone.
    ``session_id`` and ``agent`` are None where the event names none.
    """

    __slots__ = ("_injected", "agent", "config", "hook_name", "log", "session_id")

    def __init__(
        self,
        hook_name: str,
        config: Any,
        log: HookLog,
        injected: Injected,
        session_id: str | None = None,
        agent: str | None = None,
    ) -> None:
        self.hook_name = hook_name
        self.config = config
        self.log = log
        self.session_id = session_id
        self.agent = agent
        self._injected = injected

    @property
    def hookName(self) -> str:  # noqa: N802 - as documented
        """The same as ``hook_name``."""
        return self.hook_name

    @property
    def sessionID(self) -> str | None:  # noqa: N802 - as documented
        """The same as ``session_id``."""
        return self.session_id

    def inject(self, text: str) -> None:
        """Have ``text`` appended to the next system prompt of this session. Raises TypeError for no text."""
        if not isinstance(text, str):
            raise TypeError(f"ctx.inject() takes a text, not {type(text).__name__}")
        text = sayable(text)
        size = len(text.encode())
        if size > INJECT_BYTES or not self._injected.add(text, size):
            most = f"at most {INJECT_BYTES:,} bytes in a call"
            self.log.write("warn", f"a text of {size:,} bytes was not injected: {most}")
