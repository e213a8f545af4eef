"""``prxbus config show|check``: every setting with its value and where it came from.

Decides how the configuration is printed; what it means is :mod:`subscribers.config`'s.
"""

from __future__ import annotations

import argparse
import os
import sys

import orjson

from broker.cli.exits import DONE, FAILED
from broker.cli.options import add_json

from ..config import files
from ..config.layers import value_of
from ..config.schema import SECTIONS, keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``config``."""
    parser.add_argument("action", choices=("show", "check"), help="print every setting, or only faults")
    parser.add_argument("--workspace", metavar="DIR", help="with this workspace's own file")
    add_json(parser, "settings and faults")


def run(options: argparse.Namespace) -> int:
    """Print the configuration or its faults; returns 1 when there are any."""
    workspace = None if options.workspace is None else os.path.abspath(options.workspace)
    flags = {"bus.runtime_dir": options.runtime_dir}
    configured = files.load(os.environ, flags, workspace)
    rows = [(key, value_of(configured.settings, key), configured.origins[key]) for key in keys()]
    if options.json:
        document = {
            "settings": {key: {"value": value, "origin": origin} for key, value, origin in rows},
            "diagnostics": [
                {
                    "severity": d.severity,
                    "code": d.code,
                    "position": d.path,
                    "message": d.message,
                    "hint": d.hint,
                }
                for d in configured.diagnostics
            ],
        }
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    elif options.action == "show":
        width = max(len(key) for key in keys())
        for key, value, origin in rows:
            section, _, name = key.partition(".")
            meaning = SECTIONS[section].model_fields[name].description
            shown = "-" if value is None else str(value)
            print(f"{key:<{width}}  {shown:<14}  {origin:<12}  {meaning}")
    if not options.json:
        for diagnostic in configured.diagnostics:
            print(diagnostic.render(), file=sys.stderr)
        if options.action == "check" and not configured.diagnostics:
            print("the configuration is in order")
    return FAILED if configured.diagnostics else DONE
