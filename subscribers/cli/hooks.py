"""``prxbus hooks``: what other agents' hooks there are, and importing them: look, confirm, look after.

Decides which words lead to what, and with which exit code a command ends. What is done is
:mod:`subscribers.sources.import_actions`'s, how it reads :mod:`.hooks_lines`'s.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from broker.cli.exits import DONE, FAILED, REFUSED, STALE, TIMED_OUT, UNAVAILABLE, CommandError, error_line
from broker.cli.options import add_json
from broker.cli.printing import emit, emit_json, say

if TYPE_CHECKING:
    from ..sources.import_actions import Done, Importer
    from ..sources.import_places import Scope


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``hooks``, a verb with verbs of its own; without one it lists."""
    verbs = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = verbs.add_parser("list", help="show sources and imports (the default)")
    listing.add_argument(
        "--refresh",
        action="store_true",
        default=argparse.SUPPRESS,
        help="read the sources again, and say which imports they left behind",
    )
    bring = verbs.add_parser("import", help="show what importing a source would do; with --confirm, do it")
    bring.add_argument("--source", metavar="KEY", required=True, help="the source, as `list` calls it")
    update = verbs.add_parser("update", help="the same for what an import came from")
    enable = verbs.add_parser("enable", help="let an import run")
    disable = verbs.add_parser("disable", help="keep an import, and run nothing of it")
    remove = verbs.add_parser("remove", help="delete an import with its copies; its source stays as it is")
    reset = verbs.add_parser("reset", help="mend a corrupt store: what is whole stays, the rest goes")
    for each in (bring, update):
        each.add_argument(
            "--confirm", metavar="FINGERPRINT", help="do it, if the plan is still the one shown"
        )
    for each in (bring, update, enable):
        each.add_argument("--force", action="store_true", help="even where handlers would then run twice")
    for each in (update, enable, disable, remove):
        each.add_argument("id", metavar="ID", help="the import, as `list` calls it")
    reset.add_argument("scope", choices=("user", "project"), help="whose store")
    for each in (remove, reset):
        each.add_argument("--confirm", action="store_true", required=True, help="really do it")
    parser.add_argument("--refresh", action="store_true", help="as of `list`")
    for each in (parser, *verbs.choices.values()):
        _add_shared(each, is_root=each is parser)
    parser.epilog = (
        f"Exit codes: {DONE} done, also for a plan that is only shown; {FAILED} failed; {REFUSED} refused, "
        f"such as handlers that would run twice; {STALE} stale: the plan changed since it was shown, and "
        f"nothing was written; {UNAVAILABLE} unavailable: no such source or import, or it cannot be read."
    )


