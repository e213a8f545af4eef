"""A plugin's manifest explained: every pattern with whether it matches anything, and why not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subscribers.dialects import prx_plugin_rules as rules
from subscribers.dialects.prx_plugin import parse
from subscribers.dialects.prx_plugin_explanation import explain
from subscribers.hooks.explanation import BROKEN, Explained

HEAD = '[plugin]\nname = "x"\nversion = "1"\n'
HOOK = '[[capabilities]]\ntype = "hook"\nevents = ["error"]'

PATTERNS: Sequence[tuple[str, str, str, tuple[str, ...], str | None, list[str]]] = [
    # as written, event, status, topics, matcher, codes
    ('"tool_call"', "tool_call", "ok", ("prx.lifecycle.tool_call",), None, []),
    ('"prx.lifecycle.error"', "error", "ok", ("prx.lifecycle.error",), None, []),
    ('" Tool-Call "', "tool_call", "ok", ("prx.lifecycle.tool_call",), None, []),
    ('"*"', "*", "ok", ("prx.lifecycle.*",), "*", []),
    ('"prx.*"', "prx.*", "ok", ("prx.lifecycle.*",), "prx.*", []),
    ('"session_start"', "session_start", "ok", ("prx.lifecycle.session_start",), None, ["extension_event"]),
    ('"tool_cal"', "tool_cal", "dead", (), None, ["unknown_event"]),
    ('"tool_*"', "tool_*", "dead", (), None, ["bad_pattern"]),
    ('"prx.hooks.run"', "prx.hooks.run", "dead", (), None, ["not_lifecycle"]),
    ("7", "", "refused", (), None, ["wrong_type"]),
]


def manifest(text: str) -> Explained:
    """A manifest explained."""
    return explain(text.encode(), "plugin.toml")


@pytest.mark.parametrize("written,event,status,topics,matcher,codes", PATTERNS)
def test_each_kind_of_pattern_has_its_status_and_its_reason(
    written: str, event: str, status: str, topics: tuple[str, ...], matcher: str | None, codes: list[str]
) -> None:
    """Each kind of pattern is shown with what it matches, beside a good one that always works."""
    found = manifest(f'{HEAD}[[capabilities]]\ntype = "hook"\nevents = [{written}, "error"]\n')
    first, second = found.handlers
    assert (first.event, first.status, first.topics, first.matcher) == (event, status, topics, matcher)
    assert [d.code for d in first.diagnostics] == codes
    assert (second.status, second.index, second.name) == ("ok", 1, "plugin:x")
    assert not found.refused


FILES: Sequence[tuple[str, str, list[str], bool]] = [
    # what, the file, statuses, whether it is refused
    ("half written", "[plugin", [], True),
    ("no UTF-8", "\udcff", [], True),
    ("empty", "", [], True),
    ("no name", f"[plugin]\n{HOOK}", ["refused"], True),
    ("a name that is none", f"[plugin]\nname = 7\n{HOOK}", ["refused"], True),
    ("no events", f'{HEAD}[[capabilities]]\ntype = "hook"', [], True),
    ("events that are none", f'{HEAD}[[capabilities]]\ntype = "hook"\nevents = "error"', [], True),
    ("only dead events", f'{HEAD}[[capabilities]]\ntype = "hook"\nevents = ["x"]', ["dead"], True),
    ("a tool", f'{HEAD}[[capabilities]]\ntype = "tool"', [], True),
    ("capabilities that are none", f"{HEAD}capabilities = 7", [], True),
    ("a block that is none", f"{HEAD}capabilities = [7]", [], True),
    ("a component elsewhere", f'[plugin]\nname = "x"\nwasm = "/x"\n{HOOK}', ["refused"], True),
    ("a component that is none", f'[plugin]\nname = "x"\nwasm = 7\n{HOOK}', ["refused"], True),
    ("no such permission", f'{HEAD}{HOOK}\n[permissions]\nrequired = ["x"]', ["refused"], True),
    ("plugin is none", f"plugin = 7\n{HOOK}", ["refused"], True),
]


@pytest.mark.parametrize("text,statuses,refused", [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_each_kind_of_manifest_is_explained(text: str, statuses: list[str], refused: bool) -> None:
    """A manifest that cannot be used still shows what it wanted, and an error says why."""
    found = explain(text.encode("utf-8", "surrogateescape"), "plugin.toml")
    assert [handler.status for handler in found.handlers] == statuses
    assert found.refused is refused
    said = [*found.diagnostics, *(d for handler in found.handlers for d in handler.diagnostics)]
    assert any(d.severity == "error" for d in said)


@pytest.mark.parametrize(
    "written,seconds,origin",
    [("", 30.0, "default"), ("1500", 1.5, "own"), ("0", 30.0, "default"), ('"x"', 30.0, "default")],
)
def test_a_timeout_is_told_with_its_origin(written: str, seconds: float, origin: str) -> None:
    """The manifest's own counts where it is within range, else the default."""
    limit = f"[resources]\nmax_execution_time_ms = {written}" if written else ""
    (found,) = manifest(f'{HEAD}[[capabilities]]\ntype = "hook"\nevents = ["error"]\n{limit}').handlers
    assert (found.timeout_s, found.timeout_from) == (seconds, origin)
    odd = manifest(f'resources = 7\n{HEAD}[[capabilities]]\ntype = "hook"\nevents = ["error"]')
    assert odd.handlers[0].timeout_from == "default"


