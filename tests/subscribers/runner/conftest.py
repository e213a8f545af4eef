"""Fixtures for the tests of runners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.subscribers.runner.codex_stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A dispatcher of the Codex family without hook files."""
    made = Stage(tmp_path)
    yield made
    made.close()
