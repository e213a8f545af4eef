"""Waiting for a condition instead of sleeping; for the tests of this folder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def until(condition: Callable[[], object], what: str, seconds: float = 40.0) -> None:
    """Return when ``condition`` is true; fail naming ``what`` when that does not happen in ``seconds``."""
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        pause.wait(0.01)
