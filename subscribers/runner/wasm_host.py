"""What a plugin's component finds outside: its operator's log, its settings, its keys and the bus.

Decides how far a plugin goes with each in one call. Refuses to know how a component is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from broker.logs import get_logger
from broker.protocol.errors import BusError, ClosedError
from broker.protocol.events import Event

from ..runtimes.wasm_imports import Refused
from ..runtimes.wasm_keys import KeysRefused, KeyValues
from .wasm_subscriptions import Subscriptions

LINES: Final = 100
"""Lines that a plugin may write to the log in one call; further ones are counted."""

LINE_CHARACTERS: Final = 2_000

PUBLISHED: Final = 1_000
"""Events that a plugin may publish in one call."""

log = get_logger("subscribers.wasm.plugin")


class Bus(Protocol):
    """As much of a publisher as a plugin needs."""

    def publish(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        session_id: str | None = None,
        depth: int | None = None,
        caused_by: str | None = None,
    ) -> bool:
        """Hand an event to the bus."""

    def close(self) -> None:
        """End it."""


class PluginHost:
    """The host functions of one plugin's component, for the event of :meth:`begin`.

    ``open_keys`` and ``open_bus`` are called when the plugin first needs them.
    """

    def __init__(
        self,
        name: str,
        settings: Mapping[str, str],
        subscriptions: Subscriptions,
        open_keys: Callable[[], KeyValues],
        open_bus: Callable[[], Bus],
    ) -> None:
        self._name = name
        self._settings = settings
        self._subscriptions = subscriptions
        self._open_keys = open_keys
        self._open_bus = open_bus
        self._keys: KeyValues | None = None
        self._bus: Bus | None = None
        self._event: Event | None = None
        self._lines = self._published = 0

    def begin(self, event: Event) -> None:
        """A call for ``event`` begins."""
        self._event = event
        self._lines = self._published = 0

    def end(self) -> None:
        """The call is over."""
        if self._lines > LINES:
            log.warning("a plugin wrote too much", plugin=self._name, lines_left_out=self._lines - LINES)
        self._event = None

    def fresh(self) -> None:
        """The component begins anew: what it asked for before is forgotten."""
        self._subscriptions.forget(self._name)

    def close(self) -> None:
        """Let go of what was opened."""
        if self._keys is not None:
            self._keys.close()
        if self._bus is not None:
            self._bus.close()

    # -- what components call -----------------------------------------------------------------

    def log(self, level: str, message: str) -> None:
        """A line in the log of prxbus; ``trace`` counts as ``debug``."""
        self._lines += 1
        if self._lines <= LINES:
            say = {"info": log.info, "warn": log.warning, "error": log.error}.get(level, log.debug)
            event_id = None if self._event is None else self._event.id
            say(message[:LINE_CHARACTERS], plugin=self._name, event_id=event_id)

    def wrote(self, data: bytes) -> None:
        """A line for what the component prints."""
        self.log("info", data.decode("utf-8", "replace").rstrip("\n"))

    def config(self) -> Mapping[str, str]:
        """The manifest's own settings."""
        return self._settings

    def kv_get(self, key: str) -> bytes | None:
        """A stored value."""
        return self._stored().get(key)

    def kv_set(self, key: str, value: bytes) -> None:
        """Store a value."""
        try:
            self._stored().set(key, value)
        except KeysRefused as refusal:
            raise Refused(str(refusal)) from None

    def kv_delete(self, key: str) -> bool:
        """Remove a value."""
        return self._stored().delete(key)

    def kv_keys(self, prefix: str) -> list[str]:
        """The stored keys; the call ends where they are too many to be listed."""
        return self._stored().keys(prefix)

    def publish(self, topic: str, payload: str) -> None:
        """Publish an event that is one level deeper than the one being handled.

        Beyond the last level, and without a bus, it is dropped and counted without an error.
        """
        event = self._event
        if event is None:
            raise Refused("there is no event being handled")
        self._published += 1
        if self._published > PUBLISHED:
            raise Refused(f"a call may publish {PUBLISHED} events")
        if self._bus is None:
            self._bus = self._open_bus()
        try:
            self._bus.publish(
                topic,
                payload.encode(),
                session_id=event.session_id,
                depth=event.depth + 1,
                caused_by=event.id,
            )
        except ClosedError:
            raise Refused("the bus is being closed") from None
        except BusError as error:
            raise Refused(str(error)) from None

    def subscribe(self, pattern: str) -> int:
        """Also get the events of a pattern."""
        return self._subscriptions.add(self._name, pattern)

    def unsubscribe(self, number: int) -> None:
        """End a subscription."""
        self._subscriptions.remove(self._name, number)

    def _stored(self) -> KeyValues:
        if self._keys is None:
            self._keys = self._open_keys()
            if self._keys.put_aside is not None:
                log.error(
                    "a plugin's keys were broken and put aside", plugin=self._name, path=self._keys.put_aside
                )
        return self._keys
