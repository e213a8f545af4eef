"""A process that ends in order when the one that started it is gone.

The starter keeps the writing end of a pipe open for as long as it lives, and gives the reading end as
standard input: no process id to mistake, and it works however the starter ended.
"""

from __future__ import annotations

import os
import signal
import threading


def hold(descriptor: int = 0) -> None:
    """Send this process a SIGTERM when the other end of the pipe ``descriptor`` is closed."""
    threading.Thread(target=_watch, args=(descriptor,), name="prxbus-lifeline", daemon=True).start()


def _watch(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4_096):
            pass
    except OSError:
        return  # it was no pipe: nobody holds the other end
    os.kill(os.getpid(), signal.SIGTERM)
