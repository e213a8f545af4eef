"""``prxbus config show|check``: every setting with its value and where it came from.

Decides how the configuration is printed; what it means is :mod:`subscribers.config`'s. ``check`` also tries
what is configured and may be missing on this machine: the sandbox.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING

import orjson

from broker.cli.exits import DONE, FAILED
from broker.cli.options import add_json

if TYPE_CHECKING:
    from ..config.schema import Settings
    from ..hooks.diagnostics import Diagnostic


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``config``."""
    parser.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=("show", "check"),
        help="print every setting, or only faults",
    )
    parser.add_argument("--workspace", metavar="DIR", help="with this workspace's own file")
    add_json(parser, "settings and faults")


def run(options: argparse.Namespace) -> int:
    """Print the configuration or its faults; returns 1 when there are any."""
    from ..config import files
    from ..config.layers import value_of
    from ..config.schema import SECTIONS, keys
    from ..hooks.diagnostics import printable

    workspace = None if options.workspace is None else os.path.abspath(options.workspace)
    flags = {"bus.runtime_dir": options.runtime_dir}
    configured = files.load(os.environ, flags, workspace)
    diagnostics = configured.diagnostics
    if options.action == "check":
        diagnostics += _unusable(configured.settings, workspace, configured.origins["hooks.sandbox"])
    rows = [(key, value_of(configured.settings, key), configured.origins[key]) for key in keys()]
    if options.json:
        document = {
            "settings": {key: {"value": value, "origin": origin} for key, value, origin in rows},
            "transforms": [
                {"name": each.name, "origin": each.path, **each.table.model_dump(exclude={"name"})}
                for each in configured.transforms
            ],
            "hook_files": [each._asdict() for each in configured.hook_files],
            "diagnostics": [
                {
                    "severity": d.severity,
                    "code": d.code,
                    "position": d.path,
                    "message": d.message,
                    "hint": d.hint,
                }
                for d in diagnostics
            ],
        }
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    elif options.action == "show":
        cells = [("SETTING", "VALUE", "FROM", "MEANING")]
        for key, value, origin in rows:
            section, _, name = key.partition(".")
            meaning = SECTIONS[section].model_fields[name].description or ""
            cells.append((key, _shown(value), origin, meaning))
        widths = [max(len(row[column]) for row in cells) for column in range(3)]
        for key, shown, origin, meaning in cells:
            print(f"{key:<{widths[0]}}  {shown:>{widths[1]}}  {origin:<{widths[2]}}  {meaning}")
        for each in configured.transforms:
            print(f"transform {printable(each.name)}: {printable(shlex.join(each.table.command))}")
        for file in configured.hook_files:
            whose = "the workspace's" if file.is_workspace else "yours"
            print(f"hook file {printable(file.path)}: {file.profile or 'as its place says'}, {whose}")
    if not options.json:
        for diagnostic in diagnostics:
            print(diagnostic.render(), file=sys.stderr)
        if options.action == "check" and not diagnostics:
            print("the configuration is in order")
    return FAILED if diagnostics else DONE


def _unusable(settings: Settings, workspace: str | None, origin: str) -> tuple[Diagnostic, ...]:
    """What is said of a sandbox that is configured and cannot be used here."""
    hooks = settings.hooks
    if hooks.sandbox == "none":
        return ()
    from ..hooks.diagnostics import Diagnostic
    from ..runtimes.sandbox import Bubblewrap, Limits, SandboxUnavailable

    limits = Limits(hooks.sandbox_memory_bytes, hooks.sandbox_processes, hooks.sandbox_file_bytes)
    try:
        Bubblewrap(workspace or os.getcwd(), limits).close()
    except SandboxUnavailable as error:
        hint = "no hook runs until it can be used"
        return (
            Diagnostic("error", "sandbox_unavailable", origin, None, None, "hooks.sandbox", str(error), hint),
        )
    return ()


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()  # as a file writes it
    return f"{value:,}" if isinstance(value, int) else str(value)
