"""Writes the README's tables from the code: `.ci/readme.py --write`, or says which differ.

Decides which table stands between which markers. A test fails while the file and the code disagree.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from broker.cli import exits  # noqa: E402
from broker.protocol import errors, limits  # noqa: E402
from broker.protocol.catalogue_tables import dialect_table, events_table  # noqa: E402
from subscribers.config.layers import value_of  # noqa: E402
from subscribers.config.schema import SECTIONS, Settings, keys, reach  # noqa: E402
from subscribers.config.transforms import Table  # noqa: E402
from subscribers.dialects import codex_differences as codex  # noqa: E402
from subscribers.dialects import librefang_rules as librefang  # noqa: E402
from subscribers.dialects import rolebox_rules as rolebox  # noqa: E402
from subscribers.dialects.codex_profiles import PROFILES, profile_rows  # noqa: E402
from subscribers.dialects.environment import HOOK_VARIABLES, RULES  # noqa: E402
from subscribers.dialects.librefang_differences import DIFFERENCES  # noqa: E402
from subscribers.dialects.prx_plugin_rules import KEYS  # noqa: E402
from subscribers.dialects.prx_rules import FIELDS, METACHARACTERS  # noqa: E402
from subscribers.dialects.rolebox_differences import DIFFERENCES as ROLEBOX_DIFFERENCES  # noqa: E402
from subscribers.hooks.import_plan import SKIPS  # noqa: E402
from subscribers.http.application import describe_api  # noqa: E402

BLOCK = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    lines = [[*heads]]
    lines.append(["---"] * len(lines[0]))
    lines += [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def limits_table() -> str:
    """Every limit that a user can meet."""
    rows = ((limit.name, f"{limit.value:,}", limit.unit, limit.beyond) for limit in limits.TABLE)
    return table(("What", "At most", "Unit", "Beyond it"), rows)


def errors_table() -> str:
    """Every error class with its code and meaning."""
    found = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BusError) and kind is not errors.BusError
    ]
    rows = ((f"`{k.__name__}`", f"`{k.code}`", (k.__doc__ or "").split("\n\n")[0].strip()) for k in found)
    return table(("Error", "Code", "Raised for"), ((a, b, " ".join(c.split())) for a, b, c in rows))


def settings_table() -> str:
    """Every setting."""
    rows = []
    for key in keys():
        section, _, name = key.partition(".")
        default = value_of(Settings(), key)
        meaning = SECTIONS[section].model_fields[name].description
        written = str(default).lower() if isinstance(default, bool) else default
        shown = "" if default is None else f"`{written}`"
        variable = f"`PRXBUS_{key.replace('.', '_').upper()}`"
        rows.append((f"`{key}`", shown, meaning, variable, reach(section, name)))
    return table(("Setting", "Default", "Meaning", "Variable", "A workspace's file may"), rows)


def transform_table() -> str:
    """What a ``[[transform]]`` may say."""
    rows = []
    for name, field in Table.model_fields.items():
        assert isinstance(field.json_schema_extra, dict)
        default = "required" if field.is_required() else "" if field.default is None else f"`{field.default}`"
        rows.append((f"`{name}`", field.json_schema_extra["shown"], default, field.description))
    return table(("Key", "Type", "Default", "Meaning"), rows)


def environment_table() -> str:
    """What ``env`` cannot set."""
    rows = ((f"`{r.name}{'*' if r.prefix else ''}`", r.reason, r.origin) for r in RULES)
    return table(("Name", "Because it", "Blocked by"), rows)


def endpoints_table() -> str:
    """Every endpoint of the HTTP API, from its own description."""
    rows = (
        (f"`{method.upper()} {path}`", operation["description"].split("\n\n")[0].replace("\n", " "))
        for path, methods in describe_api()["paths"].items()
        for method, operation in methods.items()
    )
    return table(("Call", "Does"), rows)


def profiles_table() -> str:
    """Everything in which the profiles of the Codex family differ, and what they have in common."""
    heads = ("About", *(profile.title for profile in PROFILES.values()))
    rows = list(profile_rows())[1:]  # the first one is the heads
    return table(heads, ((row.about, *row.values) for row in rows if len(set(row.values)) > 1))


def code(text: str) -> str:
    """Text as code, whatever characters it has."""
    shown = text if text.isprintable() and len(text) < 30 else text.encode("unicode_escape").decode()[:30]
    return f"`{shown}`"


TABLES: dict[str, Callable[[], str]] = {
    "events": events_table,
    "prx-view": lambda: dialect_table(("prx",)),
    "librefang-keys": lambda: table(
        ("Key", "Type", "Required", "Meaning"),
        ((f"`{k.name}`", k.type, "yes" if k.required else "no", k.meaning) for k in librefang.KEYS),
    ),
    "librefang-variables": lambda: table(
        ("Variable", "Holds"), ((f"`{name}`", text) for name, text in librefang.HOOK_VARIABLES.items())
    ),
    "librefang-view": lambda: dialect_table(("librefang",)),
    "rolebox-keys": lambda: table(
        ("Key", "Type", "Default", "Meaning"),
        ((f"`{key.name}`", key.type, key.default, key.meaning) for key in rolebox.KEYS),
    ),
    "rolebox-view": lambda: dialect_table(("rolebox",)),
    "librefang-differences": lambda: table(
        ("", "About", "The page", "The program", "prxbus"), ((d.number, *d[1:]) for d in DIFFERENCES)
    ),
    "rolebox-differences": lambda: table(
        ("", "About", "The page", "The program", "prxbus"), ((d.number, *d[1:]) for d in ROLEBOX_DIFFERENCES)
    ),
    "codex-profiles": profiles_table,
    "codex-leniencies": lambda: table(
        ("", "What refuses a whole file in Codex and Claude Code", "What is left out here"),
        ((row.number, row.fault, row.here) for row in codex.LENIENCIES),
    ),
    "codex-patterns": lambda: table(
        ("", "Engine", "About", "Pattern", "Value", "The agent", "prxbus"),
        (
            (r.number, r.engine, r.about, code(r.pattern), code(r.value), r.upstream, r.here)
            for r in codex.PATTERN_DIFFERENCES
        ),
    ),
    "codex-page": lambda: table(
        ("", "About", "BitFun's page", "Codex", "BitFun's program", "Profile `bitfun`"),
        ((row.number, *row[1:]) for row in codex.PAGE_DIFFERENCES),
    ),
    "limits": limits_table,
    "errors": errors_table,
    "settings": settings_table,
    "transform-keys": transform_table,
    "http-endpoints": endpoints_table,
    "exits": lambda: table(("Code", "Meaning"), ((row.code, row.meaning) for row in exits.TABLE)),
    "import-skips": lambda: table(
        ("Code", "Left out because"), ((f"`{code}`", why) for code, why in SKIPS.items())
    ),
    "hook-fields": lambda: table(
        ("Field", "Type", "Default", "Meaning"),
        ((f"`{f.name}`", f.type, f.default, f.meaning) for f in FIELDS),
    ),
    "plugin-keys": lambda: table(
        ("Key", "Type", "Default", "Meaning"),
        ((f"`{key.name}`", key.type, key.default, key.meaning) for key in KEYS),
    ),
    "hook-variables": lambda: table(
        ("Variable", "Holds"), ((f"`{name}`", text) for name, text in HOOK_VARIABLES.items())
    ),
    "blocked-variables": environment_table,
    "metacharacters": lambda: table(
        ("Character", "Refused as"), ((f"`{mark!r}`", why) for mark, why in METACHARACTERS.items())
    ),
}


def fill(text: str) -> str:
    """``text`` with every marked table written anew."""

    def write(match: re.Match[str]) -> str:
        return f"{match[1]}{TABLES[match['name']]().rstrip()}\n{match[3]}"

    return BLOCK.sub(write, text)


def main(arguments: list[str]) -> int:
    """Write the README, or compare it."""
    path = ROOT / "README.md"
    text = path.read_text()
    filled = fill(text)
    if "--write" in arguments:
        path.write_text(filled)
        return 0
    if filled != text:
        print("README.md differs from the code; run .ci/readme.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
