"""``prxbus attach`` and ``detach``: our entries into an agent's settings, and out again.

Decides what is asked for and refused: handlers that would run twice, a token that would be committed. What is
written is :mod:`subscribers.sources.attach_plan`'s, how :mod:`subscribers.sources.attach_files`'s.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from broker.cli.exits import DONE, REFUSED, CommandError, UsageError
from broker.cli.options import add_json
from broker.cli.printing import emit, emit_json
from broker.places import runtime_directory

from .hook import SHIM, SOCKET_NAME, python

if TYPE_CHECKING:
    from ..dialects.codex_profiles import Profile
    from ..sources.attach_files import Place
    from ..sources.attach_plan import Plan, Wanted

AGENTS: Final = ("claude-code", "codex")
_MARKS: Final = {"add": "+", "keep": "=", "replace": "~", "remove": "-"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``attach``."""
    add_place(parser)
    parser.add_argument(
        "--http",
        action="store_true",
        help="of Claude Code: send events over HTTP, so that it starts no process (needs the HTTP API)",
    )
    parser.add_argument(
        "--token-variable",
        action="store_true",
        help="with --http: name the variable PRXBUS_HOOK_TOKEN instead of writing the token",
    )
    parser.add_argument(
        "--events", metavar="E,...", help="these events, or 'all' (default: those that every version knows)"
    )
    policy = parser.add_mutually_exclusive_group()
    policy.add_argument(
        "--fail-closed",
        action="store_true",
        help="block what can be blocked when there is no answer (default: the agent goes on)",
    )
    policy.add_argument(
        "--fail-open",
        action="store_true",
        help="go on without an answer, also where entries that are there now block",
    )
    parser.add_argument("--force", action="store_true", help="even where handlers would then run twice")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Which agent's settings, and what both directions share."""
    parser.add_argument("agent", choices=AGENTS, help="whose settings")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="the user's settings (default)")
    where.add_argument(
        "--project", metavar="DIR", nargs="?", const=".", help="a project's (default: the current directory)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the plan and write nothing")
    add_json(parser, "the plan")


def run(options: argparse.Namespace) -> int:
    """Attach."""
    from ..dialects.codex_profiles import PROFILES
    from ..sources import attach_plan as plans

    place = find(options)
    profile = PROFILES[place.profile]
    with told(place.path):
        events = _events(options.events, profile)
        notes = [*_refuse_twice(options, place), *_notes(options, place, profile)]
        wanted, more = _wanted(options, place, events)
        secret = options.http and not options.token_variable

        def plan(text: bytes | None) -> Plan:
            return plans.attach(text, wanted, profile)

        return _carry_out(options, place, plan, [*notes, *more], secret=secret)


def run_detach(options: argparse.Namespace) -> int:
    """Detach."""
    from ..sources import attach_plan as plans

    place = find(options)

    def plan(text: bytes | None) -> Plan:
        return plans.detach(text) if text is not None else plans.Plan(b"", (), 0)

    with told(place.path):
        return _carry_out(options, place, plan, [], secret=False)


def find(options: argparse.Namespace) -> Place:
    """The settings that are meant; raises :class:`UsageError`."""
    from ..sources.attach_files import find_place
    from ..sources.import_sources import homes

    project = None if options.project is None else os.path.abspath(options.project)
    if project is not None and not os.path.isdir(project):
        raise UsageError(f"--project {project!r} is not a directory")
    return find_place(options.agent, homes(os.environ), project)


@contextmanager
def told(path: str) -> Iterator[None]:
    """Turn what goes wrong into what the command says."""
    from ..http.token_file import TokenRefused
    from ..sources.attach_files import Unwritable
    from ..sources.attach_plan import SettingsRefused

    try:
        yield
    except SettingsRefused as error:
        raise CommandError(f"{path} was not changed: {error}", "settings_refused", REFUSED) from None
    except Unwritable as error:
        raise CommandError(str(error), "unwritable") from None
    except TokenRefused as error:
        raise CommandError(str(error), "no_token", REFUSED) from None


def _carry_out(
    options: argparse.Namespace,
    place: Place,
    plan_of: Callable[[bytes | None], Plan],
    notes: Sequence[str],
    *,
    secret: bool,
) -> int:
    """Show a plan or do it; with a ``secret`` in it the file becomes its user's alone."""
    from ..sources import attach_created
    from ..sources.attach_files import (
        changing,
        make_private,
        read_settings,
        replace_settings,
        state_directory,
    )

    state = state_directory()
    copy = None
    if options.dry_run:
        text, _ = read_settings(place.path)
        plan = plan_of(text)
        written = False
        removed = _is_left_bare(plan) and attach_created.is_made(place.path, state)
    else:
        with changing(state):
            if secret:
                make_private(place.path)
            text, looked = read_settings(place.path)
            plan = plan_of(text)
            written = plan.text != (text or b"")
            removed = _is_left_bare(plan) and attach_created.is_made(place.path, state)
            if removed:
                copy = attach_created.take_away(place.path, looked, state)
            elif written:
                if text is None:
                    attach_created.remember(place.path, state)
                elif all(change.what == "add" for change in plan.changes):
                    attach_created.forget(place.path, state)
                copy = replace_settings(place.path, plan.text, looked, state)
    if options.json:
        emit_json(
            {
                "path": place.path,
                "agent": place.agent,
                "changes": [change._asdict() for change in plan.changes],
                "others": plan.others,
                "notes": list(notes),
                "written": written,
                "removed": removed and written,
                "backup": copy,
            }
        )
    else:
        emit(
            "\n".join(
                _lines(place, plan, notes, written=written, removed=removed, copy=copy, dry=options.dry_run)
            )
        )
    return DONE


