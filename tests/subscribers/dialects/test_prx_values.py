"""Single values of an action: accepted as they are, or refused with a code, a place and a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import prx_rules as rules
from subscribers.dialects.findings import Findings
from subscribers.dialects.prx_values import (
    check_inside,
    check_metacharacters,
    is_variable_name,
    kind,
    string,
    timeout_ms,
    typed,
)

WHERE = ("hooks", "error", 0, "field")


@pytest.fixture
def findings() -> Findings:
    """An empty list of findings with the codes of PRX."""
    return Findings(rules.CODES)


def codes(findings: Findings) -> list[str]:
    """What was found, by code."""
    return [finding.code for finding in findings.kept]


@pytest.mark.parametrize(
    "value,name",
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
    ],
)
def test_json_types_have_names(value: object, name: str) -> None:
    """Each type that a JSON document can hold is named as JSON names it."""
    assert kind(value) == name


def test_a_value_of_the_wanted_type_passes(findings: Findings) -> None:
    """Nothing is said about a value that is what it should be."""
    assert typed([1], list, "args", WHERE, findings) == [1]
    assert findings.kept == []


def test_a_value_of_another_type_is_refused(findings: Findings) -> None:
    """The finding names what the field is and what was found."""
    assert typed("x", list, "args", WHERE, findings, "write an array") is None
    (finding,) = findings.kept
    assert (finding.code, finding.where) == ("wrong_type", WHERE)
    assert finding.message == "args is an array, not a string"
    assert finding.hint == "write an array"


@pytest.mark.parametrize(
    "value,code",
    [
        (1, "wrong_type"),
        (None, "wrong_type"),
        (["x"], "wrong_type"),
        ("a\0b", "nul"),
        ("\0", "nul"),
        ("x" * rules.MAX_STRING_BYTES, None),
        ("x" * (rules.MAX_STRING_BYTES + 1), "too_long"),
        ("é" * (rules.MAX_STRING_BYTES // 2 + 1), "too_long"),
        ("", None),
        ("any text; $even | this", None),
    ],
)
def test_a_string_must_be_one_that_a_program_can_be_given(
    value: object, code: str | None, findings: Findings
) -> None:
    """Other types, NUL characters and more bytes than exec takes are refused; all else passes."""
    assert string(value, "an argument", WHERE, findings) == (value if code is None else None)
    assert codes(findings) == ([] if code is None else [code])


def test_a_variable_counts_with_its_name(findings: Findings) -> None:
    """The limit of a variable holds for NAME=value together."""
    value = "x" * (rules.MAX_STRING_BYTES - 2)
    assert string(value, "a variable", WHERE, findings, beside="A=") == value
    assert string(value, "a variable", WHERE, findings, beside="AB=") is None
    assert codes(findings) == ["too_long"]


@pytest.mark.parametrize("value,hint", [(8080, 'write "8080"'), (True, "write a string")])
def test_a_number_for_a_string_gets_its_spelling(value: object, hint: str, findings: Findings) -> None:
    """A number where a string belongs is answered with the string to write."""
    string(value, "a variable", WHERE, findings)
    assert findings.kept[0].hint == hint


@pytest.mark.parametrize(
    "name,code",
    [
        ("A", None),
        ("a b", None),
        ("变量", None),
        ("", "bad_env_name"),
        ("A=B", "bad_env_name"),
        ("A\0", "nul"),
    ],
)
def test_a_variable_has_a_possible_name(name: str, code: str | None, findings: Findings) -> None:
    """An empty name, one with an equals sign and one with NUL are refused, at the key."""
    assert is_variable_name(name, WHERE, findings) == (code is None)
    assert codes(findings) == ([] if code is None else [code])
    assert all(finding.at == "key" for finding in findings.kept)


@pytest.mark.parametrize("character", [*rules.METACHARACTERS, "\x01", "\x0b", "\x1b", "\x7f"])
def test_each_metacharacter_is_refused_wherever_it_stands(character: str, findings: Findings) -> None:
    """Every character of the table and every control character is refused, first, last or between."""
    for command in (f"{character}ls", f"l{character}s", f"ls{character}"):
        check_metacharacters(command, WHERE, findings)
    assert codes(findings) == ["metacharacter"] * 3


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="".join(rules.METACHARACTERS)))
)
def test_everything_else_can_be_in_a_command(command: str) -> None:
    """What the table does not list is nothing to a shell, and passes."""
    findings = Findings(rules.CODES)
    check_metacharacters(command, WHERE, findings)
    assert findings.kept == []


@pytest.mark.parametrize(
    "cwd",
    ["/", "/var/log", "/a/./b", "sub", "./sub", "a/../b", "a/b/../..", ".", "..a", "a../b..", "/..a", "a//b"],
)
def test_a_folder_may_stay_inside(cwd: str, findings: Findings) -> None:
    """Absolute folders without .. pass, and relative ones that never climb above the workspace."""
    check_inside(cwd, WHERE, findings)
    assert findings.kept == []


@pytest.mark.parametrize(
    "cwd",
    ["..", "../x", "a/../../b", "./../x", "a/b/../../..", "../ws", "/..", "/a/../b", "/a/..", "a//../.."],
)
def test_a_folder_may_not_climb_out(cwd: str, findings: Findings) -> None:
    """A relative folder that leaves the workspace, even to come back, and any .. in an absolute one."""
    check_inside(cwd, WHERE, findings)
    assert codes(findings) == ["cwd_escapes"]


@pytest.mark.parametrize("value,number", [(100, 100), (300_000, 300_000), (5_000.0, 5_000)])
def test_a_timeout_is_whole_milliseconds(value: object, number: int, findings: Findings) -> None:
    """A whole number in range passes, however JSON spells it."""
    assert timeout_ms(value, WHERE, findings) == number
    assert findings.kept == []


@pytest.mark.parametrize(
    "value,code",
    [
        (True, "wrong_type"),
        ("5s", "wrong_type"),
        ("5000", "wrong_type"),
        ([5], "wrong_type"),
        (0.5, "wrong_type"),
        (1500.5, "wrong_type"),
        (0, "timeout_range"),
        (-1, "timeout_range"),
        (300_001, "timeout_range"),
        (1e300, "timeout_range"),
        (10**30, "timeout_range"),
    ],
)
def test_a_timeout_of_another_kind_is_refused(value: object, code: str, findings: Findings) -> None:
    """Other types, fractions and numbers out of range are refused with the limits in the hint."""
    assert timeout_ms(value, WHERE, findings) is None
    (finding,) = findings.kept
    assert finding.code == code
    assert "1 to 300000" in str(finding.hint)


@pytest.mark.parametrize("value", [1, 5, 30, 99])
def test_a_timeout_that_looks_like_seconds_is_accepted_and_remarked_upon(
    value: int, findings: Findings
) -> None:
    """A very small timeout counts as written, and the hint says what seconds would be."""
    assert timeout_ms(value, WHERE, findings) == value
    (finding,) = findings.kept
    assert (finding.severity, finding.code) == ("warning", "small_timeout")
    assert finding.hint == f"write {value * 1_000} for {value} seconds"


def test_a_fault_of_the_file_is_a_warning(findings: Findings) -> None:
    """A wrong file-wide timeout stops nothing, and the message says what counts instead."""
    assert timeout_ms("x", WHERE, findings, otherwise="; 30000 counts") is None
    (finding,) = findings.kept
    assert (finding.severity, finding.code) == ("warning", "wrong_file_timeout")
    assert finding.message.endswith("not a string; 30000 counts")
