"""A Python file as the module of a hook: executed in a namespace of its own, and its handlers found.

Handlers are, in this order, those of

* ``hook`` or ``default`` in the module: an object, a dict, or a class, which is called without arguments;
* a class ``Hook`` in the module;
* the module itself: its functions.

The first of these that has one of the documented handlers counts; each is written ``on_tool_after`` or
``onToolAfter``. A handler takes the context and, **by name**, what it wants of the documented input:
``on_tool_after(ctx, tool, args, output)``, ``on_tool_after(ctx, output)``, ``on_tool_after(ctx, **input)``;
or everything as one dict, if its second parameter has another name: ``on_tool_after(ctx, input)``. What it
cannot be called with is refused when it is loaded.

Two hooks that share a file have two modules. A module may import its neighbours relatively (``from ._rules
import forbidden``), which belong to that hook alone. Decides this, and how a failure is told. Refuses to know
when a handler is called.
"""

from __future__ import annotations

import inspect
import linecache
import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from itertools import count
from types import ModuleType
from typing import Any, Final

from ..hooks.module_hook import Handler
from .python_traceback import Fault, fault_of, sayable

FIELDS: Final[dict[Handler, tuple[str, ...]]] = {
    "onLoad": (),
    "onChatMessage": ("text",),
    "onToolBefore": ("tool", "args"),
    "onToolAfter": ("tool", "args", "output"),
    "onSystemTransform": ("system",),
    "onEvent": ("type", "properties"),
    "onDispose": (),
}
"""What each handler is given beside the context."""

SNAKE: Final[dict[Handler, str]] = {
    "onLoad": "on_load",
    "onChatMessage": "on_chat_message",
    "onToolBefore": "on_tool_before",
    "onToolAfter": "on_tool_after",
    "onSystemTransform": "on_system_transform",
    "onEvent": "on_event",
    "onDispose": "on_dispose",
}

MODULE_BYTES: Final = 1_048_576
"""Largest file of a module, in bytes."""

PREFIX: Final = "prxbus_role_"
_numbers: Final = count(1)

_ONE: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)

Call = Callable[[Any, dict[str, Any]], Any]
"""Calls a handler with the context and the documented input."""


class Unusable(Exception):
    """A module that cannot be a hook: in one line, and the trace that shows where."""

    def __init__(self, error: str, detail: str | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.detail = detail


@dataclass(frozen=True, slots=True)
class FoundHandler:
    """A handler and how it is called. ``is_async``: calling it gives something to be awaited."""

    call: Call
    is_async: bool


@dataclass(frozen=True, slots=True)
class PythonModule:
    """A loaded module. ``package`` is the name under which it and its neighbours stand."""

    package: str
    folder: str
    handlers: Mapping[Handler, FoundHandler] = field(default_factory=dict)


def load_module(path: str) -> PythonModule:
    """Execute a file and find its handlers. Raises :class:`Unusable`, and then nothing of it is left."""
    folder, name = os.path.split(path)
    package = f"{PREFIX}{next(_numbers)}"
    source = _read(path)
    text = source.decode("utf-8", "replace")
    linecache.cache[path] = (len(source), None, text.splitlines(keepends=True), path)
    _stand(package, folder)
    try:
        module = _module(f"{package}.{os.path.splitext(name)[0].replace('.', '_')}", path)
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
        return PythonModule(package, folder, _handlers(module))
    except BaseException as error:  # SystemExit too: a module ends nobody's process
        forget(package)
        if isinstance(error, Unusable):
            raise
        raise _unusable(fault_of(error, folder), error, path) from None


def forget(package: str) -> None:
    """Forget a module and its neighbours; what still refers to them goes on working."""
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        sys.modules.pop(name, None)


def _unusable(fault: Fault, error: BaseException, path: str) -> Unusable:
    place = fault.path or path
    where = f"{os.path.basename(place)}:{fault.line}: " if fault.line is not None else ""
    hint = ""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        first = error.name.split(".")[0]
        neighbour = os.path.join(os.path.dirname(path), first)
        if os.path.exists(f"{neighbour}.py") or os.path.isdir(neighbour):
            hint = f"; a neighbour is imported relatively: write 'from .{first} import ...'"
        else:
            hint = f"; install it where prxbus runs: {sys.executable} -m pip install ..."
    return Unusable(f"{where}{fault.reason}{hint}", fault.traceback or None)


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Unusable("this is not a regular file")
        with open(descriptor, "rb") as stream:
            source = stream.read(MODULE_BYTES + 1)
    except OSError as error:
        raise Unusable(f"it cannot be read: {error.strerror}") from None
    if len(source) > MODULE_BYTES:
        raise Unusable(f"it has more than {MODULE_BYTES:,} bytes")
    return source


def _stand(package: str, folder: str) -> None:
    """Have ``folder`` stand as the package, without executing anything that lies in it."""
    parent = ModuleType(package)
    parent.__path__ = [folder]
    parent.__spec__ = ModuleSpec(package, None, is_package=True)
    sys.modules[package] = parent


def _module(name: str, path: str) -> ModuleType:
    module = ModuleType(name)
    spec = ModuleSpec(name, None, origin=path)
    spec.has_location = True
    module.__spec__ = spec
    module.__file__ = path
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    return module


# -- handlers ---------------------------------------------------------------------------------


def _handlers(module: ModuleType) -> dict[Handler, FoundHandler]:
    for name in ("hook", "default", "Hook"):
        named = getattr(module, name, None)
        if (isinstance(named, type) or name != "Hook") and _all_of(named):
            return _bound(named() if isinstance(named, type) else named)
    return _bound(module)


def _all_of(source: Any) -> dict[Handler, Any]:
    """The handlers in ``source``, however they are written."""
    found: dict[Handler, Any] = {}
    for handler, snake in SNAKE.items():
        for name in (handler, snake):
            value = source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
            if value is not None:
                found[handler] = value
    return found


def _bound(source: Any) -> dict[Handler, FoundHandler]:
    found: dict[Handler, FoundHandler] = {}
    for handler, value in _all_of(source).items():
        if not callable(value):
            raise Unusable(f"{SNAKE[handler]} is {sayable(repr(value))[:80]}, which cannot be called")
        found[handler] = FoundHandler(_call(handler, value), _is_async(value))
    return found


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _call(handler: Handler, function: Callable[..., Any]) -> Call:
    """How ``function`` is called. Raises :class:`Unusable` for one that cannot be."""
    fields = FIELDS[handler]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise Unusable(f"{SNAKE[handler]} does not say what it takes") from None
    parameters = list(signature.parameters.values())
    shown = f"{SNAKE[handler]}{signature.replace(return_annotation=signature.empty)}"
    wanted = f"write {SNAKE[handler]}({', '.join(('ctx', *fields))})"
    at = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    takes_more = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if not at and not takes_more:
        raise Unusable(f"{shown} does not take the context: {wanted}")
    rest = [each for each in parameters if each not in at[:1]]
    named = [each for each in rest if each.name in fields and each.kind is not each.POSITIONAL_ONLY]
    by_name = any(each.kind is each.VAR_KEYWORD for each in rest)
    needed = [each for each in rest if each.default is each.empty and each not in named and each.kind in _ONE]
    whole = bool(fields) and not named and not by_name and (takes_more or len(at) > 1)
    if needed and not (whole and needed == at[1:2]):
        raise Unusable(f"{shown}: nothing is given for {needed[0].name!r}; {wanted}")
    names = fields if by_name else tuple(each.name for each in named)
    if whole:
        return function
    if not names:
        return lambda context, _: function(context)
    return lambda context, given: function(context, **{name: given.get(name) for name in names})
