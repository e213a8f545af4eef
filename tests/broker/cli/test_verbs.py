"""Which verbs there are."""

from __future__ import annotations

import argparse
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from broker.cli.verbs import GROUP, OWN, Verb, deferred, hint, joined


def verb(name: str) -> Verb:
    """A verb that does nothing."""
    return Verb(name, "nothing", lambda parser: None, lambda options: 0)


class Entry:
    """What an entry point looks like to the code that loads it."""

    def __init__(self, loaded: Any) -> None:
        self.value = "somewhere:VERBS"
        self._loaded = loaded

    def load(self) -> Any:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The entry points that will be found."""
    found: list[Any] = []

    def entry_points(group: str) -> list[Any]:
        assert group == "prxbus.verbs"
        return found

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    return found


def test_verbs_join_alone_or_together(installed: list[Any]) -> None:
    """An entry point names one verb or several."""
    installed += [Entry(verb("up")), Entry((verb("check"), verb("fire")))]
    found = joined()
    assert list(found.verbs) == ["up", "check", "fire"]
    assert found.faults == []


def test_ours_and_the_first_one_win(installed: list[Any]) -> None:
    """A joined verb replaces neither ours nor one that joined before."""
    first = verb("up")
    installed += [Entry(first), Entry([verb("up"), verb("pub")])]
    assert joined().verbs == {"up": first}


@pytest.mark.parametrize("loaded", [ImportError("no such module"), ["not a verb"], 7])
def test_a_package_that_fails_takes_only_itself_away(loaded: Any, installed: list[Any]) -> None:
    """Whatever a package does wrong, the other verbs are there, and one line says what is missing."""
    installed += [Entry(loaded), Entry(verb("up"))]
    found = joined()
    assert list(found.verbs) == ["up"]
    assert len(found.faults) == 1
    assert "somewhere:VERBS" in found.faults[0]


def test_our_own_entry_point_loads() -> None:
    """The hook verbs of this distribution join, each with a summary."""
    found = joined()
    assert found.faults == []
    assert {"up", "config", "demo"} <= set(found.verbs)
    assert all(each.summary for each in found.verbs.values())


def test_each_of_our_verbs_has_a_module() -> None:
    """Every name in the table leads to a module that adds arguments and runs."""
    for name, own in OWN.items():
        parser = argparse.ArgumentParser()
        own.add_arguments(parser)
        assert own.name == name
        assert parser.format_usage()


def test_a_deferred_verb_imports_when_used() -> None:
    """A verb whose module is missing can be listed; using it is the error."""
    missing = deferred("x", "nothing", "broker.cli.no_such_module")
    with pytest.raises(ModuleNotFoundError):
        missing.add_arguments(argparse.ArgumentParser())
    with pytest.raises(ModuleNotFoundError):
        missing.run(argparse.Namespace())


@pytest.mark.parametrize(
    "name,said",
    [
        ("tpa", "did you mean 'tap'?"),
        ("stauts", "did you mean 'status'?"),
        ("PUB", "did you mean 'pub'?"),
        ("zzz", "there are "),
    ],
)
def test_a_mistyped_name_gets_the_nearest_one(name: str, said: str) -> None:
    """The hint is the nearest name, or all of them where none is near."""
    assert hint(name, OWN).startswith(said)


def test_the_group_is_what_the_distribution_declares() -> None:
    """The name of the group is the one under which our own hook verbs are installed."""
    from importlib.metadata import distribution

    declared: list[EntryPoint] = [
        entry for entry in distribution("prxbus").entry_points if entry.group == GROUP
    ]
    assert declared
