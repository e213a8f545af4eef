"""``python -m broker``: one broker in the foreground. ``prxbus up`` runs it with the hooks around it.

Prints one line on stdout when it works; everything else goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import suppress

from . import logs
from .lifeline import hold
from .places import runtime_directory
from .protocol.errors import AlreadyRunning, BusError, RuntimeDirError
from .protocol.limits import ASK_BYTES, CLAIM_BYTES, CLAIM_SECONDS, PAYLOAD_BYTES, SPOOL_BYTES
from .server.serve import Ready, Settings, serve
from .version import __version__

DONE, FAILED, REFUSED = 0, 1, 4
"""Exit codes: ended in order; failed, to be started again; not to be started here at all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a broker with command-line ``arguments``; returns the exit code."""
    options = _parser().parse_args(arguments)
    logs.configure(options.log_level)
    if options.lifeline:
        hold()
    try:
        settings = Settings(
            runtime_directory(options.runtime_dir),
            options.spool_bytes,
            options.claim_seconds,
            options.memory_bytes,
            options.ask_bytes,
        )
        return serve(settings, _announce_json if options.json else _announce)
    except (AlreadyRunning, RuntimeDirError) as error:
        print(f"broker: {error}", file=sys.stderr)
        return REFUSED
    except BusError as error:
        print(f"broker: {error}", file=sys.stderr)
        return FAILED


def _announce(ready: Ready) -> None:
    _say(f"prxbus broker {__version__} is ready in {ready.runtime_dir} (pid {ready.pid})")


def _announce_json(ready: Ready) -> None:
    _say(json.dumps({"ready": True, **ready._asdict()}))


def _say(line: str) -> None:
    with suppress(OSError):  # nobody reads: no reason to end
        print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m broker",
        description="Run one prxbus broker in the foreground.",
        epilog="SIGTERM, SIGINT and SIGHUP drain it; SIGUSR1 writes its counters to the log. "
        "Exit codes: 0 drained, 1 failed (start it again), 2 wrong usage, 4 refused to start here.",
    )
    parser.add_argument("--version", action="version", version=f"prxbus {__version__}")
    parser.add_argument("--runtime-dir", metavar="DIR", help="where its sockets and its lock are")
    parser.add_argument(
        "--spool-bytes", type=_positive, default=SPOOL_BYTES, metavar="N", help="room for large payloads"
    )
    parser.add_argument(
        "--claim-seconds", type=_seconds, default=CLAIM_SECONDS, metavar="S", help="how long these are kept"
    )
    parser.add_argument(
        "--memory-bytes",
        type=_positive,
        default=Settings._field_defaults["memory_bytes"],
        metavar="N",
        help="end (to be started again) when the process holds more",
    )
    parser.add_argument(
        "--ask-bytes",
        type=_ask_bytes,
        default=ASK_BYTES,
        metavar="N",
        help="largest payload that can be asked about",
    )
    parser.add_argument("--log-level", choices=list(logs.LEVELS), default="info")
    parser.add_argument("--lifeline", action="store_true", help="end when standard input is closed")
    parser.add_argument("--json", action="store_true", help="print the ready line as JSON")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _ask_bytes(text: str) -> int:
    number = int(text)
    if not PAYLOAD_BYTES <= number <= CLAIM_BYTES:
        raise argparse.ArgumentTypeError(f"{text} is not between {PAYLOAD_BYTES} and {CLAIM_BYTES} bytes")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 1.0 <= number <= 86_400.0:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 86400 seconds")
    return number


if __name__ == "__main__":
    sys.exit(main())
