"""Part E: how handlers are run, and what becomes of what they write."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import CODEX
from subscribers.dialects.codex_result_values import Context, Effects
from subscribers.dialects.codex_spec import CodexHandler
from subscribers.dialects.codex_spill import shortened, within_limits
from subscribers.runner.codex_invocation import Scene, argv_of, environment_of
from subscribers.runner.codex_spill_files import SpillFiles
from tests.conformance.codex.cases_c import failed, run
from tests.conformance.codex.conformance import Case

LONG: Final = "word " * 4_000


def scene(**environ: str) -> Scene:
    """An event of a session with this environment."""
    return Scene(environ, "/w", None, "/run/prxbus", "id", 0)


def handler(command: str) -> CodexHandler:
    """One handler of PreToolUse."""
    groups = [{"hooks": [{"type": "command", "command": command}]}]
    content = json.dumps({"hooks": {"PreToolUse": groups}}).encode()
    (found,) = read_document(content, "/h/hooks.json", CODEX).handlers
    return found


def e1_2() -> None:
    """A secret is taken out whatever its case; other variables stay."""
    env = environment_of(scene(codex_exec_server_noise_auth_token="x", OTHER="y"), "PreToolUse", CODEX)
    assert "codex_exec_server_noise_auth_token" not in env
    assert env["OTHER"] == "y"


def e1_3() -> None:
    """The session's variables, ours above them, and no secret; a value need not be UTF-8."""
    given = scene(ODD="\udcff", NODE_REPL_AUTH_TOKEN="x", PRXBUS_DEPTH="5")
    env = environment_of(given, "PreToolUse", CODEX)
    assert (env["ODD"], env["PRXBUS_DEPTH"]) == ("\udcff", "1")
    assert "NODE_REPL_AUTH_TOKEN" not in env


def e1_4() -> None:
    """A shell that the session's environment names is its own, and need not log in; any other one has to."""
    argv = argv_of(handler("run it"), CODEX, {"SHELL": "/bin/sh"}, "/w")
    assert argv == ("/bin/sh", "-c", "run it")
    assert argv_of(handler("run it"), CODEX, {}, "/w") == ("/bin/sh", "-lc", "run it")


def e1_5() -> None:
    """An asynchronous handler's answer has to fit too."""
    judged = run("UserPromptSubmit", {"systemMessage": 123}, is_async=True)
    failed(judged, "hook returned invalid user prompt submit JSON output")


@contextmanager
def spill() -> Iterator[tuple[SpillFiles, Path]]:
    """A place for long texts, and where it is."""
    with tempfile.TemporaryDirectory() as folder:
        yield SpillFiles(folder), Path(folder)


def saving(files: SpillFiles, text: str, session: str = "s") -> str:
    """Save a text; where it is."""
    path = files.path(session)
    files.save(path, text)
    return path


def e3_1() -> None:
    """Each session has a folder of its own among all that are saved."""
    with spill() as (files, folder):
        first, second = (Path(files.path(session)) for session in ("a", "b"))
        assert first.parent != second.parent
        assert first.parent.parent == second.parent.parent == folder / "hook_outputs"
        assert Path(files.path("a")).parent == first.parent


def e3_2() -> None:
    """A short text stays, and no folder is made."""
    with spill() as (files, folder):
        assert shortened("short", CODEX.text, partial(saving, files)) == "short"
        assert list(folder.iterdir()) == []


def e3_3() -> None:
    """A long one is in a file that the last line names."""
    with spill() as (files, _):
        text = shortened(LONG, CODEX.text, partial(saving, files))
        assert "tokens truncated" in text
        name = text.rpartition("\nFull hook output saved to: ")[2]
        assert Path(name).read_text() == LONG


def e3_4() -> None:
    """Limits are each handler's."""
    contexts = (Context(LONG, 1), Context(LONG, 0), Context(LONG, 100_000))
    with spill() as (files, _):
        found = within_limits(Effects(contexts=contexts), CODEX, partial(saving, files)).contexts
        assert [context.text == LONG for context in found] == [False, True, True]


_HOOKS: Final = "tests/integration/test_codex_hooks.py"
_DISPATCH: Final = "tests/subscribers/runner/test_codex_dispatch_async.py"
_CHILDREN: Final = "tests/integration/test_children.py"
_NO_MCP: Final = "handlers of type mcp_tool are listed and not run: prxbus is no MCP client"

CASES: Final[tuple[Case, ...]] = (
    Case(
        "E1.1",
        "a handler that reads nothing of a large payload",
        shown_by=(f"{_CHILDREN}::test_a_program_need_not_read_its_input",),
    ),
    Case("E1.2", "a secret is taken out, in any case", e1_2),
    Case("E1.3", "the session's variables, then ours, then no secrets", e1_3),
    Case(
        "E1.4", "the shell that the session's environment names, with `-c`; `-lc` where it names none", e1_4
    ),
    Case("E1.5", "an asynchronous answer that does not fit fails", e1_5),
    Case(
        "E1.6",
        "a run outlives a reload with what it began with, and is heard",
        shown_by=(
            f"{_HOOKS}::test_a_run_keeps_what_it_began_with_and_a_stop_lets_it_end",
            f"{_DISPATCH}::test_what_a_run_says_that_outlives_a_reload_is_heard",
        ),
    ),
    Case(
        "E1.7",
        "eight asynchronous runs at once, the others wait",
        shown_by=(f"{_DISPATCH}::test_at_most_eight_asynchronous_handlers_of_a_session_run_at_once",),
    ),
    Case(
        "E1.8",
        "the end of a session ends what is under way, and discards it",
        shown_by=(
            f"{_HOOKS}::test_a_run_keeps_what_it_began_with_and_a_stop_lets_it_end",
            f"{_DISPATCH}::test_at_most_eight_asynchronous_handlers_of_a_session_run_at_once",
        ),
    ),
    Case("E1.9", "a quoted command for cmd.exe", not_applicable="prxbus does not run on Windows"),
    Case("E2.1", "placeholders of an mcp_tool's input", not_applicable=_NO_MCP),
    Case("E2.2", "a placeholder that is missing", not_applicable=_NO_MCP),
    Case("E2.3", "an mcp_tool's result as stdout", not_applicable=_NO_MCP),
    Case("E3.1", "texts are saved by session", e3_1),
    Case("E3.2", "a short text stays inline", e3_2),
    Case("E3.3", "a long text goes to a file", e3_3),
    Case("E3.4", "each context has its own limit", e3_4),
)
