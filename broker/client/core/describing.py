"""An event as a JSON object: the form that taps print and web clients read.

Decides names and formats; a claimed payload is described, never loaded.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...protocol.errors import SchemaError
from ...protocol.events import Event


def rfc3339(moment: datetime) -> str:
    """``moment`` (UTC) as RFC 3339 with milliseconds and Z."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def describe(event: Event) -> dict[str, Any]:
    """``event`` as a dict that JSON can hold.

    It has ``topic``, ``id``, ``time``, ``session_id``, ``source``, ``depth``, ``caused_by`` and one
    of ``payload``, ``claim`` (size, sha256, first bytes as text) or, when the publisher sent bytes
    that are not a JSON object, ``error``.
    """
    shown: dict[str, Any] = {
        "topic": event.topic,
        "id": event.id,
        "time": rfc3339(event.time),
        "session_id": event.session_id,
        "source": event.source,
        "depth": event.depth,
        "caused_by": event.caused_by,
    }
    claim = event.claim
    if claim is not None:
        head = claim.head.decode("utf-8", "replace")
        shown["claim"] = {"size": claim.size, "sha256": claim.digest.hex(), "head": head}
        return shown
    try:
        shown["payload"] = event.payload
    except SchemaError as error:
        shown["error"] = str(error)
    return shown
