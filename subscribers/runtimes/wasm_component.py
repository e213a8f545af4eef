"""A component from its bytes: compiled, and compared with what a plugin exports and may import.

Decides what is a plugin's component and says what is wrong with one that is not, before it runs. Refuses to
call it: that is the guest's (:mod:`.wasm_guest`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wasmtime import Engine, WasmtimeError
from wasmtime import component as wc

from . import wasm_types
from .wasm_engine import new_engine
from .wasm_imports import interface

FUNCTION: Final = "on-event"

_EXPORT: Final = re.compile(r"(?:[a-z][a-z0-9-]*:[a-z][a-z0-9-]*/)?(?:hooks|hook-exports)(?:@.+)?")
"""An interface that the package of any plugin may call ``hooks``, or ``hook-exports``, in any version."""

_HTTP: Final = "wasi:http/"
_MAGIC: Final = b"\0asm"
_CORE: Final = b"\x01\0\0\0"
"""What follows the magic number in a core module."""

_MESSAGE_CHARACTERS: Final = 500


class BadComponent(Exception):
    """Bytes that are no plugin; the text says why, ``hint`` what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Compiled:
    """A component that may run. ``imports`` are the names it asks for, ``exported`` the interface it has."""

    engine: Engine
    component: wc.Component
    imports: tuple[str, ...]
    exported: str

    @property
    def wants_wasi(self) -> bool:
        """Whether it cannot run without WASI."""
        return any(name.startswith("wasi:") for name in self.imports)

    @property
    def wants_http(self) -> bool:
        """Whether it cannot run without WASI's HTTP."""
        return any(name.startswith(_HTTP) for name in self.imports)


def compile_component(
    code: bytes, *, fuel: bool, cache: str | None, wasi: bool, network: bool = False
) -> Compiled:
    """Compile ``code``, a component in binary or in text, and check its type.

    ``fuel``: its instructions will be counted. ``cache``: where compiled code is kept, see
    :func:`.wasm_engine.prepare_cache`. ``wasi``: it may import WASI, ``network``: its HTTP too. Takes from
    milliseconds to many seconds, without holding the interpreter. Raises :class:`BadComponent`.
    """
    if not code:
        raise BadComponent("the file is empty")
    if code.startswith(_MAGIC + _CORE):
        raise BadComponent(
            "this is a core module, not a component", "make one of it with `wasm-tools component new`"
        )
    try:
        source = code if code.startswith(_MAGIC) else code.decode()
        engine = new_engine(fuel=fuel, cache=cache)
        component = wc.Component(engine, source)
    except UnicodeDecodeError:
        raise BadComponent("this is neither WebAssembly nor its text format") from None
    except WasmtimeError as error:
        raise BadComponent(f"it cannot be compiled: {shortened(str(error))}") from None
    type_ = component.type
    imports = type_.imports(engine)
    for name, found in imports.items():
        _check_import(engine, name, found.ty, wasi=wasi, network=network)
    return Compiled(
        engine,
        component,
        tuple(imports),
        _check_export(engine, {name: found.ty for name, found in type_.exports(engine).items()}),
    )


def shortened(text: str, most: int = _MESSAGE_CHARACTERS) -> str:
    """The beginning of a message of wasmtime's or a plugin's, at most so many characters."""
    text = text[: most + 1_000].strip()
    return text if len(text) <= most else text[: most - 3] + "..."


def _check_import(engine: Engine, name: str, found: wc.ComponentItem, *, wasi: bool, network: bool) -> None:
    kind = interface(name)
    if kind is not None and isinstance(found, wc.ComponentInstanceType):
        ours = wasm_types.HOST[kind]
        for function, item in _functions(engine, found).items():
            if function not in ours:
                raise BadComponent(f"it imports {function} of {name}, which has {', '.join(ours)}")
            if not wasm_types.same(item, ours[function]):
                raise BadComponent(f"it imports {function} of {name} as {item}, but it is {ours[function]}")
    elif not name.startswith("wasi:"):
        raise BadComponent(
            f"it imports {name}, which prxbus does not have", "there are prx:host/log, config, kv and events"
        )
    elif not wasi:
        raise BadComponent(
            f"it imports {name}, and WASI is not granted",
            'build it without WASI (componentize-py: --stub-wasi), or name "wasi" in permissions.required '
            "and have the operator allow it with the setting wasm.allow",
        )
    elif name.startswith(_HTTP) and not network:
        raise BadComponent(
            f"it imports {name}, and the network is not granted",
            'name "network" in permissions.required and have the operator allow it with the setting '
            "wasm.allow",
        )


def _check_export(engine: Engine, exports: Mapping[str, wc.ComponentItem]) -> str:
    for name, found in exports.items():
        if _EXPORT.fullmatch(name) and isinstance(found, wc.ComponentInstanceType):
            item = _functions(engine, found).get(FUNCTION)
            if item is None:
                raise BadComponent(f"its interface {name} has no function {FUNCTION}")
            if not wasm_types.same(item, wasm_types.ON_EVENT):
                raise BadComponent(f"its {FUNCTION} is {item}, but has to be {wasm_types.ON_EVENT}")
            return name
    there = ", ".join(exports) or "nothing"
    raise BadComponent(
        f"it exports {shortened(there)}, but no interface hooks or prx:plugin/hook-exports",
        f"export one that has {FUNCTION}: {wasm_types.ON_EVENT}",
    )


def _functions(engine: Engine, instance: wc.ComponentInstanceType) -> Mapping[str, str]:
    items = ((name, found.ty) for name, found in instance.exports(engine).items())
    return {name: wasm_types.in_words(item) for name, item in items if isinstance(item, wc.FuncType)}
