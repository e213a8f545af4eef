"""Where rolebox's page and its program differ, and what prxbus does: data for the documents.

The page wins. Numbers and names stand in these rows as the rules state them. Each row is shown by a test, and
a test sees to it that none is without. It decides nothing.
"""

from __future__ import annotations

from typing import Final

from ..hooks import role_pending
from . import rolebox_rules as rules
from .document_rows import Difference

_SILENT = "nothing"
_AS_PAGE = "as the page"

DIFFERENCES: Final = (
    Difference(
        "R1",
        "`module`",
        "relative to the role's directory",
        "relative to the workspace",
        f"{_AS_PAGE}; may not leave it by `..` or a link, unless it is absolute",
    ),
    Difference(
        "R2",
        "exports",
        "`export default` in each of its samples",
        "named exports only: no sample does anything",
        "both, and CommonJS",
    ),
    Difference(
        "R3",
        "`ctx.hookName`, `ctx.config`, `ctx.log`",
        "those of the hook, in every handler",
        "only in `onLoad` and `onDispose`; elsewhere a placeholder, undefined, and a shared logger",
        _AS_PAGE,
    ),
    Difference(
        "R4",
        "phase `after`",
        "always, and the default",
        "not for `tool.execute.before` of a tool of the host, nor for `tool.execute.after` in a session "
        "without active functions",
        _AS_PAGE,
    ),
    Difference(
        "R5",
        "a bad entry",
        "never breaks the agent",
        "without `module` or `events` all hooks of all roles are lost; another event or phase never fires, "
        "silently",
        "one remark with its place; the others run",
    ),
    Difference(
        "R6",
        "time of a handler",
        _SILENT,
        "no limit: one that hangs stops the turn",
        "`roles.timeout` seconds; later its edit is dropped, and the next hook runs",
    ),
    Difference(
        "R7",
        "`info --check`",
        "module paths, files and the hash",
        "the hash alone; with `--json` it ends with 0 whatever it found",
        f"{_AS_PAGE}, loads each module too, and ends alike with `--json`",
    ),
    Difference(
        "R8",
        "`auto_activate`",
        "`hooks.builtin.auto_activate: true`, and functions that are marked",
        "a list of names at the top of the file",
        "both; a mark may stand in a function's own file; `false` turns all of it off",
    ),
    Difference(
        "R9",
        "hooks that share a file",
        "a scope for each hook",
        "one instance for all of them",
        _AS_PAGE,
    ),
    Difference(
        "R10",
        "whose sessions",
        "hooks are declared by a role",
        "the hooks of every role fire for every session",
        'the sessions of the role; `roles.scope = "all"` for every session',
    ),
    Difference(
        "R11",
        "a module that does not load",
        "skipped, and not tried again",
        "not tried again until it is started anew",
        "tried again when the file or its entry changes",
    ),
    Difference(
        "R12",
        "changes",
        _SILENT,
        "each hook is loaded anew",
        "what did not change stays as it is; what cannot be loaded leaves what was there",
    ),
    Difference(
        "R13",
        "`onDispose`",
        "once",
        "once for each name; a second hook of that name is left out",
        "once for each hook",
    ),
    Difference(
        "R14",
        "a hook that loops for ever, exits, or takes all memory",
        "never breaks the agent",
        "takes the agent along",
        "is quarantined; hooks that lost their thread or process are loaded again, so that their `onLoad` "
        "runs a second time",
    ),
    Difference(
        "R15",
        "`inject`",
        "the next system prompt",
        "in memory, without a bound; dropped in `onLoad` and without a session",
        f"kept over a restart, at most {role_pending.SESSION_BYTES:,} bytes for each of "
        f"{role_pending.SESSIONS:,} sessions; without a session it is logged and counted",
    ),
    Difference(
        "R16",
        "edits",
        "`system` may be changed",
        "`args` in place too, nothing by assignment; an `output` that is an object",
        "`args` and `system`: in place, by assignment, or returned; never an `output`",
    ),
    Difference(
        "R17",
        "a tool without a name",
        "a filter names tools",
        "passes every filter",
        "passes no filter; a hook without one sees it",
    ),
    Difference(
        "R18",
        "`priority`",
        "a number",
        "whatever compares: `high` makes the order random",
        "a number; one in quotes counts, with a remark",
    ),
    Difference(
        "R19",
        "`{env:NAME}`",
        _SILENT,
        "replaced in every text of the file",
        "replaced in what is read: names, modules, filters, configs and functions; never by prxbus's secrets",
    ),
    Difference(
        "R20",
        "integrity",
        "compared with the role's cache",
        "`sha256-` in the order of a locale, bounds of files unmarked, what cannot be read left out",
        "`prxbus1-` in the order of bytes, with lengths, against what was accepted; and `sha256-` where "
        "`rolebox.lock` has the role",
    ),
    Difference(
        "R21",
        "logs",
        "lines with bars between their parts",
        "JSON in a file",
        "structured lines on stderr, with the page's logger names and messages",
    ),
    Difference(
        "R22",
        "built-in hooks",
        "run around the custom ones",
        "recovery and guards",
        "none but `auto_activate`; one that is switched on is said to do nothing",
    ),
    Difference(
        "R23",
        "functions",
        _SILENT,
        "gates, transitions, observers, continuation",
        f"instructions while active, after what they require; not those of "
        f"{', '.join(f'`{name}`' for name in rules.OWN_FUNCTIONS)}, which are part of rolebox",
    ),
    Difference(
        "R24",
        "languages",
        "JavaScript and TypeScript",
        "by Bun or Node",
        "Node 20 or newer, TypeScript from 22.13 on; Python besides",
    ),
    Difference(
        "R25",
        "a file `role.yaml` of something else",
        _SILENT,
        "skipped without a name or a prompt",
        "left alone, and said; a role needs neither name nor prompt",
    ),
)
"""Every difference that is known, in the order of their discovery."""
