"""Every file of a workspace that can run code, or that decides what runs, with its SHA-256.

    hooks.json                                PRX
    .prxbus/config.toml                       settings, transforms, further hook files
    .prxbus/hooks.json, .bitfun/config/...    the Codex family, and what [[hook_file]] names
    .prxbus/handlers/**                       Python, its neighbours and compiled files
    plugins/*/plugin.toml, its component      WASM
    what a command of those names             where that is a file of the workspace

Decides what belongs to that list. What a file loads in turn is not in it. A link is followed inside the
workspace; one that leads out makes the workspace one that cannot be trusted, except a program's that a
command names: there the link itself is recorded, since the command could name what is behind it, too.
Nothing is executed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import Final, NamedTuple

from ..config import files as configuration
from ..config.layers import Configured
from ..dialects import prx_plugin, prx_plugin_rules, prx_rules
from ..dialects.codex_profiles import BITFUN, CODEX
from ..hooks.trust_record import FILES, PATH_LENGTH, Role
from ..hooks.trust_words import file_words
from . import handlers, plugins
from .codex_layers import BITFUN_WORKSPACE_FILE, WORKSPACE_FILE, is_within, profile_of
from .discover import Signature, read, signature
from .hook_source import Content, Unreadable
from .inspect_files import CONFIGURATION
from .inspect_paths import Place, inspect
from .inspect_world import World, not_loaded
from .plugins import Descriptor

TOTAL_BYTES: Final = 1_073_741_824
"""Bytes of all files together."""

FILE_BYTES: Final = prx_plugin_rules.MAX_WASM_BYTES
"""Bytes of one file; no component may be larger."""

FOLDERS: Final = 1_000
"""Folders below the one of handlers."""

CONFIG_FILE: Final = os.path.join(".prxbus", "config.toml")
EXPLAINED: Final = (CODEX.name, BITFUN.name, prx_rules.NAME, CONFIGURATION)
"""The dialects of a workspace's own files that name commands."""

AGENTS_OWN: Final = ".codex/"
"""Where an agent keeps what it runs itself: nothing else runs that from there."""

_CHUNK: Final = 1_048_576
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LINK: Final = "link"


class TrustedFile(NamedTuple):
    """A file by its path relative to the workspace. ``link`` is where a recorded link leads."""

    path: str
    role: Role
    sha256: str
    size: int
    link: str | None = None


class Fault(NamedTuple):
    """Why a file, and with it the whole workspace, cannot be trusted."""

    path: str
    message: str


class Listing(NamedTuple):
    """What a workspace holds; ``workspace`` is its real path.

    ``looks`` is what all of it looked like from outside before it was read, also what is not there.
    """

    workspace: str
    files: tuple[TrustedFile, ...]
    faults: tuple[Fault, ...]
    looks: Mapping[str, Signature]

    def digests(self) -> dict[str, str]:
        """The SHA-256 of each file by its path."""
        return {file.path: file.sha256 for file in self.files}

    def roles(self) -> dict[str, Role]:
        """The role of each file by its path."""
        return {file.path: file.role for file in self.files}


def look(workspace: str, environ: Mapping[str, str]) -> Listing:
    """Look at everything now. ``workspace`` is absolute. Raises nothing: what cannot be had is a fault."""
    return _Look(os.path.realpath(workspace), environ).everything()


def look_at(workspace: str, paths: Iterable[str]) -> Listing:
    """Look at these files alone, by absolute paths below the real path of ``workspace``."""
    return _Look(os.path.realpath(workspace), {}).only(paths, "command")


def look_at_loaded(workspace: str) -> Listing:
    """Look alone at what is loaded before any event comes: handlers in Python, and the configuration."""
    looking = _Look(os.path.realpath(workspace), {})
    return looking.only((*looking.handlers(), os.path.join(looking.workspace, CONFIG_FILE)), "handlers")


def named_files(workspace: str, command: str | None, args: Sequence[str], cwd: str | None) -> Iterator[str]:
    """The files of a workspace that a command names, by their absolute paths.

    ``workspace`` is its real path. Relative names are tried in it and in ``cwd``, the folder of the run.
    """
    below = workspace.rstrip("/") + "/"
    for word in file_words(command, args):
        for folder in dict.fromkeys((workspace, cwd or workspace)):
            path = os.path.normpath(os.path.join(folder, word))
            if path.startswith(below) and _is_file(path):
                yield path


