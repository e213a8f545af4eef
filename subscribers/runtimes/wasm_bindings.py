"""Two things that wasmtime's Python layer needs before many threads may run components at once.

* What a host function returns is converted with the help of one set that all threads share. Each thread gets
  its own.
* A list of bytes is converted byte by byte, in Python: 2 µs each, holding the interpreter, so that one plugin
  that stores 64 KiB would hold up the others for 130 ms. Here it is done in one step.

Both are changed in the library when :func:`mend` is called, once a process; nothing else here is private
business of the library. Where it no longer has these names, they are left as they are.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

from wasmtime import _ffi as ffi
from wasmtime.component import _types

_lock = threading.Lock()
_mended = False

_Val = ffi.wasmtime_component_val_t
_SIZE = ctypes.sizeof(_Val)
_KIND: int = _Val.kind.offset
_BYTE: int = _Val.of.offset


class _SetOfThread(threading.local):
    """As much of a set as the library uses, with other content in each thread."""

    def __init__(self) -> None:
        self._found: set[type] = set()

    def add(self, item: type) -> None:
        self._found.add(item)

    def clear(self) -> None:
        self._found.clear()

    def __iter__(self) -> Iterator[type]:
        return iter(self._found)


def mend() -> None:
    """Change the library, the first time."""
    global _mended  # noqa: PLW0603 - a library is changed once a process
    with _lock:
        if _mended:
            return
        if isinstance(getattr(_types, "case_test_cache", None), set):
            _types.case_test_cache = _SetOfThread()  # type: ignore[assignment]
        _mend_lists(_types.ListType)
        _mended = True


def _mend_lists(lists: type[_types.ListType]) -> None:
    lower, lift = lists.convert_to_c, lists.convert_from_c

    def convert_to_c(self: _types.ListType, store: Any, value: Any, out: Any) -> None:
        if not (isinstance(value, bytes) and self._is_bytes()):
            lower(self, store, value, out)
            return
        raw = ffi.wasmtime_component_vallist_t()
        ffi.wasmtime_component_vallist_new_uninit(raw, len(value))
        if value:
            buffer = (ctypes.c_ubyte * (len(value) * _SIZE)).from_address(ctypes.addressof(raw.data.contents))
            cells = memoryview(buffer).cast("B")
            cells[_KIND::_SIZE] = bytes([ffi.WASMTIME_COMPONENT_U8.value]) * len(value)
            cells[_BYTE::_SIZE] = value
        out.contents.kind = ffi.WASMTIME_COMPONENT_LIST
        out.contents.of.list = raw

    def convert_from_c(self: _types.ListType, found: Any) -> Any:
        if not self._is_bytes():
            return lift(self, found)
        cells = found.of.list
        value = b""
        if cells.size:  # a view with a stride: the cells are 32 times as large as what is taken from them
            address = ctypes.addressof(cells.data.contents)
            buffer = (ctypes.c_ubyte * (cells.size * _SIZE)).from_address(address)
            value = bytes(memoryview(buffer).cast("B")[_BYTE::_SIZE])
        ffi.wasmtime_component_vallist_delete(ctypes.byref(cells))
        return value

    setattr(lists, "convert_to_c", convert_to_c)  # noqa: B010 - mypy has no word for what is done here
    setattr(lists, "convert_from_c", convert_from_c)  # noqa: B010
