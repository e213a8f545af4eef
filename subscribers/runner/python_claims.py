"""Who handles an event while two versions of a file are in service: whoever claims it first.

While a new worker takes over, both get every event. Each makes a file of the event's name, which only one of
them can; the other leaves the event alone. Decides nothing else, and refuses to know what handling means.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Final, Literal

Role = Literal["on", "decide"]
_FLAGS: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


class Claims:
    """Claims in ``directory``, which belongs to one change of versions. Thread-safe."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._ours: set[bytes] = set()

    def take(self, role: Role, event_id: str) -> bool:
        """Whether the event is ours; asked again, the answer is the same."""
        name = blake2b(f"{role} {event_id}".encode(), digest_size=16).hexdigest()
        key = name.encode()
        if key in self._ours:
            return True
        try:
            os.close(os.open(os.path.join(self._directory, name), _FLAGS, 0o600))
        except FileExistsError:
            return False
        except OSError:  # no room, or the change is over and the folder gone: better twice than never
            return True
        self._ours.add(key)
        return True
