"""The process of ``prxbus up`` at which attached agents arrive: whether there is one.

It starts after those that decide, so that no agent's event passes before they listen, and ends before them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..runner.supervisor import Program

if TYPE_CHECKING:
    from ..config.schema import Settings

RANK = 2


def agents_program(settings: Settings, directory: str) -> Program | None:
    """The process, or None where none is wanted."""
    if not settings.agents.enabled:
        return None
    argv = (sys.executable, "-P", "-m", "subscribers.runner.hook_socket_service", "--lifeline")
    return Program(
        "agents", (*argv, "--runtime-dir", directory, "--log-level", settings.log.level), rank=RANK
    )