def _add_shared(parser: argparse.ArgumentParser, *, is_root: bool) -> None:
    """Options that stand before or after the action alike."""
    unsaid: Any = None if is_root else argparse.SUPPRESS
    parser.add_argument(
        "--workspace", metavar="DIR", default=unsaid, help="the workspace (default: the current directory)"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default=unsaid, help="print for people, or as JSON"
    )
    if is_root:
        add_json(parser, "everything")
    else:
        parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Do what the action says."""
    try:
        with _told():
            return _run(options, _importer(options))
    except CommandError as error:
        if options.format != "json" or options.json:
            raise
        say(error_line("hooks", error, as_json=True))  # as --json would have it
        return error.status


def _run(options: argparse.Namespace, importer: Importer) -> int:
    action = options.action or "list"
    now = time.time()
    if action == "list":
        return _list(options, importer)
    if action in ("import", "update"):
        return _plan(options, importer, now)
    if action == "reset":
        mended = importer.reset(cast("Scope", options.scope), now)
        document = {"outcome": "reset", "scope": options.scope, **mended._asdict()}
        kept, dropped = (", ".join(names) or "nothing" for names in (mended.kept, mended.dropped))
        aside = "" if mended.copy is None else f"; the corrupt index is kept as {mended.copy}"
        return _say(
            options, document, f"the {options.scope} store is mended: kept {kept}; dropped {dropped}{aside}"
        )
    if action == "enable":
        record = importer.enable(options.id, now, force=options.force)
        said = f"{record.id} is enabled; it runs from the next event on"
    elif action == "disable":
        record = importer.disable(options.id, now)
        said = f"{record.id} is disabled from the next event on; runs that began go on"
    else:
        record = importer.remove(options.id, now)
        said = f"{record.id} is removed with its copies; {record.path} is as it was"
    outcome = {"enable": "enabled", "disable": "disabled"}.get(action, "removed")
    return _say(options, {"outcome": outcome, "id": record.id}, said)


def _list(options: argparse.Namespace, importer: Importer) -> int:
    from .hooks_lines import list_document, list_lines

    listing = importer.list(refresh=options.refresh)
    if _as_json(options):
        emit_json(list_document(listing))
    else:
        emit("\n".join(list_lines(listing, refreshed=getattr(options, "refresh", False))))
    return FAILED if any(each.severity == "error" for each in listing.diagnostics) else DONE


def _plan(options: argparse.Namespace, importer: Importer, now: float) -> int:
    """Show a plan; or carry out the one that was confirmed."""
    from .hooks_lines import outcome_line, plan_document, plan_lines

    done = _done(options, importer, now)
    shown = done.outcome in ("preview", "stale")
    if _as_json(options):
        emit_json(plan_document(done))
    else:
        lines = list(plan_lines(done.plan)) if shown else []
        emit("\n".join([*lines, outcome_line(done, _confirming(options, done.plan.fingerprint))]))
    return STALE if done.outcome == "stale" else DONE


def _done(options: argparse.Namespace, importer: Importer, now: float) -> Done:
    if options.action == "import":
        if options.confirm is None:
            return importer.preview(options.source)
        return importer.confirm(options.source, options.confirm, now, force=options.force)
    if options.confirm is None:
        return importer.preview_update(options.id)
    return importer.confirm_update(options.id, options.confirm, now, force=options.force)


def _confirming(options: argparse.Namespace, fingerprint: str) -> str:
    """The command that carries out the plan shown."""
    import shlex

    what = ["--source", options.source] if options.action == "import" else [options.id]
    where = [] if options.workspace is None else ["--workspace", options.workspace]
    force = ["--force"] if options.force else []
    words = ["prxbus", "hooks", options.action, *what, *where, *force, "--confirm", fingerprint]
    return shlex.join(words)


def _importer(options: argparse.Namespace) -> Importer:
    from ..sources.import_actions import Importer, ImportRefused
    from ..sources.import_places import ImportPlaces, import_root
    from ..sources.import_reader import is_text
    from ..sources.import_sources import homes, is_remote

    workspace = options.workspace
    if workspace is not None and is_remote(workspace):
        raise ImportRefused(
            "unsupported", f"{workspace} is on another machine; only local workspaces have imports"
        )
    workspace = os.path.abspath(workspace or os.getcwd())
    if not os.path.isdir(workspace):
        raise CommandError(f"there is no workspace {workspace}", "no_workspace", UNAVAILABLE)
    found = homes(os.environ)
    for path in (workspace, found.home, found.claude, found.codex):
        if not is_text(path):
            raise ImportRefused("unsupported", f"{path} is not UTF-8, and imports are kept by their paths")
    places = ImportPlaces(import_root(None, os.environ), workspace)
    return Importer(places, found)


@contextmanager
def _told() -> Iterator[None]:
    """Turn what goes wrong into what a command says, with its exit code."""
    from ..sources import import_store as store
    from ..sources.import_actions import ImportRefused
    from ..sources.import_reader import SourceUnavailable

    try:
        yield
    except SourceUnavailable as error:
        raise CommandError(str(error), error.code, UNAVAILABLE) from None
    except store.ImportMissing as error:
        raise CommandError(str(error), "unknown_import", UNAVAILABLE) from None
    except ImportRefused as error:
        raise CommandError(str(error), error.code, REFUSED) from None
    except store.ImportDamaged as error:
        raise CommandError(f"{error}; copy it again with `update`", "damaged", REFUSED) from None
    except store.NothingToMend as error:
        raise CommandError(str(error), "nothing_to_mend", REFUSED) from None
    except store.StoreCorrupt as error:
        hint = "mend it with `prxbus hooks reset user --confirm`, or `project`"
        raise CommandError(f"{error}; {hint}", "store_corrupt") from None
    except store.StoreBusy as error:
        raise CommandError(str(error), "busy", TIMED_OUT) from None
    except store.StoreUnusable as error:
        raise CommandError(str(error), "store_unusable") from None


def _say(options: argparse.Namespace, document: dict[str, Any], text: str) -> int:
    from broker.cli.terminal import printable

    if _as_json(options):
        emit_json(document)
    else:
        emit(printable(text))
    return DONE


def _as_json(options: argparse.Namespace) -> bool:
    return bool(options.json or options.format == "json")
