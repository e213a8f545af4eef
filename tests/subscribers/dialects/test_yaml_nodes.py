"""Bytes to nodes: what a scalar is, where it stands, and what documents, anchors and tags come to."""

from __future__ import annotations

import pytest
import yaml

from subscribers.dialects.yaml_nodes import Node, YamlRefused, read_documents, read_yaml


def kinds(text: str) -> list[str]:
    """What the elements of a list are."""
    root = read_yaml(text.encode(), 8)
    assert root is not None
    return [item.kind for item in root.items()]


def test_plain_scalars_are_what_yaml_1_2_has() -> None:
    """Words like no are strings; numbers, booleans, nothing and dates are what they look like."""
    assert kinds("[a, no, on, 1_000, 0777, 12:30, '1', \"true\"]") == [
        *("string", "string", "string", "string", "number", "string", "string", "string")
    ]
    assert kinds("[1, -2, +3, 0x1F, 0o17, 1.5, .5, 1., 1e3, -.inf, .NaN]") == ["number"] * 11
    assert kinds("[true, False, TRUE, ~, null, 2020-01-02, 2020-01-02T10:00:00Z]") == [
        *("boolean", "boolean", "boolean", "null", "null", "date", "date")
    ]


def test_a_tag_says_what_a_scalar_is() -> None:
    """A standard tag counts, any other is told from all kinds; a lone ! makes a string."""
    assert kinds("[!!str 1, !!int '1', !!bool x, !x 1, ! 1, !!seq [a], !x [a], !!map {a: b}, !x {a: b}]") == [
        *("string", "number", "boolean", "tagged", "string", "list", "tagged", "mapping", "tagged")
    ]


def test_a_node_knows_its_place() -> None:
    """Lines and columns count from 1, columns in characters."""
    root = read_yaml("é: [x]\nb:\n  - ü: *a\n".replace("*a", "1").encode(), 8)
    assert root is not None
    (first, _), (_, second) = root.pairs()
    assert (first.text, first.line, first.column) == ("é", 1, 1)
    (inner,) = second.items()
    assert [(n.line, n.column) for pair in inner.pairs() for n in pair] == [(3, 5), (3, 8)]


def test_an_alias_is_the_same_node_again() -> None:
    """Nothing is copied; a node may hold itself, and an anchor may be set again."""
    root = read_yaml(b"[&a [x], *a, &a y, *a, &b [*b]]", 8)
    assert root is not None
    first, again, second, later, own = root.items()
    assert again is first
    assert later is second
    assert own.items()[0] is own


def test_anchors_end_with_their_document() -> None:
    """An alias of another document's anchor is a mistake with a place."""
    with pytest.raises(YamlRefused) as refused:
        read_documents(b"&a x\n---\n*a\n", 8, 3)
    assert (refused.value.code, refused.value.line, refused.value.column) == ("not_yaml", 3, 1)


def test_documents_are_read_up_to_the_number_that_is_wanted() -> None:
    """What stands behind them is not looked at."""
    text = b"a: 1\n---\nb: 2\n---\n]"
    assert [document.line for document in read_documents(text, 8, 2)] == [1, 3]
    assert read_documents(b"# nothing\n", 8, 2) == []
    assert read_yaml(b"", 8) is None


def test_a_second_document_is_refused_with_its_place() -> None:
    """Who wants one document says why there is no other."""
    with pytest.raises(YamlRefused) as refused:
        read_yaml(b"a: 1\n---\nb: 2\n", 8, "one is enough")
    assert refused.value.message == "a second document begins here: one is enough"
    assert (refused.value.line, refused.value.column) == (3, 1)
    with pytest.raises(YamlRefused, match=r"begins here$"):
        read_yaml(b"a\n---\nb\n", 8)


def test_depth_is_bounded() -> None:
    """As many levels as allowed are read, one more is refused where it begins."""
    assert read_yaml(b"[[x]]", 2) is not None
    with pytest.raises(YamlRefused) as refused:
        read_yaml(b"[[[x]]]", 2)
    assert (refused.value.code, refused.value.line, refused.value.column) == ("too_deep", 1, 3)


def test_the_parser_in_python_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without libyaml, the nodes are the same."""
    text = b"a: &x [1, 'b', {c: ~}]\nd: *x\n"
    fast = read_yaml(text, 8)
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert read_yaml(text, 8) == fast
    assert isinstance(fast, Node)
