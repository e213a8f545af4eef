"""An agent's settings file: where it is, read and replaced whole, with what it was kept aside.

Decides the places, the copy that is kept, and when a file must not hold a secret because it would be
committed. Refuses to know what is in it.
"""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from .discover import Signature, read, signature
from .hook_source import Content, Unreadable
from .hook_store_files import GuardedFile, StoreBusy
from .import_sources import Homes

AGENTS: Final = ("claude-code", "codex")
SETTINGS_BYTES: Final = 16_777_216
BACKUPS: Final = 32
"""Copies that are kept, of all files; the oldest goes first."""

BACKUP_FOLDER: Final = "attach-backups"
GIT_SECONDS: Final = 5.0
_FILE: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unwritable(Exception):
    """A settings file that cannot be read or replaced; the text says why."""


class Place(NamedTuple):
    """Where an agent's hooks are set. ``shared``: the file of a project that others may get.

    ``project`` is the project's folder, None for the user's own settings.
    """

    agent: str
    profile: str
    path: str
    shared: bool
    project: str | None = None


def state_directory() -> str:
    """Where copies of settings and the token of HTTP hooks are kept: they outlive a bus, as settings do."""
    import platformdirs

    return platformdirs.user_state_dir("prxbus", appauthor=False)


def find_place(agent: str, homes: Homes, project: str | None) -> Place:
    """The file of a user, or of a ``project``'s folder.

    Claude Code has a local file for a project, which is not committed; Codex has one file for everybody.
    """
    if agent == "claude-code":
        if project is None:
            return Place(agent, "claude", os.path.join(homes.claude, "settings.json"), False)
        return Place(agent, "claude", os.path.join(project, ".claude", "settings.local.json"), False, project)
    if project is None:
        return Place(agent, "codex", os.path.join(homes.codex, "hooks.json"), False)
    return Place(agent, "codex", os.path.join(project, ".codex", "hooks.json"), True, project)


def read_settings(path: str) -> tuple[bytes | None, Signature]:
    """The file's bytes, None where there is none, and what it looked like. Raises :class:`Unwritable`."""
    looked = signature(path)
    found = read(path, SETTINGS_BYTES)
    if isinstance(found, Unreadable):
        raise Unwritable(f"{path}: {found.message}")
    return (found.text if isinstance(found, Content) else None), looked


@contextmanager
def changing(state_dir: str) -> Iterator[None]:
    """One change at a time. Raises :class:`Unwritable`."""
    guard = GuardedFile(os.path.join(state_dir, "attach"))
    try:
        os.makedirs(state_dir, 0o700, exist_ok=True)
        with guard.locked():
            yield
    except StoreBusy as error:
        raise Unwritable(str(error)) from None
    except OSError as error:
        raise Unwritable(f"{error.filename or state_dir}: {error.strerror}") from None


def replace_settings(path: str, text: bytes, looked: Signature, state_dir: str) -> str | None:
    """Put ``text`` in place of the file; returns the copy of what it was, None where there was none.

    The copy may hold a token, so it lies in ``state_dir`` for this user alone. A link is followed; mode and
    owner stay. Raises :class:`Unwritable`, and then the file is what it was.
    """
    try:
        os.makedirs(os.path.dirname(os.path.realpath(path)), exist_ok=True)
        copy = keep_copy(path, state_dir)
        if not GuardedFile(path).replace(text, looked):
            raise Unwritable(f"{path} was changed by somebody else meanwhile; nothing was written")
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror}") from None
    return copy


def make_private(path: str) -> None:
    """Close a file to everybody else, before it gets a secret. Raises :class:`Unwritable`."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & 0o077:
            os.chmod(path, mode & 0o700)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unwritable(f"{path} cannot be closed to other users: {error.strerror}") from None


def why_committed(path: str) -> str | None:
    """Why a file may come into a repository, and others may read it; None where it cannot."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    root = _checkout(folder)
    if root is None:
        return None
    if _git(root, "ls-files", "--error-unmatch", "--", target) == 0:
        return f"it is a tracked file of {root}"
    ignored = _git(root, "check-ignore", "-q", "--", target)
    if ignored == 0:
        return None
    return f"it lies in the checkout {root} and is not ignored there"


def _checkout(folder: str) -> str | None:
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def _git(root: str, *words: str) -> int | None:
    """The exit code of git in ``root``; None where there is no git that could tell."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            ("git", "-C", root, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environ,
            timeout=GIT_SECONDS,
            check=False,
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return None


def keep_copy(path: str, state_dir: str) -> str | None:
    """Copy the file into ``state_dir``, for this user alone; None where there is none. Raises OSError."""
    folder = os.path.join(state_dir, BACKUP_FOLDER)
    os.makedirs(folder, 0o700, exist_ok=True)
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    kept = sorted(os.listdir(folder))
    for name in kept[: max(0, len(kept) - BACKUPS + 1)]:
        os.unlink(os.path.join(folder, name))
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    copy = os.path.join(folder, f"{stamp}.{time.time_ns() % 10**9:09}-{os.path.basename(path)}")
    with open(os.open(copy, _FILE, 0o600), "wb") as file:
        file.write(text)
    return copy
