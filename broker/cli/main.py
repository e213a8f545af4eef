"""The command ``prxbus``: find the verb, parse its arguments, run it, and turn its end into an exit code.

Only the verb asked for is imported; verbs of other packages are looked up when the name is none of
ours. Decides how every command begins and ends; what a verb does is its module's.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from ..protocol.errors import BusError
from ..version import __version__
from .exits import DONE, FAILED, INTERRUPTED, TABLE, USAGE, CommandError, UsageError, error_line, exit_code
from .options import verb_parser
from .printing import emit, forget_stdout, say
from .verbs import OWN, Verb, hint, joined

EXTRA: Final = frozenset({"platformdirs", "pydantic", "re2", "rich", "shtab", "watchfiles"})
"""Packages that the extra ``run`` brings: without them the verbs that use them say so."""

QUICK: Final = frozenset({"ask", "pub"})
"""Verbs after which nothing is left to tidy up: the process ends at once and spares a tenth of its life."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``prxbus`` with ``argv``; returns the exit code.

    Without ``argv`` this process is the command, and after a short verb it ends right here.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    status = _guarded(arguments)
    if argv is None and arguments[:1] and arguments[0] in QUICK:
        _leave(status)
    return status


def _guarded(arguments: list[str]) -> int:
    """Run the command; every error that a user can cause is one line and an exit code."""
    verb = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    as_json = "--json" in arguments
    try:
        return _dispatch(arguments)
    except (BusError, CommandError) as error:
        say(error_line(verb, error, as_json=as_json))
        return exit_code(error)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        say(error_line(verb, _extra_missing(package), as_json=as_json))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `prxbus tap ... | head`: the reader has what it wanted
        forget_stdout()
        return DONE
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        say(error_line(verb, CommandError(f"{error.strerror or error}{where}"), as_json=as_json))
        forget_stdout()
        return FAILED


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        say(_usage())
        return USAGE
    name, *rest = arguments
    if name == "help":
        name, *rest = [*rest[:1], "--help"]
    if name in ("-h", "--help"):
        emit(_help())
        return DONE
    if name == "--version":
        emit(version_line())
        return DONE
    if name.startswith("-"):
        raise UsageError(_misplaced(name))
    verb = OWN.get(name)
    return _run(_joined_verb(name) if verb is None else verb, rest)


def _run(verb: Verb, arguments: list[str]) -> int:
    parser = verb_parser(verb.name, verb.summary, bus=verb.bus)
    collecting = gc.isenabled()
    gc.disable()  # importing makes no garbage worth looking for, and looking costs a twentieth of the start
    try:
        verb.add_arguments(parser)
        options = parser.parse(arguments)
    except SystemExit as end:  # --help has been printed
        return int(end.code or 0)
    finally:
        if collecting:
            gc.enable()
    return verb.run(options)


def _joined_verb(name: str) -> Verb:
    others = joined()
    if name in others.verbs:
        return others.verbs[name]
    meant = "the version is an option: 'prxbus --version'" if name == "version" else None
    said = meant or hint(name, {**OWN, **others.verbs})
    raise UsageError("; ".join([f"there is no verb {name!r}", said, *others.faults]))


def _misplaced(option: str) -> str:
    """What is wrong with an ``option`` in the place of the verb."""
    from .spelling import nearest

    meant = "--version" if option in ("-V", "-v") else nearest(option, ("--help", "--version"))
    if meant is not None:
        return f"there is no option {option!r}; did you mean 'prxbus {meant}'?"
    return f"option {option!r} comes before the verb; put it after the verb: 'prxbus VERB {option}'"


def _extra_missing(package: str) -> CommandError:
    return CommandError(
        f"needs the package {package!r}, which the extra 'run' brings: pip install 'prxbus[run]'",
        "missing_extra",
    )


def version_line() -> str:
    """The release, and where it was loaded from: the first thing to know when two are installed."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    python = ".".join(map(str, sys.version_info[:3]))
    return f"prxbus {__version__} from {package} (Python {python}, {sys.executable})"


def _usage() -> str:
    return "usage: prxbus VERB [ARGUMENT ...]; 'prxbus --help' lists the verbs"


def _help() -> str:
    others = joined()
    verbs = {**OWN, **others.verbs}
    width = max(map(len, verbs))
    marks = {name: " *" if verb.extra else "" for name, verb in verbs.items()}
    lines = [
        "usage: prxbus VERB [ARGUMENT ...]",
        "",
        "An event bus for AI agents, and a runtime for their hooks.",
        "",
        "verbs ('prxbus VERB --help' tells more):",
        *(f"  {name:<{width}}  {verbs[name].summary}{marks[name]}" for name in sorted(verbs)),
        *["  * needs the extra 'run': pip install 'prxbus[run]'"] * any(marks.values()),
        *(f"  ({fault})" for fault in others.faults),
        "",
        "options:",
        "  -h, --help   print this",
        "  --version    print the release and where it was loaded from",
        "",
        "exit codes:",
        *(f"  {row.code:<4} {row.meaning}" for row in TABLE),
    ]
    return "\n".join(lines)


def _leave(status: int) -> NoReturn:
    """End the process without the interpreter's tidying up; what was sent to the broker is flushed first."""
    sockets = sys.modules.get("broker.client.sockets")
    if sockets is not None:
        sockets.end_context()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)
