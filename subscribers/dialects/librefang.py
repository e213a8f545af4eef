"""The LibreFang dialect: ``<home>/hooks/*/HOOK.yaml``, and what its hooks receive.

The LibreFang page is the rule; where the program does something else, the README's table says so. A file is
read by :func:`parse`; :func:`render` says what a runtime has to run for one hook and one event. The payload
alone, without an envelope around it, travels in ``HOOK_EVENT_DATA``; one that is too long for a variable in a
file that ``HOOK_EVENT_DATA_FILE`` names. A hook inherits the environment of ``prxbus up``, has its own folder
as working directory, and five seconds.

It refuses to know whether a command exists and whether it may run: sources and the runner decide that.
"""

from __future__ import annotations

from broker.protocol.projections import native_event

from ..hooks.invocation import Invocation
from ..hooks.spec import HookSpec
from ..hooks.withheld import without_secrets
from .base import EventView, Place
from .librefang_file import parse
from .librefang_rules import FILE_NAME, MAX_DATA_BYTES, MAX_FILE_BYTES, NAME

__all__ = ["FILE_NAME", "MAX_FILE_BYTES", "NAME", "envelope", "needs_file", "parse", "render"]

_DATA = "HOOK_EVENT_DATA"
_FILE = "HOOK_EVENT_DATA_FILE"


def envelope(view: EventView) -> bytes:
    """The JSON document that a hook receives: the payload as it is."""
    return view.payload_bytes


def needs_file(body: bytes) -> bool:
    """Whether the payload is too long for one environment variable."""
    return len(body) > MAX_DATA_BYTES


def render(spec: HookSpec, view: EventView, where: Place, body: bytes | None = None) -> Invocation:
    """What to run for this hook and this event. ``body``: the payload, where the caller has it already.

    Where :func:`needs_file` says so, the caller sees to it that ``where.payload_file`` holds the same bytes
    while the hook runs.
    """
    if body is None:
        body = envelope(view)
    env = {k: v for k, v in without_secrets(where.environ).items() if k not in (_DATA, _FILE)}
    env["HOOK_EVENT"] = native_event(NAME, view.event)
    if needs_file(body):
        env[_FILE] = where.payload_file
    else:
        env[_DATA] = body.decode()
    env["PRXBUS_RUNTIME_DIR"] = where.runtime_dir
    # The depth at which the child publishes, so that a client takes it as it is.
    env["PRXBUS_DEPTH"] = str(view.depth + 1)
    env["PRXBUS_CAUSE"] = view.id
    return Invocation(
        argv=(where.executable, *where.command_args, *spec.args),
        env=env,
        cwd=where.cwd,
        stdin=None,
        timeout_s=spec.timeout_s,
        grace_s=spec.grace_s,
    )
