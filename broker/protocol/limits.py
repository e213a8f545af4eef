"""Every bound of the bus, once, with its unit and its reason.

Socket options, decoders, documents and the status report all read these; nothing else
states a number. This module knows no socket and enforces nothing by itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

PAYLOAD_BYTES: Final = 65_536
"""Bytes of JSON in one event, inclusive, the payload alone (the PRX page's 64 KB)."""

HEADER_BYTES: Final = 2_048
"""Room for everything in an event's frame that is not payload: key, ids, names."""

FRAME_BYTES: Final = PAYLOAD_BYTES + HEADER_BYTES
"""Largest frame that the broker's ingress admits; a larger one ends the sender's connection."""

SUBSCRIPTION_BYTES: Final = 1_024
"""Largest frame that the broker's egress admits: only subscriptions come in there."""

CONTROL_BYTES: Final = 1_048_576
"""Largest frame that the broker's control socket admits."""

TOPIC_BYTES: Final = 255
TOPIC_SEGMENTS: Final = 16
SEGMENT_CHARACTERS: Final = 64

SESSION_ID_BYTES: Final = 256
SOURCE_BYTES: Final = 128
CAUSE_BYTES: Final = 320
"""An event id: 32 hex digits, a topic and a number with their separators."""

DEPTHS: Final = 8
"""Depths 0..7 are delivered; an event of depth 8 or more is dropped and counted."""

PATTERNS: Final = 1_000
"""Patterns of one subscriber: libzmq walks all subscriptions whenever any peer leaves."""

NAME_BYTES: Final = 128
"""A peer's name, as status shows it."""

CLAIM_BYTES: Final = 67_108_864
"""Largest payload that travels by claim check (64 MiB)."""

CLAIM_HEAD_BYTES: Final = 256
"""First bytes of a claimed payload that travel in its envelope."""

SPOOL_BYTES: Final = 536_870_912
"""Bytes of claimed payloads that the spool holds (512 MiB, configurable)."""

CLAIM_SECONDS: Final = 600.0
"""Seconds that a claimed payload can be loaded (configurable)."""

BEACON_TOPICS: Final = 200
"""Topics in one beacon frame: 200 of the longest fit below FRAME_BYTES."""

BATCH_EVENTS: Final = 4_096
"""Events that a decoder accepts in one batch frame."""

BATCH_TOPICS: Final = 32
"""Topics that our own publishers put in the table of a batch: 8 KiB of the longest."""

PUBLISHER_TOPICS: Final = 4_096
"""Topics that one publisher id counts; then it takes a new id and starts again."""

SUBSCRIBER_STREAMS: Final = 65_536
"""Pairs of publisher and topic that one subscriber keeps numbers for."""

STREAM_IDLE_SECONDS: Final = 3_600.0
"""A pair not heard of for so long is forgotten; its publisher's next beacon starts it again."""

PUBLISHER_HWM: Final = 1_000
"""Frames that wait in a publisher's process (61 MB of the largest)."""

EGRESS_HWM: Final = 4_000
"""Frames that wait in the broker for one subscriber (260 MB of the largest, 32 MB of small ones)."""

SUBSCRIBER_HWM: Final = 4_000
"""Frames that wait in a subscriber's process."""

CONTROL_HWM: Final = 10_000
"""Control messages that wait for one peer."""

RETAINED_TOPICS: Final = 1_024
RETAINED_BYTES: Final = 33_554_432
"""Topics and bytes of retained values in the broker; the least recently set goes first."""

SUBSCRIBER_HEARTBEAT_MS: Final = 1_000
SUBSCRIBER_TTL_MS: Final = 4_000
"""A subscriber that is stopped for so long loses its connection, and the broker its queue."""

BEACON_SECONDS: Final = 1.0
"""Seconds between two beacons of a publisher that is active."""

BEACON_IDLE_SECONDS: Final = 64.0
"""Longest pause between the beacons of a publisher that is silent."""

PEER_SILENCE_SECONDS: Final = 20.0
"""A peer of which the control plane hears nothing for so long is forgotten."""

ASK_BYTES: Final = 16_777_216
"""Largest payload of an ask (16 MiB); above PAYLOAD_BYTES it travels by claim check."""

ASK_SECONDS: Final = 3_600.0
"""Longest time that an ask may wait for its deciders."""

ANSWER_BYTES: Final = 131_072
"""Largest answer that travels in a control message; a larger one lies in the spool."""

ANSWERS: Final = 1_000
"""Answers of one decider to one ask."""

ASKS: Final = 10_000
"""Asks under way at once in the broker."""

PRIORITY: Final = 1_000_000
"""Largest priority of a decider or an answer, and the smallest is as far below 0."""

ASKED: Final = 64
"""Deciders of one ask."""

PEERS: Final = 20_000
"""Peers that the control plane remembers."""


class Limit(NamedTuple):
    """One row of the README's table: a name, its value, its unit and what happens beyond it."""

    name: str
    value: int | float
    unit: str
    beyond: str


TABLE: Final[tuple[Limit, ...]] = (
    Limit("payload", PAYLOAD_BYTES, "bytes", "claim check, or refused with oversize='reject'"),
    Limit("claimed payload", CLAIM_BYTES, "bytes", "refused"),
    Limit("spool", SPOOL_BYTES, "bytes", "oldest claims go first; then refused"),
    Limit("claim lifetime", CLAIM_SECONDS, "seconds", "ClaimExpired when loaded"),
    Limit("topic", TOPIC_BYTES, "bytes", "refused"),
    Limit("topic segments", TOPIC_SEGMENTS, "segments", "refused"),
    Limit("topic segment", SEGMENT_CHARACTERS, "characters", "refused"),
    Limit("session id", SESSION_ID_BYTES, "bytes", "refused"),
    Limit("source", SOURCE_BYTES, "bytes", "refused"),
    Limit("depth", DEPTHS - 1, "levels", "dropped and counted"),
    Limit("patterns per subscriber", PATTERNS, "patterns", "refused"),
    Limit("publisher queue", PUBLISHER_HWM, "frames", "on_full: drop and count, block or raise"),
    Limit("broker queue per subscriber", EGRESS_HWM, "frames", "dropped, counted by the subscriber"),
    Limit("subscriber queue", SUBSCRIBER_HWM, "frames", "waits in the broker"),
    Limit("frame into the broker", FRAME_BYTES, "bytes", "the sender is disconnected"),
    Limit("payload of an ask", ASK_BYTES, "bytes", "refused"),
    Limit("asks under way", ASKS, "asks", "refused"),
    Limit("deciders of an ask", ASKED, "deciders", "the later ones count as unreachable"),
    Limit("control message", CONTROL_BYTES, "bytes", "the sender is disconnected"),
    Limit("retained topics", RETAINED_TOPICS, "topics", "least recently set goes first"),
    Limit("retained values", RETAINED_BYTES, "bytes", "least recently set goes first"),
    Limit("peers remembered", PEERS, "peers", "hello is refused"),
)
"""The limits that a user can meet."""
