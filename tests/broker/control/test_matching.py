"""The tree of patterns, against the patterns themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.control.bounds import MATCHES_CACHED
from broker.control.matching import Interests
from broker.protocol.topics import Pattern

SEGMENTS = st.sampled_from(["a", "b", "c"])
TOPICS = st.lists(SEGMENTS, min_size=1, max_size=4).map(".".join)
PATTERNS = st.lists(st.one_of(SEGMENTS, st.just("*")), min_size=1, max_size=4).map(".".join)
PEERS = st.sampled_from([b"1", b"2", b"3"])


@given(
    st.lists(st.tuples(PEERS, st.lists(PATTERNS, unique=True, max_size=5)), max_size=8),
    st.lists(PEERS, max_size=2),
    TOPICS,
)
def test_the_tree_answers_as_the_patterns_do(
    puts: list[tuple[bytes, list[str]]], drops: list[bytes], topic: str
) -> None:
    """Whatever came and went, a topic finds exactly the peers of which some pattern matches it."""
    interests = Interests()
    model: dict[bytes, list[str]] = {}
    for peer, patterns in puts:
        interests.put(peer, patterns)
        model[peer] = patterns
    for peer in drops:
        interests.drop(peer)
        model.pop(peer, None)
    wanted = {peer for peer, patterns in model.items() if any(Pattern(p).matches(topic) for p in patterns)}
    assert interests.of(topic) == wanted
    assert interests.count(topic) == interests.count(topic) == len(wanted)
    assert interests.held == sum(map(len, model.values()))


@given(st.dictionaries(PEERS, st.lists(PATTERNS, unique=True, max_size=5)))
def test_nothing_is_left_when_all_have_gone(model: dict[bytes, list[str]]) -> None:
    """When every peer has left, the tree is as empty as at the start."""
    interests = Interests()
    for peer, patterns in model.items():
        interests.put(peer, patterns)
    for peer in model:
        interests.drop(peer)
    assert interests.held == 0
    assert not interests._root


def test_a_new_pattern_is_counted_at_once() -> None:
    """A count that was remembered does not outlive the patterns that it was made from."""
    interests = Interests()
    assert interests.count("a.b") == 0
    interests.put(b"1", ["a.*"])
    assert interests.count("a.b") == 1
    interests.drop(b"1")
    assert interests.count("a.b") == 0


def test_remembered_counts_are_bounded() -> None:
    """However many topics are asked for, only so many counts are remembered."""
    interests = Interests()
    interests.put(b"1", ["*"])
    for number in range(MATCHES_CACHED + 10):
        assert interests.count(f"t{number}") == 1
    assert len(interests._counts) <= MATCHES_CACHED
