"""Programs that are driven by JSON lines, around a broker of their own: the scene of the strangers' tests."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

DEADLINE_S = 30.0


class Program:
    """A child that is driven by JSON lines and answers with JSON lines, every answer within a deadline."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.text = b""

    def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + DEADLINE_S
        while b"\n" not in self.text:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, left))
            assert ready, f"no answer; so far: {self.text!r}"
            data = os.read(self.process.stdout.fileno(), 65_536)
            assert data, f"it ended with {self.process.wait(DEADLINE_S)}; so far: {self.text!r}"
            self.text += data
        line, _, self.text = self.text.partition(b"\n")
        return line.decode()

    def answer(self) -> dict[str, Any]:
        """The next line as the object that it is."""
        value = json.loads(self.line())
        assert isinstance(value, dict)
        return value

    def tell(self, **command: Any) -> None:
        """Give it a command."""
        self.write(json.dumps(command))

    def write(self, line: str) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    def do(self, **command: Any) -> dict[str, Any]:
        """Give it a command and take the answer."""
        self.tell(**command)
        return self.answer()

    def leave(self) -> None:
        """Have it end in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(DEADLINE_S) == 0

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


class Bus:
    """A broker in its own process and what the tests start around it: runs of ``script``."""

    def __init__(self, directory: Path, script: Path) -> None:
        self.directory = directory
        self.script = script
        self.broker = self.start()
        self.programs: list[Program] = []

    def start(self) -> Program:
        """A broker that is ready."""
        program = Program("-P", "-m", "broker", "--runtime-dir", str(self.directory), "--json")
        program.answer()
        return program

    def restart(self) -> None:
        """Kill the broker as hard as can be and start another."""
        with self.broker:
            self.broker.kill()
        self.broker = self.start()

    def stranger(self, role: str, *arguments: str) -> Program:
        """A stranger that is ready."""
        program = Program("-I", str(self.script), str(self.directory), role, *arguments)
        self.programs.append(program)
        assert program.answer() == {"ready": True}
        return program

    def close(self) -> None:
        """End everything."""
        for program in (*self.programs, self.broker):
            with program:
                program.process.terminate()
                program.process.wait(DEADLINE_S)
