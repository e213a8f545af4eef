"""Topics that plugins have subscribed to from inside, beside the events of their manifests.

Decides what a plugin may subscribe to and which plugins an event is for. Reports about hooks are nobody's: a
plugin that got the report of its own call would never come to rest. Refuses to know how events come in.
"""

from __future__ import annotations

import itertools
import threading
from typing import Final

from broker.protocol.errors import TopicError
from broker.protocol.topics import Pattern

from ..runtimes.wasm_imports import Refused

PER_PLUGIN: Final = 64
"""Subscriptions that one plugin may hold."""

REPORTS: Final = "prx.hooks."
"""Topics that nobody is given here."""


class Subscriptions:
    """The subscriptions of all plugins, by the names of their plugins. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._of: dict[str, dict[int, Pattern]] = {}

    def add(self, plugin: str, text: str) -> int:
        """A new subscription's number; raises Refused for what cannot be subscribed to."""
        try:
            pattern = Pattern(text)
        except TopicError as error:
            raise Refused(str(error)) from None
        if text.startswith(REPORTS):
            raise Refused(f"reports of hooks ({REPORTS}*) are not given to plugins")
        with self._changed:
            held = self._of.setdefault(plugin, {})
            if len(held) >= PER_PLUGIN:
                raise Refused(f"a plugin may hold {PER_PLUGIN} subscriptions")
            number = next(self._numbers)
            held[number] = pattern
            self._changed.notify_all()
            return number

    def remove(self, plugin: str, number: int) -> None:
        """End a subscription; raises Refused when the plugin has none of this number."""
        with self._changed:
            held = self._of.get(plugin, {})
            if held.pop(number, None) is None:
                raise Refused(f"there is no subscription {number}")
            if not held:
                del self._of[plugin]
            self._changed.notify_all()

    def forget(self, plugin: str) -> None:
        """End every subscription of a plugin."""
        with self._changed:
            self._of.pop(plugin, None)
            self._changed.notify_all()

    def plugins_for(self, topic: str) -> list[str]:
        """The plugins that have subscribed to ``topic``."""
        if topic.startswith(REPORTS):
            return []
        with self._changed:
            return [
                plugin
                for plugin, held in self._of.items()
                if any(pattern.matches(topic) for pattern in held.values())
            ]

    def wait(self, *, some: bool, timeout: float) -> bool:
        """Wait until there are some, or none; whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._of) == some, timeout)

    def __bool__(self) -> bool:
        with self._changed:
            return bool(self._of)
