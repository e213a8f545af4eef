"""What of an asked payload travels with the ask, and what of it is published."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from broker.client.core.asking import REDACTED, Question
from broker.client.core.numbering import Numbering
from broker.client.core.question_content import put_content
from broker.protocol.envelope import Claim, Names
from broker.protocol.errors import LimitExceeded
from broker.protocol.events import decode_event
from broker.protocol.limits import ASK_BYTES, PAYLOAD_BYTES


def put(topic: str, payload: dict[str, Any]) -> tuple[Question, list[bytes]]:
    """A question about ``payload``, and what was stored for it."""
    stored: list[bytes] = []

    def store(body: bytes) -> Claim:
        stored.append(body)
        return Claim(len(body), b"d" * 32, "claim", body[:10])

    numbering = Numbering(b"p" * 16, "agent", 0.0)
    question = Question(numbering.open(topic, 0), 0, Names(None, "agent", None), payload)
    put_content(question, orjson.dumps(payload), payload, store, ASK_BYTES)
    question.take_number(5)
    question.numbered(5)
    return question, stored


def test_a_small_payload_travels_in_the_frame_and_is_published_as_it_is() -> None:
    """Ask and copy are one frame, and its body may be gathered with others."""
    question, stored = put("a.b", {"n": 1})
    assert stored == []
    assert decode_event(question.frame).payload == {"n": 1}
    assert question.copied() == question.frame
    assert question.body == b'{"n":1}'


def test_a_large_payload_travels_by_claim() -> None:
    """The frame and its copy say where it lies; such a frame is gathered with nothing."""
    question, stored = put("a.b", {"text": "x" * PAYLOAD_BYTES})
    assert len(stored) == 1
    claim = decode_event(question.frame).claim
    assert claim is not None
    assert (claim.size, claim.reference) == (len(stored[0]), "claim")
    assert question.copied() == question.frame
    assert question.body is None


@pytest.mark.parametrize("size, stored", [(10, 0), (PAYLOAD_BYTES, 1)])
def test_a_tool_s_result_is_published_without_its_text(size: int, stored: int) -> None:
    """Its copy may be gathered, however large the result is."""
    question, kept = put(REDACTED, {"tool": "cat", "output": "S" * size})
    assert len(kept) == stored
    published = decode_event(question.copied())
    assert published.payload["output_bytes"] == size
    assert "output" not in published.payload
    assert question.body == published.payload_bytes
    assert published.id == decode_event(question.frame).id


def test_what_is_too_large_for_an_ask_is_refused() -> None:
    """Sixteen mebibytes are the most, and nothing is stored of more."""
    with pytest.raises(LimitExceeded, match="an ask takes at most 16,777,216"):
        put("a.b", {"text": "x" * ASK_BYTES})
