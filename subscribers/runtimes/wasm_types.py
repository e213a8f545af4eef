"""Types of components in words, and the functions that a plugin may import and has to export.

The table here is the interface of ``wit/prx-hook.wit`` as code; a component is compared with it before it
runs, so that a mismatch is a sentence and not a trap in the middle of an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wasmtime import component as wc

HOST: Final[Mapping[str, Mapping[str, str]]] = {
    "log": {"log": "func(level: enum {trace, debug, info, warn, error}, message: string)"},
    "config": {
        "get": "func(key: string) -> option<string>",
        "get-all": "func() -> list<tuple<string, string>>",
    },
    "kv": {
        "get": "func(key: string) -> option<list<u8>>",
        "set": "func(key: string, value: list<u8>) -> result<_, string>",
        "delete": "func(key: string) -> result<bool, string>",
        "list-keys": "func(prefix: string) -> list<string>",
    },
    "events": {
        "publish": "func(topic: string, payload: string) -> result<_, string>",
        "subscribe": "func(pattern: string) -> result<u64, string>",
        "unsubscribe": "func(id: u64) -> result<_, string>",
    },
}
"""The functions of each interface of ``prx:host``. Names of parameters are for people and not compared."""

ON_EVENT: Final = "func(event: string, payload-json: string) -> result<_, string>"

_PRIMITIVES: Final[Mapping[type[wc.ValType], str]] = {
    wc.Bool: "bool",
    wc.S8: "s8",
    wc.S16: "s16",
    wc.S32: "s32",
    wc.S64: "s64",
    wc.U8: "u8",
    wc.U16: "u16",
    wc.U32: "u32",
    wc.U64: "u64",
    wc.F32: "f32",
    wc.F64: "f64",
    wc.Char: "char",
    wc.String: "string",
}


def in_words(item: wc.FuncType) -> str:
    """A function's type as WIT writes it."""
    parameters = ", ".join(f"{name}: {_value(type_)}" for name, type_ in item.params)
    result = "" if item.result is None else f" -> {_value(item.result)}"
    return f"func({parameters}){result}"


def same(words: str, wanted: str) -> bool:
    """Whether two functions have the same types, whatever their parameters are called."""
    return _without_names(words) == _without_names(wanted)


def _without_names(words: str) -> str:
    """Parameter names end in a colon; nothing else in these types holds one."""
    return " ".join(word for word in words.replace("(", "( ").split() if not word.endswith(":"))


def _value(type_: wc.ValType | None) -> str:
    if type_ is None:
        return "_"
    if type(type_) in _PRIMITIVES:
        return _PRIMITIVES[type(type_)]
    if isinstance(type_, wc.ListType):
        return f"list<{_value(type_.element)}>"
    if isinstance(type_, wc.OptionType):
        return f"option<{_value(type_.payload)}>"
    if isinstance(type_, wc.ResultType):
        return f"result<{_value(type_.ok)}, {_value(type_.err)}>"
    if isinstance(type_, wc.TupleType):
        return f"tuple<{', '.join(_value(element) for element in type_.elements)}>"
    if isinstance(type_, wc.EnumType):
        return f"enum {{{', '.join(type_.names)}}}"
    return type(type_).__name__.removesuffix("Type").lower()
