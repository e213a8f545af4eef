"""Commands as a user types them, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from broker.cli.main import main

Type = Callable[..., str]
"""Types a command, and gives what it prints, errors too; it has to end with ``status``."""


def typing(capture: pytest.CaptureFixture[bytes]) -> Type:
    """Types commands of any verb."""

    def run(*words: str, status: int = 0) -> str:
        capture.readouterr()
        ended = main([*words])
        told = capture.readouterr()
        text = (told.out + told.err).decode()
        assert ended == status, text
        return text

    return run


def as_json(text: str) -> Any:
    """The first line, which is JSON."""
    return json.loads(text.splitlines()[0])
