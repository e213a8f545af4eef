"""Every error that prxbus raises on purpose, as one tree.

    BusError
    ├── TopicError             a topic or pattern that the grammar refuses        (ValueError)
    ├── LimitExceeded          a size, depth or count beyond a stated limit       (ValueError)
    ├── SchemaError            a payload that is not what the event promises      (ValueError)
    ├── DecodeError            bytes that are not a message of this protocol      (ValueError)
    │   └── VersionMismatch    well-formed, but of another protocol version
    ├── BusUnreachable         no broker answers                                  (ConnectionError)
    ├── RequestTimeout         the broker is there and did not answer in time     (TimeoutError)
    ├── RequestRefused         the broker answered with an error
    ├── QueueFull              a bounded queue has no room and the caller said so
    ├── ClaimError             a large payload cannot be stored or loaded
    │   ├── ClaimExpired       its file is gone
    │   ├── ClaimCorrupt       its file is not what the event announced
    │   └── SpoolFull          there is no room to store it
    ├── ClosedError            used after close                                   (RuntimeError)
    ├── ForkedError            used in a process that did not open it             (RuntimeError)
    ├── RuntimeDirError        the runtime directory cannot be trusted or used    (OSError)
    └── AlreadyRunning         another broker owns the runtime directory

``code`` is stable and machine-readable; the text is for people and may improve.
This module decides names, codes and how a stranger's value may stand in a text; it knows nothing
about where errors are raised.
"""

from __future__ import annotations

from typing import ClassVar


def shown(value: object, limit: int = 80) -> str:
    """``value`` for an error text: at most ``limit`` characters, and no walk into what it holds.

    A decoded value may be nested so deeply that its ``repr`` is a RecursionError.
    """
    if isinstance(value, list | dict):
        return f"a {type(value).__name__} of {len(value):,}"
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


class BusError(Exception):
    """Base of every error of prxbus."""

    code: ClassVar[str] = "bus_error"


class TopicError(BusError, ValueError):
    """A topic or pattern that the grammar refuses.

    ``text`` is what was given; ``position`` is the 0-based character at fault;
    ``hint`` is the form that was probably meant, or None.
    """

    code = "bad_topic"

    def __init__(self, message: str, *, text: str = "", position: int = 0, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}; {hint}")
        self.text = text
        self.position = position
        self.hint = hint


class LimitExceeded(BusError, ValueError):
    """A size, depth or count beyond a stated limit; the event was not published."""

    code = "limit_exceeded"


class SchemaError(BusError, ValueError):
    """A payload that is not a JSON object, or whose catalogued field has the wrong type.

    ``path`` names the field, such as ``payload.success``.
    """

    code = "bad_payload"

    def __init__(self, message: str, *, path: str = "payload") -> None:
        super().__init__(message)
        self.path = path


class DecodeError(BusError, ValueError):
    """Bytes that are not a message of this protocol; ``code`` stays, ``reason`` says which rule broke."""

    code = "bad_message"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class VersionMismatch(DecodeError):
    """A well-formed message of another protocol version."""

    code = "wrong_version"

    def __init__(self, theirs: object, ours: int) -> None:
        super().__init__(
            "version",
            f"protocol version {shown(theirs)} is not {ours}; use the same prxbus release at both ends",
        )
        self.theirs = theirs
        self.ours = ours


class BusUnreachable(BusError, ConnectionError):
    """No broker answers in this runtime directory."""

    code = "unreachable"


class RequestTimeout(BusError, TimeoutError):
    """The broker is known but did not answer before the deadline."""

    code = "timeout"


class RequestRefused(BusError):
    """The broker answered a request with an error; ``remote_code`` is the code it gave."""

    code = "refused"

    def __init__(self, remote_code: str, message: str) -> None:
        super().__init__(message)
        self.remote_code = remote_code


class QueueFull(BusError):
    """The publisher's queue has no room (``on_full="raise"``, or ``"block"`` past its deadline)."""

    code = "queue_full"


class ClaimError(BusError):
    """A payload that travels by claim check cannot be stored or loaded."""

    code = "claim"


class ClaimExpired(ClaimError):
    """The payload's file is no longer in the spool."""

    code = "claim_expired"


class ClaimCorrupt(ClaimError):
    """The payload's file does not have the announced size or digest."""

    code = "claim_corrupt"


class SpoolFull(ClaimError):
    """The spool or its disk has no room for a payload."""

    code = "spool_full"


class ClosedError(BusError, RuntimeError):
    """A client that was used after it was closed."""

    code = "closed"


class ForkedError(BusError, RuntimeError):
    """A client that was used in a forked child; open a new one there."""

    code = "forked"


class RuntimeDirError(BusError, OSError):
    """The runtime directory cannot be trusted or used."""

    code = "runtime_dir"


class AlreadyRunning(BusError):
    """Another broker owns this runtime directory."""

    code = "already_running"
