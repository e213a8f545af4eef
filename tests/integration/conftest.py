"""Fixtures for tests with real processes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from subscribers.runtimes.node_program import NodeProgram
from tests.integration.node_scene import node_or_skip


@pytest.fixture(scope="module")
def node(require_tool: Callable[[str], str]) -> NodeProgram:
    """The installed Node."""
    return node_or_skip(require_tool)
