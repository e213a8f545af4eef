"""How the Python module host is started, for :class:`~subscribers.runtimes.module_host.ModuleHost`.

Decides its command line. Refuses to know who starts it. ``board=True`` belongs to it.
"""

from __future__ import annotations

import sys
from typing import Literal


def python_host_argv(
    *,
    memory_mb: int | None = None,
    log_level: Literal["debug", "info", "warn", "error"] = "info",
    program: str = "subscribers.runtimes.python_module_host",
) -> list[str]:
    """The command line. ``memory_mb``: what hooks may use together, in MiB; None: no limit.

    ``program`` is a module that calls the host's ``main`` with what it lends it.
    """
    argv = [sys.executable, "-P", "-m", program, "--log-level", log_level]
    return argv if memory_mb is None else [*argv, "--memory-mb", str(memory_mb)]
