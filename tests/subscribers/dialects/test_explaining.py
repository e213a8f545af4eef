"""Which remark belongs to which handler."""

from __future__ import annotations

from subscribers.dialects.explaining import by_place
from subscribers.hooks.diagnostics import Diagnostic


def said(field: str | None) -> Diagnostic:
    """A remark about a place."""
    return Diagnostic("error", "x", "hooks.json", None, None, field, "wrong", None)


def test_a_remark_goes_to_the_innermost_place() -> None:
    """The place itself, or the longest one around it, gets a remark."""
    places = ["hooks.error", "hooks.error[0]", "hooks.error[1]"]
    remarks = [said("hooks.error"), said("hooks.error[0]"), said("hooks.error[1].env.A")]
    found, others = by_place(remarks, places)
    assert [found[place] for place in places] == [[remark] for remark in remarks]
    assert others == ()


def test_a_place_is_not_the_beginning_of_another_name() -> None:
    """A place whose name only begins like another one's does not get that one's remarks."""
    remark = said("hooks.errors[1]")
    found, others = by_place([remark], ["hooks.error", "hooks.errors[10]"])
    assert found == {"hooks.error": [], "hooks.errors[10]": []}
    assert others == (remark,)


def test_a_remark_on_the_whole_belongs_to_nobody() -> None:
    """A remark without a place, or with one that nobody has, is among the others."""
    remarks = (said(None), said("timeout_ms"))
    assert by_place(remarks, ["hooks.error"]) == ({"hooks.error": []}, remarks)
