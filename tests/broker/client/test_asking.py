"""What an ask is in bytes, how its answers are read, and what is published of a redacted one."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgpack
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.core import asking
from broker.client.core.asking import (
    Question,
    ask_message,
    check_timeout,
    pack_answers,
    read_heard,
    redacted,
)
from broker.client.core.numbering import Numbering
from broker.protocol.control import decode_message
from broker.protocol.decisions import NOTHING, VERDICTS, Answer, Heard
from broker.protocol.envelope import Claim, Names, payload_header
from broker.protocol.errors import ClaimExpired, DecodeError, LimitExceeded
from broker.protocol.events import decode_event
from broker.protocol.limits import ANSWERS, ASK_SECONDS, DEPTHS

CLAIM = [9, b"d" * 32, "claim", b""]


def nothing(_: Claim) -> bytes:
    """A spool in which nothing lies."""
    raise ClaimExpired("gone")


def question(level: int = 0, original: dict[str, Any] | None = None) -> Question:
    """A question about an event of ``x.y``."""
    numbering = Numbering(b"p" * 16, "agent", 0.0)
    made = Question(numbering.open("x.y", 0), level, Names(None, "agent", None), original or {})
    made.content = payload_header(2) + b"{}"
    return made


@pytest.mark.parametrize("timeout_s, told_ms", [(2.0, 1_980), (0.1, 95), (0.0001, 1), (3_600.0, 3_599_980)])
def test_an_asker_keeps_time_for_the_way_back(timeout_s: float, told_ms: int) -> None:
    """The broker is told of a little less time than there is, a hundredth of a second or a twentieth."""
    kind, request, body = decode_message(ask_message(7, b"frame", timeout_s))
    assert (kind, request, body) == ("ask", 7, {"frame": b"frame", "timeout_ms": told_ms})


@pytest.mark.parametrize("timeout", [0, -1, ASK_SECONDS + 1, "2", None, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(timeout: object) -> None:
    """An ask takes more than no time and at most an hour."""
    with pytest.raises(LimitExceeded, match="timeout must be"):
        check_timeout(timeout)
    assert check_timeout(3) == 3.0


def test_answers_and_silences_are_read_as_the_broker_tells_them() -> None:
    """Each decider has its row, with its answers or with why there are none."""
    rows = [
        ["d1", "open", None, 1_500, pack_answers([Answer("h", "allow")])],
        ["d2", "closed", "timeout", 2_000_000, b""],
        ["d3", "open", None, 0, CLAIM],
    ]
    loaded = pack_answers([Answer("big", output="x" * 200_000)])
    assert read_heard(rows, lambda _: loaded) == (
        Heard("d1", "open", None, 0.0015, (Answer("h", "allow"),)),
        Heard("d2", "closed", "timeout", 2.0),
        Heard("d3", "open", None, 0.0, (Answer("big", output="x" * 200_000),)),
    )


@given(
    st.lists(
        st.builds(
            Answer,
            handler=st.text(min_size=1, max_size=3),
            verdict=st.sampled_from(VERDICTS),
            reason=st.none() | st.text(max_size=3),
            contexts=st.sampled_from([(), ("c",)]),
            updated_input=st.none(),
            output=st.just(NOTHING),
            stop=st.just(False),
            stop_reason=st.none(),
            system_message=st.none(),
            priority=st.integers(-3, 3),
        ),
        max_size=2,
    )
)
def test_plain_answers_travel_as_all_others_do(answers: list[Answer]) -> None:
    """What is packed and read the quick way is what it would be otherwise, at first and again later."""
    packed = pack_answers(answers)
    assert packed == msgpack.packb([answer.fields() for answer in answers])
    for _ in range(2):
        assert read_heard([["d", "open", None, 0, packed]], nothing)[0].answers == tuple(answers)


def test_an_answer_with_an_odd_verdict_is_packed_as_it_is() -> None:
    """What is of no plain type takes the way of all answers, and is refused where it cannot be said."""
    with pytest.raises(TypeError):
        pack_answers([Answer(object())])  # type: ignore[arg-type]


def test_answers_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """When there are too many of them, all are forgotten."""
    known: dict[bytes, Any] = {}
    monkeypatch.setattr(asking, "_known", known)
    monkeypatch.setattr(asking, "KNOWN", 2)
    for number in range(5):
        read_heard([["d", "open", None, 0, pack_answers([Answer(f"h{number}")])]], nothing)
        assert 0 < len(known) <= 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        b"\x01",
        pack_answers([Answer("h")])[:-1],
        5,
        [1, 2],
        CLAIM,
        pack_answers([Answer("h")] * (ANSWERS + 1)),
    ],
)
def test_a_garbled_answer_counts_as_failed(content: object) -> None:
    """It takes no other answer along, and a claim that has expired is no better."""
    rows = [["bad", "open", None, 0, content], ["good", "open", None, 0, pack_answers([])]]
    assert [h.silence for h in read_heard(rows, nothing)] == ["failed", None]


@pytest.mark.parametrize(
    "rows",
    [
        None,
        ["row"],
        [["d", "open", None, 0]],
        [[b"d", "open", None, 0, b""]],
        [["d", "ajar", None, 0, b""]],
        [["d", "open", "asleep", 0, b""]],
        [["d", "open", None, "0", b""]],
    ],
)
def test_what_is_no_word_of_the_broker_is_refused(rows: object) -> None:
    """A malformed list of deciders is a DecodeError, never another exception."""
    with pytest.raises(DecodeError):
        read_heard(rows, nothing)


@given(st.recursive(st.none() | st.binary(max_size=4) | st.integers() | st.text(max_size=3), st.lists))
def test_any_word_is_read_or_refused(rows: object) -> None:
    """Whatever the broker says leads to rows or to a DecodeError."""
    try:
        read_heard(rows, nothing)
    except DecodeError:
        return


def test_of_a_redacted_result_names_stay_and_the_rest_is_measured() -> None:
    """No text of a tool's input or output is left in the copy, only sizes and digests."""
    copy = orjson.loads(
        redacted(
            {
                "agent_id": "a1",
                "tool": "Bash",
                "tool_name": None,
                "is_error": False,
                "session_id": "s" * 500,
                "tool_use_id": {"not": "a name"},
                "tool_output": "SECRET \ud800",
                "arguments": {"command": "cat SECRET"},
            }
        )
    )
    text = "SECRET \ud800".encode("utf-8", "surrogatepass")
    command = orjson.dumps({"command": "cat SECRET"})
    assert copy == {
        "agent_id": "a1",
        "tool": "Bash",
        "tool_name": None,
        "is_error": False,
        "session_id": "s" * 200,
        "tool_use_id_bytes": 16,
        "tool_use_id_sha256": sha256(b'{"not":"a name"}').hexdigest(),
        "tool_output_bytes": len(text),
        "tool_output_sha256": sha256(text).hexdigest(),
        "arguments_bytes": len(command),
        "arguments_sha256": sha256(command).hexdigest(),
    }


