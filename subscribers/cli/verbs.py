"""The hook verbs, joined to the command ``prxbus`` through the entry-point group ``prxbus.verbs``.

Decides their names and summaries; nothing of a verb is imported before it is used.
"""

from __future__ import annotations

from typing import Final

from broker.cli.verbs import Verb, deferred

_PACKAGE: Final = __name__.rpartition(".")[0]

VERBS: Final[tuple[Verb, ...]] = (
    deferred("up", "run the broker and the hooks of a workspace", f"{_PACKAGE}.up", extra=True),
    deferred(
        "check",
        "explain hook files: what would fire, when, and why not",
        f"{_PACKAGE}.check",
        bus=False,
        extra=True,
    ),
    deferred("config", "show or check the configuration", f"{_PACKAGE}.config", extra=True),
    deferred(
        "fire",
        "put one event to hook files without a bus, and show what each hook did",
        f"{_PACKAGE}.fire",
        extra=True,
    ),
    deferred(
        "hooks",
        "import the hooks of Claude Code and Codex: list, preview, confirm, look after",
        f"{_PACKAGE}.hooks",
        bus=False,
        extra=True,
    ),
    deferred(
        "demo",
        "replay a recorded agent session through a bus and its hooks",
        f"{_PACKAGE}.demo",
        bus=False,
        extra=True,
    ),
)
