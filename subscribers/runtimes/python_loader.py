"""A file, a package's folder or an installed entry point, loaded: the handlers that it registers.

Decides in what namespace user code is executed and how its failure is told. Each load is fresh: modules of an
earlier one are not reused. A file may import its neighbours relatively (``from ._rules import forbidden``),
for its folder stands as a package; what neighbours register belongs to them. Refuses to know the bus, and
whether the code may be trusted: that was decided before.
"""

from __future__ import annotations

import importlib.util
import linecache
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint
from itertools import count
from types import ModuleType
from typing import Final

from ..handlers.registration import Registration, collected
from ..hooks.diagnostics import Diagnostic
from .python_traceback import Fault, fault_of

MAX_BYTES: Final = 1_048_576
"""Largest file of handlers, in bytes."""

_PREFIX: Final = "prxbus_handlers_"
_numbers: Final = count(1)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of loading one file. ``error`` says why there are no ``registrations``.

    ``files`` are those that were read: when one of them changes, another load may come to something else.
    ``package`` is the name under which its modules stand, for :func:`unload`.
    """

    path: str
    registrations: tuple[Registration, ...]
    error: Diagnostic | None
    traceback: str = ""
    files: tuple[str, ...] = ()
    package: str = ""


def load(path: str) -> Loaded:
    """Load the handlers in the file ``path``, or in the folder ``path`` that is a package. Raises nothing."""
    path = os.path.abspath(path)
    is_package = os.path.isdir(path)
    file = os.path.join(path, "__init__.py") if is_package else path
    folder, name = os.path.split(path)
    home = path if is_package else folder
    package = f"{_PREFIX}{next(_numbers)}"
    source = _read(file)
    if isinstance(source, Diagnostic):
        return Loaded(path, (), source, files=(file,))
    linecache.cache[file] = (
        len(source),
        None,
        _lines(source),
        file,
    )  # as it was loaded, whatever comes later
    _stand(package, folder)
    module = _module(f"{package}.{name if is_package else _stem(name)}", file, home if is_package else None)

    def execute() -> None:
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)

    registrations, error, traceback = _collect(execute, file, home)
    files = _files(package, file)
    own = tuple(each for each in registrations if is_package or each.path == file)
    found = Loaded(path, own, error, traceback, files, package)
    if error is not None:
        unload(found)
    return found


def load_entry_point(point: EntryPoint) -> Loaded:
    """Load what an installed package names. Its modules are imported as any other's. Raises nothing."""
    place = f"{point.name} = {point.value}"

    def execute() -> None:
        point.load()

    spec = _spec(point.module)
    file = place if spec is None or spec.origin is None else spec.origin
    registrations, error, traceback = _collect(execute, file, os.path.dirname(file))
    return Loaded(place, registrations, error, traceback, (file,) if os.path.isabs(file) else ())


def unload(loaded: Loaded) -> None:
    """Forget the modules of one load; what still refers to them goes on working."""
    if not loaded.package:
        return
    for name in [name for name in sys.modules if _belongs(name, loaded.package)]:
        sys.modules.pop(name, None)


def _collect(
    execute: Callable[[], None], file: str, folder: str
) -> tuple[tuple[Registration, ...], Diagnostic | None, str]:
    wrote = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # nothing is left in the user's folder, and nothing stale is found there
    try:
        with collected() as found:
            execute()
    except BaseException as error:  # SystemExit too: a file of handlers ends nobody's process
        fault = fault_of(error, folder)
        return (), _diagnostic(error, fault, file), fault.traceback
    finally:
        sys.dont_write_bytecode = wrote
    return tuple(found), None, ""


def _diagnostic(error: BaseException, fault: Fault, file: str) -> Diagnostic:
    path, line = fault.path or file, fault.line
    if isinstance(error, SyntaxError):
        return Diagnostic("error", "syntax_error", path, line, None, None, fault.reason, None)
    hint = None
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        neighbour = os.path.join(os.path.dirname(file), error.name.split(".")[0])
        if os.path.exists(f"{neighbour}.py") or os.path.isdir(neighbour):
            hint = f"a neighbour is imported relatively: write 'from .{error.name} import ...'"
        else:
            hint = f"install it where prxbus runs: {sys.executable} -m pip install ..."
    return Diagnostic("error", "cannot_load", path, line, None, None, fault.reason, hint)


def _read(file: str) -> bytes | Diagnostic:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return _refusal(file, "not_a_file", "this is not a regular file")
            source = stream.read(MAX_BYTES + 1)
    except OSError as error:
        return _refusal(file, "unreadable", f"it cannot be read: {error.strerror}")
    if len(source) > MAX_BYTES:
        return _refusal(file, "file_too_large", f"it has more than {MAX_BYTES:,} bytes")
    return source


def _refusal(file: str, code: str, message: str) -> Diagnostic:
    return Diagnostic("error", code, file, None, None, None, message, None)


def _lines(source: bytes) -> list[str]:
    return source.decode("utf-8", "replace").splitlines(keepends=True)


def _stem(name: str) -> str:
    return os.path.splitext(name)[0].replace(".", "_")


def _stand(package: str, folder: str) -> None:
    """Have ``folder`` stand as the package, without executing anything that lies in it."""
    parent = ModuleType(package)
    parent.__path__ = [folder]
    parent.__spec__ = ModuleSpec(package, None, is_package=True)
    sys.modules[package] = parent


def _module(name: str, file: str, search: str | None) -> ModuleType:
    module = ModuleType(name)
    spec = ModuleSpec(name, None, origin=file, is_package=search is not None)
    spec.has_location = True
    module.__spec__ = spec
    module.__file__ = file
    module.__package__ = name if search is not None else name.rpartition(".")[0]
    if search is not None:
        module.__path__ = spec.submodule_search_locations = [search]
    sys.modules[name] = module
    return module


def _spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except Exception:  # its parent package cannot be imported: loading says so
        return None


def _files(package: str, file: str) -> tuple[str, ...]:
    found = {file}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if _belongs(name, package) and isinstance(path, str):
            found.add(path)
    return tuple(sorted(found))


def _belongs(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")
