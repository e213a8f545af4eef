"""Python files as modules of hooks: which handlers they have, how these are called, and what is refused."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from subscribers.runtimes import python_module_loader
from subscribers.runtimes.python_module_loader import PREFIX, PythonModule, Unusable, forget, load_module

Load = Callable[[str], PythonModule]
GIVEN = {"tool": "edit", "args": {"a": 1}, "output": "done"}


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Load a module from its source."""

    def loaded(source: str) -> PythonModule:
        path = tmp_path / "hook.v2.py"
        path.write_text(textwrap.dedent(source))
        return load_module(str(path))

    yield loaded
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        forget(name)


def refusal(load: Load, source: str) -> str:
    """Why a module is refused; nothing of it is left then."""
    before = set(sys.modules)
    with pytest.raises(Unusable) as caught:
        load(source)
    assert not [name for name in set(sys.modules) - before if name.startswith(PREFIX)]
    return caught.value.error


@pytest.mark.parametrize(
    "source",
    [
        "def on_tool_after(ctx, tool): return tool",
        "def onToolAfter(ctx, tool): return tool",
        "class Hook:\n    def on_tool_after(self, ctx, tool): return tool",
        "class Hook:\n    @staticmethod\n    def on_tool_after(ctx, tool): return tool",
        "class Any:\n    def onToolAfter(self, ctx, tool): return tool\nhook = Any()",
        "class Any:\n    def onToolAfter(self, ctx, tool): return tool\ndefault = Any",
        "default = {'onToolAfter': lambda ctx, tool: tool}",
        "hook = None\ndefault = 3\nclass Hook: ...\ndef on_tool_after(ctx, tool): return tool",
        "import functools\ndef f(x, ctx, tool): return tool\non_tool_after = functools.partial(f, 1)",
    ],
)
def test_handlers_are_found_wherever_they_may_be(load: Load, source: str) -> None:
    """In the module, in an object, a dict or a class that it names, in either spelling."""
    handlers = load(source).handlers
    assert list(handlers) == ["onToolAfter"]
    assert handlers["onToolAfter"].call("ctx", GIVEN) == "edit"


@pytest.mark.parametrize(
    "signature,given",
    [
        ("ctx, tool, args, output", ("edit", {"a": 1}, "done")),
        ("ctx, output, *, tool, args=None", ("edit", {"a": 1}, "done")),
        ("ctx, output", (None, None, "done")),
        ("c, **tool", (GIVEN, None, None)),
        ("c, args, **tool", ({"tool": "edit", "output": "done"}, {"a": 1}, None)),
        ("c, /, tool, more=3", ("edit", None, None)),
        ("ctx", (None, None, None)),
        ("ctx, tool, *others", ("edit", None, None)),
    ],
)
def test_a_handler_is_given_what_it_names(load: Load, signature: str, given: tuple[Any, ...]) -> None:
    """By name; and the context first, whatever it is called."""
    found = "tuple(here.get(name) for name in ('tool', 'args', 'output'))"
    handlers = load(f"def on_tool_after({signature}):\n    here = locals()\n    return {found}\n").handlers
    assert handlers["onToolAfter"].call("ctx", dict(GIVEN)) == given


@pytest.mark.parametrize(
    "signature", ["ctx, given", "ctx, given=None", "c, given, /", "*given", "ctx, *given"]
)
def test_a_handler_may_take_all_of_its_input_as_one(load: Load, signature: str) -> None:
    """If it names nothing of it."""
    handlers = load(f"def on_tool_after({signature}):\n    return given\n").handlers
    returned = handlers["onToolAfter"].call("ctx", GIVEN)
    assert returned in (GIVEN, ("ctx", GIVEN), (GIVEN,))


def test_what_is_loaded_and_disposed_gets_the_context_alone(load: Load) -> None:
    """There is no input."""
    handlers = load("def on_load(ctx, more=3): return more\ndef on_dispose(*all): return all\n").handlers
    assert handlers["onLoad"].call("ctx", {}) == 3
    assert handlers["onDispose"].call("ctx", {}) == ("ctx",)


