"""What the world outside is to a component: the host functions, linked by name.

Decides how an answer, a refusal and a failure of a host function reach the component: a refusal is the error
of its result, a failure ends the call. Refuses to know what the functions do: that is the host's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from wasmtime import WasmtimeError
from wasmtime import component as wc

_IMPORT: Final = re.compile(r"prx:host/(log|config|kv|events)(?:@.+)?")


class Refused(Exception):
    """What a host function does not do; the text is the error that the component gets."""


class Host(Protocol):
    """The functions that a component may import, called in the thread of its call.

    They may raise :class:`Refused` where their type has an error. What else they raise ends the call.
    """

    def log(self, level: str, message: str) -> None:
        """Words for the operator."""

    def config(self) -> Mapping[str, str]:
        """The plugin's own settings."""

    def kv_get(self, key: str) -> bytes | None:
        """A stored value."""

    def kv_set(self, key: str, value: bytes) -> None:
        """Store a value; may refuse."""

    def kv_delete(self, key: str) -> bool:
        """Remove a value, and say whether there was one; may refuse."""

    def kv_keys(self, prefix: str) -> list[str]:
        """The keys that begin so."""

    def publish(self, topic: str, payload: str) -> None:
        """Publish an event; may refuse."""

    def subscribe(self, pattern: str) -> int:
        """Also get the events of a pattern; the subscription's number. May refuse."""

    def unsubscribe(self, number: int) -> None:
        """End a subscription; may refuse."""

    def wrote(self, data: bytes) -> None:
        """What a component with WASI wrote to its standard output or error."""


def interface(name: str) -> str | None:
    """The interface of ``prx:host`` that an import of this name means; None when it is none of them."""
    found = _IMPORT.fullmatch(name)
    return None if found is None else found[1]


def functions(host: Host) -> Mapping[str, Mapping[str, Callable[..., Any]]]:
    """Each interface's functions as wasmtime calls them."""
    return {
        "log": {"log": _strict(host.log)},
        "config": {
            "get": _strict(lambda key: host.config().get(key)),
            "get-all": _strict(lambda: list(host.config().items())),
        },
        "kv": {
            "get": _strict(host.kv_get),
            "set": _refusing(host.kv_set),
            "delete": _refusing(host.kv_delete),
            "list-keys": _strict(host.kv_keys),
        },
        "events": {
            "publish": _refusing(host.publish),
            "subscribe": _refusing(host.subscribe),
            "unsubscribe": _refusing(host.unsubscribe),
        },
    }


def link(linker: wc.Linker, names: list[str], host: Host) -> None:
    """Define every import of ``names`` that is one of ours."""
    ours = functions(host)
    with linker.root() as root:
        for name in names:
            kind = interface(name)
            if kind is not None:
                with root.add_instance(name) as instance:
                    for function, call in ours[kind].items():
                        instance.add_func(function, call)


def _strict(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function without an error in its type: whatever goes wrong ends the component's call.

    Only WasmtimeError may leave a host function: the library keeps any other exception in a place that all
    threads share, where another component's call would find it.
    """

    def answer(_store: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except Exception as error:
            raise WasmtimeError(f"the host failed: {error}") from None

    return answer


def _refusing(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result may be an error: a refusal is that error."""

    def answer(_store: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except Refused as refusal:
            return str(refusal)
        except Exception as error:
            raise WasmtimeError(f"the host failed: {error}") from None

    return answer
