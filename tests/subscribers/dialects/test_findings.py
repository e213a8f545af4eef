"""Findings: counted, bounded, and told in text order."""

from collections.abc import Mapping

import pytest

from subscribers.dialects.findings import MAX_DIAGNOSTICS, Findings, field_name
from subscribers.dialects.json_positions import Lines, Path, scan
from subscribers.hooks.diagnostics import Severity

CODES: Mapping[str, Severity] = {"bad": "error", "odd": "warning", "fine": "info"}
TEXT = b'{"a": 1,\n "b": [2, 3]}'


@pytest.mark.parametrize(
    "where,written",
    [
        ((), ""),
        (("hooks",), "hooks"),
        (("hooks", "tool_call", 0, "timeout_ms"), "hooks.tool_call[0].timeout_ms"),
        (("hooks", "tool-call", 12, "args", 3), "hooks.tool-call[12].args[3]"),
        (("hooks", "", 0), 'hooks[""][0]'),
        (("env", "A B", "1x"), 'env["A B"]["1x"]'),
        (("a\n",), '["a\\n"]'),
    ],
)
def test_a_place_is_written_as_people_write_it(where: Path, written: str) -> None:
    """Plain keys follow a dot, indexes stand in brackets, odd keys in brackets and quotes."""
    assert field_name(where) == written


def test_findings_become_diagnostics_in_the_order_of_the_text() -> None:
    """Key or value is pointed at as asked; what has no place comes first; the table gives severities."""
    findings = Findings(CODES)
    findings.say("odd", ("b", 1), "second element", "drop it")
    findings.say("bad", ("b",), "key", at="key")
    findings.say("fine", ("a",), "value")
    findings.say("bad", ("lost",), "nowhere")
    findings.say("odd", ("b", 0), "an element has no key", at="key")
    spots, _ = scan(TEXT, findings.places(), 0)
    told = findings.diagnostics("hooks.json", Lines(TEXT), spots)
    assert [(d.severity, d.code, d.line, d.column, d.field, d.message, d.hint) for d in told] == [
        ("error", "bad", None, None, "lost", "nowhere", None),
        ("info", "fine", 1, 7, "a", "value", None),
        ("error", "bad", 2, 2, "b", "key", None),
        ("warning", "odd", 2, 8, "b[0]", "an element has no key", None),
        ("warning", "odd", 2, 11, "b[1]", "second element", "drop it"),
    ]
    assert {d.path for d in told} == {"hooks.json"}
    assert findings.errors == 2


def test_a_finding_about_the_whole_file_names_no_field() -> None:
    """The root of the document is no field."""
    findings = Findings(CODES)
    findings.say("odd", (), "whole file")
    (told,) = findings.diagnostics("hooks.json", Lines(TEXT), scan(TEXT, findings.places(), 0)[0])
    assert (told.line, told.column, told.field) == (1, 1, None)


def test_too_many_findings_are_counted() -> None:
    """Beyond the limit findings, errors too, are only counted; the last diagnostic says how many."""
    findings = Findings(CODES)
    for _ in range(MAX_DIAGNOSTICS):
        assert not findings.full
        findings.say("fine", ("a",), "again")
    assert findings.full
    findings.say("bad", ("a",), "one more")
    findings.say("odd", ("a",), "and one more")
    told = findings.diagnostics("hooks.json", Lines(TEXT), {})
    assert len(told) == MAX_DIAGNOSTICS + 1
    assert told[-1].code == "more_findings"
    assert told[-1].message.startswith("2 more")
    assert findings.errors == 1


def test_a_code_that_the_dialect_does_not_list_is_a_mistake() -> None:
    """A finding must have a documented code."""
    with pytest.raises(KeyError):
        Findings(CODES).say("undocumented", (), "x")
