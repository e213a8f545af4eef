"""What a transform command is given and what its answer means.

It reads one line from its standard input, the four fields of LibreFang's page as a JSON object:

    {"agent_id": ..., "tool_name": ..., "tool_input": {...}, "tool_output": "..."}

and answers on its standard output, with exit code 0:

=====================================  ==============================================================
``{"content": "text"}``                the text replaces the tool's; an empty text is one too
``{"tool_output": "text"}``            the same, in the page's own word; both may be there if they agree
nothing, ``null``, ``{}``,             it passes: the next handler of the chain is asked
or the field is ``null``
another exit code, a signal, no JSON,  a fault: it is noted, and the next handler is asked
another shape, too much output,
not one of the words above
=====================================  ==============================================================

Where the whole of stdout is no JSON value, its last line that is not empty is read: what a program prints
before its answer does no harm. Stderr means nothing, and nobody repeats it: it may hold the tool's text.

Sans-IO: it starts nothing and looks nothing up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from ..hooks.invocation import Invocation
from ..hooks.outcome import Outcome
from ..hooks.spec import HookSpec
from ..hooks.transform_chain import Fault, Passed, Said, ToolResult, Value
from .environment import search_path

NAME: Final = "transform"
EVENT: Final = "tool_result"

OUTPUT_BYTES: Final = 16_777_216 + 65_536
"""Bytes of stdout that are read: a replacement of 16 MiB, and what JSON puts around it."""

FIELDS: Final = ("content", "tool_output")
"""Where an answer may hold the replacement."""


RUN_VARIABLE: Final = "PRXBUS_RUN"
"""Names this one run to the machine that ends what it leaves behind."""


def stdin_of(result: ToolResult) -> bytes:
    """The line that a command reads. Raises TypeError for an input that JSON cannot hold."""
    fields = {
        "agent_id": result.agent_id,
        "tool_name": result.tool_name,
        "tool_input": result.tool_input,
        "tool_output": result.tool_output,
    }
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def environment_of(
    prxbus_folder: str, runtime_dir: str, depth: int, cause: str, handler: str
) -> dict[str, str]:
    """The whole environment of a command: nothing is inherited.

    ``depth`` is that of the event it handles, ``cause`` the event's id, which no handler sees twice.
    """
    cause = cause.replace("\0", "\ufffd")  # an environment cannot hold NUL, and an asker may send one
    return {
        "PATH": ":".join(search_path(prxbus_folder)),
        "LANG": "C.UTF-8",
        "PRXBUS_RUNTIME_DIR": runtime_dir,
        "PRXBUS_DEPTH": str(depth + 1),
        "PRXBUS_CAUSE": cause,
        RUN_VARIABLE: f"{cause} {handler}",
    }


def render(
    spec: HookSpec, executable: str, cwd: str, env: Mapping[str, str], stdin: bytes, timeout_s: float
) -> Invocation:
    """What a runtime has to run; the group is killed at once when the time is over."""
    return Invocation(
        argv=(executable, *spec.args),
        env=env,
        cwd=cwd,
        stdin=stdin,
        timeout_s=timeout_s,
        grace_s=spec.grace_s,
        output_limit=OUTPUT_BYTES,
        marker=RUN_VARIABLE,
        bounds_leftovers=True,
    )


def read(outcome: Outcome) -> Said:
    """What came of a run: a text, nothing, or a fault whose reason repeats no word of its output."""
    if outcome.status == "not_started":
        return Fault("not_started", outcome.reason or "it could not be started")
    if outcome.status == "timeout":
        return Fault("timeout", outcome.reason or f"no answer within {outcome.duration_s:.3g} s")
    if outcome.status == "signalled":
        return Fault("signalled", f"ended by signal {outcome.signal}", signal=outcome.signal)
    if outcome.status == "failed":
        said = outcome.stderr.total
        more = f", and {said:,} bytes on stderr, which may hold the tool's text" if said else ""
        return Fault("failed", f"exit code {outcome.exit_code}{more}", outcome.exit_code)
    if outcome.stdout.truncated:
        return Fault("failed", f"{outcome.stdout.total:,} bytes on stdout; {OUTPUT_BYTES:,} are read", 0)
    said_so = _answer(outcome.stdout.head)
    return said_so._replace(exit_code=0) if isinstance(said_so, Fault) else said_so


def _answer(stdout: bytes) -> Said:
    text = stdout.strip()
    if not text:
        return Passed()
    answer = _json(text)
    if answer is _NO_JSON:
        answer = _json(text.rpartition(b"\n")[2])
    if answer is _NO_JSON:
        return Fault("failed", f"{len(stdout):,} bytes on stdout are not JSON")
    if answer is None:
        return Passed()
    if not isinstance(answer, dict):
        return Fault("failed", 'its answer is not a JSON object such as {"content": "text"}')
    return _replacement(answer)


def _replacement(answer: Mapping[str, Any]) -> Said:
    given = [answer[name] for name in FIELDS if answer.get(name) is not None]
    if not given:
        if answer and not any(name in answer for name in FIELDS):
            return Fault("failed", f"its answer has none of the fields {' and '.join(FIELDS)}")
        return Passed()
    if not all(isinstance(text, str) for text in given):
        return Fault("failed", "the text in its answer is not a string")
    if len(given) > 1 and given[0] != given[1]:
        return Fault("failed", f"the fields {' and '.join(FIELDS)} of its answer differ")
    return Value(given[0])


_NO_JSON: Final = object()


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _NO_JSON
