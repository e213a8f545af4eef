"""What the files of a role are: one hash of all of them, and how they differ from others.

The form ``prxbus1-`` is SHA-256 over every entry in the order of the paths' bytes: a letter for what it is,
the length of its path in eight bytes, the path, and the SHA-256 of its bytes. Everything below the directory
counts, hidden files too, but what lies in its folder ``.git``, which git changes by itself; of a link its
target counts, not what lies there. Modules that lie elsewhere count by their absolute paths. Refuses to know
what the files mean.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

FORM: Final = "prxbus1-"
MAX_FILES: Final = 10_000
MAX_BYTES: Final = 1_073_741_824
"""Bytes of all files together."""
LEFT_OUT: Final = ".git"
"""A folder of the directory itself; one further down may hold anything."""

_CHUNK: Final = 1_048_576
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NoIntegrity(Exception):
    """The files cannot be read as a whole; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Integrity:
    """The ``hash`` of a role, and what it is made of: the digest of each file, by its path."""

    hash: str
    files: Mapping[str, str]


def integrity_of(directory: str, modules: Iterable[str] = ()) -> Integrity:
    """Of everything in a directory, and of ``modules``, absolute paths of which those elsewhere count too.

    Raises :class:`NoIntegrity`.
    """
    root = os.path.realpath(directory)
    room = Room()
    try:
        entries = dict(_entries(root, room))
        elsewhere = {path for path in modules if os.fsencode(os.path.relpath(path, root)) not in entries}
        entries |= {os.fsencode(path): (b"m", _digest(path, room)) for path in elsewhere}
    except OSError as error:
        raise NoIntegrity(f"{error.filename}: {error.strerror}") from None
    found = hashlib.sha256()
    for path in sorted(entries):
        kind, content = entries[path]
        found.update(kind + len(path).to_bytes(8, "big") + path + content)
    files = {_text(path): (kind + b":").decode() + content.hex() for path, (kind, content) in entries.items()}
    return Integrity(FORM + found.hexdigest(), files)


class Room:
    """What may still be read of a role's files."""

    def __init__(self) -> None:
        self.files = MAX_FILES
        self.bytes = MAX_BYTES

    def take_file(self) -> None:
        """One more entry. Raises :class:`NoIntegrity` when there are too many."""
        self.files -= 1
        if self.files < 0:
            raise NoIntegrity(f"there are more than {MAX_FILES:,} files")

    def take_bytes(self, path: str, number: int) -> None:
        """So many of a file. Raises :class:`NoIntegrity` when there are too many."""
        self.bytes -= number
        if self.bytes < 0:
            raise NoIntegrity(f"with {path} there are more than {MAX_BYTES:,} bytes")


def chunks_of(path: str, room: Room, *, follows: bool = False) -> Iterator[bytes]:
    """The bytes of a file; ``follows`` a link. What has become a pipe meanwhile does not hold anybody up.

    Raises :class:`NoIntegrity` and OSError.
    """
    flags = _FLAGS if follows else _FLAGS | os.O_NOFOLLOW
    with open(os.open(path, flags), "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            room.take_bytes(path, len(chunk))
            yield chunk


def _entries(root: str, room: Room) -> Iterator[tuple[bytes, tuple[bytes, bytes]]]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(os.path.join(root, folder) if folder else root) as listed:
            for entry in listed:
                path = os.path.join(folder, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    waiting += [path] if path != LEFT_OUT else []
                else:
                    yield os.fsencode(path), _entry(os.path.join(root, path), room)


def _entry(path: str, room: Room) -> tuple[bytes, bytes]:
    """What an entry that is no folder is."""
    mode = os.lstat(path).st_mode
    if stat.S_ISREG(mode):
        return b"f", _digest(path, room)
    room.take_file()
    if stat.S_ISLNK(mode):
        return b"l", hashlib.sha256(os.fsencode(os.readlink(path))).digest()
    return b"o", bytes(32)


def _digest(path: str, room: Room) -> bytes:
    room.take_file()
    found = hashlib.sha256()
    for chunk in chunks_of(path, room):
        found.update(chunk)
    return found.digest()


def _text(path: bytes) -> str:
    """A path as a record can hold it."""
    return path.decode("utf-8", "backslashreplace")
