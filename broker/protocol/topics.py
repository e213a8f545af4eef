"""Topics, patterns, and the byte prefixes that make libzmq match them.

A topic is 1..16 segments joined by '.', each 1..64 of ``A-Z a-z 0-9 _ -``, at most 255 bytes.
A pattern is a topic in which '*' may stand for a whole segment: in the middle it matches
exactly one, at the end one or more; '*' alone matches every topic. Everything else is refused,
with the position and the form that was probably meant.

This module decides what a name may be and what matches; it knows no event and no socket.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .errors import LimitExceeded, TopicError
from .limits import DEPTHS, PATTERNS, SEGMENT_CHARACTERS, TOPIC_BYTES, TOPIC_SEGMENTS

LIFECYCLE: Final = "prx.lifecycle."
"""Prefix of the canonical lifecycle topics."""

DEPTH_BYTES: Final = tuple(b"%d" % depth for depth in range(DEPTHS))
"""First byte of a frame for each depth."""

BATCH_MARK: Final = b"~"
"""A key whose topic part begins so is a channel of batches, not a topic."""

BEACON_PREFIX: Final = b"$beacon."
INBOX_PREFIX: Final = b"$inbox."
CANARY_KEY: Final = b"0$canary\0"
WELCOME: Final = b"$welcome"
"""What a subscriber is sent at each (re)connect, followed by the broker's epoch."""

_SEGMENT = rf"[A-Za-z0-9_-]{{1,{SEGMENT_CHARACTERS}}}"
_TOPIC = re.compile(rf"{_SEGMENT}(?:\.{_SEGMENT}){{0,{TOPIC_SEGMENTS - 1}}}", re.ASCII)
_SEGMENT_OR_STAR = rf"(?:{_SEGMENT}|\*)"
_PATTERN = re.compile(rf"{_SEGMENT_OR_STAR}(?:\.{_SEGMENT_OR_STAR}){{0,{TOPIC_SEGMENTS - 1}}}", re.ASCII)
_ALLOWED = re.compile(r"[A-Za-z0-9_.-]", re.ASCII)


def is_topic(text: str) -> bool:
    """Whether ``text`` is a topic."""
    return len(text) <= TOPIC_BYTES and _TOPIC.fullmatch(text) is not None


def check_topic(text: object) -> str:
    """Return ``text`` if it is a topic; raises :class:`TopicError` with position and hint otherwise."""
    if isinstance(text, str) and is_topic(text):
        return text
    raise _refusal(text, "topic", stars=False)


def namespace(topic: str) -> str:
    """The first two segments of ``topic``, or its only one: the channel that its batches use."""
    return ".".join(topic.split(".", 2)[:2])


class Pattern:
    """What a subscriber asks for, checked once and compiled.

    ``text`` is the pattern as given. ``prefix`` is the byte prefix (without depth) that covers
    it in libzmq. ``exact`` says whether that prefix alone decides, so that nobody checks again.
    Raises :class:`TopicError` when the text is not a pattern.
    """

    __slots__ = ("_expression", "exact", "prefix", "text")

    def __init__(self, text: object) -> None:
        if not isinstance(text, str) or len(text) > TOPIC_BYTES or not _PATTERN.fullmatch(text):
            raise _refusal(text, "pattern", stars=True)
        self.text = text
        literal, star, _ = text.partition("*")
        self.prefix = literal.encode() + (b"" if star else b"\0")
        self.exact = star == "" or text == "*" or (text.endswith(".*") and text.count("*") == 1)
        self._expression: re.Pattern[str] | None = None

    def matches(self, topic: str) -> bool:
        """Whether ``topic`` (already checked) is one that this pattern asks for."""
        if self.exact:
            return topic == self.text if self.text[-1] != "*" else topic.startswith(self.text[:-1])
        if self._expression is None:  # compiled at first use: a subscriber may have a thousand patterns
            middle = re.escape(self.text).replace(r"\*", r"[^.]+")
            last_star = self.text[-1] == "*"
            self._expression = re.compile(middle.removesuffix("[^.]+") + ".+" if last_star else middle)
        return self._expression.fullmatch(topic) is not None

    @property
    def channel(self) -> bytes:
        """The byte prefix (without depth and mark) of the namespaces in which it can match."""
        first, *rest = self.text.split(".", 2)
        if first == "*":
            return b""
        if not rest:
            return first.encode() + b"\0"
        if rest[0] == "*":
            return first.encode() + b"."
        return f"{first}.{rest[0]}".encode() + b"\0"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


