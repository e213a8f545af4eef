"""The [[transform]] tables of a configuration explained: those that hold, and those with a fault."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subscribers.dialects.transform_explanation import Table, explain
from subscribers.hooks.diagnostics import Diagnostic

PATH = "/w/.prxbus/config.toml"
TABLE = Table("redact", ("python3", "redact.py"), ("Bash",), (), 5.0)


def fault(field: str | None, code: str = "bad_value") -> Diagnostic:
    """A fault of the file."""
    return Diagnostic("error", code, PATH, None, None, field, "it is refused", None)


def test_a_table_is_told_with_its_command_its_filters_and_its_time() -> None:
    """What the reader took of a table is shown, with its line and who said how long it may take."""
    text = b'[hooks]\nruns = 1\n\n[[transform]]\ncommand = "x"\n\n [[ "transform" ]]\ntimeout = 2.0\n'
    first, second = explain(text, PATH, [TABLE, TABLE._replace(timeout_s=2.0)], ()).handlers
    assert (first.name, first.command, first.args) == ("redact", "python3", ("redact.py",))
    assert (first.event, first.topics) == ("tool_result", ("prx.lifecycle.tool_result",))
    assert (first.runtime, first.status, first.matcher) == ("transform", "ok", "tools: Bash")
    assert [(h.line, h.timeout_s, h.timeout_from) for h in (first, second)] == [
        (4, 5.0, "default"),
        (7, 2.0, "own"),
    ]


def test_a_table_with_a_fault_is_refused_and_the_others_hold() -> None:
    """A fault belongs to its table by number; what is said of the rest of the file stays there."""
    text = b'[[transform]]\ncommand = 7\n[[transform]]\nname = "b"\ncommand = "./b"\n[[transform]]\n'
    faults = (fault("transform[0].command"), fault("hoks"), fault("transform[1].name"))
    found = explain(text, PATH, [TABLE], faults)
    assert [handler.status for handler in found.handlers] == ["refused", "refused", "ok"]
    assert [handler.name for handler in found.handlers] == ["config.toml:transform[0]", "b", "redact"]
    assert [handler.command for handler in found.handlers] == [None, "./b", "python3"]
    assert [handler.diagnostics for handler in found.handlers] == [(faults[0],), (faults[2],), ()]
    assert found.diagnostics == (faults[1],)
    assert not found.refused


@pytest.mark.parametrize(
    "text", ["", "transform = 7", "transform = [7]", "[[transform", "a." * 50 + "b = 1", "\udcff"]
)
def test_what_holds_no_tables_has_no_handlers(text: str) -> None:
    """A file without tables, or that is no TOML, has none; an unusable file is refused."""
    data = text.encode("utf-8", "surrogateescape")
    found = explain(data, PATH, (), (fault(None, "unusable_file"),))
    assert (found.handlers, found.refused) == ((), True)
    assert not explain(data, PATH, (), ()).refused


def test_tables_without_headings_have_no_lines() -> None:
    """An inline array gives no line to point at."""
    (found,) = explain(b'transform = [{command = "x"}]', PATH, [TABLE], ()).handlers
    assert (found.line, found.status) == (None, "ok")


@given(st.binary() | st.text().map(str.encode))
@example(b"[[transform]]\nx = 0x" + b"f" * 5_000)
@example(b"a = " + b"[" * 50_000)
def test_any_bytes_give_an_explanation(text: bytes) -> None:
    """No bytes make it raise, also where the reader took nothing."""
    assert all(handler.status == "refused" for handler in explain(text, PATH, (), ()).handlers)
