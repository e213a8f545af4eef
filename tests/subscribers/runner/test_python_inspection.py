"""Files of Python handlers in a process of their own: loaded, called, and ended when their time is over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from subscribers.hooks.withheld import WITHHELD
from subscribers.runner.fire import event_of
from subscribers.runner.python_inspection import Probed, Prober

pytestmark = pytest.mark.timeout(120)

HEAD = "from subscribers.handlers import decide, on, transform\n"


@pytest.fixture
def prober() -> Iterator[Prober]:
    """Starts processes, with time enough for a busy machine."""
    with Prober({**os.environ, **dict.fromkeys(WITHHELD, "secret"), "MARK": "here"}, load_s=60) as found:
        yield found


def probe(prober: Prober, folder: Path, text: str) -> Probed:
    """A file with this text, loaded."""
    path = folder / "handlers.py"
    path.write_text(HEAD + text)
    return prober.probe(str(path))


def test_what_a_file_registers_is_told(prober: Prober, tmp_path: Path) -> None:
    """Every decorator's own words come back, and what the file prints is kept apart."""
    text = '@decide("tool_call", tools=["Bash"], priority=3, timeout=1.5, failure="closed")\n'
    text += (
        "def guard(event, ctx): pass\nprint('loading')\n@on('my.topic')\nasync def watch(event, ctx): pass\n"
    )
    found = probe(prober, tmp_path, text)
    guard, watch = found.functions
    assert found.error is None
    assert guard == (
        "decide", "guard", f"{tmp_path}/handlers.py", 2, ("prx.lifecycle.tool_call",), ("Bash",), (), 3, 1.5,
        True, "closed",
    )  # fmt: skip
    assert (watch.kind, watch.patterns, watch.has_own_timeout) == ("on", ("my.topic",), False)
    assert found.stderr == "loading\n"


