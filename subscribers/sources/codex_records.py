"""Codex's records of what its user has reviewed, where its user keeps them: read, and never written.

It decides which file that is. A file that is not there, or cannot be read, has no records; nothing is said
of it, for it is another program's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..dialects.codex_spec import TrustState
from ..dialects.codex_toml import TomlRefused, read_toml
from ..dialects.codex_trust import read_states
from . import discover
from .hook_source import Content
from .import_sources import homes

CONFIG: str = "config.toml"
LARGEST: int = 1_048_576
"""Bytes of such a file; a larger one is left alone."""


def records(environ: Mapping[str, str]) -> dict[str, TrustState]:
    """The user's records by key; empty where there is no file of Codex's that can be read."""
    reading = discover.read(os.path.join(homes(environ).codex, CONFIG), LARGEST)
    if not isinstance(reading, Content):
        return {}
    try:
        return read_states(read_toml(reading.text).state)
    except TomlRefused:
        return {}
