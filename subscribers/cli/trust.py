"""``prxbus trust``: what a workspace can run, shown with digests and recorded; then ``prxbus up`` runs it.

Decides what is said and how it ends. What belongs to a workspace is :mod:`subscribers.sources.trust_files`'s,
how it is kept :mod:`subscribers.sources.trust_store`'s.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from broker.cli.exits import DONE, FAILED, REFUSED, CommandError, UsageError
from broker.cli.options import add_json
from broker.cli.printing import emit, emit_json
from broker.cli.terminal import printable

from .trust_start import SHOWN, command

if TYPE_CHECKING:
    from ..hooks.trust_record import Changes
    from ..sources.trust_files import Listing
    from ..sources.trust_store import TrustStore

ROLES: Final = {
    "prx": "PRX hooks",
    "config": "configuration",
    "hooks": "hooks of the Codex family",
    "handlers": "Python handlers",
    "plugin": "WASM plugin",
    "command": "named by a command",
}
DIGITS: Final = 16
"""Digits of a digest that people are shown; ``--json`` has all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``trust``."""
    parser.add_argument(
        "workspace", metavar="DIR", nargs="?", help="the workspace (default: the current directory)"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--list", action="store_true", help="show which workspaces are trusted, and which changed"
    )
    what.add_argument("--remove", action="store_true", help="trust the workspace no longer")
    what.add_argument(
        "--dry-run", action="store_true", help="show what would be recorded, and record nothing"
    )
    add_json(parser, "the files with their digests")
    parser.epilog = (
        f"Exit codes: {DONE} recorded, removed or shown; {REFUSED} something in it cannot be trusted, and "
        f"nothing was recorded; {FAILED} there is nothing to trust, or to remove."
    )


def run(options: argparse.Namespace) -> int:
    """Record, remove or show."""
    from ..sources.trust_store import TrustStore

    with refusals():
        store = TrustStore()
        if options.list:
            if options.workspace is not None:
                raise UsageError("--list shows every workspace: leave out DIR")
            return _list(store, json=options.json)
        folder = os.path.abspath(options.workspace or os.curdir)
        if not _is_text(os.path.realpath(folder)):
            raise UsageError(f"{folder!r}: its name is not UTF-8; name it with 'prxbus up --workspace'")
        if options.remove:
            return _remove(store, folder, json=options.json)
        if not os.path.isdir(folder):
            raise UsageError(f"{folder!r} is not a directory")
        return _trust(store, folder, dry=options.dry_run, json=options.json)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what goes wrong with records into what the command says."""
    from ..sources.record_files import RecordUnusable

    try:
        yield
    except RecordUnusable as error:
        raise CommandError(str(error), "trust_unusable", REFUSED) from None
    except FileNotFoundError:  # of abspath alone
        raise UsageError("the current directory was deleted; name the workspace") from None


def _trust(store: TrustStore, folder: str, *, dry: bool, json: bool) -> int:
    from ..hooks.trust_record import Record, compare
    from ..sources.record_files import RecordUnusable
    from ..sources.trust_files import look

    listing = look(folder, os.environ)
    try:
        before = store.read(folder)
    except RecordUnusable:  # it is replaced; what keeps it from being written is said then
        before = None
    changes = compare({} if before is None else before.files, listing.digests())
    records = not (dry or listing.faults) and bool(listing.files)
    if records:
        at = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        store.write(Record(listing.workspace, at, listing.digests()))
    if json:
        emit_json(_document(listing, changes, recorded=records))
    else:
        emit("\n".join(_lines(listing, changes, known=before is not None)))
    if listing.faults:
        first = f"{listing.faults[0].path}: {listing.faults[0].message}"
        more = f" (and {len(listing.faults) - 1} more)" if len(listing.faults) > 1 else ""
        raise CommandError(f"nothing was recorded: {first}{more}", "not_trusted", REFUSED)
    if not listing.files:
        raise CommandError(
            f"nothing was recorded: {listing.workspace} holds nothing that would run", "nothing", FAILED
        )
    if not json:
        then = f"'prxbus up' started in {printable(listing.workspace)} runs its hooks"
        recorded = f"recorded: {then} until one of these files changes"
        emit("nothing was recorded: this is what would be" if dry else recorded)
    return DONE


def _lines(listing: Listing, changes: Changes, *, known: bool) -> Iterator[str]:
    marks = dict.fromkeys(changes.changed, "~") | dict.fromkeys(changes.added, "+" if known else " ")
    yield f"{printable(listing.workspace)}:"
    wide = max(map(len, ROLES.values()))
    for file in listing.files:
        mark = marks.get(file.path, "=")
        leads = "" if file.link is None else f" -> {file.link} (what is there is not recorded)"
        yield printable(f"{mark} {file.sha256[:DIGITS]}  {ROLES[file.role]:<{wide}}  {file.path}{leads}")
    yield from (
        printable(f"- {'':{DIGITS}}  {'no longer there':<{wide}}  {path}") for path in changes.removed
    )
    for path, message in listing.faults:
        yield printable(f"! {path}: {message}")


def _document(listing: Listing, changes: Changes, *, recorded: bool) -> dict[str, Any]:
    return {
        "workspace": listing.workspace,
        "recorded": recorded,
        "files": [file._asdict() for file in listing.files],
        "faults": [fault._asdict() for fault in listing.faults],
        **changes._asdict(),
    }


def _remove(store: TrustStore, folder: str, *, json: bool) -> int:
    removed = store.remove(folder)
    real = os.path.realpath(folder)
    if json:
        emit_json({"workspace": real, "removed": removed})
    if not removed:
        raise CommandError(f"{real} was not trusted", "nothing", FAILED)
    if not json:
        emit(f"{printable(real)} is no longer trusted")
    return DONE


def _list(store: TrustStore, *, json: bool) -> int:
    from ..sources.record_files import RecordUnusable
    from ..sources.trust_standing import standing

    found: list[dict[str, Any]] = []
    for record in store.records():
        if isinstance(record, RecordUnusable):
            found.append({"workspace": None, "state": "unusable", "reasons": [str(record)]})
            continue
        stands = standing(record.workspace, os.environ, store)
        found.append(
            {
                "workspace": record.workspace,
                "recorded_at": record.recorded_at,
                "files": len(record.files),
                "state": stands.state,
                "reasons": list(stands.reasons),
            }
        )
    if json:
        emit_json({"workspaces": found})
        return DONE
    for each in found:
        emit(printable(_told(each)))
    if not found:
        emit(f"no workspace is trusted; look at one and trust it with: {command('DIR')}")
    return DONE


def _told(each: dict[str, Any]) -> str:
    names = each["reasons"]
    why = f": {', '.join(names[:SHOWN])}" if names else ""
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    if each["workspace"] is None:
        return f"{each['state']}  {names[0]}"
    count = f"{each['files']} file{'' if each['files'] == 1 else 's'}, {each['recorded_at']}"
    return f"{each['state']:<9}  {each['workspace']}  ({count}){why}{more}"
