"""Logging for every process of prxbus: one record a line, on stderr.

On a terminal a line is for reading, elsewhere it is one JSON object. structlog does the work and is
imported with the first record that is written: it costs more start-up time and memory than
everything else together, and most commands have nothing to say.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import Any, Final, TextIO

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""Names of the levels and their weight."""


class _Settings:
    level = LEVELS["info"]
    json: bool | None = None
    stream: TextIO | None = None
    backend: Any = None
    lock = threading.Lock()


def configure(level: str = "info", *, json: bool | None = None, stream: TextIO | None = None) -> None:
    """Set what is written from now on, and where.

    ``level`` is one of :data:`LEVELS`. ``json`` is None for "JSON unless the stream is a terminal".
    ``stream`` replaces stderr. Raises :class:`ValueError` for another level. A process that has called this
    ends with its own exit code though nobody reads what it says.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is not one of {', '.join(LEVELS)}")
    with _Settings.lock:
        _Settings.level, _Settings.json, _Settings.stream = LEVELS[level], json, stream
        _Settings.backend = None
    atexit.unregister(_let_go)
    atexit.register(_let_go)


def _let_go() -> None:
    """What is left and cannot be written goes nowhere, or the interpreter would end with 120 over it."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with suppress(OSError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), descriptor)


class Logger:
    """Writes records of one part of the program; ``fields`` stand in each of them.

    A record that cannot be written is lost: logging never ends or stops a process.
    """

    __slots__ = ("_fields", "_name")

    def __init__(self, name: str, **fields: Any) -> None:
        self._name = name
        self._fields = fields

    def bind(self, **fields: Any) -> Logger:
        """A logger with more ``fields``."""
        return Logger(self._name, **{**self._fields, **fields})

    def debug(self, event: str, **fields: Any) -> None:
        """What helps to find a fault."""
        self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """What happened, in ordinary operation."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """What somebody should look at."""
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """What went wrong."""
        self._write("error", event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        """What went wrong, with the traceback of the exception that is being handled."""
        self._write("error", event, {**fields, "exc_info": True})

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        if LEVELS[level] < _Settings.level:
            return
        record = {"logger": self._name, **self._fields, **fields}
        try:
            getattr(_backend(), level)(event, **record)
        except (OSError, ValueError):  # the stream is full, broken or closed
            return


def get_logger(name: str, **fields: Any) -> Logger:
    """A logger for the part ``name``."""
    return Logger(name, **fields)


def warm_up() -> None:
    """Import what writing needs, at a moment when there is time for it."""
    _backend()


def _backend() -> Any:
    with _Settings.lock:
        if _Settings.backend is None:
            _Settings.backend = _build(_Settings.stream or sys.stderr, _Settings.json)
        return _Settings.backend


def _build(stream: TextIO, json: bool | None) -> Any:
    import orjson
    import structlog

    def to_json(record: Any, **_: Any) -> str:
        return orjson.dumps(record, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()

    readable = stream.isatty() if json is None else not json
    renderer: Any
    if readable:
        renderer = structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    else:
        renderer = structlog.processors.JSONRenderer(serializer=to_json)
    processors: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        *([] if readable else [structlog.processors.format_exc_info]),
        renderer,
    ]
    return structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(0),
        cache_logger_on_first_use=True,
    )
