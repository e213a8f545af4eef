"""Which handlers are in force, as files and tables come, change, break and go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from subscribers.config.transforms import Transform
from subscribers.hooks.transform_chain import Handler, Said, Value
from subscribers.runner.transform_registry import Registry
from subscribers.runner.transform_reports import Who
from subscribers.runner.transform_steps import FunctionStep, Question, Step
from subscribers.runtimes.transform_pool import FunctionPool, LoadFailed
from subscribers.sources.handlers import HandlerUnit


class StubPool(FunctionPool):
    """A file's processes that are none: what the file says is what the stem would."""

    def __init__(self, functions: list[str], files: list[str], error: list[Any] | None = None) -> None:
        handlers = [[name, files[0], 3, [], [], 5.0] for name in functions]
        self.said = {"handlers": handlers, "error": error, "files": files}
        self.is_closed = self.has_died = False
        self.dies_loading = "dies" in functions
        self.warm = 0

    @property
    def alive(self) -> bool:
        """Until it is closed, or a test says so."""
        return not self.is_closed and not self.has_died

    def loaded(self, deadline: float) -> Any:
        """What it says, or that it died."""
        if self.dies_loading:
            self.close()
            raise LoadFailed("its process ended")
        return self.said

    def warm_up(self) -> None:
        """Count it."""
        self.warm += 1

    def close(self) -> None:
        """Remember it."""
        self.is_closed = True


class StubStep:
    """A table made runnable."""

    def __init__(self, name: str) -> None:
        self.who = Who(name, "command", "", None, "")

    def ask(self, _question: Question, _timeout_s: float) -> Said:
        """Nobody asks."""
        return Value(self.who.handler)


