"""Whether a workspace may run on what was recorded of it: never trusted, as recorded, or changed since.

Decides it from the record and from what is there now. Refuses to record anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from ..hooks.trust_record import Changes, Record, compare
from .record_files import RecordUnusable
from .trust_store import TrustStore

if TYPE_CHECKING:
    from .trust_files import Listing

State: TypeAlias = Literal["never", "unchanged", "changed", "unusable"]


class Standing(NamedTuple):
    """What became of the trust in a workspace.

    ``reasons`` are lines for people: each file that is not as it was recorded, or why the record cannot be
    used. ``record`` and ``listing`` are None where there is no record.
    """

    state: State
    changes: Changes = Changes()
    reasons: tuple[str, ...] = ()
    record: Record | None = None
    listing: Listing | None = None


def standing(workspace: str, environ: Mapping[str, str], store: TrustStore) -> Standing:
    """How it stands with an absolute path now. Raises nothing."""
    try:
        record = store.read(workspace)
    except RecordUnusable as error:
        return Standing("unusable", reasons=(str(error),))
    if record is None:
        return Standing("never")
    from .trust_files import look  # it knows every kind of file, which takes a while to import

    listing = look(workspace, environ)
    changes = compare(record.files, listing.digests())
    reasons = (*changes.told(), *(f"{path}: {message}" for path, message in listing.faults))
    return Standing("changed" if reasons else "unchanged", changes, reasons, record, listing)
