"""The secrets of ours in an environment: what nothing that prxbus runs for a user may inherit.

Decides which names these are, for every kind of handler. Who makes an environment takes them out; the hook
command of an agent, which imports nothing, names them once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

API_TOKEN: Final = "PRXBUS_API_TOKEN"
"""Lets into the HTTP API."""

HOOK_TOKEN: Final = "PRXBUS_HOOK_TOKEN"
"""Lets in the HTTP hooks of agents."""

WITHHELD: Final = (API_TOKEN, HOOK_TOKEN)


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` without our secrets, however their names are written."""
    return {name: value for name, value in environ.items() if name.upper() not in WITHHELD}