def test_the_copy_of_an_ask_is_the_same_event() -> None:
    """Ask and copy have one id and one time; only a redacted copy has another payload."""
    plain = question()
    plain.take_number(5)
    frame = plain.numbered(5)
    assert plain.copied() == frame
    assert (decode_event(frame).sequence, decode_event(frame).time_ns) == (1, 5)
    assert plain.stream.first_time == 5
    hidden = question()
    hidden.copy = payload_header(8) + b'{"a": 1}'
    hidden.take_number(6)
    hidden.take_number(7)
    asked, published = decode_event(hidden.numbered(7)), decode_event(hidden.copied())
    assert asked.id == published.id
    assert (asked.payload, published.payload) == ({}, {"a": 1})
    assert hidden.stream.first_time == 6


def test_who_is_too_deep_or_forbidden_asks_nobody() -> None:
    """There is nothing to ask then: no opinion at the depth's end, a denial by the constraints."""
    assert question().open
    deep = question(DEPTHS)
    assert not deep.open
    assert deep.decide((), None).verdict == "none"
    forbidden = question(original={"a": 1})
    forbidden.forbidden = "no"
    assert not forbidden.open
    decision = forbidden.decide((), None)
    assert (decision.verdict, decision.reason, decision.input) == ("deny", "no", {"a": 1})


def test_asks_have_numbers_of_their_own() -> None:
    """A late word of one ask is never taken for another's."""
    assert question().request != question().request
