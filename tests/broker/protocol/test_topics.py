"""Topics and patterns: the shared vectors, the refusals, and the laws that tie matching to prefixes."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.protocol.errors import LimitExceeded, TopicError
from broker.protocol.limits import DEPTHS, PATTERNS, SEGMENT_CHARACTERS, TOPIC_BYTES, TOPIC_SEGMENTS
from broker.protocol.topics import (
    BATCH_MARK,
    BEACON_PREFIX,
    DEPTH_BYTES,
    WELCOME,
    Pattern,
    check_topic,
    is_topic,
    namespace,
    parse_patterns,
    subscriptions,
)

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors" / "topics.json").read_text())

segments = st.text("ab", min_size=1, max_size=2)
topics = st.lists(segments, min_size=1, max_size=5).map(".".join)
"""Topics over a tiny alphabet, so that patterns often match them."""

patterns = st.lists(segments | st.just("*"), min_size=1, max_size=5).map(".".join).map(Pattern)


@st.composite
def matching_pairs(draw: st.DrawFn) -> tuple[Pattern, str]:
    """A topic, and a pattern made from it by starring segments and perhaps cutting the end."""
    topic = draw(topics)
    parts = [draw(st.sampled_from((segment, "*"))) for segment in topic.split(".")]
    if draw(st.booleans()):
        parts = [*parts[: draw(st.integers(0, len(parts) - 1))], "*"]
    return Pattern(".".join(parts)), topic


any_topics = st.from_regex(r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,15}", fullmatch=True).filter(
    lambda text: len(text) <= TOPIC_BYTES
)


@pytest.mark.parametrize("text", VECTORS["valid_topics"])
def test_a_valid_topic_is_taken(text: str) -> None:
    """Each valid vector is a topic, and a pattern of itself."""
    assert is_topic(text)
    assert check_topic(text) == text
    assert Pattern(text).matches(text)


@pytest.mark.parametrize("text", VECTORS["invalid_topics"])
def test_an_invalid_topic_is_refused(text: str) -> None:
    """Each invalid vector is refused with a position inside or just behind it."""
    assert not is_topic(text)
    with pytest.raises(TopicError) as caught:
        check_topic(text)
    assert caught.value.text == text
    assert 0 <= caught.value.position <= len(text)


@pytest.mark.parametrize("text", VECTORS["invalid_patterns"])
def test_an_invalid_pattern_is_refused_with_what_was_meant(text: str) -> None:
    """Each invalid vector is refused, and the error says what to write instead."""
    with pytest.raises(TopicError) as caught:
        Pattern(text)
    assert caught.value.text == text
    assert caught.value.hint is not None
    assert str(caught.value).endswith(caught.value.hint)


@pytest.mark.parametrize("pattern, topic, expected", VECTORS["matches"])
def test_a_pattern_matches_as_the_vectors_say(pattern: str, topic: str, expected: bool) -> None:
    """Each vector of pattern and topic gives its answer."""
    assert Pattern(pattern).matches(topic) is expected


@pytest.mark.parametrize("depth, delivered", VECTORS["depth"])
def test_a_depth_has_a_byte_exactly_when_it_is_delivered(depth: int, delivered: bool) -> None:
    """There is a first byte for the depths that are delivered and for no other."""
    assert (b"%d" % depth in DEPTH_BYTES) is delivered
    assert (depth < DEPTHS) is delivered


@pytest.mark.parametrize(
    "text, position, reason, hint",
    [
        ("", 0, "an empty topic", None),
        (".", 0, "an empty segment", None),
        ("prx.", 4, "an empty segment", "did you mean 'prx'?"),
        (".prx", 0, "an empty segment", "did you mean 'prx'?"),
        ("prx..x", 4, "an empty segment", "did you mean 'prx.x'?"),
        ("prx.*", 4, "'*' is for patterns, not for topics", "did you mean 'prx'?"),
        ("*", 0, "'*' is for patterns, not for topics", None),
        ("prx lifecycle", 3, "' ' is not one of", "did you mean 'prx_lifecycle'?"),
        ("prx/lifecycle", 3, "'/' is not one of", "did you mean 'prx.lifecycle'?"),
        ("agent:start", 5, "':' is not one of", "did you mean 'agent.start'?"),
        ("prx.lifé", 7, "'é' is not one of", "did you mean 'prx.lif'?"),
        ("prx.\0x", 4, r"'\x00' is not one of", "did you mean 'prx.x'?"),
        ("prx\n", 3, r"'\n' is not one of", "did you mean 'prx'?"),
        ("prx.\ud800", 4, r"'\ud800' is not one of", "did you mean 'prx'?"),
        ("prx.[ab]", 4, "'[' is not one of", None),
        (
            ".".join("abcdefghijklmnopq"),
            32,
            "more than 16 segments",
            f"did you mean '{'.'.join('abcdefghijklmnop')}'?",
        ),
        ("prx." + "x" * 65, 68, "a segment longer than 64 characters", f"did you mean 'prx.{'x' * 64}'?"),
        (".".join(["x" * 64] * 4), 255, "longer than 255 bytes", None),
    ],
)
def test_a_topic_is_refused_with_position_and_hint(
    text: str, position: int, reason: str, hint: str | None
) -> None:
    """The error names the first character at fault, the rule, and the form that was probably meant."""
    with pytest.raises(TopicError, match=re.escape(reason)) as caught:
        check_topic(text)
    assert (caught.value.position, caught.value.hint) == (position, hint)


@pytest.mark.parametrize(
    "text, position, reason, hint",
    [
        ("", 0, "an empty pattern", "'*' subscribes to every topic"),
        ("prx.life*", 8, "'*' stands for a whole segment", "did you mean 'prx.*'?"),
        ("*cycle", 0, "'*' stands for a whole segment", "did you mean '*'?"),
        ("prx..*", 4, "an empty segment", "did you mean 'prx.*'?"),
        ("**", 0, "'*' stands for a whole segment", "did you mean '*'?"),
        ("prx.**", 4, "'*' stands for a whole segment", "did you mean 'prx.*'?"),
        ("prx.>", 4, "'>' is not one of", "did you mean 'prx.*'?"),
        ("prx.#", 4, "'#' is not one of", "did you mean 'prx.*'?"),
        ("+", 0, "'+' is not one of", "did you mean '*'?"),
        ("prx.*.", 6, "an empty segment", "did you mean 'prx.*'?"),
        ("*.", 2, "an empty segment", "did you mean '*'?"),
        ("prx.?", 4, "'?' is not one of", "did you mean 'prx.*'?"),
        ("prx.[ab]", 4, "'[' is not one of", "alternatives are separate patterns"),
        ("{a,b}", 0, "'{' is not one of", "alternatives are separate patterns"),
        ("agent:*", 5, "':' is not one of", "did you mean 'agent.*'?"),
        ("!", 0, "'!' is not one of", None),
        (".".join(["*"] * 17), 32, "more than 16 segments", f"did you mean '{'.'.join(['*'] * 16)}'?"),
        ("x" * 65 + ".*", 64, "a segment longer than 64 characters", f"did you mean '{'x' * 64}.*'?"),
        (".".join(["x" * 64] * 4), 255, "longer than 255 bytes", None),
    ],
)
def test_a_pattern_is_refused_with_position_and_hint(
    text: str, position: int, reason: str, hint: str | None
) -> None:
    """The error names the first character at fault, the rule, and the form that was probably meant."""
    with pytest.raises(TopicError, match=re.escape(reason)) as caught:
        Pattern(text)
    assert (caught.value.position, caught.value.hint) == (position, hint)


@pytest.mark.parametrize("value", [None, 3, b"prx", ["prx"]])
def test_a_name_that_is_not_a_string_is_refused(value: object) -> None:
    """The error says which type came."""
    with pytest.raises(TopicError, match=f"a topic is a string, not {type(value).__name__}"):
        check_topic(value)
    with pytest.raises(TopicError, match=f"a pattern is a string, not {type(value).__name__}"):
        Pattern(value)


@given(st.text() | st.text("ab.*:/?[ ", max_size=12))
@example("a" * 10_000)
@example("." * 10_000)
@example("*" * 300)
def test_any_text_is_a_name_or_refused(text: str) -> None:
    """No text raises anything but the documented error, its message stays short, and its hint is taken."""
    parsers: list[Callable[[object], object]] = [check_topic, Pattern]
    for parse in parsers:
        try:
            parse(text)
        except TopicError as error:
            assert 0 <= error.position <= len(text)
            assert len(str(error)) < 4_000
            meant = re.fullmatch(r"did you mean '(.+)'\?", error.hint or "")
            if meant:
                parse(meant[1])
        else:
            assert 0 < len(text) <= TOPIC_BYTES


@given(any_topics)
def test_the_grammar_takes_what_it_says(topic: str) -> None:
    """Segments of allowed characters within the limits are a topic and a pattern that matches only itself."""
    assert is_topic(topic)
    assert topic.count(".") < TOPIC_SEGMENTS
    assert max(map(len, topic.split("."))) <= SEGMENT_CHARACTERS
    pattern = Pattern(topic)
    assert pattern.exact
    assert pattern.prefix == topic.encode() + b"\0"
    assert pattern.matches(topic)
    assert Pattern("*").matches(topic)


def matches(pattern: str, topic: str) -> bool:
    """The rule, written a second time: segment by segment, without an expression."""
    wanted, given_ = pattern.split("."), topic.split(".")
    if wanted[-1] == "*":
        if len(given_) < len(wanted):
            return False
        given_ = given_[: len(wanted)]
    return len(wanted) == len(given_) and all(w in ("*", g) for w, g in zip(wanted, given_, strict=True))


@given(patterns, topics)
def test_matching_is_segment_by_segment(pattern: Pattern, topic: str) -> None:
    """The compiled pattern agrees with a plain comparison of segments."""
    assert pattern.matches(topic) is matches(pattern.text, topic)


@given(matching_pairs())
def test_a_match_reaches_its_subscriber(pair: tuple[Pattern, str]) -> None:
    """A topic that a pattern matches begins with its prefix, and its namespace with its channel."""
    pattern, topic = pair
    assert pattern.matches(topic)
    assert (topic.encode() + b"\0").startswith(pattern.prefix)
    assert (namespace(topic).encode() + b"\0").startswith(pattern.channel)


@given(patterns, topics)
def test_an_exact_prefix_decides_alone(pattern: Pattern, topic: str) -> None:
    """Whatever matches has the prefix; where the pattern is exact, whatever has the prefix matches."""
    reaches = (topic.encode() + b"\0").startswith(pattern.prefix)
    assert reaches >= pattern.matches(topic)
    if pattern.exact:
        assert reaches == pattern.matches(topic)


@pytest.mark.parametrize(
    "text, prefix, exact, channel",
    [
        ("*", b"", True, b""),
        ("prx", b"prx\0", True, b"prx\0"),
        ("prx.*", b"prx.", True, b"prx."),
        ("prx.lifecycle.error", b"prx.lifecycle.error\0", True, b"prx.lifecycle\0"),
        ("prx.lifecycle", b"prx.lifecycle\0", True, b"prx.lifecycle\0"),
        ("prx.lifecycle.*", b"prx.lifecycle.", True, b"prx.lifecycle\0"),
        ("prx.*.error", b"prx.", False, b"prx."),
        ("prx.*.*", b"prx.", False, b"prx."),
        ("*.error", b"", False, b""),
        ("*.*", b"", False, b""),
    ],
)
def test_a_pattern_compiles_to_prefix_and_channel(
    text: str, prefix: bytes, exact: bool, channel: bytes
) -> None:
    """The byte prefixes of each form of pattern are the documented ones."""
    pattern = Pattern(text)
    assert (pattern.prefix, pattern.exact, pattern.channel) == (prefix, exact, channel)


@pytest.mark.parametrize(
    "topic, expected",
    [("prx", "prx"), ("prx.lifecycle", "prx.lifecycle"), ("prx.lifecycle.tool.x", "prx.lifecycle")],
)
def test_a_namespace_is_the_first_two_segments(topic: str, expected: str) -> None:
    """The channel of a topic's batches is its first two segments, or its only one."""
    assert namespace(topic) == expected


