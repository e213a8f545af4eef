"""The environments of attached agents, kept for the command handlers that run on their behalf.

An agent's environment holds secrets, so it is never published: it lies in a file of mode 0600 below the
bus's private directory, and an event names it by an id that says nothing (``agent_context`` of its payload).
Decides where these files are, how many, and how long they stay. Refuses to know who reads them.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Final, NamedTuple

DIRECTORY: Final = "agent-contexts"
"""Their directory in the bus's runtime directory."""

ENVIRONMENT_BYTES: Final = 4_194_304
"""Largest environment that is kept; the kernel gives no program a larger one."""

KEPT: Final = 64
"""Environments at a time; the least recently used goes first."""

KEPT_SECONDS: Final = 900.0
"""An environment that no event has used for so long is removed."""

_ID: Final = re.compile(r"[0-9a-f]{32}")


def save(runtime_dir: str, environment: Mapping[str, str]) -> str:
    """Keep ``environment`` in the bus's directory; returns its id. Raises OSError."""
    return _save(os.path.join(runtime_dir, DIRECTORY), encode_environment(environment))


def load(runtime_dir: str, context: str) -> dict[str, str] | None:
    """The environment with this id; None when it is not (or no longer) there, or not a private file of ours.

    ``context`` may come from anybody's event: what is no id is never looked up.
    """
    if not _ID.fullmatch(context):
        return None
    try:
        descriptor = os.open(
            os.path.join(runtime_dir, DIRECTORY, context),
            os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
        )
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return None
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(ENVIRONMENT_BYTES + 1)
    finally:
        os.close(descriptor)
    return decode_environment(content) if len(content) <= ENVIRONMENT_BYTES else None


def remove(runtime_dir: str, context: str) -> None:
    """Nobody is to load ``context`` any more. One that is gone is no error."""
    if _ID.fullmatch(context):
        with suppress(OSError):
            os.unlink(os.path.join(runtime_dir, DIRECTORY, context))


def encode_environment(environment: Mapping[str, str]) -> bytes:
    """``NAME=VALUE`` with NULs between, in bytes as the system had them."""
    return b"\0".join(os.fsencode(f"{name}={value}") for name, value in environment.items())


def decode_environment(content: bytes) -> dict[str, str]:
    """The environment that was encoded as ``content``; an entry without a name is left out."""
    entries = (os.fsdecode(entry).partition("=") for entry in content.split(b"\0"))
    return {name: value for name, separator, value in entries if name and separator}


class _Kept(NamedTuple):
    context: str
    used: float


class Contexts:
    """The environments of the agents that are at work: the same one is kept once, however many its events.

    ``now`` gives seconds of a steady clock. For one process per bus: what an earlier one left is removed.
    """

    def __init__(self, runtime_dir: str, now: Callable[[], float]) -> None:
        self._runtime_dir = runtime_dir
        self._directory = os.path.join(runtime_dir, DIRECTORY)
        self._now = now
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        with suppress(FileExistsError):
            os.mkdir(self._directory, 0o700)
        os.chmod(self._directory, 0o700)
        for name in os.listdir(self._directory):
            remove(runtime_dir, name)

    def hold(self, environment: bytes) -> str | None:
        """The id of an encoded ``environment``, saved if it is new; None when it is empty or too large.

        Raises OSError when it cannot be written.
        """
        if not environment or len(environment) > ENVIRONMENT_BYTES:
            return None
        digest = blake2b(environment, digest_size=16).digest()
        kept = self._kept.get(digest)
        is_there = kept is not None and os.path.exists(os.path.join(self._directory, kept.context))
        context = kept.context if kept is not None and is_there else _save(self._directory, environment)
        self._kept[digest] = _Kept(context, self._now())
        self._kept.move_to_end(digest)
        self.tidy()
        return context

    def tidy(self) -> None:
        """Remove what is too old or too much."""
        oldest = self._now() - KEPT_SECONDS
        while self._kept:
            digest, kept = next(iter(self._kept.items()))
            if kept.used >= oldest and len(self._kept) <= KEPT:
                return
            del self._kept[digest]
            remove(self._runtime_dir, kept.context)

    def close(self) -> None:
        """Remove all of them."""
        for kept in self._kept.values():
            remove(self._runtime_dir, kept.context)
        self._kept.clear()


def _save(directory: str, content: bytes) -> str:
    context = secrets.token_hex(16)
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    descriptor = os.open(
        os.path.join(directory, context), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
    )
    with open(descriptor, "wb") as file:
        file.write(content)
    return context
