"""The files of other agents from which hooks can be imported, and where they lie.

Claude Code keeps its hooks in ``settings.json`` (the user's, a project's, and a local one beside it), Codex
in ``hooks.json`` and ``config.toml`` (the user's, and one for each folder from the root of the checkout down
to the workspace). Decides which of those belong to a workspace and what each is called. It refuses to read
them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .import_places import Scope

Agent: TypeAlias = Literal["claude-code", "codex"]

PROFILES: Final[Mapping[Agent, str]] = {"claude-code": "claude", "codex": "codex"}
"""By whose rules the hooks of each agent are read."""

TITLES: Final[Mapping[Agent, str]] = {"claude-code": "Claude Code", "codex": "Codex"}

MAX_FOLDERS: Final = 32
"""Folders from the root of a checkout down to a workspace."""

_GIT_FILE_BYTES: Final = 4_096


@dataclass(frozen=True, slots=True)
class Homes:
    """Where a user's agents keep what is theirs. All paths are absolute."""

    home: str
    claude: str
    codex: str


@dataclass(frozen=True, slots=True)
class Source:
    """One file of hooks: ``key`` is what the user calls it, ``path`` where it is.

    ``config`` is the agent's own folder that it lies in, ``base`` the one that this belongs to: a project's,
    or the one around the user's. ``outer`` are settings that count for it too, the widest first.
    """

    key: str
    agent: Agent
    scope: Scope
    path: str
    config: str
    base: str
    outer: tuple[str, ...] = ()

    @property
    def profile(self) -> str:
        """The name of the profile whose rules hold for it."""
        return PROFILES[self.agent]

    @property
    def title(self) -> str:
        """What to call the agent."""
        return TITLES[self.agent]


def homes(environ: Mapping[str, str]) -> Homes:
    """The user's folders: ``CLAUDE_CONFIG_DIR`` and ``CODEX_HOME``, else ``.claude`` and ``.codex``."""
    home = os.path.abspath(environ.get("HOME") or os.path.expanduser("~"))
    claude = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    codex = environ.get("CODEX_HOME") or os.path.join(home, ".codex")
    return Homes(home, os.path.abspath(claude), os.path.abspath(codex))


def is_remote(workspace: str) -> bool:
    """Whether a workspace is named by an address: it is on another machine, where nothing of ours can run."""
    scheme, colon, _ = workspace.partition("://")
    return bool(colon) and scheme.replace("-", "").replace("+", "").isalnum()


def find_sources(found: Homes, workspace: str | None) -> tuple[Source, ...]:
    """Every file that could hold hooks for a workspace, whether it exists or not; the user's come first.

    A file that is the user's and the workspace's at once, because the workspace is the home, is the user's.
    """
    sources: list[Source] = []
    seen: set[str] = set()
    for source in _candidates(found, workspace):
        real = os.path.realpath(source.path)
        if real not in seen:
            seen.add(real)
            sources.append(source)
    return tuple(sources)


def checkout_root(folder: str) -> str | None:
    """The nearest folder from ``folder`` up that has a ``.git``; None: there is none."""
    for _ in range(MAX_FOLDERS):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return None


def _candidates(found: Homes, workspace: str | None) -> Iterator[Source]:
    user = os.path.join(found.claude, "settings.json")
    around = os.path.dirname(found.claude)
    yield Source("claude:user", "claude-code", "user", user, found.claude, around)
    yield from _codex("codex:user", "", "user", found.codex, os.path.dirname(found.codex), found)
    if workspace is None:
        return
    workspace = os.path.abspath(workspace)
    config = os.path.join(workspace, ".claude")
    shared, local = (os.path.join(config, name) for name in ("settings.json", "settings.local.json"))
    yield Source("claude:project", "claude-code", "project", shared, config, workspace, (user,))
    yield Source("claude:local", "claude-code", "project", local, config, workspace, (user, shared))
    root = checkout_root(workspace)
    primary = None if root is None else _primary(root)
    for folder in _upwards(workspace, root):
        above = "" if folder == workspace else f"@{os.path.relpath(folder, workspace)}"
        place = folder
        if root is not None and primary is not None:  # a linked worktree has the hooks of the first checkout
            place = os.path.normpath(os.path.join(primary, os.path.relpath(folder, root)))
        yield from _codex("codex:project", above, "project", os.path.join(place, ".codex"), place, found)


def _codex(key: str, above: str, scope: Scope, config: str, base: str, found: Homes) -> Iterator[Source]:
    outer = (os.path.join(found.codex, "config.toml"),)
    for name, suffix in (("hooks.json", ""), ("config.toml", "-toml")):
        path = os.path.join(config, name)
        yield Source(f"{key}{suffix}{above}", "codex", scope, path, config, base, outer)


def _upwards(workspace: str, root: str | None) -> Iterator[str]:
    """The workspace, and the folders above it up to ``root``."""
    folder = workspace
    for _ in range(MAX_FOLDERS):
        yield folder
        if root is None or folder == root:
            return
        folder = os.path.dirname(folder)


def _primary(root: str) -> str | None:
    """The first checkout of a linked worktree (gitrepository-layout); None: ``root`` is no linked one."""
    try:
        with open(os.path.join(root, ".git"), "rb") as file:
            said = os.fsdecode(file.read(_GIT_FILE_BYTES)).strip()
        if not said.startswith("gitdir:"):
            return None
        linked = os.path.join(root, said.removeprefix("gitdir:").strip())
        with open(os.path.join(linked, "commondir"), "rb") as file:
            shared = os.fsdecode(file.read(_GIT_FILE_BYTES)).strip()
    except OSError:
        return None
    return os.path.dirname(os.path.realpath(os.path.join(linked, shared)))
