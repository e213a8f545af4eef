"""Whether a file of handlers can hold a ``@transform`` at all, read off its bytes.

Loading executes a file. Where nothing in it can transform it is not executed a second time, beside the
process that runs its other handlers. It refuses to load anything; a file that cannot be read may hold one:
loading will say what is wrong.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final

from .handlers import HandlerUnit

_WORD: Final = b"transform"
_READ_BYTES: Final = 1_048_576
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def may_transform(unit: HandlerUnit) -> bool:
    """Whether the word without which nothing is a transform stands somewhere in the unit's files."""
    path = unit.path
    if unit.entry_point is not None:
        source = _source(unit.path.partition(":")[0])
        if source is None:
            return True
        path = os.path.dirname(source) if os.path.basename(source) == "__init__.py" else source
    return any(map(_has_word, _files(path)))


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.endswith(".py")
    ]


def _has_word(path: str) -> bool:
    try:
        with open(os.open(path, _FLAGS), "rb") as file:
            return _WORD in file.read(_READ_BYTES)
    except OSError:
        return True


def _source(module: str) -> str | None:
    """The file of a module in Python; None where there is none to be read."""
    try:
        spec = find_spec(module)
    except Exception:  # its parent package cannot be imported: loading will say so
        return None
    origin = None if spec is None else spec.origin
    return origin if origin is not None and origin.endswith(".py") else None
