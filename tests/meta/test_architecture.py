"""The rules of the house, read off the source.

Who may import whom, also through others, is stated in pyproject.toml and checked by import-linter. This
file runs that check, and adds what it cannot say: allow-lists, the style of an import, calls of built-in
functions, names, sizes.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for top in ("broker", "subscribers") for path in (ROOT / top).rglob("*.py"))
MODULE_LINES = 500
FUNCTION_LINES = 80

FORMATS = frozenset({"msgpack", "msgspec", "orjson"})
BASE = FORMATS | {"structlog", "zmq"}
RUN = BASE | {"platformdirs", "pydantic", "rich", "shtab", "watchfiles"}
HTTP = RUN | {"fastapi", "prometheus_client", "starlette", "uvicorn"}


class Room(NamedTuple):
    """What the modules below ``package`` may import, beside the standard library and themselves."""

    package: str
    doors: tuple[str, ...]  # our own packages
    third_party: frozenset[str]
    sans_io: bool = False


# The first row that fits a module holds for it.
ROOMS = (
    Room("broker.protocol", (), FORMATS, sans_io=True),
    Room("broker.control", ("broker.protocol",), FORMATS, sans_io=True),
    Room("broker.client.core", ("broker.protocol",), FORMATS, sans_io=True),
    Room("broker.cli", ("broker",), RUN),
    Room("broker", ("broker",), BASE),
    Room("subscribers.hooks", ("broker.protocol",), frozenset(), sans_io=True),
    Room("subscribers.handlers", ("broker.protocol", "broker.logs"), frozenset()),
    Room("subscribers.adapters", ("broker.protocol", "broker.client", "broker.places"), frozenset()),
    Room(
        "subscribers.dialects",
        ("subscribers.hooks", "broker.protocol"),
        frozenset({"orjson", "re2", "yaml"}),
        sans_io=True,
    ),
    Room(
        "subscribers.runtimes",
        ("subscribers.hooks", "subscribers.handlers", "broker.protocol", "broker.logs"),
        (RUN | {"wasmtime"}) - {"zmq"},
    ),
    Room("subscribers.cli", ("subscribers", "broker"), RUN),
    Room(
        "subscribers",
        (
            "subscribers",
            "broker.protocol",
            "broker.client",
            "broker.lifeline",
            "broker.logs",
            "broker.places",
            "broker.version",
        ),
        HTTP,
    ),
)

EVASIVE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
IO_CALLS = {"open", "print", "input", "breakpoint", "uuid1", "uuid4"}
IO_NAMES = {("pathlib", "Path"), ("pathlib", "PosixPath")}
CLOCK_METHODS = {"now", "utcnow", "today"}


def dotted(path: Path) -> str:
    """The module name of a source file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> Room:
    """The row of the table that holds for ``module``."""
    return next(room for room in ROOMS if inside(module, room.package))


def inside(module: str, package: str) -> bool:
    """Whether ``module`` is ``package`` or lies below it."""
    return module == package or module.startswith(package + ".")


