"""What ``prxbus up`` decides about LibreFang: which home, if any, and what the shell subscriber is told.

A home is the user's own: named by the user, or ``~/.librefang``. It refuses to look at the hooks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from broker.cli.exits import UsageError

from ..sources.librefang_home import HOME_VARIABLE, find_home

if TYPE_CHECKING:
    from ..config.schema import Settings


def librefang_home(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """The home whose hooks run, or None.

    One that was named for prxbus must be there: else UsageError is raised. ``LIBREFANG_HOME`` is there for
    LibreFang too, which makes the folder itself: without one there is a notice, and the bus runs.
    """
    if not settings.librefang.enabled:
        return None
    named = settings.librefang.home
    try:
        home = find_home(named, environ)
    except FileNotFoundError:
        raise UsageError(
            "the LibreFang home cannot be found: the current directory was deleted; "
            "name it by its absolute path"
        ) from None
    if home is None or os.path.isdir(home):
        return home
    if named is not None:
        raise UsageError(f"LibreFang home {home!r} is not a directory; create it, or name another")
    print(
        f"prxbus up: {HOME_VARIABLE} names {home!r}, which is not a directory: no LibreFang hooks run",
        file=sys.stderr,
    )
    return None


def librefang_arguments(settings: Settings, home: str | None) -> tuple[str, ...]:
    """What the shell subscriber is told."""
    if home is None:
        return ()
    return ("--librefang-home", home, "--librefang-reload", settings.librefang.reload)


def of_home(said: Mapping[str, Any]) -> str:
    """What the ready line says of it."""
    count = said["hooks"]
    return f"; {count} LibreFang {'hook' if count == 1 else 'hooks'} of {said['home']}"