def parse_patterns(texts: Iterable[str]) -> tuple[Pattern, ...]:
    """Check and compile ``texts``, each once, in order.

    Raises :class:`TopicError` for a refused or a missing pattern and :class:`LimitExceeded`
    beyond 1,000 of them.
    """
    if isinstance(texts, str):
        texts = (texts,)
    patterns = tuple(dict.fromkeys(Pattern(text) for text in texts))
    if not patterns:
        raise TopicError("a subscriber needs at least one pattern", hint="'*' asks for every topic")
    if len(patterns) > PATTERNS:
        raise LimitExceeded(
            f"{len(patterns):,} patterns are more than the {PATTERNS:,} that one subscriber may hold; "
            "use wider patterns or several subscribers"
        )
    return patterns


def subscriptions(patterns: Iterable[Pattern]) -> list[bytes]:
    """Every byte prefix that a subscriber of ``patterns`` gives to its socket.

    Per pattern one for each depth; per namespace prefix one for each depth's batches and one
    for beacons; and the welcome.
    """
    prefixes = dict.fromkeys(pattern.prefix for pattern in patterns)
    channels = dict.fromkeys(pattern.channel for pattern in patterns)
    wanted = [depth + prefix for prefix in prefixes for depth in DEPTH_BYTES]
    wanted += [depth + BATCH_MARK + channel for channel in channels for depth in DEPTH_BYTES]
    wanted += [DEPTH_BYTES[0] + BEACON_PREFIX + channel for channel in channels]
    wanted.append(WELCOME)
    return wanted


def _refusal(text: object, what: str, *, stars: bool) -> TopicError:
    if not isinstance(text, str):
        return TopicError(f"a {what} is a string, not {type(text).__name__}")
    if not text:
        return TopicError(
            f"an empty {what}", text=text, hint="'*' subscribes to every topic" if stars else None
        )
    message, position = _fault(text, stars=stars)
    return TopicError(
        f"{what} {text[:300]!r}: {message} (position {position})",
        text=text,
        position=position,
        hint=_meant(text, stars=stars),
    )


def _fault(text: str, *, stars: bool) -> tuple[str, int]:
    position = 0
    for index, segment in enumerate(text.split(".")):
        if index == TOPIC_SEGMENTS:
            return f"more than {TOPIC_SEGMENTS} segments", position
        if not segment:
            return "an empty segment", position
        if segment != "*" or not stars:
            for offset, character in enumerate(segment):
                if character == "*":
                    reason = (
                        "'*' stands for a whole segment" if stars else "'*' is for patterns, not for topics"
                    )
                    return reason, position + offset
                if not _ALLOWED.match(character):
                    return f"{character!r} is not one of A-Z a-z 0-9 _ - and '.'", position + offset
            if len(segment) > SEGMENT_CHARACTERS:
                return f"a segment longer than {SEGMENT_CHARACTERS} characters", position + SEGMENT_CHARACTERS
        position += len(segment) + 1
    return f"longer than {TOPIC_BYTES} bytes", TOPIC_BYTES


def _meant(text: str, *, stars: bool) -> str | None:
    """The nearest name that the grammar takes, as a hint; None where a guess would be noise."""
    if re.search(r"[\[{]", text):
        return "alternatives are separate patterns" if stars else None
    segments = []
    for segment in re.split(r"[.:/]", text):
        if stars and (set(segment) & set("*?") or segment in (">", "#", "+")):
            segments.append("*")
        else:
            cleaned = re.sub(r"[^A-Za-z0-9_-]+", "_", segment.replace("*", "")).strip("_")
            segments.append(cleaned[:SEGMENT_CHARACTERS])
    guess = ".".join(filter(None, segments[:TOPIC_SEGMENTS]))
    grammar = _PATTERN if stars else _TOPIC
    if guess == text or len(guess) > TOPIC_BYTES or not grammar.fullmatch(guess):
        return None
    return f"did you mean {guess!r}?"
