"""``prxbus fire``: one event put to the handlers of a file or folder, without a bus.

Decides which event and payload that is, and the exit code. Hooks run only of what was named: a workspace's
code is somebody else's code.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading

from broker.cli.exits import DONE, FAILED, REFUSED, USAGE, UsageError
from broker.cli.options import add_json
from broker.cli.printing import emit, emit_json, note
from broker.cli.terminal import columns, in_colour, is_terminal

from .check import add_dialect, completes_to_files
from .codex_program import add_strict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``fire``."""
    parser.add_argument(
        "event",
        metavar="EVENT",
        help="its name, its topic, or what another system calls it, such as agent:end or PreToolUse",
    )
    parser.add_argument(
        "payload",
        metavar="JSON",
        nargs="?",
        help="a JSON object; - reads it from standard input, @FILE from a file (default: a sample)",
    )
    config = parser.add_argument(
        "--config",
        metavar="PATH",
        action="append",
        help="the file or folder whose handlers run; may stand many times (default, for a dry run only: "
        "the current directory)",
    )
    completes_to_files(config)
    add_dialect(parser)
    add_strict(parser)
    parser.add_argument("--session", metavar="S", help="id of the agent session that the event belongs to")
    parser.add_argument("--dry-run", action="store_true", help="say what would run, and start nothing")
    add_json(parser, "what came of it")
    parser.epilog = (
        f"Exit codes: {DONE} done; {REFUSED} denied; {FAILED} a handler failed, or it or its file "
        f"cannot be used; {USAGE} wrong usage, also of event or JSON."
    )


def run(options: argparse.Namespace) -> int:
    """Fire; returns 4 when the decision is a denial and for nothing else, 1 when anything did not work."""
    from dataclasses import replace

    from broker.cli.pub import parse_object, read_payload
    from broker.places import runtime_directory
    from broker.protocol.catalogue import check
    from broker.protocol.errors import LimitExceeded, SchemaError

    from ..dialects.event_names import UnknownEvent, named
    from ..hooks.firing import document
    from ..http import samples
    from ..runner.fire import event_of, fire
    from ..runner.inspection import explained, world

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended from outside, its hooks are ended too
    if options.config is None and not options.dry_run:
        raise UsageError(
            "hooks run only of what is named: name it with --config PATH (the current directory: "
            "--config .), or look with --dry-run"
        )
    is_sample = options.payload is None
    try:
        found = named(options.event, options.dialect)
        content = _sample(found.topic) if is_sample else read_payload(options.payload).strip()
        check(found.topic, parse_object(content))
    except (UnknownEvent, SchemaError, LimitExceeded) as error:
        raise UsageError(str(error)) from None
    session = options.session or (samples.SESSION_ID if is_sample else None)
    here = replace(world(os.environ, strict=options.strict), is_trial=True)
    firing = fire(
        event_of(found.topic, content, session),
        explained(options.config or (), options.dialect, here),
        here,
        runtime_directory(options.runtime_dir),
        is_sample=is_sample,
        is_dry=options.dry_run,
    )
    if options.json:
        from broker.protocol.decision_document import decision_fields

        emit_json(document(firing, decision_fields(firing.decision)))
    else:
        from .explanation_lines import ExplanationLines
        from .firing_lines import FiringLines

        wide = columns(os.environ) if is_terminal(sys.stdout) else None
        lines = ExplanationLines(wide, os.getcwd(), colour=in_colour(sys.stdout, os.environ))
        emit("\n".join(FiringLines(lines).report(firing)))
    for path, reason in firing.unusable:
        note("fire", f"{path} cannot be used: {reason}", as_json=options.json, code="unusable")
    is_for_any = any(fired.matched for file in firing.files for fired in file.fired)
    if not is_for_any and not firing.unusable:
        meant = "" if found.meant is None else f"; did you mean {found.meant}?"
        note("fire", f"no handler is for {found.topic}{meant}", as_json=options.json, code="nothing")
    status = FAILED if firing.has_failed or firing.unusable else DONE
    return _leave(REFUSED if firing.decision.denied else status)


def _sample(topic: str) -> bytes:
    import orjson

    from broker.protocol.topics import LIFECYCLE

    from ..http.samples import sample

    return orjson.dumps(sample(topic.removeprefix(LIFECYCLE)))


def _leave(status: int) -> int:
    """The exit code; where a plugin's call is stuck in the host, the end of this process."""
    wasm = sys.modules.get("subscribers.runner.fire_wasm")
    if wasm is not None and any(thread.name == wasm.CALL_THREAD for thread in threading.enumerate()):
        sys.stdout.flush()
        os._exit(status)
    return status
