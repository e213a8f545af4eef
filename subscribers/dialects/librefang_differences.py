"""Where LibreFang's page and its program differ, and what prxbus does: data for the documents.

The page wins. Numbers stand in these rows as the rules state them. Each row is shown by a test, and a test
sees to it that none is without. It decides nothing.
"""

from __future__ import annotations

from typing import Final

from broker.protocol.catalogue_derivations import PREVIEW_CODE_POINTS

from ..hooks.invocation import OUTPUT_LIMIT
from ..hooks.withheld import WITHHELD
from . import librefang_rules as rules
from .document_rows import Difference

_SILENT = "nothing"
_KEYS = ", ".join(f"`{key.name}`" for key in rules.KEYS)
_PATTERNS = ", ".join(f"`{pattern}`" for pattern in rules.PATTERNS)

DIFFERENCES: Final = (
    Difference(
        "L1",
        "time",
        f"{rules.TIMEOUT_S:g} s, then ended",
        "30 s, then the program alone is killed, its children are not",
        f"{rules.TIMEOUT_S:g} s, then the whole process group is killed",
    ),
    Difference(
        "L2",
        "reload",
        "scanned at start and on SIGHUP",
        "scanned at start; SIGHUP ends it",
        'as the page; with `librefang.reload = "watch"` also after each change',
    ),
    Difference(
        "L3",
        "patterns",
        f"globs, of which it lists {_PATTERNS}",
        "these and `<word>:*`; any other never matches, silently",
        f"{_PATTERNS}; any other is refused by name",
    ),
    Difference(
        "L4",
        "previews",
        f"{PREVIEW_CODE_POINTS} characters",
        "200",
        f"{PREVIEW_CODE_POINTS} code points",
    ),
    Difference(
        "L5",
        "payload",
        "its tables of fields",
        "twelve of them never sent; `agent_name`, `latency_ms`, `success`, `step` instead",
        "every field of the page, null when unknown, and the program's names beside them",
    ),
    Difference(
        "L6",
        "which runs count",
        "every run of an agent",
        "none whose answer is streamed",
        "every event that an agent publishes",
    ),
    Difference(
        "L7",
        "`session:reset`",
        "also when a policy resets",
        "not then",
        "whenever it is published, with its `reset_reason`",
    ),
    Difference(
        "L8",
        "`transform_tool_result`",
        "described beside the events",
        "no event of a `HOOK.yaml`; `args`, `result` instead of `tool_input`, `tool_output`",
        "diagnosed in a `HOOK.yaml`; transforms get the page's four fields",
    ),
    Difference(
        "L9",
        "answer of a transform command",
        _SILENT,
        "`content`; its page on plugins says `result`",
        "`content` or `tool_output`",
    ),
    Difference(
        "L10",
        "delivery",
        "started, and the agent goes on",
        "eight runs at a time, any number waits",
        "as `hooks.runs`, `hooks.runs_per_hook` and `hooks.queue` say; what finds no room is counted",
    ),
    Difference("L11", "keys", "without `args`", _KEYS, _KEYS),
    Difference(
        "L12",
        "unknown keys and events",
        _SILENT,
        "ignored silently",
        "ignored, and said with the nearest name",
    ),
    Difference(
        "L13",
        "a file that breaks",
        _SILENT,
        "skipped, with a warning",
        "keeps its last good hook until the next good scan, and says so; skipped if it never was good",
    ),
    Difference(
        "L14",
        "other names of the file",
        "exactly one `HOOK.yaml` in each folder",
        "ignored silently",
        "`HOOK.yml`, `hook.yaml`, a file outside of a folder and a folder without one are said",
    ),
    Difference(
        "L15",
        "`command` without a slash",
        "any file of the folder",
        "looked up on the PATH only",
        "a file of the folder; else on the PATH, with a notice",
    ),
    Difference(
        "L16",
        "`command` with blanks",
        _SILENT,
        "split where there are no `args`",
        "split where there are no `args` and no file has the whole of it as its name",
    ),
    Difference(
        "L17",
        f"payload beyond {rules.MAX_DATA_BYTES:,} bytes",
        _SILENT,
        "the hook does not start",
        "in the file `HOOK_EVENT_DATA_FILE`",
    ),
    Difference(
        "L18",
        "a hook that leaves something running",
        _SILENT,
        "runs until that closes its output, or the time is over",
        "is over when its program ends",
    ),
    Difference("L19", "standard input", _SILENT, "the daemon's own", "empty"),
    Difference(
        "L20",
        "output",
        "no return value",
        "kept whole in memory, then dropped",
        f"at most {OUTPUT_LIMIT:,} bytes of each stream are kept; the end of stderr is logged",
    ),
    Difference(
        "L21",
        "`gateway:startup`",
        "when the start is complete, with `started_at`",
        "before agents are started, without it",
        "when everything is ready, with both fields",
    ),
    Difference(
        "L22",
        "environment",
        "no secrets are put into it",
        "the daemon's, whole",
        f"that of `prxbus up` without {', '.join(f'`{name}`' for name in WITHHELD)}",
    ),
)
"""Every difference that is known, in the order of their discovery."""
