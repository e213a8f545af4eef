"""What ``prxbus up`` does with trust: the workspace that it was started in, and the end of trust in it.

Decides when the current directory counts as named, and what is said when it does not. Exactly that directory
counts, not one above it: what is trusted is what ``prxbus trust`` showed. Refuses to start anything.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from broker.cli.terminal import printable
from broker.logs import get_logger

if TYPE_CHECKING:
    from ..config.schema import Settings
    from ..runner.supervisor import Program
    from ..sources.trust_standing import Standing
    from ..sources.trust_watch import TrustWatch

SHOWN: Final = 8
"""Changed files that are named; the rest is counted."""

ASKING: Final = frozenset({"shell", "wasm", "python", "transform", "codex"})
"""The programs that run code of a workspace."""

log = get_logger("prxbus.up")


class Started:
    """How it stands with the directory that ``prxbus up`` was started in, where nothing was named."""

    def __init__(self, folder: str, environ: Mapping[str, str]) -> None:
        from ..sources.trust_standing import standing
        from ..sources.trust_store import TrustStore

        self._store = TrustStore()
        self._environ = environ
        self.folder = folder
        self.standing: Standing = standing(folder, environ, self._store)

    @property
    def workspace(self) -> str | None:
        """The workspace whose hooks run; None: none."""
        return self.folder if self.standing.state == "unchanged" else None

    @property
    def warning(self) -> str | None:
        """Why none of it runs although it was trusted once; None where there is nothing to say."""
        if self.standing.state not in ("changed", "unusable"):
            return None
        then = f"look at it, and run: {command(self.folder)}"
        return f"the hooks of {printable(self.folder)} do not run: {told(self.standing)}; {then}"

    def watch(self, on_lost: Callable[[], None]) -> TrustWatch:
        """A watch over what was recorded; ``on_lost`` is called once, in its thread, when that is over."""
        from ..sources.trust_watch import TrustWatch

        record, listing = self.standing.record, self.standing.listing
        assert record is not None
        assert listing is not None

        def lost(reasons: tuple[str, ...]) -> None:
            log.warning(
                "a trusted workspace was changed, so its hooks run no longer",
                workspace=self.folder,
                changed=[printable(reason) for reason in reasons[:SHOWN]],
                changes=len(reasons),
                then=f"look at it, run {command(self.folder)!r}, and start 'prxbus up' again",
            )
            on_lost()

        return TrustWatch(record, listing, self._environ, self._store, lost)


def here(environ: Mapping[str, str]) -> Started | None:
    """How it stands with the current directory; None where that was deleted."""
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        return None
    return Started(folder, environ)


def gated(programs: Sequence[Program]) -> list[Program]:
    """The programs, with those that run code of a workspace asking before they load or run any."""
    return [
        each._replace(argv=(*each.argv, "--trusted")) if each.name in ASKING else each for each in programs
    ]


def with_port(settings: Settings, said: Mapping[str, Mapping[str, Any]]) -> Settings:
    """The settings with the port that the HTTP API got, by the ready lines: others know it already."""
    port = urlsplit(str(said.get("http", {}).get("http", ""))).port
    if port is None:
        return settings
    return settings.model_copy(update={"http": settings.http.model_copy(update={"port": port})})


def told(standing: Standing) -> str:
    """Why a workspace that was recorded is not trusted, in one line."""
    if standing.state == "unusable":
        return printable("; ".join(standing.reasons))
    names = standing.reasons
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"changed since prxbus trust: {printable(', '.join(names[:SHOWN]))}{more}"


def command(folder: str) -> str:
    """What to type to trust a folder."""
    return f"prxbus trust {shlex.quote(folder)}"
