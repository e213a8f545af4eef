"""The hook command of an attached agent: hand its payload to ``prxbus up``, and give back what that says.

    python -I -S prxbus_hook.py DIALECT SOCKET SECONDS open|closed  < PAYLOAD

It lives as long as an agent waits, for every single event, so it imports only what is built into the
interpreter and never looks into the payload. It decides what happens when nobody answers: ``open`` lets the
agent go on and keeps the event for the next ``prxbus up``, ``closed`` blocks with exit code 2. SECONDS is
its whole time. What is asked and answered, and in which form, is decided at the other end of SOCKET.

One request: ``PXH1``, the lengths of three parts in four bytes each, and these: dialect, policy, milliseconds
left and working directory with NULs between them; the environment, ``NAME=VALUE`` with NULs between; the
payload. One reply: exit code and the lengths of two parts, again in four bytes each, then stdout and stderr.
"""

import posix
import sys
import time
from _signal import (  # type: ignore[import-not-found] # `signal` would load half the library
    ITIMER_REAL,
    SIG_UNBLOCK,
    SIGALRM,
    pthread_sigmask,
    setitimer,
    signal,
)
from _socket import AF_UNIX, SOCK_STREAM, socket

MAGIC = b"PXH1"
PAYLOAD_BYTES = 67_108_864
CHUNK_BYTES = 65_536

SPOOL = b"/hook-spool"
"""Where events wait for a bus, beside the socket: a file each, the request without the environment."""
SPOOLED_FILES = 512
SPOOLED_BYTES = 33_554_432
DROPPED = b"/dropped"
"""Grows by a byte with each event for which the spool has no room."""

SECRETS = (b"PRXBUS_API_TOKEN", b"PRXBUS_HOOK_TOKEN")
"""Variables that are never handed on."""

ABSENT = 75
"""Exit code in a reply by which the other end says that there is no bus."""

CONTINUE = 0
BLOCK = 2
"""Exit code by which a hook of this family says no."""


def main(arguments: list[str]) -> int:
    """Take one payload from stdin and return the exit code, after writing what the agent is to read."""
    coding = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    dialect, path, seconds, policy = [each.encode(*coding) for each in arguments]
    closed = policy == b"closed"

    def late(*_: object) -> None:
        """The time is over, whatever was being waited for."""
        posix._exit(refuse(b"no answer within %s s" % seconds, closed))

    ends = time.monotonic() + float(seconds)
    signal(SIGALRM, late)
    pthread_sigmask(SIG_UNBLOCK, (SIGALRM,))
    setitimer(ITIMER_REAL, float(seconds))
    payload = read_payload()
    if payload is None:
        return refuse(b"a payload of more than %d bytes" % PAYLOAD_BYTES, closed)
    head = b"\0".join((dialect, policy, b"%d" % ((ends - time.monotonic()) * 1e3), directory()))
    if not is_private(path.rpartition(b"/")[0]):
        return absent(path, head, payload, closed)
    link = socket(AF_UNIX, SOCK_STREAM)
    try:
        link.connect(path)
    except OSError:
        return absent(path, head, payload, closed)
    try:
        link.sendall(request(head, environment(), payload))
        reply = receive(link)
    except OSError:
        reply = None
    if reply is None:
        return refuse(b"prxbus ended before it answered", closed)
    status, out, said = reply
    if status == ABSENT:
        return absent(path, head, payload, closed)
    write(1, out)
    write(2, said)
    return status


def read_payload() -> bytes | None:
    """All of stdin; None when it is too large."""
    parts = []
    size = 0
    while part := posix.read(0, CHUNK_BYTES):
        parts.append(part)
        size += len(part)
        if size > PAYLOAD_BYTES:
            return None
    return b"".join(parts)


def directory() -> bytes:
    """The agent's working directory; nothing where it was deleted."""
    try:
        return posix.getcwdb()
    except OSError:
        return b""


