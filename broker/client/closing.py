"""What every client has in common: ``with`` closes it.

Decides nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Something that is closed at the end of its ``with`` block."""

    @abstractmethod
    def close(self) -> None:
        """End. Safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