def _is_left_bare(plan: Plan) -> bool:
    """Whether our last entry goes, and nothing at all stays."""
    from ..sources.attach_plan import read

    return any(change.what == "remove" for change in plan.changes) and not read(plan.text)


def _lines(
    place: Place,
    plan: Plan,
    notes: Sequence[str],
    *,
    written: bool,
    removed: bool,
    copy: str | None,
    dry: bool,
) -> Iterator[str]:
    yield f"{place.path}:"
    for change in plan.changes:
        yield f"  {_MARKS[change.what]} {change.event:<19} {change.entry}"
    if not plan.changes:
        yield "  nothing of ours is there"
    if plan.others:
        yield f"  {plan.others} other hook{'' if plan.others == 1 else 's'} in it stay as they are"
    if removed:
        yield "  nothing else is in the file, which 'attach' made: it goes too"
    yield from (f"  note: {note}" for note in notes)
    if dry:
        yield "nothing was written: this is the plan"
    elif not written:
        yield "nothing was written: it is so already"
    else:
        done = "removed" if removed else "written"
        yield done if copy is None else f"{done}; what it was before: {copy}"


def _events(named: str | None, profile: Profile) -> tuple[str, ...]:
    from ..sources.attach_plan import all_events, chosen_events, default_events

    if named is None:
        return default_events(profile)
    if named == "all":
        return all_events(profile)
    return chosen_events(profile, [name.strip() for name in named.split(",") if name.strip()])


def _wanted(
    options: argparse.Namespace, place: Place, events: tuple[str, ...]
) -> tuple[Wanted, Sequence[str]]:
    from ..sources.attach_plan import Wanted

    socket = os.path.join(runtime_directory(options.runtime_dir), SOCKET_NAME)
    wanted = Wanted(python(), SHIM, socket, events, closed=options.fail_closed, opens=options.fail_open)
    if not options.http:
        if options.token_variable:
            raise UsageError("--token-variable means nothing without --http")
        return wanted, ()
    if place.agent != "claude-code":
        raise UsageError("--http: Codex has no HTTP hooks, and refuses a file that holds one")
    from ..hooks.withheld import HOOK_TOKEN
    from ..http.token_file import find_hook_token
    from ..sources.attach_files import state_directory

    address, notes = _address(os.path.dirname(socket))
    wanted = wanted._replace(url=f"{address}/hooks/claude")
    token, path = find_hook_token(state_directory(), os.environ)
    if options.token_variable:
        where = path or "the environment of 'prxbus up'"
        return wanted, [*notes, f"start Claude Code with {HOOK_TOKEN} set to the token in {where}"]
    _refuse_committed(place.path)
    return wanted._replace(authorization=f"Bearer {token}"), notes


def _address(directory: str) -> tuple[str, Sequence[str]]:
    """Where events are posted: to the API that runs on this bus, else where the configuration has it."""
    from ..config import files
    from ..runner.agent_http import read_address
    from ..runner.agent_probe import is_served

    settings = files.load(os.environ, {}, None).settings.http
    configured = f"http://127.0.0.1:{settings.port}" if settings.enabled and settings.port else None
    running = read_address(directory)
    if running is not None and is_served(running):
        if running == configured:
            return running, ()
        port = running.rpartition(":")[2]
        otherwise = "names no port" if configured is None else f"names port {settings.port}"
        note = (
            f"the HTTP API of this bus is at {running} now, and the configuration {otherwise}: "
            f"start it with 'prxbus up --http {port}' again, or attach again when it has another port"
        )
        return running, (note,)
    if configured is None:
        raise UsageError(
            "--http: no HTTP API runs on this bus, and in the configuration it is turned off or has no fixed "
            "port; see 'prxbus config show'"
        )
    return configured, (f"no HTTP API runs on this bus now; the configuration has it at {configured}",)


def _refuse_committed(path: str) -> None:
    """A token is never written where others may come to read it."""
    from ..sources.attach_files import why_committed

    why = why_committed(path)
    if why is not None:
        raise CommandError(
            f"{path} would hold a token, and {why}; have git ignore it, or use --token-variable",
            "token_committed",
            REFUSED,
        )


def _refuse_twice(options: argparse.Namespace, place: Place) -> Sequence[str]:
    """The agent runs its own hooks itself: imports of them would run besides."""
    from ..config import files
    from ..sources.import_actions import Importer
    from ..sources.import_places import ImportPlaces, import_root
    from ..sources.import_sources import homes

    configured = files.load(os.environ, {}, None).settings.hooks.import_dir
    workspace = os.path.abspath(options.project or os.curdir)
    importer = Importer(ImportPlaces(import_root(configured, os.environ), workspace), homes(os.environ))
    names = ", ".join(record.id for record in importer.imports_of(place.agent))
    if not names:
        return ()
    if not options.force:
        raise CommandError(
            f"{place.agent} runs its own hooks itself, and the imports {names} would run them a second time; "
            "disable them with 'prxbus hooks disable', or say --force",
            "runs_twice",
            REFUSED,
        )
    return [f"the imports {names} run a second time what {place.agent} runs itself"]


def _notes(options: argparse.Namespace, place: Place, profile: Profile) -> Iterator[str]:
    """What the user has to know besides the plan."""
    if place.agent == "codex":
        yield "Codex asks you to trust each new or changed hook at its next start; until then it runs none"
    if place.shared:
        yield f"{place.path} may be committed, and its commands name files of this machine"
    if options.events is None:
        from ..sources.attach_plan import all_events, default_events

        further = [name for name in all_events(profile) if name not in default_events(profile)]
        if further:
            yield f"older versions do not know these events, name them with --events: {', '.join(further)}"
