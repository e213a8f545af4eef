"""An error in somebody's Python, told so that it points at their own line.

Decides what of a traceback is shown: from the first frame in the user's own folder on, without ours. Refuses
to know how the code was called.
"""

from __future__ import annotations

import os
from traceback import FrameSummary, StackSummary, TracebackException
from typing import Final, NamedTuple

from broker.protocol.errors import shown

from ..handlers.registration import HandlerError

FRAMES: Final = 20
"""Innermost frames that are shown."""

CHARACTERS: Final = 2_000
"""Longest traceback; more is left out in the middle."""

REASON_CHARACTERS: Final = 300

_OURS: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY: Final = "<frozen importlib"


class Fault(NamedTuple):
    """What went wrong: in words, where in the user's files (None: nowhere there), and the traceback."""

    reason: str
    path: str | None
    line: int | None
    traceback: str


def fault_of(error: BaseException, folder: str) -> Fault:
    """``error`` as it is told to somebody whose files lie in ``folder``. Raises nothing."""
    try:
        told = TracebackException.from_exception(error, compact=True)
    except Exception as another:  # a class of the user's own may do anything when it is looked at
        name, other = sayable(type(error).__name__), sayable(type(another).__name__)
        return Fault(f"{name} ({other} when told)", None, None, "")
    _trim(told, folder)
    path, line = _place(told, folder)
    said = "".join(told.format_exception_only()).strip().splitlines()[-1:] or [""]
    if isinstance(
        error, HandlerError
    ):  # what a decorator or the context refuses: the class says nothing more
        said[0] = said[0].partition(": ")[2] or said[0]
    reason = _cut(said, REASON_CHARACTERS)
    return Fault(reason, path, line, _cut(["".join(told.format())], CHARACTERS))


def _place(told: TracebackException, folder: str) -> tuple[str | None, int | None]:
    """The innermost line of the user's; of a file that cannot be parsed the line that cannot."""
    filename = getattr(told, "filename", None)
    if filename is not None and told.lineno is not None and _lies_in(filename, folder):
        return filename, int(told.lineno)
    for frame in reversed(told.stack):
        if _lies_in(frame.filename, folder):
            return frame.filename, frame.lineno
    return None, None


def _trim(told: TracebackException, folder: str) -> None:
    """Leave out what lies before the user's first frame, and our own frames behind it, in causes too."""
    seen: set[int] = set()
    waiting: list[TracebackException | None] = [told]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.stack = StackSummary.from_list(_from_first(each.stack, folder)[-FRAMES:])
        waiting += [each.__cause__, each.__context__]


def _from_first(stack: list[FrameSummary], folder: str) -> list[FrameSummary]:
    kept = [frame for frame in stack if _lies_in(frame.filename, folder) or not _is_ours(frame.filename)]
    for index, frame in enumerate(kept):
        if _lies_in(frame.filename, folder):
            return kept[index:]
    return []


def _lies_in(filename: str, folder: str) -> bool:
    return bool(folder) and filename.startswith(os.path.join(folder, ""))


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OURS, _LIBRARY))


def sayable(text: str) -> str:
    """``text`` as JSON and a terminal can have it: a lone surrogate stands escaped, as in ``repr``."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _cut(texts: list[str], most: int) -> str:
    text = sayable("".join(texts))
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[...]\n{text[-most // 2 :]}" if "\n" in text else shown(text, most)[1:-1]
