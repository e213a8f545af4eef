"""An event as the JSON object that people and programs read."""

from __future__ import annotations

import orjson

from broker.client.core.describing import describe
from broker.protocol.envelope import Claim, encode_event
from broker.protocol.events import decode_event

PUBLISHER = bytes(range(16))


def test_an_event_is_described_whole() -> None:
    """Every attribute is there under its own name, the payload decoded, time in RFC 3339."""
    frame = encode_event(
        "prx.x", PUBLISHER, 3, 1_700_000_000_123_456_789, b'{"a":1}', session_id="s", source="me", depth=2
    )
    expected = {
        "topic": "prx.x",
        "id": "000102030405060708090a0b0c0d0e0f:prx.x:3",
        "time": "2023-11-14T22:13:20.123Z",
        "session_id": "s",
        "source": "me",
        "depth": 2,
        "caused_by": None,
        "payload": {"a": 1},
    }
    assert expected == describe(decode_event(frame))


def test_a_claim_is_described_and_not_loaded() -> None:
    """A claimed payload shows size, digest and head, bad bytes replaced."""
    claim = Claim(70_000, b"\1" * 32, "ref", b'{"a":\xff')
    shown = describe(decode_event(encode_event("prx.x", PUBLISHER, 1, 2, claim)))
    assert shown["claim"] == {"size": 70_000, "sha256": "01" * 32, "head": '{"a":\ufffd'}
    assert "payload" not in shown
    assert orjson.dumps(shown)


def test_a_payload_that_is_no_object_is_said() -> None:
    """Bytes that are not a JSON object become an error text, not an exception."""
    shown = describe(decode_event(encode_event("prx.x", PUBLISHER, 1, 2, b"[1]")))
    assert "is list, not an object" in shown["error"]
