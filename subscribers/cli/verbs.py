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
    deferred(
        "info",
        "show a role: hooks, modules, functions, and whether it is as it was accepted",
        f"{_PACKAGE}.info",
        bus=False,
        extra=True,
    ),
    deferred(
        "trust",
        "show what a workspace can run, and have it run until that changes",
        f"{_PACKAGE}.trust",
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
    deferred("hook", "the hook command of an attached agent: payload in, decision out", f"{_PACKAGE}.hook"),
    deferred(
        "attach",
        "have Claude Code or Codex ask the bus: write our entries into its settings",
        f"{_PACKAGE}.attach",
        extra=True,
    ),
    deferred(
        "detach",
        "take our entries out of an agent's settings again",
        f"{_PACKAGE}.attach_detach",
        bus=False,
        extra=True,
    ),
    deferred(
        "adapter",
        "print the file by which an agent in Node speaks with the hooks of its role",
        f"{_PACKAGE}.adapter",
        bus=False,
    ),
    deferred(
        "doctor",
        "fire a test event through the real path, and say what is missing",
        f"{_PACKAGE}.doctor",
        extra=True,
    ),
    deferred(
        "replay",
        "send an agent's recorded payloads through its hook command and over HTTP",
        f"{_PACKAGE}.replay",
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
