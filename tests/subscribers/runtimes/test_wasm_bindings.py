"""What is changed in wasmtime's Python layer."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from wasmtime.component import _types

from subscribers.runtimes.wasm_bindings import mend


def test_the_librarys_set_is_each_threads_own() -> None:
    """What one thread puts in, or clears, another one does not see: its conversion is not disturbed."""
    mend()
    mend()
    shared = _types.case_test_cache
    shared.clear()
    shared.add(bytes)
    seen: list[tuple[type, ...]] = []

    def other() -> None:
        seen.append(tuple(shared))
        shared.add(str)
        shared.clear()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [()]
    assert tuple(shared) == (bytes,)
    shared.clear()
