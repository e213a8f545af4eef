"""The error tree: its shape, its codes, and texts that stay short whatever a stranger sent."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol import errors
from broker.protocol.errors import (
    BusError,
    DecodeError,
    RequestRefused,
    SchemaError,
    TopicError,
    VersionMismatch,
    shown,
)


def tree(kind: type[BusError] = BusError) -> list[type[BusError]]:
    """``kind`` and every error below it in the module; other rooms may have their own below these."""
    below = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    return [kind, *(each for child in below for each in tree(child))]


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """Every error stands in the module's drawing, at its depth, below its parent, with its builtin base."""
    drawing = errors.__doc__ or ""
    drawn = re.findall(r"^ {4}((?:[│ ]   )*)(?:[├└]── )?(\w+)(?: .*?(?:\((\w+)\))?)?$", drawing, re.MULTILINE)
    parents: dict[int, type[BusError]] = {}
    seen = []
    for indent, name, builtin in drawn:
        kind = getattr(errors, name)
        level = 0 if kind is BusError else len(indent) // 4 + 1
        assert level == 0 or parents[level - 1] in kind.__bases__
        if builtin:
            assert builtin in {base.__name__ for base in kind.__mro__}
        parents[level] = kind
        seen.append(kind)
    assert sorted(seen, key=lambda kind: kind.__name__) == sorted(tree(), key=lambda kind: kind.__name__)


def test_each_error_has_a_code_of_its_own() -> None:
    """Codes are unique, in snake case, and declared by the class itself."""
    codes = [kind.code for kind in tree()]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)
    assert all("code" in vars(kind) for kind in tree())


@pytest.mark.parametrize(
    "kind, builtin",
    [
        ("TopicError", ValueError),
        ("LimitExceeded", ValueError),
        ("SchemaError", ValueError),
        ("DecodeError", ValueError),
        ("BusUnreachable", ConnectionError),
        ("RequestTimeout", TimeoutError),
        ("ClosedError", RuntimeError),
        ("ForkedError", RuntimeError),
        ("RuntimeDirError", OSError),
    ],
)
def test_a_caller_may_catch_the_builtin(kind: str, builtin: type[Exception]) -> None:
    """An error is also what the standard library would have raised in its place."""
    assert issubclass(getattr(errors, kind), builtin)


def test_a_topic_error_carries_text_position_and_hint() -> None:
    """A program can read what was given, where it is wrong and what was meant; the hint ends the text."""
    error = TopicError("bad", text="a..b", position=2, hint="did you mean 'a.b'?")
    assert (str(error), error.text, error.position, error.hint) == (
        "bad; did you mean 'a.b'?",
        "a..b",
        2,
        "did you mean 'a.b'?",
    )
    assert str(TopicError("bad")) == "bad"


def test_each_error_carries_its_detail() -> None:
    """A schema error has its path, a decode error its reason, a refusal the code of the broker."""
    assert SchemaError("x").path == "payload"
    assert SchemaError("x", path="payload.success").path == "payload.success"
    assert DecodeError("key", "x").reason == "key"
    assert RequestRefused("limit_exceeded", "x").remote_code == "limit_exceeded"


def test_a_version_mismatch_names_both_versions() -> None:
    """The text says what came, what is spoken here and what to do."""
    error = VersionMismatch(2, 1)
    assert (error.theirs, error.ours, error.reason) == (2, 1, "version")
    assert str(error) == "protocol version 2 is not 1; use the same prxbus release at both ends"


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.integers(40, 300),
)
def test_a_shown_value_stays_within_its_limit(value: object, limit: int) -> None:
    """Whatever a stranger sent, its text is bounded."""
    assert len(shown(value, limit)) <= limit


def test_a_shown_value_is_its_repr_or_its_kind() -> None:
    """A short value is shown as it is, a long one cut with a mark, a container by kind and size."""
    assert shown("a") == "'a'"
    assert shown("a" * 100, 10) == "'aaaaaa..."
    assert shown([1, [2]]) == "a list of 2"
    assert shown({"a": 1}) == "a dict of 1"


def test_a_deeply_nested_value_is_shown() -> None:
    """A value nested beyond what repr can walk is shown all the same."""
    nested: list[object] = []
    for _ in range(5_000):
        nested = [nested]
    assert shown(nested) == "a list of 1"
