"""A host of hooks that are JavaScript modules, for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from subscribers.runtimes.node_program import NodeMissing, NodeProgram, find_node
from tests.conftest import IN_CI
from tests.integration.module_scene import ModuleScene


def node_or_skip(require_tool: Callable[[str], str]) -> NodeProgram:
    """The installed Node; without one that will do, the test is skipped here and fails in CI."""
    found = find_node(os.environ.get("PRXBUS_TEST_NODE") or require_tool("node"), os.environ)
    if isinstance(found, NodeMissing):
        if IN_CI:
            pytest.fail(found.reason, pytrace=False)
        pytest.skip(found.reason)
    return found


class NodeScene(ModuleScene):
    """A host, what its hooks say, and the folder of their modules."""

    def javascript(self, hook_id: str, source: str, config: Any = None, name: str | None = None) -> None:
        """Write a hook's module and want it."""
        file = name or f"{hook_id}.mjs"
        self.write(file, source)
        self.want(hook_id, file, config)


@contextmanager
def node_hooks(node: NodeProgram, folder: Path, **limits: int) -> Iterator[NodeScene]:
    """A host from its start to an end in order, after which nothing is left of it."""
    scene = NodeScene(folder, node.argv(**limits), board=False)
    scene.host.start()
    try:
        yield scene
    finally:
        pid = scene.host.pid
        scene.host.close(5.0)
    assert pid is not None
    assert not os.path.exists(f"/proc/{pid}")
