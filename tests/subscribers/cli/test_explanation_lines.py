"""An explanation on a terminal: it fits, it is plain where there are no colours, and nothing acts on it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.terminal import width
from subscribers.cli.explanation_lines import NARROWEST, ExplanationLines, wrap
from subscribers.dialects.rolebox_explanation import topics_of
from subscribers.hooks.diagnostics import Diagnostic
from subscribers.hooks.explanation import Explained, ExplainedFile, Handler

GOOD = Handler(
    "tool_call",
    0,
    "tool_call#0",
    "shell",
    "ok",
    topics=("prx.lifecycle.tool_call",),
    command="./audit.sh",
    args=("--all",),
    timeout_s=5.0,
    timeout_from="own",
    line=4,
    executable="/srv/shop/audit.sh",
)
FAULT = Diagnostic(
    "error", "unknown_event", "/srv/shop/hooks.json", 9, 3, "hooks.erorr", "there is no event", "error?"
)
DEAD = Handler("erorr", 0, "erorr#0", "shell", "dead", diagnostics=(FAULT,))


def file(*handlers: Handler, **changes: object) -> ExplainedFile:
    """A file with these handlers."""
    explained = Explained(handlers, (), False)
    found = ExplainedFile(
        "/srv/shop/hooks.json", "prx", "its name is hooks.json", "/srv/shop", True, explained
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def report(*files: ExplainedFile, columns: int | None = None, colour: bool = False) -> str:
    """What a person gets to see."""
    return "\n".join(ExplanationLines(columns, "/srv/shop", colour=colour).report(files))


def test_a_report_reads_as_documented() -> None:
    """File, handlers, reasons and the sum stand in this form."""
    assert report(file(GOOD, DEAD)) == (
        "hooks.json  (prx: its name is hooks.json)\n"
        "\n"
        "  ok       tool_call#0  ./audit.sh --all\n"
        "           line 4; on tool_call; timeout 5 s, its own\n"
        "           runs audit.sh\n"
        "  dead     erorr#0\n"
        "           error: line 9:3: there is no event [unknown_event]\n"
        "                  → error?\n"
        "\n"
        "1 file; handlers: 1 ok, 1 dead"
    )


def test_a_remark_on_several_handlers_is_written_out_once() -> None:
    """The second handler with the same reason points to the first."""
    assert report(file(DEAD, DEAD)).count("there is no event") == 1
    assert "error: as above [unknown_event]" in report(file(DEAD, DEAD))


def test_a_file_is_told_when_it_is_not_trusted_refused_or_empty() -> None:
    """What is not trusted says how it would run; a refused file is counted; an empty one says so."""
    assert "runs only under prxbus up --workspace ." in report(file(GOOD, trusted=False))
    role = replace(file(GOOD, trusted=False), dialect="rolebox")
    assert "runs only under prxbus up --role ." in report(role)
    refused = Explained((), (replace(FAULT, line=None, column=None),), refused=True)
    told = report(file(explained=refused, dialect=None))
    assert "  error: hooks.erorr: there is no event [unknown_event]" in told
    assert told.endswith("1 file (1 refused); handlers: 0 ok")
    assert "no handlers" in report(file())


def test_a_remark_of_another_file_names_it() -> None:
    """A diagnostic that is not of the file that is explained keeps its path."""
    other = replace(FAULT, path="/etc/prxbus.toml", line=None, column=None)
    told = report(file(explained=Explained((), (other,), refused=False)))
    assert "error: /etc/prxbus.toml: hooks.erorr: there is no event" in told


def test_a_plugin_names_its_event() -> None:
    """Patterns of one plugin are told apart by their event, which may be none."""
    plugin = Handler("error", 0, "plugin:x", "wasm", "ok", command="x.wasm")
    assert "ok       plugin:x  error  x.wasm" in report(file(plugin))
    every = replace(plugin, event="*", matcher="*", topics=("prx.lifecycle.*", "my.topic"))
    assert "ok       plugin:x  *  x.wasm\n           on every lifecycle event, my.topic" in report(
        file(every)
    )
    tools = replace(plugin, name="guards.py:guard", command=None, matcher="tools: Bash")
    assert "ok       guards.py:guard  error  tools: Bash\n" in report(file(tools))
    assert "ok       plugin:x  (no event)  x.wasm" in report(file(replace(plugin, event="")))


def test_a_hook_for_all_other_events_says_so_in_a_few_words() -> None:
    """It listens to so many that a list of them would hide it."""
    told = report(file(replace(GOOD, event="event", topics=topics_of("event"))))
    assert "line 4; on every lifecycle event without a handler of its own; timeout" in told
    told = report(file(replace(GOOD, event="event", topics=topics_of("event", ["session.idle"]))))
    assert "on turn_complete; timeout" in told


def test_colours_mark_and_change_nothing_else() -> None:
    """Without its control sequences the coloured report is the plain one."""
    files = (file(GOOD, DEAD, trusted=False), file(explained=Explained((), (FAULT,), refused=True)))
    coloured = report(*files, columns=80, colour=True)
    assert "\x1b[32mok\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == report(*files, columns=80)


TEXT = st.text(max_size=60) | st.text("审计 a\x1b\u0301", max_size=90)


@given(
    st.builds(
        replace,
        st.just(GOOD),
        command=TEXT,
        name=TEXT,
        executable=TEXT,
        diagnostics=st.builds(
            Diagnostic,
            st.sampled_from(["error", "info"]),
            st.just("x"),
            TEXT,
            st.just(1),
            st.just(2),
            TEXT,
            TEXT,
            TEXT,
        ).map(lambda d: (d,)),
    ),
    TEXT,
    st.integers(20, 120),
)
def test_every_line_fits_and_is_printable(handler: Handler, path: str, columns: int) -> None:
    """Whatever a file holds, no line is wider than the terminal or moves a cursor."""
    shown = file(handler, path=path, because=path)
    for line in report(shown, columns=columns).split("\n"):
        assert line.isprintable()
        assert width(line) <= max(columns, NARROWEST)


@given(st.text("ab审 ", max_size=80), st.integers(10, 40), st.integers(0, 4))
def test_wrapping_loses_nothing(text: str, columns: int, hanging: int) -> None:
    """The words of the lines, put together, are those of the text."""
    lines = list(wrap(text, columns, hanging))
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(width(line) <= columns for line in lines)


@pytest.mark.parametrize(
    "path,shown", [("/srv/shop", "."), ("/srv/shop/a", "a"), ("/srv/shopping", "/srv/shopping")]
)
def test_a_path_is_short_below_the_current_directory(path: str, shown: str) -> None:
    """Only what really lies below the directory is shown relative to it."""
    assert ExplanationLines(None, "/srv/shop", colour=False).shown_path(path) == shown
