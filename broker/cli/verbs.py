"""The verbs of ``prxbus``: what one is, which ones are ours, and how those of other packages join.

A package joins by an entry point of the group ``prxbus.verbs`` that names a :class:`Verb` or several.
Ours win over a joined one of the same name. Decides names and summaries; parsing is :mod:`.main`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

GROUP: Final = "prxbus.verbs"
"""The group of entry points by which other packages add verbs."""


class Verb(NamedTuple):
    """One verb: ``add_arguments`` finds ``--runtime-dir`` in the parser, ``run`` returns the exit code.

    ``run`` raises :class:`broker.protocol.errors.BusError` or :class:`broker.cli.exits.CommandError` for
    what the user should read; anything else is a defect. ``bus`` tells whether it has to do with a bus, and
    so shows ``--runtime-dir`` in its help; ``extra`` whether it needs what the extra ``run`` brings.
    """

    name: str
    summary: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    bus: bool = True
    extra: bool = False


def deferred(name: str, summary: str, module: str, *, bus: bool = True, extra: bool = False) -> Verb:
    """A verb whose ``module`` (with ``add_arguments`` and ``run``) is imported when it is used."""

    def load() -> Any:
        from importlib import import_module

        return import_module(module)

    def add_arguments(parser: ArgumentParser) -> None:
        load().add_arguments(parser)

    def run(options: Namespace) -> int:
        return int(load().run(options))

    return Verb(name, summary, add_arguments, run, bus, extra)


_PACKAGE: Final = __name__.rpartition(".")[0]

OWN: Final = {
    verb.name: verb
    for verb in (
        deferred("pub", "publish an event, and learn how many subscribers match", f"{_PACKAGE}.pub"),
        deferred("ask", "ask the deciders of an event, and end as they decide", f"{_PACKAGE}.ask"),
        deferred("tap", "show the events of a topic pattern as they come", f"{_PACKAGE}.tap"),
        deferred("status", "show the broker, its peers, and what was lost", f"{_PACKAGE}.status"),
        deferred("top", "watch rates, subscribers, deciders and hooks, live", f"{_PACKAGE}.top", extra=True),
        deferred("schema", "print the JSON Schema of a catalogued event", f"{_PACKAGE}.schema", bus=False),
        deferred("bench", "measure the bus on this machine, quickly", f"{_PACKAGE}.bench"),
        deferred(
            "completion",
            "print a completion script for a shell",
            f"{_PACKAGE}.completion",
            bus=False,
            extra=True,
        ),
    )
}
"""Our own verbs by name."""


class Joined:
    """The ``verbs`` of other packages by name, and a line (``faults``) for each package that failed."""

    __slots__ = ("faults", "verbs")

    def __init__(self, verbs: dict[str, Verb], faults: Sequence[str]) -> None:
        self.verbs = verbs
        self.faults = faults


def joined() -> Joined:
    """Load the verbs of other packages; one that fails takes only itself away."""
    from importlib.metadata import entry_points

    verbs: dict[str, Verb] = {}
    faults: list[str] = []
    for entry in entry_points(group=GROUP):
        try:
            for verb in _several(entry.load()):
                verbs.setdefault(verb.name, verb)
        except Exception as error:  # somebody else's package: whatever it raises, ours must work
            faults.append(f"the verbs of {entry.value!r} are missing: {type(error).__name__}: {error}")
    return Joined({name: verb for name, verb in verbs.items() if name not in OWN}, faults)


def hint(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped ``name``: the nearest one of ``known``, or all of them."""
    from .spelling import nearest

    names = sorted(known)
    near = nearest(name, names)
    return f"there are {', '.join(names)}" if near is None else f"did you mean {near!r}?"


def _several(loaded: Any) -> Iterable[Verb]:
    if isinstance(loaded, Verb):
        return (loaded,)
    verbs = tuple(loaded)
    for verb in verbs:
        if not isinstance(verb, Verb):
            raise TypeError(f"{verb!r} is not a Verb")
    return verbs
