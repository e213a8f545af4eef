"""The sandbox that the configuration asks for, as the runner uses it.

Decides what every hook can read wherever it lies: the running prxbus, so that ``prxbus pub`` works inside.
Refuses to know how a sandbox is made.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from ..runtimes.sandbox import Bubblewrap, Limits

NONE: Final = "none"


def open_sandbox(kind: str, workspace: str, limits: Limits, prxbus_folder: str) -> Bubblewrap | None:
    """The sandbox of this kind; None for ``none``. Raises SandboxUnavailable."""
    if kind == NONE:
        return None
    packages = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return Bubblewrap(workspace, limits, readable=(prxbus_folder, sys.prefix, sys.base_prefix, packages))
