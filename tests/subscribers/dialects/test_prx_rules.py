"""The tables of the PRX dialect agree with each other and with the catalogue."""

from typing import get_args

from broker.protocol.catalogue import EVENTS
from broker.protocol.projections import DIALECT_EVENTS
from subscribers.dialects import prx_rules as rules
from subscribers.hooks.diagnostics import Severity


def test_the_events_of_the_page_are_those_of_the_catalogue() -> None:
    """The eight events of the page are canonical events under their own names."""
    assert len(rules.PAGE_EVENTS) == 8
    assert dict(DIALECT_EVENTS["prx"]) == {name: name for name in rules.PAGE_EVENTS}
    assert set(rules.PAGE_EVENTS) <= set(EVENTS)


def test_the_metacharacters_of_the_page_are_in_the_table() -> None:
    """Every character that the page names is refused; the table holds single characters with a meaning."""
    assert set(";|&`$()") <= rules.METACHARACTERS.keys()
    assert all(len(character) == 1 and meaning for character, meaning in rules.METACHARACTERS.items())


def test_no_part_of_an_ordinary_path_is_a_metacharacter() -> None:
    """Paths with blanks, dots, dashes and letters of any script can be commands."""
    assert not set("/opt/my hooks/审计-v1.2_x@host+y,z%=:") & rules.METACHARACTERS.keys()


def test_the_documented_defaults_are_those_of_the_page() -> None:
    """30,000 ms, no stdin, workspace as folder, nothing else."""
    defaults = {field.name: field.default for field in rules.FIELDS}
    assert defaults["timeout_ms"] == "30000"
    assert defaults["stdin_json"] == "false"
    assert defaults["cwd"] == "the workspace"
    assert (defaults["args"], defaults["env"], defaults["command"]) == ("[]", "{}", "required")


def test_every_code_has_a_severity() -> None:
    """The table of codes uses the severities that a diagnostic can have."""
    assert set(rules.CODES.values()) <= set(get_args(Severity))
