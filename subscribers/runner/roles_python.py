"""The program of the process that holds hooks in Python: its host, and what that is lent of the bus.

    python -P -m subscribers.runner.roles_python --channel N --board M

A host knows no bus, yet what a hook publishes is caused by the event that it handles, and one level deeper.
Decides how a publisher in this process learns that (from the context variable of every client), and a
program that a hook starts (from its environment, in which the two names are put unless the hook has put them
there itself). What a thread of a hook's own does later belongs to no event. Refuses to know what a hook is.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from broker.client.context import CAUSE_VARIABLE, DEPTH_VARIABLE, Cause, current

from ..runtimes.python_module_host import exit_now, main


@contextmanager
def handling(depth: int, cause: str | None) -> Iterator[None]:
    """Within the block, what is published has this depth and cause."""
    token = current.set(Cause(depth, cause))
    try:
        yield
    finally:
        current.reset(token)


def told() -> dict[str, str]:
    """What a program that is started here and now finds in its environment."""
    cause = current.get()
    if cause is None:
        return {}
    names = {DEPTH_VARIABLE: str(cause.depth)}
    return names if cause.event is None else names | {CAUSE_VARIABLE: cause.event}


class Popen(subprocess.Popen[Any]):
    """Tells the program what it is caused by. Takes what :class:`subprocess.Popen` takes."""

    def __init__(self, args: Any, *more: Any, env: Any = None, **named: Any) -> None:
        names = told()
        if len(more) < _PLACE_OF_ENV:
            named["env"] = names | dict(os.environ if env is None else env) if names else env
        super().__init__(args, *more, **named)


_PLACE_OF_ENV = 10
"""Where ``env`` stands among what follows ``args``, where it is not given by its name."""


def system(command: Any) -> int:
    """As :func:`os.system`, which would not see what is put into an environment here."""
    code = Popen(command, shell=True).wait()
    return code << 8 if code >= 0 else -code


def lend() -> None:
    """Have every way to start a program that hooks use tell it. A copy of this process tells it by itself."""
    subprocess.Popen = Popen  # type: ignore[misc]
    os.system = system
    os.register_at_fork(after_in_child=lambda: os.environ.update(told()))


if __name__ == "__main__":
    lend()
    exit_now(main(handling=handling))