def test_a_handler_has_the_line_of_its_block() -> None:
    """Each pattern is found at its block's heading; without headings no line is guessed."""
    block = '[[capabilities]]\ntype = "hook"\nevents = ["error"]\n'
    assert [h.line for h in manifest(f'{HEAD}\n{block}\n [[ "capabilities" ]]\n{block[17:]}').handlers] == [
        5,
        9,
    ]
    inline = manifest('capabilities = [{type = "hook", events = ["error"]}]\n' + HEAD)
    assert [h.line for h in inline.handlers] == [None]


def test_patterns_beyond_the_limit_say_so() -> None:
    """Of more patterns than a manifest may have, each that does not count says why."""
    many = ", ".join(['"error"'] * (rules.MAX_PATTERNS + 2))
    text = f'{HEAD}[[capabilities]]\ntype = "hook"\nevents = [{many}]\n'
    found = manifest(text + '[[capabilities]]\ntype = "hook"\nevents = ["error"]').handlers
    beyond = [handler for handler in found if handler.status == "refused"]
    assert [[d.code for d in handler.diagnostics] for handler in beyond] == [["too_many"]] * 3


@given(
    st.lists(
        st.sampled_from(["tool_call", "*", "x", "tool_*", "prx.hooks.run", " error"]) | st.text(), max_size=4
    ),
    st.sampled_from(["", 'name = "x"', "name = 7"]),
)
def test_an_explanation_agrees_with_the_reader(events: list[str], name: str) -> None:
    """Some handler is ok exactly when there is a manifest, what is ok matches what the manifest does."""
    escaped = ["".join(f"\\U{ord(character):08x}" for character in event) for event in events]
    listed = ", ".join(f'"{text}"' for text in escaped)
    text = f'[plugin]\n{name}\n[[capabilities]]\ntype = "hook"\nevents = [{listed}]'.encode()
    found = explain(text, "plugin.toml")
    read = parse(text, "plugin.toml").manifest
    alive = [handler for handler in found.handlers if handler.status == "ok"]
    assert bool(alive) is (read is not None) is (not found.refused)
    topics = {topic for handler in alive for topic in handler.topics}
    if read is not None:
        names = {f"prx.lifecycle.{event}" for event in read.events.names}
        assert topics - {"prx.lifecycle.*"} == names
        assert ("prx.lifecycle.*" in topics) is read.events.every


@given(st.binary() | st.text().map(str.encode))
@example(b"\xef\xbb\xbf")
@example(b"a = " + b"[" * 50_000)
@example(HEAD.encode() + b"[resources]\nmax_execution_time_ms = 0x" + b"f" * 5_000)
@example(b"a." * 100 + b"b = 1")
def test_any_bytes_give_an_explanation(text: bytes) -> None:
    """No bytes make it raise, and what is broken has a reason."""
    found = explain(text, "plugin.toml")
    said = [*found.diagnostics, *(d for handler in found.handlers for d in handler.diagnostics)]
    is_broken = found.refused or any(handler.status in BROKEN for handler in found.handlers)
    assert not is_broken or any(d.severity == "error" for d in said)