def test_patterns_compare_by_text() -> None:
    """Two patterns of the same text are one; a pattern is never equal to its text."""
    assert Pattern("a.*") == Pattern("a.*")
    assert Pattern("a.*") != Pattern("a.b")
    assert Pattern("a.*") != "a.*"
    assert len({Pattern("a.*"), Pattern("a.*")}) == 1
    assert repr(Pattern("a.*")) == "Pattern('a.*')"


def test_patterns_are_kept_once_and_in_order() -> None:
    """A list of patterns is checked as a whole; a repeated one counts once; a lone string is one pattern."""
    assert parse_patterns(["b", "a.*", "b"]) == (Pattern("b"), Pattern("a.*"))
    assert parse_patterns("a.*") == (Pattern("a.*"),)
    with pytest.raises(TopicError, match="did you mean 'a'"):
        parse_patterns(["b", "a."])


def test_a_subscriber_holds_between_one_and_the_limit() -> None:
    """No pattern and one too many are refused with what to do."""
    with pytest.raises(TopicError, match=r"'\*' asks for every topic"):
        parse_patterns([])
    most = [f"t{number}" for number in range(PATTERNS)]
    assert len(parse_patterns(most)) == PATTERNS
    with pytest.raises(LimitExceeded, match="1,001 patterns are more than the 1,000"):
        parse_patterns([*most, "one-more"])


@given(st.lists(patterns, min_size=1, max_size=5))
def test_a_subscriber_gives_each_prefix_once(wanted: list[Pattern]) -> None:
    """Eight prefixes a pattern, eight and one a channel, and the welcome: nothing twice, nothing else."""
    prefixes = {pattern.prefix for pattern in wanted}
    channels = {pattern.channel for pattern in wanted}
    given_ = subscriptions(wanted)
    assert len(given_) == len(set(given_)) == DEPTHS * len(prefixes) + (DEPTHS + 1) * len(channels) + 1
    assert set(given_) == (
        {depth + prefix for depth in DEPTH_BYTES for prefix in prefixes}
        | {depth + BATCH_MARK + channel for depth in DEPTH_BYTES for channel in channels}
        | {b"0" + BEACON_PREFIX + channel for channel in channels}
        | {WELCOME}
    )


def test_a_pattern_may_be_asked_more_than_once() -> None:
    """The answer is the same at each time, also where it takes more than a comparison."""
    pattern = Pattern("prx.*.error")
    assert [pattern.matches(topic) for topic in ("prx.a.error", "prx.a.b", "prx.b.error")] == [
        True,
        False,
        True,
    ]
