"""Data to stdout, the rest to stderr; and what to do when nobody reads.

Decides nothing about what is said. A line on stderr never fails a command.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from .exits import CommandError, command
from .terminal import printable


def emit(text: str) -> None:
    """Print ``text`` and a line end to stdout; characters that its encoding lacks become escapes."""
    if sys.stdout is not None:
        encoding = sys.stdout.encoding or "utf-8"
        emit_bytes(f"{text}\n".encode(encoding, "backslashreplace"))


def emit_bytes(data: bytes) -> None:
    """Print ``data`` to stdout as it is, at once.

    Raises BrokenPipeError when nobody reads it, and :class:`CommandError` when it cannot be written.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_stdout()
        reason = error.strerror or str(error)
        raise CommandError(f"standard output could not be written: {reason}", "stdout") from None


def emit_json(value: Any, *, indent: bool = False) -> None:
    """Print ``value`` as one line of JSON, or indented."""
    import orjson

    emit_bytes(terminal_safe(orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else 0)) + b"\n")


def terminal_safe(json: bytes) -> bytes:
    """``json`` with the control characters escaped that JSON lets pass: DEL and the C1 set."""
    return re.sub(rb"\x7f|\xc2[\x80-\x9f]", lambda match: b"\\u00%02x" % match[0][-1], json)


def note(verb: str, text: str, *, as_json: bool = False, **fields: Any) -> None:
    """Say something beside the data, as one line on stderr; ``fields`` come with it as JSON."""
    if as_json:
        from json import dumps

        say(dumps({**fields, "message": text}))
    else:
        say(f"{command(verb)}: {printable(text)}")


def say(line: str) -> None:
    """Print a line to stderr; if nobody reads there, so be it."""
    if sys.stderr is None:  # closed from the start; print() would take standard output instead
        return
    try:
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        return


def reader_is_gone(descriptor: int = 1) -> bool:
    """Whether stdout is a pipe whose reader has ended: writing to it would break."""
    import select

    poll = select.poll()
    poll.register(descriptor, 0)
    return any(state & (select.POLLERR | select.POLLNVAL) for _, state in poll.poll(0))


def forget_stdout() -> None:
    """Nobody reads stdout any more: let the interpreter's last flush go nowhere."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
