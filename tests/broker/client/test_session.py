"""A client's conversation with the broker: hello until welcomed, reports, requests, answers."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broker.client.core.session import (
    Answered,
    BatchesTold,
    ControlSession,
    Held,
    Identity,
    Refused,
    Welcomed,
)
from broker.protocol.control import decode_message, encode_message

ME = Identity("subscriber", "audit", 7, "0.1", ("prx.*",))


def welcome(epoch: bytes = b"e" * 16, *, batches: bool = True) -> bytes:
    """What a broker answers to a hello."""
    return encode_message(
        "welcome", epoch=epoch, release="0.1", pid=1, limits={"payload": 9}, batches=batches
    )


def welcomed() -> ControlSession:
    """A session that has been welcomed at 0."""
    session = ControlSession(ME)
    session.handle(welcome(), 0.0)
    return session


def kinds(messages: list[bytes]) -> list[str]:
    """The kinds of some messages."""
    return [decode_message(message).kind for message in messages]


def test_hello_says_who_we_are() -> None:
    """The hello carries role, name, pid, release, patterns and the publisher's id."""
    message = decode_message(ControlSession(ME, b"p" * 16).hello(0.0))
    body: dict[str, Any] = {
        "role": "subscriber",
        "name": "audit",
        "pid": 7,
        "release": "0.1",
        "patterns": ["prx.*"],
        "batches": True,
        "publisher": b"p" * 16,
    }
    assert ("hello", 0, body) == message


def test_a_decider_says_its_place_and_what_its_silence_means() -> None:
    """Priority and failure policy stand in its hello, and in no other's."""
    decider = ME._replace(role="decider", priority=7, failure="closed")
    body = decode_message(ControlSession(decider).hello(0.0)).body
    assert (body["role"], body["priority"], body["failure"]) == ("decider", 7, "closed")


def test_hello_is_repeated_until_a_welcome() -> None:
    """Four times a second, until a welcome comes, and then no more."""
    session = ControlSession(ME)
    said = [kinds(session.tick(now, {})) for now in (1.0, 1.1, 1.25, 1.3)]
    assert said == [["hello"], [], ["hello"], []]
    note = session.handle(welcome(), 1.4)
    assert Welcomed(b"e" * 16, {"payload": 9}, again=False) == note
    assert (session.welcomed, session.batches) == (True, True)
    assert "hello" not in kinds(session.tick(9.0, {}))


def test_another_epoch_is_another_broker() -> None:
    """A welcome with a new epoch says that the broker was restarted; the same epoch does not."""
    session = welcomed()
    same, other = session.handle(welcome(), 1.0), session.handle(welcome(b"f" * 16), 2.0)
    assert isinstance(same, Welcomed)
    assert isinstance(other, Welcomed)
    assert (same.again, other.again) == (False, True)


def test_reports_follow_the_counters() -> None:
    """Changed counters are reported at most once a second, unchanged ones every five as a sign of life."""
    session = welcomed()
    assert kinds(session.tick(0.0, {"n": 1})) == ["report"]
    assert session.tick(0.5, {"n": 2}) == []
    assert [decode_message(m).body for m in session.tick(1.0, {"n": 2})] == [{"counters": {"n": 2}}]
    assert session.tick(5.9, {"n": 2}) == []
    assert kinds(session.tick(6.0, {"n": 2})) == ["report"]


def test_requests_have_numbers_and_get_their_answers() -> None:
    """Each request has a new number, and the reply with that number is its answer."""
    session = welcomed()
    (first, _), (second, data) = session.request("status"), session.request("status")
    assert (first, second) == (1, 2)
    assert decode_message(data)[:2] == ("status", 2)
    reply = encode_message("published", second, matching=3)
    assert Answered(2, decode_message(reply)) == session.handle(reply, 1.0)


def test_an_error_reply_is_an_answer_and_an_unasked_one_a_refusal() -> None:
    """An error with a request number answers it; one without refuses the client."""
    session = welcomed()
    answer = session.handle(encode_message("error", 5, code="limit_exceeded", message="too many"), 1.0)
    assert isinstance(answer, Answered)
    refusal = session.handle(encode_message("error", code="limit_exceeded", message="too many"), 1.0)
    assert Refused("limit_exceeded", "too many") == refusal


def test_a_broker_that_does_not_know_us_gets_a_hello() -> None:
    """After unknown_peer the next tick says hello at once."""
    session = welcomed()
    assert session.handle(encode_message("error", code="unknown_peer", message="?"), 3.0) is None
    assert kinds(session.tick(3.0, {})) == ["hello"]


def test_hold_and_batches_are_understood() -> None:
    """Hold and a change of batches are noted for the owner; the latter is kept."""
    session = welcomed()
    assert Held() == session.handle(encode_message("hold"), 1.0)
    assert BatchesTold(allowed=False) == session.handle(encode_message("batches", batches=False), 1.0)
    assert not session.batches


def test_another_version_is_a_refusal_that_names_both() -> None:
    """A broker of another protocol version is refused with both versions in the text."""
    refusal = welcomed().handle(b"\x94\x02\xa1x\x00\x80", 1.0)
    assert isinstance(refusal, Refused)
    assert refusal.code == "wrong_version"
    assert "version 2 is not 1" in refusal.error


def test_a_reply_to_nothing_is_of_no_consequence() -> None:
    """A reply without a request number means nothing."""
    assert welcomed().handle(encode_message("published", matching=3), 1.0) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data: bytes) -> None:
    """Whatever a broker sends, the session returns a note or nothing."""
    welcomed().handle(data, 1.0)
