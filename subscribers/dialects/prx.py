"""The PRX dialect: a workspace's ``hooks.json``, and what its hooks receive.

The PRX Hooks page is the rule. A file is read by :func:`parse`; :func:`render` says what a runtime has to run
for one hook and one event. The payload travels in an envelope of four fields, the same bytes on every
channel: ``ZERO_HOOK_PAYLOAD`` when the envelope has at most 8,192 bytes, the file at
``ZERO_HOOK_PAYLOAD_FILE``, and the standard input where ``stdin_json`` is true.

It refuses to know whether a command exists and whether it may run: sources and the runner decide that.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import orjson

from ..hooks.invocation import Invocation
from ..hooks.spec import HookSpec
from .base import EventView, Place
from .environment import search_path
from .prx_file import parse
from .prx_rules import FILE_NAME, MAX_FILE_BYTES, NAME, PAYLOAD_ENV_BYTES

__all__ = ["FILE_NAME", "MAX_FILE_BYTES", "NAME", "envelope", "needs_file", "parse", "render", "timestamp"]

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, like everything here; without a zone it prints none


def timestamp(time_ns: int) -> str:
    """Nanoseconds since the epoch as RFC 3339, cut to milliseconds: ``2026-03-21T08:15:30.123Z``."""
    time = _EPOCH + timedelta(milliseconds=time_ns // 1_000_000)
    return f"{time.isoformat(timespec='milliseconds')}Z"


def envelope(view: EventView) -> bytes:
    """The JSON document that a hook receives; the payload's bytes stand in it as they are."""
    return b'{"event":%b,"timestamp":"%b","session_id":%b,"payload":%b}' % (
        orjson.dumps(view.event),
        timestamp(view.time_ns).encode(),
        orjson.dumps(view.session_id),
        view.payload_bytes,
    )


def needs_file(_body: bytes) -> bool:
    """Always: a file is one of the page's channels."""
    return True


def render(spec: HookSpec, view: EventView, where: Place, body: bytes | None = None) -> Invocation:
    """What to run for this hook and this event. ``body``: the envelope, where the caller has it already.

    The caller sees to it that ``where.payload_file`` holds the same bytes while the hook runs.
    """
    if body is None:
        body = envelope(view)
    return Invocation(
        argv=(where.executable, *spec.args),
        env={**spec.env, **_documented_variables(view, where, body)},
        cwd=where.cwd,
        stdin=body if spec.stdin else None,
        timeout_s=spec.timeout_s,
        grace_s=spec.grace_s,
        marker="ZERO_HOOK_PAYLOAD_FILE",
        bounds_leftovers=True,
    )


def _documented_variables(view: EventView, where: Place, body: bytes) -> dict[str, str]:
    variables = {
        "PATH": ":".join(search_path(where.prxbus_folder)),
        "ZERO_HOOK_EVENT": view.event,
        "ZERO_HOOK_SESSION": _no_nul(view.session_id or ""),
        "ZERO_HOOK_TIMESTAMP": timestamp(view.time_ns),
        "ZERO_HOOK_PAYLOAD_FILE": where.payload_file,
        "PRXBUS_RUNTIME_DIR": where.runtime_dir,
        # The depth at which the child publishes, so that a client takes it as it is.
        "PRXBUS_DEPTH": str(view.depth + 1),
        "PRXBUS_CAUSE": _no_nul(view.id),
    }
    if len(body) <= PAYLOAD_ENV_BYTES and b"\0" not in body:
        # JSON holds no NUL; surrogate escapes carry whatever else a foreign publisher sent, byte for byte.
        variables["ZERO_HOOK_PAYLOAD"] = body.decode("utf-8", "surrogateescape")
    return variables


def _no_nul(text: str) -> str:
    """An environment variable cannot hold NUL; the envelope keeps it, escaped."""
    return text.replace("\0", "\ufffd")
