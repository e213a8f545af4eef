"""Which plugins a workspace has, and a guarded look at each.

A plugin is a folder of ``<workspace>/plugins`` with a manifest. Nothing here is a symbolic link: neither that
folder, nor a plugin's, nor its manifest and component, so that a workspace cannot have files from elsewhere
read as its own. A look never blocks and is bounded in every direction. It refuses to know what files mean.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from ..dialects.prx_plugin_rules import FILE_NAME, FOLDER, MAX_FILE_BYTES, MAX_PLUGINS, MAX_WASM_BYTES
from .discover import Signature
from .hook_source import Absent, Content, Reading, Unreadable

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC

_LINK: Final = Unreadable(
    "symbolic_link", "this is, or lies behind, a symbolic link", "put the files themselves there"
)


@dataclass(frozen=True, slots=True)
class Listing:
    """The folders of plugins, by name.

    ``left_out`` counts those beyond the limit; ``fault`` says why none can be seen.
    """

    names: tuple[str, ...] = ()
    left_out: int = 0
    fault: Unreadable | None = None


class Descriptor:
    """An open file or folder that is closed with a ``with`` block."""

    def __init__(self, number: int) -> None:
        self.number = number

    def close(self) -> None:
        """Close it."""
        os.close(self.number)


def folder_of(workspace: str) -> str:
    """The absolute path of the folder that holds a workspace's plugins."""
    return os.path.join(os.path.abspath(workspace), FOLDER)


def look(workspace: str) -> Listing:
    """The plugins that there are now. Raises nothing: a folder that cannot be had is a listing too."""
    try:
        with closing(_open(folder_of(workspace), ())) as folder, os.scandir(folder.number) as entries:
            names = sorted(entry.name for entry in entries if _may_be_plugin(entry))
    except FileNotFoundError:
        return Listing()
    except OSError as error:
        return Listing(fault=_failed(error))
    return Listing(tuple(names[:MAX_PLUGINS]), max(0, len(names) - MAX_PLUGINS))


def read_manifest(workspace: str, name: str) -> Reading:
    """The manifest of one plugin, now. Raises nothing."""
    return _read(folder_of(workspace), (name, FILE_NAME), MAX_FILE_BYTES)


def read_component(workspace: str, name: str, wasm: str) -> Reading:
    """The component of one plugin, now; ``wasm`` is the path that its manifest names. Raises nothing."""
    return _read(folder_of(workspace), (name, *wasm.split("/")), MAX_WASM_BYTES)


def component_signature(workspace: str, name: str, wasm: str) -> Signature | Unreadable:
    """What the component looks like from outside; None when there is none."""
    try:
        with closing(_open(folder_of(workspace), (name, *wasm.split("/")))) as file:
            found = os.fstat(file.number)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _failed(error)
    if not stat.S_ISREG(found.st_mode):
        return _no_file(found.st_mode)
    if found.st_size > MAX_WASM_BYTES:
        return _too_large(MAX_WASM_BYTES)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _may_be_plugin(entry: os.DirEntry[str]) -> bool:
    """Folders, and links, which are then refused with a word; hidden ones belong to tools."""
    if entry.name.startswith("."):
        return False
    if not entry.is_symlink():
        return entry.is_dir(follow_symlinks=False)
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself, or through a folder that this user may not see
        return True


def _open(folder: str, below: Sequence[str]) -> Descriptor:
    """Open ``folder``, or what lies ``below`` it, without following a link from there on."""
    number = os.open(folder, _FOLDER)
    for index, name in enumerate(below):
        is_last = index == len(below) - 1
        try:
            inner = os.open(name, _FILE if is_last else _FOLDER, dir_fd=number)
        finally:
            os.close(number)
        number = inner
    return Descriptor(number)


def _read(folder: str, below: Sequence[str], most: int) -> Reading:
    try:
        with closing(_open(folder, below)) as file:
            mode = os.fstat(file.number).st_mode
            if not stat.S_ISREG(mode):
                return _no_file(mode)
            with open(file.number, "rb", closefd=False) as stream:
                content = stream.read(most + 1)
    except FileNotFoundError:
        return Absent()
    except OSError as error:
        return _failed(error)
    if len(content) > most:
        return _too_large(most)
    return Content(content, hashlib.sha256(content).hexdigest())


def _no_file(mode: int) -> Unreadable:
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe, socket or device"
    return Unreadable("not_a_file", f"this is {what}, not a file", "put a regular file there")


def _too_large(most: int) -> Unreadable:
    return Unreadable("file_too_large", f"the file has more than {most} bytes", None)


def _failed(error: OSError) -> Unreadable:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return _LINK
    hint = "let this user read it" if isinstance(error, PermissionError) else None
    return Unreadable("unreadable", f"this cannot be read: {error.strerror}", hint)