class _Look:
    def __init__(self, workspace: str, environ: Mapping[str, str]) -> None:
        self.workspace = workspace
        self.environ = environ
        self.looks: dict[str, Signature] = {}
        self.found: dict[str, TrustedFile] = {}
        self.faults: dict[str, Fault] = {}
        self.bytes = 0

    @cached_property
    def configured(self) -> Configured:
        """The configuration of the workspace, unless reading it could block."""
        config = self._at(CONFIG_FILE)
        self.looks[config] = signature(config)
        can_be_had = not isinstance(read(config, configuration.FILE_BYTES), Unreadable)
        return configuration.load(self.environ, {}, self.workspace if can_be_had else None)

    def everything(self) -> Listing:
        """All that belongs to the list."""
        for role, path in self._places():
            self._take(path, role)
        for path in self._named():
            self._take(path, "command")
        return self.listing()

    def only(self, paths: Iterable[str], role: Role) -> Listing:
        """These files alone."""
        for path in paths:
            self._take(path, role)
        return self.listing()

    def listing(self) -> Listing:
        """What was taken."""
        files = tuple(self.found[path] for path in sorted(self.found))
        return Listing(self.workspace, files, tuple(self.faults.values()), self.looks)

    def _places(self) -> Iterator[tuple[Role, str]]:
        """The files that are read where they lie, whether they are there or not."""
        yield "prx", self._at(prx_rules.FILE_NAME)
        yield "config", self._at(CONFIG_FILE)
        yield "hooks", self._at(WORKSPACE_FILE)
        yield "hooks", self._at(BITFUN_WORKSPACE_FILE)
        for file in self.configured.hook_files:
            if file.is_workspace:
                yield "hooks", file.path
        yield from (("handlers", path) for path in self.handlers())
        yield from (("plugin", path) for path in self._plugins())

    def handlers(self) -> Iterator[str]:
        """Every file of handlers."""
        return self._below(self._at(handlers.FOLDER))

    def _at(self, name: str) -> str:
        return os.path.join(self.workspace, name)

    def _below(self, top: str) -> Iterator[str]:
        """Every file below the folder of handlers; a folder that is a link counts as a file."""
        waiting, seen = [top], 0
        while waiting:
            folder = waiting.pop()
            seen += 1
            self.looks[folder] = signature(folder)
            if os.path.islink(folder):  # the first one alone: others are files here
                yield folder
                return
            if seen > FOLDERS:
                self._fault(top, f"there are more than {FOLDERS:,} folders in it")
                return
            try:
                with os.scandir(folder) as entries:
                    listed = sorted(entries, key=lambda entry: entry.name)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._fault(folder, f"the folder cannot be listed: {error.strerror}")
                continue
            waiting += [entry.path for entry in listed if entry.is_dir(follow_symlinks=False)]
            yield from (entry.path for entry in listed if not entry.is_dir(follow_symlinks=False))

    def _plugins(self) -> Iterator[str]:
        top = plugins.folder_of(self.workspace)
        self.looks[top] = signature(top)
        listing = plugins.look(self.workspace)
        if listing.fault is not None:
            self._fault(top, listing.fault.message)
        for name in listing.names:
            manifest = os.path.join(top, name, prx_plugin_rules.FILE_NAME)
            yield manifest
            reading = plugins.read_manifest(self.workspace, name)
            parsed = prx_plugin.parse(reading.text, manifest) if isinstance(reading, Content) else None
            if parsed is not None and parsed.manifest is not None:
                yield os.path.join(top, name, parsed.manifest.wasm)

    def _named(self) -> Iterator[str]:
        """The files of the workspace that commands name."""
        world = World("/", self.environ, lambda _workspace: self.configured, False, not_loaded)
        own = [(Place(self.workspace, False), dialect) for dialect in EXPLAINED]
        further = [
            (Place(file.path, False), file.profile or profile_of(file.path))
            for file in self.configured.hook_files
            if file.is_workspace and os.path.relpath(file.path, self.workspace) in self.found
        ]
        for place, dialect in (*own, *further):
            for file in inspect([place], dialect, world):
                if not os.path.relpath(file.path, self.workspace).startswith(AGENTS_OWN):
                    for handler in file.explained.handlers:
                        yield from named_files(self.workspace, handler.command, handler.args, handler.cwd)

    def _is_below(self, path: str) -> bool:
        return path.startswith(self.workspace.rstrip("/") + "/")

    def _take(self, path: str, role: Role) -> None:
        """Read a file, unless it is known or is not there; what is wrong becomes a fault."""
        self.looks.setdefault(path, signature(path))
        if not os.path.lexists(path) or os.path.relpath(path, self.workspace) in self.found:
            return
        if not self._is_below(path):
            self._fault(path, "it lies outside of the workspace")
            return
        name = os.path.relpath(path, self.workspace)
        if len(name) > PATH_LENGTH or not _is_text(name):
            self._fault(path, "its name is too long, or not UTF-8: rename it")
        elif len(self.found) == FILES:
            self._fault(self.workspace, f"there are more than {FILES:,} files")
        elif not is_within(path, self.workspace):
            self._outside(path, name, role)
        else:
            self._read(path, name, role)

    def _outside(self, path: str, name: str, role: Role) -> None:
        target = os.path.realpath(path)
        if role != "command":
            self._fault(path, f"it is a link out of the workspace, to {target}: put the file itself there")
        elif not _is_text(target):
            self._fault(path, "where the link leads is not UTF-8")
        else:
            digest = hashlib.sha256(f"{_LINK}\0{target}".encode()).hexdigest()
            self.found[name] = TrustedFile(name, role, digest, 0, target)

    def _read(self, path: str, name: str, role: Role) -> None:
        try:
            with closing(Descriptor(os.open(path, _FLAGS))) as file:
                if not stat.S_ISREG(os.fstat(file.number).st_mode):
                    self._fault(path, "it is no regular file")
                    return
                digest, size = _digest(iter(lambda: os.read(file.number, _CHUNK), b""))
        except OSError as error:
            self._fault(path, f"it cannot be read: {error.strerror}")
            return
        self.bytes += size
        if size > FILE_BYTES or self.bytes > TOTAL_BYTES:
            self._fault(path, f"it has more than {FILE_BYTES:,} bytes, or all have {TOTAL_BYTES:,}")
            return
        self.found[name] = TrustedFile(name, role, digest, size)

    def _fault(self, path: str, message: str) -> None:
        self.faults.setdefault(path, Fault(path, message))


def _digest(chunks: Iterable[bytes]) -> tuple[str, int]:
    """SHA-256 and size; a file that is too large is read no further."""
    total, size = hashlib.sha256(), 0
    for chunk in chunks:
        total.update(chunk)
        size += len(chunk)
        if size > FILE_BYTES:
            break
    return total.hexdigest(), size


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return False


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
