"""What a handler of a Python module did to its input."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.runtimes.python_module_edit import EditRefused, before, edit_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
ARGS = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)


def edited(handler: str, given: dict[str, Any], change: Any = None, returned: Any = None) -> Any:
    """The edit after ``change`` has been at the input."""
    was = before(handler, given)
    assert was is not None
    if change is not None:
        change(given)
    edit = edit_of(handler, given, was, returned)
    return None if edit is None else orjson.loads(edit)


@given(ARGS, ARGS)
def test_an_edit_is_what_is_there_afterwards_and_nothing_if_that_is_the_same(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    """However it came about: in place, put there anew, or returned; the order of members is no edit."""
    old, new = orjson.loads(orjson.dumps(old)), orjson.loads(orjson.dumps(new))
    same = orjson.dumps(old, option=orjson.OPT_SORT_KEYS) == orjson.dumps(new, option=orjson.OPT_SORT_KEYS)
    wanted = None if same else new

    def in_place(given: dict[str, Any]) -> None:
        given["args"].clear()
        given["args"].update(reversed([*new.items()]))

    def anew(given: dict[str, Any]) -> None:
        given["args"] = new

    assert edited("onToolBefore", {"args": dict(old)}, in_place) == wanted
    assert edited("onToolBefore", {"args": old}, anew) == wanted
    assert edited("onToolBefore", {"args": old}, returned={"args": new}) == wanted
    assert edited("onToolBefore", {"args": old}, returned=new if "args" not in new else None) is None


@pytest.mark.parametrize(
    "change,returned,wanted",
    [
        (lambda given: given["system"].append("b"), None, ["a", "b"]),
        (lambda given: given.update(system=("b",)), None, ["b"]),
        (None, ["b"], ["b"]),
        (None, {"system": []}, []),
        (None, ("b",), None),
        (None, "b", None),
        (None, ["a"], None),
    ],
)
def test_a_system_prompt_is_edited_in_place_or_returned(change: Any, returned: Any, wanted: Any) -> None:
    """A list is a new prompt; what is neither a list nor an object with one means nothing."""
    assert edited("onSystemTransform", {"system": ["a"]}, change, returned) == wanted


@pytest.mark.parametrize("pair", [(1, True), (1, 1.0), (0, False), (None, False)])
def test_what_python_takes_for_equal_may_be_an_edit(pair: tuple[Any, Any]) -> None:
    """JSON tells them apart."""
    old, new = pair
    assert edited("onToolBefore", {"args": {"x": old}}, returned={"args": {"x": new}}) == {"x": new}


@pytest.mark.parametrize(
    "handler,returned,reason",
    [
        ("onToolBefore", {"args": [1]}, r"its args are a list of 1; they have to be an object"),
        (
            "onToolBefore",
            {"args": {"x": {1, 2}}},
            "its args cannot be JSON: Type is not JSON serializable: set",
        ),
        ("onToolBefore", {"args": {1: 2}}, "its args cannot be JSON: Dict key must be str"),
        ("onSystemTransform", [1], r"its system is a list of 1; it has to be a list of texts"),
        ("onSystemTransform", {"system": "x"}, "its system is 'x'; it has to be a list of texts"),
    ],
)
def test_what_cannot_be_an_edit_is_refused(handler: str, returned: Any, reason: str) -> None:
    """With what it is and what it has to be."""
    with pytest.raises(EditRefused, match=reason):
        edited(handler, {"args": {}, "system": []}, returned=returned)


def test_other_handlers_edit_nothing() -> None:
    """There is nothing to compare."""
    assert before("onToolAfter", {"args": {}}) is None
