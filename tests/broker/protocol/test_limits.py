"""The bounds of the bus agree with each other: what one limit admits, another does not refuse."""

import msgpack

from broker.protocol import limits
from broker.protocol.beacons import Beacon, encode_beacons
from broker.protocol.envelope import MAX_SEQUENCE, MAX_TIME, PUBLISHER_BYTES, Claim, encode_event
from broker.protocol.events import decode_event
from broker.protocol.topics import Pattern, is_topic, subscriptions

LONGEST_TOPIC = ".".join(["t" * limits.SEGMENT_CHARACTERS] * 3 + ["t" * 60])


def test_the_longest_topic_is_one() -> None:
    """The topic that the other tests use as the worst case is a topic of exactly the limit."""
    assert len(LONGEST_TOPIC) == limits.TOPIC_BYTES
    assert is_topic(LONGEST_TOPIC)


def test_the_largest_event_fits_the_ingress() -> None:
    """An event with every field at its limit is decoded, and the broker's socket admits it."""
    frame = encode_event(
        LONGEST_TOPIC,
        b"\xff" * PUBLISHER_BYTES,
        MAX_SEQUENCE,
        MAX_TIME,
        bytes(limits.PAYLOAD_BYTES),
        session_id="s" * limits.SESSION_ID_BYTES,
        source="s" * limits.SOURCE_BYTES,
        cause="c" * limits.CAUSE_BYTES,
        depth=limits.DEPTHS - 1,
    )
    assert limits.PAYLOAD_BYTES < len(frame) <= limits.FRAME_BYTES
    assert len(decode_event(frame).payload_bytes) == limits.PAYLOAD_BYTES


def test_the_largest_claim_fits_the_room_of_a_header() -> None:
    """An event whose payload lies in the spool is small."""
    claim = Claim(limits.CLAIM_BYTES, bytes(32), "r" * 96, bytes(limits.CLAIM_HEAD_BYTES))
    frame = encode_event(
        LONGEST_TOPIC, bytes(16), MAX_SEQUENCE, MAX_TIME, claim, cause="c" * limits.CAUSE_BYTES
    )
    assert len(frame) <= limits.HEADER_BYTES


def test_an_event_id_fits_the_cause() -> None:
    """Every event's id can be the cause of another."""
    longest = decode_event(encode_event(LONGEST_TOPIC, bytes(16), MAX_SEQUENCE, 0, b"{}")).id
    assert len(longest) <= limits.CAUSE_BYTES


def test_the_largest_beacon_fits_the_ingress() -> None:
    """A beacon of as many of the longest topics as one frame may name passes the broker's socket."""
    topics = {
        f"{LONGEST_TOPIC[:-4]}{number:04}": (MAX_TIME, MAX_SEQUENCE) for number in range(limits.BEACON_TOPICS)
    }
    frames = list(encode_beacons(Beacon(bytes(16), "s" * limits.SOURCE_BYTES, True, topics)))
    assert [len(frame) <= limits.FRAME_BYTES for frame in frames] == [True]


def test_every_subscription_fits_the_egress() -> None:
    """The longest subscription of the longest pattern, with its command byte, passes the broker's socket."""
    longest = max(len(prefix) for prefix in subscriptions([Pattern(LONGEST_TOPIC)]))
    assert longest + 1 <= limits.SUBSCRIPTION_BYTES


def test_a_hello_with_every_pattern_fits_the_control_socket() -> None:
    """As many patterns as a subscriber may hold, each as long as can be, fit one control message."""
    assert len(msgpack.packb([LONGEST_TOPIC] * limits.PATTERNS)) < limits.CONTROL_BYTES
    assert limits.FRAME_BYTES < limits.CONTROL_BYTES  # a retained publish carries a frame


def test_the_bounds_are_ordered() -> None:
    """Each smaller bound lies within the larger one that it is part of."""
    assert limits.CLAIM_HEAD_BYTES < limits.PAYLOAD_BYTES < limits.CLAIM_BYTES < limits.SPOOL_BYTES
    assert limits.PUBLISHER_TOPICS <= limits.SUBSCRIBER_STREAMS
    assert limits.SUBSCRIBER_HEARTBEAT_MS < limits.SUBSCRIBER_TTL_MS < limits.PEER_SILENCE_SECONDS * 1_000
    assert limits.BEACON_SECONDS < limits.BEACON_IDLE_SECONDS < limits.STREAM_IDLE_SECONDS


def test_the_table_names_each_limit_once() -> None:
    """A user reads each limit once, with a positive value, a unit and what happens beyond it."""
    assert len({limit.name for limit in limits.TABLE}) == len(limits.TABLE)
    assert all(limit.value > 0 and limit.unit and limit.beyond for limit in limits.TABLE)
