"""The hook verbs, joined to the command ``prxbus`` through the entry-point group ``prxbus.verbs``.

Decides their names and summaries; nothing of a verb is imported before it is used. A verb that needs
the extra ``run`` says so where that is not installed.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from broker.cli.exits import CommandError
from broker.cli.verbs import Verb, deferred

_PACKAGE: Final = __name__.rpartition(".")[0]

EXTRA: Final = frozenset({"platformdirs", "pydantic", "rich", "watchfiles"})
"""What the extra ``run`` brings and hook verbs import."""


def _needs_run(name: str, summary: str) -> Verb:
    verb = deferred(name, summary, f"{_PACKAGE}.{name}")

    def told(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def guarded(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except ModuleNotFoundError as error:
                if error.name not in EXTRA:
                    raise
                raise CommandError(
                    f"{error.name} is not installed; 'prxbus {name}' needs pip install 'prxbus[run]'",
                    "missing_extra",
                ) from None

        return guarded

    add_arguments: Callable[[ArgumentParser], None] = told(verb.add_arguments)
    return Verb(name, summary, add_arguments, told(verb.run))


VERBS: Final[tuple[Verb, ...]] = (
    _needs_run("up", "run the broker and the hooks of a workspace"),
    _needs_run("config", "show or check the configuration"),
    _needs_run("demo", "replay a recorded agent session through a bus and its hooks"),
)