def imports(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[tuple[ast.stmt, str, bool]]:
    """Each import statement with the full name that it reaches, and whether it was written relative."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name, False
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield node, str(node.module), False
                continue
            parts = module.split(".")
            base = parts[: len(parts) - node.level + is_package]
            if node.module:
                yield node, ".".join([*base, node.module]), True
            else:
                for alias in node.names:
                    yield node, ".".join([*base, alias.name]), True


def import_faults(source: str, module: str, *, is_package: bool = False) -> Iterator[str]:
    """Every import of ``source`` that its room does not allow, or that is written in the other style."""
    room = room_of(module)
    top = module.split(".", maxsplit=1)[0]
    for node, name, relative in imports(ast.parse(source), module, is_package=is_package):
        first = name.split(".")[0]
        where = f"{module}:{node.lineno}: "
        if first in ("broker", "subscribers"):
            if not any(inside(name, door) for door in (room.package, *room.doors)):
                yield f"{where}{room.package} does not enter {name}"
            if first == top and not relative:
                yield f"{where}inside {top}, {name} is imported relative"
        elif first not in sys.stdlib_module_names and first not in room.third_party:
            yield f"{where}{room.package} does not use {first}"


def io_faults(source: str, module: str) -> Iterator[str]:
    """What a sans-IO module does that touches files, terminal, clock or chance and no import tells."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IO_CALLS:
            yield f"{module}:{node.lineno}: calls {node.func.id}()"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            is_date = isinstance(owner, ast.Name) and owner.id in ("datetime", "date")
            if node.func.attr in CLOCK_METHODS and is_date:
                yield f"{module}:{node.lineno}: reads the clock"
            elif node.func.attr in ("uuid1", "uuid4"):
                yield f"{module}:{node.lineno}: draws randomness; take it as an argument"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (node.module, alias.name) in IO_NAMES:
                    yield f"{module}:{node.lineno}: imports {alias.name}: take a pure path"
        elif isinstance(node, ast.Import) and any(alias.name == "pathlib" for alias in node.names):
            yield f"{module}:{node.lineno}: imports pathlib whole; take a pure path from it"


@pytest.mark.timeout(240)
def test_the_import_contracts_hold() -> None:
    """Every contract of import-linter in pyproject.toml is kept, through any chain of imports."""
    run = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            "from importlinter.cli import lint_imports_command as c; c()",
            "--no-cache",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert " 0 broken" in run.stdout


def test_every_module_imports_only_what_its_room_allows() -> None:
    """A module imports the standard library, its own room and the doors of its room; relative at home."""
    faults = [
        fault
        for path in MODULES
        for fault in import_faults(path.read_text(), dotted(path), is_package=path.name == "__init__.py")
    ]
    assert faults == []


def test_every_sans_io_module_touches_nothing() -> None:
    """A sans-IO module opens no file, prints nothing and reads no clock."""
    sans_io = [path for path in MODULES if room_of(dotted(path)).sans_io]
    assert len(sans_io) > 100
    assert [fault for path in sans_io for fault in io_faults(path.read_text(), dotted(path))] == []


@pytest.mark.parametrize(
    "module,source",
    [
        ("broker.client.publisher", "import subscribers.hooks"),
        ("broker.client.publisher", "from broker.protocol import topics"),
        ("broker.client.publisher", "import rich"),
        ("broker.protocol.topics", "import zmq"),
        ("broker.protocol.topics", "from ..server import lock"),
        ("broker.control.peers", "from ..client import publisher"),
        ("broker.control.peers", "def f():\n    from ..client import publisher"),
        ("subscribers.hooks.spec", "from ..dialects import prx"),
        ("subscribers.dialects.prx", "from ..runtimes import child"),
        ("subscribers.runtimes.shell", "from ..dialects import prx"),
        ("subscribers.runtimes.shell", "from broker.client import Publisher"),
        ("subscribers.runner.service", "from broker.server import lock"),
        ("subscribers.runner.service", "from subscribers.hooks import spec"),
        ("subscribers.runner.service", "import requests"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    """Each kind of import that the table forbids is reported, also inside a function."""
    assert len(list(import_faults(source, module))) == 1


@pytest.mark.parametrize(
    "module,source",
    [
        ("broker.protocol.topics", "import re, msgpack\nfrom .errors import TopicError"),
        ("broker.client.publisher", "import zmq\nfrom ..protocol.topics import Topic\nfrom . import core"),
        ("subscribers.dialects.prx", "from ..hooks.spec import HookSpec\nfrom broker.protocol import topics"),
        ("subscribers.runner.service", "from broker.client import Publisher\nfrom ..runtimes import shell"),
        ("subscribers.cli.verbs", "from broker.cli import main"),
    ],
)
def test_an_allowed_import_is_no_fault(module: str, source: str) -> None:
    """What the table allows is not reported."""
    assert list(import_faults(source, module)) == []


@pytest.mark.parametrize(
    "source",
    [
        "open('x')",
        "print('x')",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import date\ndate.today()",
        "from pathlib import Path",
        "import pathlib",
        "import uuid\nuuid.uuid4()",
    ],
)
def test_hidden_io_is_found(source: str) -> None:
    """Input, output and clock that need no forbidden import are reported."""
    assert len(list(io_faults(source, "broker.protocol.topics"))) == 1


def test_every_module_has_a_telling_name() -> None:
    """No module is called utils or the like, and none has the name of a module of the standard library."""
    names = {path.stem: dotted(path) for path in MODULES if path.stem not in ("__init__", "__main__")}
    assert [names[name] for name in names.keys() & EVASIVE_NAMES] == []
    assert [names[name] for name in names.keys() & sys.stdlib_module_names] == []


def size_faults(source: str, module: str) -> Iterator[str]:
    """What of a module is larger than a head, and a docstring that is not there."""
    tree = ast.parse(source)
    if len(source.splitlines()) > MODULE_LINES:
        yield f"{module}: {len(source.splitlines())} lines"
    if not ast.get_docstring(tree):
        yield f"{module}: no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{module}.{node.name}: {lines} lines"


def test_every_module_fits_in_the_head() -> None:
    """A module has at most 500 lines and no function of more than 80; its docstring says what it decides."""
    assert [fault for path in MODULES for fault in size_faults(path.read_text(), dotted(path))] == []


def test_what_does_not_fit_is_found() -> None:
    """A module that is too long, says nothing and has a function without end has three faults."""
    body = "    pass\n" * FUNCTION_LINES
    source = f"def f():\n{body}" + "\n" * MODULE_LINES
    assert len(list(size_faults(source, "broker.x"))) == 3


@pytest.mark.parametrize(
    "package,allowed",
    [
        ("broker.protocol", {"broker", "msgpack", "msgspec", "orjson"}),
        ("broker.client", {"broker", "msgpack", "msgspec", "orjson", "zmq"}),
        ("subscribers.hooks", {"subscribers", "broker", "msgpack", "msgspec", "orjson"}),
    ],
)
def test_importing_a_package_loads_no_more_than_it_says(package: str, allowed: set[str]) -> None:
    """Importing every module of a package loads these third-party packages, and none of the rest."""
    program = (
        "import importlib, pkgutil, sys\n"
        "before = set(sys.modules)\n"
        f"package = importlib.import_module({package!r})\n"
        "for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(module.name)\n"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))\n"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert run.returncode == 0, run.stderr
    # msgspec brings typing_extensions where it is installed, pyzmq and msgpack the runtime of cython
    brought = {"typing_extensions", *(name for name in run.stdout.split() if "cython" in name)}
    assert set(run.stdout.split()) <= allowed | brought