def environment() -> bytes:
    """The agent's environment, without secrets of ours."""
    return b"\0".join([b"%s=%s" % pair for pair in posix.environ.items() if pair[0] not in SECRETS])


def request(head: bytes, variables: bytes, payload: bytes) -> bytes:
    """The one message that is sent."""
    sizes = b"".join([len(part).to_bytes(4, "big") for part in (head, variables, payload)])
    return b"".join((MAGIC, sizes, head, variables, payload))


def receive(link: socket) -> tuple[int, bytes, bytes] | None:
    """Exit code, stdout and stderr; None when the other end broke off."""
    held = b""
    need = 12
    while len(held) < need:
        part = link.recv(CHUNK_BYTES)
        if not part:
            return None
        held += part
        if need == 12 and len(held) >= 12:
            need += int.from_bytes(held[4:8], "big") + int.from_bytes(held[8:12], "big")
    middle = 12 + int.from_bytes(held[4:8], "big")
    return int.from_bytes(held[:4], "big"), held[12:middle], held[middle:need]


def refuse(why: bytes, closed: bool) -> int:
    """The exit code without an answer."""
    if closed:
        write(2, b"prxbus: " + why + b"; this hook is set to block without an answer\n")
    return BLOCK if closed else CONTINUE


def absent(path: bytes, head: bytes, payload: bytes, closed: bool) -> int:
    """No bus is there: keep the event for the next one. Returns the exit code."""
    try:
        spool(path.rpartition(b"/")[0], request(head, b"", payload))
    except OSError:
        pass  # nothing that could be written, and nobody who could be told
    return refuse(b"no bus answers at " + path + b" (start it with 'prxbus up')", closed)


def spool(bus: bytes, message: bytes) -> None:
    """Write ``message`` to the spool in the directory ``bus``, or count it where there is no room.

    Raises OSError.
    """
    for folder in (bus, bus + SPOOL):
        try:
            posix.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        if not is_private(folder):
            return
    size = len(message)
    number = 0
    with posix.scandir(bus + SPOOL) as entries:
        for entry in entries:
            number += 1
            size += entry.stat(follow_symlinks=False).st_size
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW
    if number >= SPOOLED_FILES or size > SPOOLED_BYTES:
        write_file(bus + SPOOL + DROPPED, flags | posix.O_APPEND, b".")
        return
    name = b"%d-%d" % (time.time_ns(), posix.getpid())
    hidden = b"%s%s/.%s" % (bus, SPOOL, name)
    write_file(hidden, flags | posix.O_EXCL, message)
    posix.rename(hidden, b"%s%s/%s" % (bus, SPOOL, name))


def is_private(directory: bytes) -> bool:
    """Whether this is a directory of our user that nobody else can enter."""
    try:
        found = posix.lstat(directory)
    except OSError:
        return False
    return found.st_mode & 0o170077 == 0o040000 and found.st_uid == posix.geteuid()


def write_file(path: bytes, flags: int, content: bytes) -> None:
    """Write to a file of ours alone. Raises OSError."""
    descriptor = posix.open(path, flags, 0o600)
    try:
        write(descriptor, content)
    finally:
        posix.close(descriptor)


def write(descriptor: int, content: bytes) -> None:
    """Write all of it; a reader that has gone is no error of ours."""
    try:
        while content:
            content = content[posix.write(descriptor, content) :]
    except BrokenPipeError:
        pass


def guarded(arguments: list[str]) -> int:
    """The exit code, whatever goes wrong: that is no answer, while an interpreter's error blocks nobody."""
    try:
        return main(arguments)
    except BaseException as error:
        return refuse(repr(error).encode("utf-8", "replace"), arguments[3:] == ["closed"])


def run(arguments: list[str]) -> None:
    """Be the command, without the interpreter's tidying up at its end: a tenth of its life."""
    posix._exit(guarded(arguments))