@pytest.mark.parametrize(
    "text,code,said",
    [
        ("def broken(:\n", "syntax_error", "invalid syntax"),
        ("import nothing_that_exists\n", "cannot_load", "nothing_that_exists"),
        ("@on()\ndef f(event, ctx): pass\n", "cannot_load", "at least one event"),
        ("import os; os._exit(3)\n", "cannot_load", "exit code 3"),
        ("import os; os.kill(os.getpid(), 9)\n", "cannot_load", "signal 9"),
        ("raise SystemExit(0)\n", "cannot_load", "SystemExit"),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why(
    prober: Prober, tmp_path: Path, text: str, code: str, said: str
) -> None:
    """Whatever the file does to the process that loads it, there is an error with a reason."""
    found = probe(prober, tmp_path, text)
    assert found.functions == ()
    assert found.error is not None
    assert found.error.code == code
    assert said in found.error.message


def test_a_file_that_does_not_end_loading_is_ended(tmp_path: Path) -> None:
    """Its process is ended when the time is over, and that is told; no child is left."""
    path = tmp_path / "handlers.py"
    path.write_text("import time\ntime.sleep(600)\n")
    with Prober(os.environ, load_s=2) as prober:
        found = prober.probe(str(path))
    assert found.error is not None
    assert (found.error.code, found.error.message) == ("load_timeout", "it did not load within 2 s")


def test_a_process_has_no_token_and_starts_where_the_file_lies(prober: Prober, tmp_path: Path) -> None:
    """The environment is inherited without our tokens."""
    found = probe(
        prober,
        tmp_path,
        f"import os\nprint(os.getcwd(), os.environ['MARK'], {{*{WITHHELD}}} & {{*os.environ}} or 'none')",
    )
    assert found.stderr == f"{tmp_path} here none\n"


def test_what_is_not_installed_says_so(prober: Prober) -> None:
    """An entry point that no package has is an error."""
    found = prober.probe("nothing", entry_point="nothing")
    assert found.error is not None
    assert found.error.code in ("not_installed", "cannot_load")


def test_functions_are_called_for_an_event(prober: Prober, tmp_path: Path) -> None:
    """Answers, failures, timeouts and what was published come back in the order of the numbers asked for."""
    text = """
@decide("tool_call_start")
def rewrites(event, ctx):
    ctx.publish("my.topic", {"tool": event.payload["tool"]})
    return ctx.rewrite({"command": "ls"}, context="be kind")
@decide("tool_call_start", failure="closed", timeout=0.2)
def hangs(event, ctx):
    while True: pass
@on("tool_call_start")
async def raises(event, ctx): raise ValueError("no room")
@decide("tool_call_start")
def wrong(event, ctx): return True
@on("tool_call_start", tools=["Edit"])
def filtered(event, ctx): pass
@decide("tool_call_start")
def odd(event, ctx): return ctx.allow(updated_input={"a": {1, 2}})
"""
    path = tmp_path / "handlers.py"
    path.write_text(HEAD + text)
    event = event_of("prx.lifecycle.tool_call_start", b'{"tool": "Bash"}', "s1")
    found = prober.probe(str(path), call=(event, [0, 1, 2, 3, 4, 5], "handlers.py"), call_s=60)
    rewrites, hangs, raises, wrong, filtered, odd = found.calls
    assert (rewrites["status"], rewrites["published"]) == ("ok", [["my.topic", {"tool": "Bash"}]])
    assert rewrites["answer"][:5] == ["handlers.py:rewrites", "none", None, ["be kind"], {"command": "ls"}]
    assert (hangs["status"], hangs["answer"][1]) == ("timeout", "deny")
    assert "fails closed" in hangs["answer"][2]
    assert (raises["status"], "no room" in raises["reason"]) == ("failed", True)
    assert "raise ValueError" in raises["traceback"]
    assert (wrong["status"], "returned True" in wrong["reason"], wrong["answer"]) == ("failed", True, None)
    assert filtered == {"unasked": "its filters do not let this payload through"}
    assert odd["answer"][4] == {"a": "{1, 2}"}


def test_the_first_transform_that_gives_a_text_wins(prober: Prober, tmp_path: Path) -> None:
    """A transform sees the tool's text under the page's name; after the first value nobody is asked."""
    text = """
@transform
def passes(event, ctx): return None
@transform
def numbers(event, ctx): return 7
@transform
def shortens(event, ctx): return event.payload["tool_output"][:3]
@transform
def late(event, ctx): return "late"
"""
    path = tmp_path / "handlers.py"
    path.write_text(HEAD + text)
    event = event_of("prx.lifecycle.tool_result", b'{"tool": "Bash", "output": "abcdef"}', None)
    found = prober.probe(str(path), call=(event, [0, 1, 2, 3], "handlers.py"), call_s=60)
    passes, numbers, shortens, late = found.calls
    assert (passes["status"], passes["answer"]) == ("ok", None)
    assert (numbers["status"], numbers["answer"]) == ("failed", None)
    assert shortens["answer"][5] == ["abc"]
    assert late == {"unasked": "an earlier one has replaced the output"}
    nothing = event_of("prx.lifecycle.tool_result", b"{}", None)
    found = prober.probe(str(path), call=(nothing, [0], "handlers.py"), call_s=60)
    assert found.calls == ({"unasked": "the event brings no output of a tool"},)


def test_what_a_decorator_refuses_is_told_without_the_name_of_its_class(
    prober: Prober, tmp_path: Path
) -> None:
    """The words and the user's own line are enough; where the error is defined is nobody's business."""
    found = probe(prober, tmp_path, "@on()\ndef f(event, ctx): pass\n")
    assert found.error is not None
    assert found.error.message == '@on() needs at least one event: write @on("tool_call")'
    assert found.error.line == 2


def test_a_function_that_holds_the_interpreter_is_the_one_that_is_lost(tmp_path: Path) -> None:
    """What was told before it is there; it timed out, and the one after was not called."""
    path = tmp_path / "handlers.py"
    path.write_text(
        HEAD + "import re\n@on('error')\ndef first(event, ctx): pass\n"
        "@on('error', timeout=0.1)\ndef holds(event, ctx): re.match('(a+)+$', 'a' * 60 + 'b')\n"
        "@on('error')\ndef last(event, ctx): pass\n"
    )
    event = event_of("prx.lifecycle.error", b"{}", None)
    with Prober(os.environ, load_s=12) as prober:
        found = prober.probe(str(path), call=(event, [0, 1, 2], "handlers.py"))
    assert [call["status"] for call in found.calls] == ["ok"]
    assert found.lost is not None
    assert (found.lost.status, found.lost.seconds > 0) == ("timeout", True)
    assert found.lost.reason == "it did not end, and so its process was ended"