class World:
    """Files of handlers and a configuration in a folder, and what was opened for them.

    A file's text lists its functions; "refuse" in it is an error at the start, "broken" one at loading, and
    "dies" an end.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.units: list[HandlerUnit] = []
        self.opened: list[StubPool] = []
        self.during_load: Callable[[], None] | None = None
        environ = {"PRXBUS_CONFIG_DIR": str(folder / "config")}
        self.registry = Registry(
            environ,
            str(folder / "w"),
            lambda: self.units,
            self._open,
            self._link,
        )

    def _open(self, unit: HandlerUnit) -> FunctionPool:
        words = Path(unit.path).read_text().replace("transform", "").split()
        if "refuse" in words:
            raise LoadFailed("no room")
        error = ["syntax_error", unit.path, 1, "bad", None] if "broken" in words else None
        self.opened.append(StubPool([] if error else words, [unit.path], error))
        during, self.during_load = self.during_load, None
        if during is not None:
            during()
        return self.opened[-1]

    def closed(self, name: str) -> list[bool]:
        """Which of a file's processes were ended, in the order in which they were started."""
        path = str(self.folder / name)
        return [pool.is_closed for pool in self.opened if pool.said["files"] == [path]]

    @staticmethod
    def _link(transform: Transform) -> Handler[Step]:
        return Handler(transform.name, StubStep(transform.name), transform.table.timeout)

    def file(self, name: str, text: str, origin: Any = "workspace") -> None:
        """Write a file of handlers, and let it be found."""
        path = self.folder / name
        path.write_text(f"transform {text}")
        unit = HandlerUnit(name, str(path), origin)
        if unit not in self.units:
            self.units.append(unit)

    def tables(self, *names: str, user: bool = False, fault: str = "") -> None:
        """Write a configuration with tables of these names."""
        path = self.folder / ("config/prxbus.toml" if user else "w/.prxbus/config.toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"[[transform]]\ncommand='x'\nname='{name}'\n" for name in names) + fault)

    def load(self, *, again: bool = False) -> list[str]:
        """The names in force after another look."""
        self.registry.load(again=again)
        return [handler.name for handler in self.registry.handlers]


def test_the_order_is_the_users_then_the_workspaces(tmp_path: Path) -> None:
    """Tables before functions of the same origin; named files before packages; in a file as they stand."""
    world = World(tmp_path)
    world.file("z.py", "b a")
    world.file("y.py", "f", origin="installed")
    world.file("x.py", "f", origin="named")
    world.tables("w1", "w2")
    world.tables("u1", user=True)
    assert world.load() == ["u1", "x.py:f", "y.py:f", "w1", "w2", "z.py:b", "z.py:a"]
    step = world.registry.handlers[-1].what
    assert isinstance(step, FunctionStep)
    assert step.who == ("z.py:a", "function", str(tmp_path / "z.py"), 3, "")


def test_what_looks_the_same_is_not_loaded_again(tmp_path: Path) -> None:
    """A second look opens nothing, unless it is told to; an edit opens that file alone."""
    world = World(tmp_path)
    world.file("a.py", "f")
    world.file("b.py", "f")
    world.load()
    world.load()
    assert len(world.opened) == 2
    world.file("b.py", "f g")
    assert world.load() == ["a.py:f", "b.py:f", "b.py:g"]
    assert len(world.opened) == 3
    assert (world.closed("a.py"), world.closed("b.py")) == ([False], [True, False])
    world.load(again=True)
    assert (world.closed("a.py"), world.closed("b.py")) == ([True, False], [True, True, False])
    assert all(pool.warm == 1 for pool in world.opened)


def test_a_file_that_is_edited_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    """What changed between the start of a load and its end is not taken for seen."""
    world = World(tmp_path)
    world.file("a.py", "f")
    world.during_load = lambda: world.file("a.py", "g longer")
    assert world.load() == ["a.py:f"]
    assert world.load() == ["a.py:g", "a.py:longer"]
    opened = len(world.opened)
    world.load()
    assert len(world.opened) == opened


def test_a_broken_file_leaves_the_last_good_one_in_force(tmp_path: Path) -> None:
    """Its siblings are as they were; when it is mended it is loaded; a stem that cannot start is the same."""
    world = World(tmp_path)
    world.file("a.py", "f")
    world.file("b.py", "g")
    world.load()
    for bad in ("broken", "refuse", "dies"):
        world.file("a.py", f"f h {bad}")
        assert world.load() == ["a.py:f", "b.py:g"]
        assert not world.closed("a.py")[0]
        opened = len(world.opened)
        world.load()
        assert len(world.opened) == opened
    world.file("a.py", "h")
    assert world.load() == ["a.py:h", "b.py:g"]
    assert world.closed("a.py") == [True, True, True, False]


def test_a_file_that_is_broken_from_the_start_has_no_handlers(tmp_path: Path) -> None:
    """There is no last good version; it is loaded when it changes."""
    world = World(tmp_path)
    world.file("a.py", "broken")
    assert world.load() == []
    assert world.opened[0].is_closed
    world.file("a.py", "f")
    assert world.load() == ["a.py:f"]


def test_a_dead_process_is_replaced_or_given_up(tmp_path: Path) -> None:
    """A stem that died is loaded again; where that cannot be, its functions are in force no longer."""
    world = World(tmp_path)
    world.file("a.py", "f")
    world.load()
    world.opened[0].has_died = True
    assert world.load() == ["a.py:f"]
    assert len(world.opened) == 2
    world.file("a.py", "broken")
    world.load()
    world.opened[1].has_died = True
    assert world.load() == []
    opened = len(world.opened)
    world.load()
    assert len(world.opened) == opened


def test_a_file_that_is_gone_or_transforms_nothing_has_no_process(tmp_path: Path) -> None:
    """Its process ends, and none is started for a file that cannot hold a transform."""
    world = World(tmp_path)
    world.file("a.py", "f")
    world.file("b.py", "")
    assert world.load() == ["a.py:f"]
    assert (world.closed("a.py"), world.closed("b.py")) == ([False], [True])
    (tmp_path / "a.py").write_text("nothing of the kind")
    assert world.load() == []
    assert all(pool.is_closed for pool in world.opened)
    world.file("a.py", "f")
    assert world.load() == ["a.py:f"]
    world.units.clear()
    assert world.load() == []
    assert all(pool.is_closed for pool in world.opened)


def test_an_ask_keeps_the_processes_that_it_began_with(tmp_path: Path) -> None:
    """The old version's process ends when the last ask that goes along it has ended, not before."""
    world = World(tmp_path)
    world.file("a.py", "f")
    world.load()
    with world.registry.in_force() as first:
        with world.registry.in_force():
            world.file("a.py", "g")
            assert world.load() == ["a.py:g"]
            assert [handler.name for handler in first] == ["a.py:f"]
            world.tables("t")
            assert world.load() == ["t", "a.py:g"]
        assert [pool.is_closed for pool in world.opened] == [False, False]
    assert [pool.is_closed for pool in world.opened] == [True, False]


def test_stopping_ends_every_process(tmp_path: Path) -> None:
    """Also that of an old version which an ask still goes along."""
    world = World(tmp_path)
    world.file("a.py", "f")
    world.load()
    with world.registry.in_force():
        world.file("a.py", "g")
        world.load()
        world.registry.stop()
        assert [pool.is_closed for pool in world.opened] == [True, True]


def test_faulty_tables_leave_the_last_good_ones_of_that_file(tmp_path: Path) -> None:
    """Each configuration stands for itself; a fault of a setting is none of a transform."""
    world = World(tmp_path)
    world.tables("u1", user=True)
    world.tables("w1")
    assert world.load() == ["u1", "w1"]
    world.tables("u2", user=True, fault="[[transform]]\n")
    world.tables("w2", fault="[hooks]\nruns = 0\n")
    assert world.load() == ["u1", "w2"]
    world.tables("u3", user=True, fault="= no TOML\n")
    assert world.load() == ["u1", "w2"]
    world.tables("u3", user=True)
    assert world.load() == ["u3", "w2"]


def test_tables_that_are_faulty_from_the_start_leave_the_good_ones(tmp_path: Path) -> None:
    """What can be used is used where there was nothing before."""
    world = World(tmp_path)
    world.tables("w1", fault="[[transform]]\n")
    assert world.load() == ["w1"]
