"""What every client has in common: ``with`` closes it, and so does being forgotten, with a warning.

Decides nothing else.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Something that is closed at the end of its ``with`` block."""

    _closed = True  # until a constructor has come far enough that there is something to close

    @abstractmethod
    def close(self) -> None:
        """End. Safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._closed:
            warnings.warn(
                f"a {type(self).__name__} was not closed; use 'with'", ResourceWarning, stacklevel=2
            )
            self.close()
