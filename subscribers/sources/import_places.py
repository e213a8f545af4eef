"""Where imported hooks are kept: one store for the user, one for each workspace.

Stores lie in the user's data directory, never in a workspace and never beside an agent's own files. Decides
paths only. It refuses to know what is in a store.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Scope: TypeAlias = Literal["user", "project"]
"""Whose an import is: the user's, everywhere; or a workspace's, there alone. It follows its source."""

SCOPES: Final[tuple[Scope, ...]] = ("user", "project")

INDEX_NAME: Final = "index.json"


@dataclass(frozen=True, slots=True)
class ImportPlaces:
    """``root`` holds every store; ``workspace`` is the one at hand, None without one. Both are absolute."""

    root: str
    workspace: str | None = None

    def folder(self, scope: Scope) -> str | None:
        """The store of ``scope``, whether it exists or not; None: a project's, without a workspace.

        A workspace is known by its real path, so that a link to it leads to the same store.
        """
        if scope == "user":
            return os.path.join(self.root, "user")
        if self.workspace is None:
            return None
        real = os.fsencode(os.path.realpath(self.workspace))
        return os.path.join(self.root, "projects", hashlib.sha256(real).hexdigest()[:24])


def import_root(configured: str | None, environ: Mapping[str, str]) -> str:
    """The folder of all stores: what is configured, else ``imports`` in the platform's data directory.

    ``configured`` None: what the user's configuration says, which no workspace's can change, so that every
    process finds the same stores.
    """
    if configured is None:
        from ..config.files import load

        configured = load(environ, {}, None).settings.hooks.import_dir
    if configured:
        return os.path.abspath(os.path.expanduser(configured))
    data = environ.get("XDG_DATA_HOME", "")
    if data.startswith("/"):
        return os.path.join(data, "prxbus", "imports")
    import platformdirs

    return os.path.join(os.path.abspath(platformdirs.user_data_dir("prxbus", appauthor=False)), "imports")
