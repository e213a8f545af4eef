"""``prxbus detach``: our entries out of an agent's settings; everything else is :mod:`.attach`'s."""

from __future__ import annotations

from .attach import add_place as add_arguments
from .attach import run_detach as run

__all__ = ["add_arguments", "run"]