def test_asynchronous_handlers_are_told_apart(load: Load) -> None:
    """Also when it is an object that is called."""
    source = """
        class Called:
            async def __call__(self, ctx): ...
        on_event = Called()
        async def on_load(ctx): ...
        def on_dispose(ctx): ...
    """
    handlers = load(source).handlers
    assert {name: handler.is_async for name, handler in handlers.items()} == {
        "onEvent": True,
        "onLoad": True,
        "onDispose": False,
    }


@pytest.mark.parametrize(
    "source,reason",
    [
        (
            "def on_event(): ...",
            "on_event() does not take the context: write on_event(ctx, type, properties)",
        ),
        (
            "def on_event(ctx, typ, properties): ...",
            "on_event(ctx, typ, properties): nothing is given for 'typ'; write on_event(ctx,",
        ),
        (
            "def on_event(ctx, a, b): ...",
            "on_event(ctx, a, b): nothing is given for 'a'; write on_event(ctx, type",
        ),
        ("def on_load(ctx, x): ...", "on_load(ctx, x): nothing is given for 'x'; write on_load(ctx)"),
        ("def on_event(ctx, *, x): ...", "on_event(ctx, *, x): nothing is given for 'x'"),
        ("on_event = 3", "on_event is 3, which cannot be called"),
        ("on_event = type", "on_event does not say what it takes"),
        ("class Hook:\n    def __init__(self, x): ...\n    def on_event(self, ctx): ...", "TypeError: "),
        ("import sys\nsys.exit(3)", "hook.v2.py:2: SystemExit: 3"),
        ("x = 1 +", "hook.v2.py:1: SyntaxError: invalid syntax"),
        (
            "import nowhere_at_all",
            "hook.v2.py:1: ModuleNotFoundError: No module named 'nowhere_at_all'; install it",
        ),
        (
            "import neighbour",
            "No module named 'neighbour'; a neighbour is imported relatively: write 'from .neigh",
        ),
        ("def f(): g()\ndef g(): raise KeyError(3)\nf()", "hook.v2.py:2: KeyError: 3"),
    ],
)
def test_what_cannot_be_a_hook_is_refused(load: Load, tmp_path: Path, source: str, reason: str) -> None:
    """With the line, what is wrong, and what to write."""
    (tmp_path / "neighbour.py").touch()
    assert reason in refusal(load, source)


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is too large for one."""
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "large.py").write_text("#" * 20)
    monkeypatch.setattr(python_module_loader, "MODULE_BYTES", 10)
    for name, reason in (
        ("folder.py", "this is not a regular file"),
        ("gone.py", "it cannot be read: No such file or directory"),
        ("large.py", "it has more than 10 bytes"),
    ):
        with pytest.raises(Unusable, match=reason):
            load_module(str(tmp_path / name))


def test_each_load_has_a_namespace_and_neighbours_of_its_own(load: Load, tmp_path: Path) -> None:
    """Two of one file share nothing; what one has imported is forgotten with it."""
    (tmp_path / "_words.py").write_text("seen = []\n")
    source = "from ._words import seen\ndef on_event(ctx, type):\n    seen.append(type)\n    return seen\n"
    one, two = load(source), load(source)
    assert one.handlers["onEvent"].call(None, {"type": "a"}) == ["a"]
    assert two.handlers["onEvent"].call(None, {"type": "b"}) == ["b"]
    assert sorted(name for name in sys.modules if name.startswith(f"{one.package}.")) == [
        f"{one.package}._words",
        f"{one.package}.hook_v2",
    ]
    forget(one.package)
    assert not [name for name in sys.modules if name.startswith(f"{one.package}")]
    assert one.handlers["onEvent"].call(None, {"type": "c"}) == ["a", "c"]
