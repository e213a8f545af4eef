"""Which deciders fail closed, kept in a file, so that a broker that is killed does not open what they guard.

A broker writes them down as they come and go. One that ends in order removes the file; one that finds a file
takes those in it for dead until they are back. Decides where and how that is written; what it means is the
control plane's.
"""

from __future__ import annotations

import os
from typing import Final

import orjson

from ..control.asks import ClosedDecider
from ..logs import get_logger
from ..protocol.envelope import is_text
from ..protocol.errors import BusError
from ..protocol.limits import NAME_BYTES, PRIORITY
from ..protocol.topics import parse_patterns

NAME: Final = "closed-deciders.json"
FILE_BYTES: Final = 16_777_216
"""A larger file is none of ours."""

log = get_logger("broker.closed")


class ClosedDeciders:
    """The file in ``directory``. Errors of the disk are logged: the bus works without it."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, NAME)

    def read(self) -> list[ClosedDecider]:
        """Those that a broker before has left; what is malformed is left out and said."""
        try:
            with open(self._path, "rb") as file:
                rows = orjson.loads(file.read(FILE_BYTES))
            return [_decider(row) for row in rows]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, BusError) as error:
            log.warning("deciders that fail closed cannot be read", path=self._path, error=str(error)[:200])
            return []

    def write(self, deciders: list[ClosedDecider]) -> None:
        """These are all; none: there is no file."""
        if not deciders:
            self.remove()
            return
        fresh = f"{self._path}.new"
        try:
            descriptor = os.open(
                fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
            with open(descriptor, "wb") as file:
                file.write(orjson.dumps([each._asdict() for each in deciders]))
            os.replace(fresh, self._path)
        except OSError as error:
            log.warning("deciders that fail closed cannot be kept", path=self._path, error=str(error))

    def remove(self) -> None:
        """Nobody is missed any more."""
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("deciders that fail closed cannot be forgotten", path=self._path, error=str(error))


def _decider(row: object) -> ClosedDecider:
    """One row; raises ValueError (or a kind of it) for what is none."""
    if not isinstance(row, dict) or set(row) != set(ClosedDecider._fields):
        raise ValueError("a row is not name, priority and patterns")
    name, priority, patterns = row["name"], row["priority"], row["patterns"]
    if not is_text(name, NAME_BYTES) or type(priority) is not int or not -PRIORITY <= priority <= PRIORITY:
        raise ValueError("a name or a priority is none")
    return ClosedDecider(name, priority, tuple(pattern.text for pattern in parse_patterns(patterns)))
