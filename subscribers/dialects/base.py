"""What every dialect is: pure functions from a file to specs, and from an event and a spec to an invocation.

A dialect decides what a hook file means. It refuses to know whether files, folders and programs exist, and
how a child is run: what it needs of the world comes in as a :class:`Place`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..hooks.diagnostics import Diagnostic
from ..hooks.invocation import Invocation
from ..hooks.spec import HookSpec


@dataclass(frozen=True, slots=True)
class EventView:
    """An event as a dialect shows it to its hooks.

    ``event`` is the bare name, such as ``tool_call``; ``payload_bytes`` the payload as JSON, passed on
    unchanged; ``time_ns`` nanoseconds since the epoch, UTC; ``depth`` 0..7; ``id`` the event's id.
    """

    event: str
    payload_bytes: bytes
    session_id: str | None
    time_ns: int
    depth: int
    id: str


@dataclass(frozen=True, slots=True)
class Place:
    """The world that one run happens in, every path absolute.

    ``payload_file`` holds the same bytes as the envelope, and is empty where the dialect needs no such file;
    ``prxbus_folder`` is where the running ``prxbus`` command lies; ``executable`` and ``cwd`` are the spec's
    command and folder as found on this machine, ``command_args`` the arguments that stood in the command.
    ``environ`` is the environment of this process, for dialects whose hooks inherit it.
    """

    workspace: str
    runtime_dir: str
    payload_file: str
    prxbus_folder: str
    executable: str
    cwd: str
    command_args: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What a hook file says. ``refused``: nothing in it can be used, and no specs came of it."""

    specs: tuple[HookSpec, ...]
    diagnostics: tuple[Diagnostic, ...]
    refused: bool


class Dialect(Protocol):
    """The shape of a dialect; a module is one."""

    @property
    def NAME(self) -> str:  # noqa: N802 - the constant of a module
        """The dialect's name, such as ``prx``."""

    @property
    def FILE_NAME(self) -> str:  # noqa: N802
        """The file it reads, relative to a workspace."""

    @property
    def MAX_FILE_BYTES(self) -> int:  # noqa: N802
        """The largest file that it accepts, in bytes."""

    def parse(self, text: bytes, path: str, events: Collection[str] | None = None) -> ParsedFile:
        """Read a file's bytes. Raises nothing: what is wrong becomes a diagnostic."""

    def envelope(self, view: EventView) -> bytes:
        """The JSON document that every channel of a hook carries."""

    def needs_file(self, body: bytes) -> bool:
        """Whether a run with this envelope reads it from a file."""

    def render(self, spec: HookSpec, view: EventView, where: Place, body: bytes | None = None) -> Invocation:
        """What a runtime has to run for this hook and event; ``body`` is the envelope where it is at hand."""
