"""``prxbus schema``: the catalogue of events, as a list or as JSON Schema. Needs no bus."""

from __future__ import annotations

import argparse

from ..protocol.catalogue import EVENTS
from ..protocol.schema import all_schemas, event_schema
from .exits import DONE, UsageError
from .options import add_json
from .printing import emit, emit_json
from .tables import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``schema``."""
    parser.add_argument(
        "event",
        metavar="EVENT",
        nargs="?",
        help="an event's name or topic; prints its JSON Schema (default: list the events)",
    )
    add_json(parser, "schemas on one line, of all events without EVENT,")


def run(options: argparse.Namespace) -> int:
    """Print one schema, all of them, or the list of events."""
    if options.event is not None:
        try:
            schema = event_schema(options.event)
        except LookupError as error:
            raise UsageError(str(error.args[0])) from None
        emit_json(schema, indent=not options.json)
    elif options.json:
        emit_json(all_schemas())
    else:
        rows = [(spec.topic, spec.when) for spec in EVENTS.values()]
        emit("\n".join(table(("EVENT", "WHEN"), rows)))
    return DONE
