"""A HOOK.yaml explained: every entry of its events with whether it starts anything, and why not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subscribers.dialects.librefang_explanation import explain
from subscribers.dialects.librefang_file import parse
from subscribers.hooks.explanation import BROKEN, Explained

PATH = "/srv/me/.librefang/hooks/notify/HOOK.yaml"

ENTRIES: Sequence[tuple[str, str, tuple[str, ...], str | None, list[str]]] = [
    # as written, status, events, matcher, codes
    ("agent:end", "ok", ("agent_end",), None, []),
    ('"agent:*"', "ok", ("agent_start", "agent_end", "agent_step"), "agent:*", []),
    ("tool_call", "ok", ("tool_call",), None, ["extension_event"]),
    ("gateway:startup", "ok", ("gateway_startup",), None, ["repeated_event"]),
    ("agent:strat", "dead", (), None, ["unknown_event"]),
    ('"agent:s*"', "dead", (), None, ["unsupported_pattern"]),
    ("transform_tool_result", "dead", (), None, ["transform_event"]),
    ("7", "refused", (), None, ["wrong_type"]),
    ("agent: end", "refused", (), None, ["wrong_type"]),
]


def hook(events: str, more: str = "") -> Explained:
    """A hook with these events, explained."""
    return explain(f"name: notify\ncommand: ./run.sh\nevents: {events}\n{more}".encode(), PATH)


@pytest.mark.parametrize("written,status,events,matcher,codes", ENTRIES)
def test_each_kind_of_entry_has_its_status_and_its_reason(
    written: str, status: str, events: tuple[str, ...], matcher: str | None, codes: list[str]
) -> None:
    """Each kind of entry is shown with what it starts; what is no event leaves its siblings."""
    first, second = hook(f"[gateway:startup, {written}]").handlers
    assert second.topics == tuple(f"prx.lifecycle.{event}" for event in events)
    assert [d.code for d in second.diagnostics] == codes
    assert (second.matcher, second.timeout_s, second.timeout_from) == (matcher, 5.0, "default")
    assert (first.status, second.status) == ("ok", status)


FILES: Sequence[tuple[str, str, list[str], bool]] = [
    # what, the file, statuses, whether it is refused
    ("no YAML", "a: [", [], True),
    ("no UTF-8", "\udcff", [], True),
    ("empty", "", [], True),
    ("a list", "- a", [], True),
    ("something else", "steps: [agent:end]", [], True),
    ("two documents", "name: a\n---\nname: b", [], True),
    ("too large", "#" * 20_000, [], True),
    ("no command", "name: a\nevents: [agent:end]", ["refused"], True),
    ("an empty command", 'name: a\nevents: [agent:end]\ncommand: " "', ["refused"], True),
    ("no name", "events: [agent:end]\ncommand: ./run.sh", ["refused"], True),
    ("one event without its list", "name: a\nevents: agent:end\ncommand: ./run.sh", [], True),
    ("no events", "name: a\nevents: []\ncommand: ./run.sh", [], True),
    ("only dead events", "name: a\nevents: [agent:x]\ncommand: ./run.sh", ["dead"], True),
    ("a key that is none", "name: a\nevents: [agent:end]\ncommand: ./run.sh\n7: x", ["ok"], False),
    ("a key twice", "name: a\nevents: [agent:end]\nevents: [x]\ncommand: ./run.sh", ["refused"], True),
]


@pytest.mark.parametrize("text,statuses,refused", [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_each_kind_of_file_is_explained(text: str, statuses: list[str], refused: bool) -> None:
    """A file that cannot be used still shows what it wanted, and an error says why."""
    found = explain(text.encode("utf-8", "surrogateescape"), PATH)
    assert [handler.status for handler in found.handlers] == statuses
    assert found.refused is refused
    said = [*found.diagnostics, *(d for handler in found.handlers for d in handler.diagnostics)]
    assert any(d.severity == "error" for d in said) is refused


def test_a_hook_is_called_by_its_name_and_else_by_its_folder() -> None:
    """The name in reports is the one here; arguments are shown as written, text only."""
    (found,) = hook("[agent:end]", "args: [-l, x y]").handlers
    assert (found.name, found.command, found.args, found.line) == ("notify", "./run.sh", ("-l", "x y"), 3)
    (found,) = explain(b'name: ""\ncommand: ./run.sh\nevents: [agent:end]', PATH).handlers
    assert (found.name, found.status) == ("notify", "ok")
    (found,) = hook("[agent:end]", "args: [7]").handlers
    assert (found.args, found.status) == ((), "refused")


NAMES = st.sampled_from(
    ["agent:end", "agent:*", "'*'", "tool_call", "agent:x", "x*", "7", "[]", "session:end"]
)


@given(st.lists(NAMES, max_size=4), st.sampled_from(["", "args: [a]", "args: a", "name: x"]))
def test_an_explanation_agrees_with_the_reader(events: list[str], more: str) -> None:
    """Some entry is ok exactly when the reader made hooks, and together they start what those do."""
    text = f"name: notify\ncommand: ./run.sh\nevents: [{', '.join(events)}]\n{more}".encode()
    found, specs = explain(text, PATH), parse(text, PATH).specs
    alive = [handler for handler in found.handlers if handler.status == "ok"]
    assert bool(alive) is bool(specs) is (not found.refused)
    topics = {topic for handler in alive for topic in handler.topics}
    assert topics == {f"prx.lifecycle.{spec.event}" for spec in specs}
    assert all(handler.spec in specs for handler in alive)


@given(st.binary(max_size=400) | st.text(max_size=200).map(str.encode))
@example(b"\xef\xbb\xbf")
@example(b"events: &a [*a]")
@example(b"[" * 8_000)
@example(b"name: a\nevents: ['\\ud800']\ncommand: b")
def test_any_bytes_give_an_explanation(text: bytes) -> None:
    """No bytes make it raise, and what is broken has a reason."""
    found = explain(text, PATH)
    said = [*found.diagnostics, *(d for handler in found.handlers for d in handler.diagnostics)]
    is_broken = found.refused or any(handler.status in BROKEN for handler in found.handlers)
    assert not is_broken or any(d.severity == "error" for d in said)
