"""What the tests of plugins need beside prxbus; without it they are skipped here, and CI promises it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec

import pytest


def test_the_extra_wasm_is_installed() -> None:
    """Without wasmtime the tests of plugins are skipped: in CI that is a failure."""
    if find_spec("wasmtime") is None:
        assert not os.environ.get("CI"), "wasmtime is missing, and CI promises it"
        pytest.skip("the extra wasm is not installed")


def test_what_builds_the_python_example_is_installed(
    require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """componentize-py is beside this Python."""
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    assert require_tool("componentize-py")
