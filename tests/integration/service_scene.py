"""A subscriber process of its own, started as the supervisor starts it, for the tests of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import orjson


class Runner:
    """A running service: what it ``said`` when it was ready, and its ``log``."""

    def __init__(self, process: subprocess.Popen[bytes], said: dict[str, Any], log: Path) -> None:
        self.process = process
        self.said = said
        self.log = log
        self.killed = False

    def kill(self) -> None:
        """End it with kill -9; then it need not end in order any more."""
        self.process.kill()
        self.process.wait()
        self.killed = True

    def logged(self, words: str) -> bool:
        """Whether the service has written ``words`` to its log."""
        return words in self.log.read_text()


R = TypeVar("R", bound=Runner)


@contextmanager
def serving(
    kind: type[R],
    module: str,
    log: Path,
    options: tuple[str, ...],
    environment: Mapping[str, str],
    *,
    appends: bool = False,
) -> Iterator[R]:
    """``subscribers.runner.<module>`` with ``environment`` added to ours; ended in order afterwards.

    Its log begins anew unless it ``appends``.
    """
    command = [sys.executable, "-P", "-m", f"subscribers.runner.{module}", *options]
    with log.open("ab" if appends else "wb") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **environment},
        )
    assert process.stdin is not None
    assert process.stdout is not None
    service: R | None = None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        service = kind(process, orjson.loads(line), log)
        yield service
    finally:
        process.terminate()
        try:
            code = process.wait(40)
            assert code == 0 or (service is not None and service.killed), log.read_text()
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
