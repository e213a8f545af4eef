"""A role's function: what of its file counts, and which functions are activated by themselves."""

from __future__ import annotations

import pytest

from subscribers.dialects import rolebox_rules as rules
from subscribers.dialects.rolebox_function import automatic, locked, read_function
from subscribers.dialects.rolebox_spec import Role, RoleFunction
from subscribers.hooks.diagnostics import Diagnostic

PATH = "/srv/roles/coder/functions/review.md"


def read(text: str | bytes) -> tuple[RoleFunction | None, tuple[Diagnostic, ...]]:
    """The function ``review`` of such a file, in a world where WHO is me."""
    return read_function(text if isinstance(text, bytes) else text.encode(), PATH, "review", {"WHO": "me"})


def test_every_key_that_matters_is_taken() -> None:
    """Instructions, description, parameters, needs, priority and marks; other keys are passed over."""
    function, said = read(
        "\ufeff---\nname: other\ndescription: reviews\nparams: {focus: correctness, level: 3, none: }\n"
        "requires: [plan]\npriority: 30\nauto_activate: true\nlocked: true\ngate: {all: [x]}\n---\n"
        "\nReview {focus} for {env:WHO}.\n---\nmore\n\n"
    )
    assert said == ()
    assert function == RoleFunction(
        name="review",
        description="reviews",
        text="Review {focus} for me.\n---\nmore",
        params={"focus": "correctness", "level": "3", "none": ""},
        requires=("plan",),
        priority=30,
        marked=True,
        locked=True,
        path=PATH,
    )
    assert len({function, function}) == 1


@pytest.mark.parametrize(
    "text",
    ["Review it.", "---\r\n---\r\nReview it.\r\n", "---\n# x\n---\nReview it.", "---\n~\n---\nReview it."],
)
def test_a_function_needs_no_keys(text: str) -> None:
    """A file may be instructions alone, or have an empty head."""
    assert read(text) == (RoleFunction("review", text="Review it.", path=PATH), ())


def test_keys_without_a_value_have_their_defaults() -> None:
    """Priority 50, no mark, nothing required."""
    function, said = read("---\npriority: ~\nlocked: ~\nrequires: ~\nparams: ~\ndescription: ~\n---\nx")
    assert (function, said) == (RoleFunction("review", text="x", path=PATH), ())


def test_a_function_without_instructions_does_not_count() -> None:
    """A head alone, or an empty file, is said."""
    for text in ("", "---\nname: x\n---\n", "---\nname: x\n---\n  \n"):
        function, (said,) = read(text)
        assert function is None
        assert said.code == "no_instructions"


@pytest.mark.parametrize(
    "head, code, where",
    [
        ("params: [a]", "wrong_type", (2, 9)),
        ("params: {a: {b: c}}", "wrong_type", (2, 13)),
        ("requires: plan", "wrong_type", (2, 11)),
        ("requires: [1]", "wrong_type", (2, 12)),
        ("priority: high", "bad_number", (2, 11)),
        ("locked: 1", "wrong_type", (2, 9)),
        ("- a", "wrong_type", (2, 1)),
        ("x: [", "not_yaml", (3, 1)),
        ("a: 1\na: 2", "duplicate_key", (3, 1)),
    ],
)
def test_a_fault_in_the_head_is_one_diagnostic_and_leaves_the_instructions(
    head: str, code: str, where: tuple[int, int]
) -> None:
    """Lines count from the first line of dashes."""
    function, (said,) = read(f"---\n{head}\n---\nReview it.")
    assert function is not None
    assert function.text == "Review it."
    assert (said.code, said.line, said.column) == (code, *where)
    assert said.severity == rules.CODES[code]


MARKED = RoleFunction("marked", text="x", marked=True)
PLAIN = RoleFunction("plain", text="x", locked=True)


@pytest.mark.parametrize(
    "switch, listed, expected",
    [
        (None, (), ()),
        (None, ("plain", "plan", "plain"), ("plain", "plan")),
        (True, (), ("marked",)),
        (True, ("plain",), ("plain", "marked")),
        (False, ("plain",), ()),
    ],
)
def test_the_list_and_the_marks_say_what_is_activated_by_itself(
    switch: bool | None,
    listed: tuple[str, ...],
    expected: tuple[str, ...],
) -> None:
    """The role's list counts unless the switch is off, marks count where it is on."""
    role = Role("x", builtin_auto_activate=switch, auto_activate=listed)
    assert automatic(role, (MARKED, PLAIN)) == expected


def test_what_is_locked_is_activated_by_itself() -> None:
    """The role locks all of them, a function's own file only that one."""
    role = Role("x", builtin_auto_activate=True, auto_activate=("plain",))
    assert locked(role, (MARKED, PLAIN)) == ("plain",)
    role = Role("x", builtin_auto_activate=True, auto_activate=("plain",), locked=True)
    assert locked(role, (MARKED, PLAIN)) == ("plain", "marked")
    assert locked(Role("x"), (PLAIN,)) == ()
