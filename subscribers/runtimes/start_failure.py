"""Why a program could not be started, in words that say what to change.

Decides the sentence for an error of ``exec`` and its kin. Refuses to start anything; it may look at the file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

_BUSY = "the machine has no room for another process ({}); try again when fewer are running"
_FILES = "too many open files ({}); raise the limit of open files or run fewer hooks at once"

_SENTENCES = {
    errno.ENOEXEC: "{} is neither a program for this machine nor a script: its first line must name an "
    "interpreter, such as #!/bin/sh",
    errno.ENOTDIR: "{} does not exist: a part of its path is not a directory",
    errno.ENAMETOOLONG: "the path of {} is too long",
    errno.ELOOP: "{} is a link that leads back to itself",
    errno.ETXTBSY: "{} is being written right now; it must be closed before it can be run",
}


def explain(error: OSError | ValueError, program: str, cwd: str, strings: Sequence[bytes]) -> str:
    """Say why starting ``program`` in ``cwd`` failed; ``strings`` are its arguments and environment."""
    if isinstance(error, ValueError):  # NUL bytes, names with "=", characters without an encoding
        return f"the arguments or the environment cannot be passed to a program: {error}"
    code = error.errno
    words = os.strerror(code) if code else str(error)
    if error.filename is not None and os.fsdecode(error.filename) == cwd != program:
        return _bad_cwd(code, cwd, words)
    if code == errno.E2BIG:
        return _too_long(program, strings)
    if code == errno.ENOENT:
        return _missing(program)
    if code == errno.EACCES:
        return _forbidden(program)
    if code in (errno.EAGAIN, errno.ENOMEM):
        return _BUSY.format(words)
    if code in (errno.EMFILE, errno.ENFILE):
        return _FILES.format(words)
    return _SENTENCES.get(code or 0, "{} cannot be run: " + words).format(program)


def missing_interpreter(program: str) -> str | None:
    """Why a script could not be started for want of its interpreter; None where that is no obstacle."""
    interpreter = _interpreter(program)
    return None if interpreter is None or os.path.exists(interpreter) else _missing(program)


def _bad_cwd(code: int | None, cwd: str, words: str) -> str:
    if code == errno.ENOENT:
        return f"the working directory {cwd} does not exist"
    if code == errno.ENOTDIR:
        return f"the working directory {cwd} is not a directory"
    return f"the working directory {cwd} cannot be entered: {words}"


def _too_long(program: str, strings: Sequence[bytes]) -> str:
    total = sum(len(string) + 1 for string in strings)
    longest = max(strings, key=len)
    name = longest[:40].decode("utf-8", "replace")
    return (
        f"the arguments and environment of {program} are too long: {total} bytes, {len(longest)} of them "
        f"in {name!r}...; Linux takes at most 131071 bytes in one and a quarter of the stack limit in all. "
        "Pass large data through a file or standard input"
    )


def _missing(program: str) -> str:
    if not os.path.lexists(program):
        return f"{program} does not exist"
    if not os.path.exists(program):
        return f"{program} is a link to {os.path.realpath(program)}, which does not exist"
    interpreter = _interpreter(program)
    if interpreter is None:
        return f"{program} exists, but the loader that it was built for does not"
    if interpreter.endswith("\r"):
        return f"{program} has Windows line endings: it asks for {interpreter!r}; save it with Unix ones"
    return f"{program} cannot be run: its first line names {interpreter}, which does not exist"


def _forbidden(program: str) -> str:
    try:
        mode = os.stat(program).st_mode
    except OSError:
        return f"{program} cannot be reached: a directory on its path may not be entered"
    if stat.S_ISDIR(mode):
        return f"{program} is a directory, not a program"
    if not mode & 0o111:
        return f"{program} is not executable; chmod +x {program}"
    if interpreter := _interpreter(program):
        return f"{program} may not be run: permission denied for it or for its interpreter {interpreter}"
    return f"{program} may not be run: permission denied, or its file system forbids programs (noexec)"


def _interpreter(program: str) -> str | None:
    """What the script's ``#!`` line names, or None if there is no such line that we can read."""
    try:
        descriptor = os.open(program, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        line = os.read(descriptor, 256).split(b"\n", 1)[0]
    finally:
        os.close(descriptor)
    if not line.startswith(b"#!"):
        return None
    words = line[2:].strip(b" \t").split(b" ", 1)
    return os.fsdecode(words[0])
