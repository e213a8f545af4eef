"""Asks under way: each ends exactly once, whatever its deciders and its asker do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.control.actions import Action, Send
from broker.control.asks import Asks, ClosedDecider, Decider, is_decider_lane, lane_of
from broker.control.bounds import DECIDERS_REMEMBERED, HEARD_BYTES, LANES_KNOWN, LOST_SECONDS
from broker.protocol.control import KEY_BYTES, Message, decode_message
from broker.protocol.errors import DecodeError, LimitExceeded
from broker.protocol.limits import ANSWER_BYTES, ASK_SECONDS, ASKED, FRAME_BYTES

ASKER = b"a" * KEY_BYTES
LANE = ASKER + b"\x10\0\0"
FRAME = b"0x.y\0anything: the broker does not open it"


def key(number: int) -> bytes:
    """The key of decider ``number``."""
    return b"d" + number.to_bytes(KEY_BYTES - 1, "big")


def answers_on(number: int) -> bytes:
    """The lane on which decider ``number`` answers."""
    return key(number) + b"\x02"


def messages(actions: list[Action]) -> list[tuple[bytes, Message]]:
    """What is sent to whom, decoded."""
    assert all(isinstance(action, Send) for action in actions)
    return [(action.peer, decode_message(action.data)) for action in actions if isinstance(action, Send)]


def with_deciders(*numbers: int, failure: Any = "open", patterns: tuple[str, ...] = ("x.*",)) -> Asks:
    """Asks with these deciders, each named ``d<number>`` and as urgent as its number says."""
    asks = Asks()
    for number in numbers:
        decider = Decider(f"d{number}", number, failure, lane_of(key(number)))
        assert asks.enter(key(number), decider, patterns) == []
        ((peer, said),) = messages(asks.lane_up(lane_of(key(number)), 0.0))
        assert (peer, said.kind) == (lane_of(key(number)), "deciding")
    return asks


def asked(
    asks: Asks, request: int = 1, *, lane: bytes = LANE, timeout_s: float = 2.0, now: float = 0.0
) -> Any:
    """Ask about ``x.y``: the tokens by decider lane, or the answer when there is nobody."""
    sent = messages(asks.ask(lane, request, FRAME, timeout_s, now))
    if [said.kind for _, said in sent] == ["answered"]:
        return sent[0][1].body["heard"]
    assert all(said.kind == "asked" and said.body["frame"] == FRAME for _, said in sent)
    return {peer: said.request for peer, said in sent}


def heard(actions: list[Action], request: int = 1, lane: bytes = LANE) -> list[list[Any]]:
    """The rows of the one answer that ``actions`` consist of."""
    ((peer, said),) = messages(actions)
    assert (peer, said.kind, said.request) == (lane, "answered", request)
    rows: list[list[Any]] = said.body["heard"]
    return rows


def test_an_ask_without_deciders_is_answered_at_once() -> None:
    """Nobody has an opinion, and nobody waits for one."""
    asks = Asks()
    assert asked(asks) == []
    assert len(asks) == 0
    assert asks.next_due is None


def test_all_that_match_are_asked_and_told_in_declared_order() -> None:
    """Deciders are listed by priority whatever the order in which they answer, with their times."""
    asks = with_deciders(2, 1, 3)
    asks.enter(key(9), Decider("other", 0, "open", lane_of(key(9))), ("z",))
    asks.lane_up(lane_of(key(9)), 0.0)
    tokens = asked(asks)
    assert list(tokens) == [lane_of(key(number)) for number in (1, 2, 3)]
    assert asks.answer(answers_on(3), tokens[lane_of(key(3))], b"three", None, 0.5) == []
    assert asks.answer(answers_on(1), tokens[lane_of(key(1))], b"one", None, 0.25) == []
    rows = heard(asks.answer(answers_on(2), tokens[lane_of(key(2))], b"two", None, 1.0))
    assert rows == [
        ["d1", "open", None, 250_000, b"one"],
        ["d2", "open", None, 1_000_000, b"two"],
        ["d3", "open", None, 500_000, b"three"],
    ]
    assert len(asks) == 0


def test_the_deadline_ends_an_ask_with_what_was_heard() -> None:
    """Who is late is listed as such; what he answers later is counted and told nobody."""
    asks = with_deciders(1, 2)
    tokens = asked(asks)
    asks.answer(answers_on(1), tokens[lane_of(key(1))], b"one", None, 0.5)
    assert asks.due(1.9) == []
    assert asks.next_due == 2.0
    rows = heard(asks.due(2.0))
    assert [row[2] for row in rows] == [None, "timeout"]
    assert asks.answer(answers_on(2), tokens[lane_of(key(2))], b"two", None, 2.1) == []
    assert asks.counts["late"] == 1


@pytest.mark.parametrize("how", ["died", "left"])
def test_a_decider_that_goes_is_noted_at_once(how: Any) -> None:
    """Its asker does not wait for the deadline."""
    asks = with_deciders(1)
    asked(asks)
    rows = heard(asks.leave(key(1), how, 0.25))
    assert rows == [["d1", "open", how, 250_000, b""]]
    assert asked(asks, 2) == []
    assert asks.leave(key(1), how, 0.5) == []


def test_a_decider_whose_lane_has_ended_is_waited_for_a_moment() -> None:
    """What it was asked is unreachable then; nobody is asked on the lane until it is up again."""
    asks = with_deciders(1)
    asked(asks)
    assert asks.lane_gone(lane_of(key(1)), 1.0) == []
    assert asks.next_due == 1.0 + LOST_SECONDS
    assert asked(asks, 2) == []
    assert asks.due(1.0) == []
    assert [row[2] for row in heard(asks.due(1.0 + LOST_SECONDS))] == ["unreachable"]
    asks.lane_up(lane_of(key(1)), 1.5)
    assert list(asked(asks, 3)) == [lane_of(key(1))]
    assert asks.next_due == 2.0


def test_what_a_decider_was_asked_on_a_lane_before_it_does_not_answer() -> None:
    """When it is back, its asker waits no longer."""
    asks = with_deciders(1)
    asked(asks)
    asks.lane_gone(lane_of(key(1)), 0.0)
    answered, deciding = messages(asks.lane_up(lane_of(key(1)), 0.01))
    assert [row[2] for row in answered[1].body["heard"]] == ["unreachable"]
    assert deciding[1].kind == "deciding"


def test_word_of_a_decider_s_end_comes_before_that_of_its_lane_counts() -> None:
    """A lane that ends is most often the first sign of a process that has died."""
    asks = with_deciders(1)
    asked(asks)
    asks.lane_gone(lane_of(key(1)), 0.0)
    assert [row[2] for row in heard(asks.leave(key(1), "died", 0.005))] == ["died"]
    assert asks.due(LOST_SECONDS) == []


def test_a_decider_that_fails_closed_and_has_no_lane_is_a_denial() -> None:
    """Its silence is listed at once, and nobody is let through because it cannot be reached."""
    asks = with_deciders(1, failure="closed")
    asks.lane_gone(lane_of(key(1)), 0.0)
    assert heard(asks.ask(LANE, 1, FRAME, 2.0, 0.0)) == [["d1", "closed", "unreachable", 0, b""]]


def test_a_decider_can_say_that_it_failed() -> None:
    """An error in place of an answer is listed as a failure."""
    asks = with_deciders(1)
    tokens = asked(asks)
    rows = heard(asks.answer(answers_on(1), tokens[lane_of(key(1))], b"", "it broke", 0.0))
    assert [row[2] for row in rows] == ["failed"]


def test_nobody_answers_for_another() -> None:
    """An answer counts only from the decider that was asked."""
    asks = with_deciders(1, 2)
    tokens = asked(asks)
    assert asks.answer(answers_on(2), tokens[lane_of(key(1))], b"x", None, 0.0) == []
    assert asks.counts["late"] == 1
    assert asks.answer(answers_on(1), 999, b"x", None, 0.0) == []
    assert len(asks) == 1


def test_answers_are_bounded() -> None:
    """An answer that is too large counts as failed, and so does what makes all of them too large together."""
    asks = with_deciders(*range(1, 9))
    tokens = asked(asks)
    asks.answer(answers_on(1), tokens[lane_of(key(1))], bytes(ANSWER_BYTES + 1), None, 0.0)
    asks.answer(answers_on(2), tokens[lane_of(key(2))], [1, b"", "claim", b""], None, 0.0)
    found: list[Action] = []
    for number in range(3, 9):
        found += asks.answer(answers_on(number), tokens[lane_of(key(number))], bytes(ANSWER_BYTES), None, 0.0)
    rows = heard(found)
    assert [row[2] for row in rows][:2] == ["failed", None]
    assert rows[1][4] == [1, b"", "claim", b""]
    assert sum(len(row[4]) for row in rows if isinstance(row[4], bytes)) <= HEARD_BYTES
    assert [row[2] for row in rows][2:] == [None] * 5 + ["failed"]


def test_a_cancelled_ask_ends_silently_and_tells_its_deciders() -> None:
    """Nobody waits: who has not answered is told so, and nothing is sent to the asker."""
    asks = with_deciders(1, 2)
    tokens = asked(asks)
    asks.answer(answers_on(1), tokens[lane_of(key(1))], b"", None, 0.0)
    ((peer, said),) = messages(asks.cancel(LANE, 1))
    assert (peer, said.kind, said.request) == (lane_of(key(2)), "cancelled", tokens[lane_of(key(2))])
    assert len(asks) == 0
    assert asks.cancel(LANE, 1) == []
    assert asks.due(5.0) == []


def test_an_asker_that_ends_takes_its_asks_along() -> None:
    """All asks of all lanes of a peer end; those of others go on."""
    asks = with_deciders(1)
    asked(asks, 1)
    asked(asks, 2, lane=ASKER + b"\x10\0\1")
    asked(asks, 3, lane=b"b" * KEY_BYTES)
    kinds = [said.kind for _, said in messages(asks.asker_gone(ASKER))]
    assert kinds == ["cancelled", "cancelled"]
    assert len(asks) == 1
    assert asks.asker_gone(ASKER) == []


def test_an_asker_s_lane_that_is_cut_takes_its_asks_along() -> None:
    """Only those of this lane: the others of the peer go on."""
    asks = with_deciders(1)
    asked(asks, 1)
    asked(asks, 2, lane=ASKER + b"\x10\0\1")
    assert [said.kind for _, said in messages(asks.lane_gone(LANE, 0.0))] == ["cancelled"]
    assert len(asks) == 1


def test_a_number_that_is_used_again_ends_the_ask_before() -> None:
    """A lane has one ask of a number: the older one is cancelled."""
    asks = with_deciders(1)
    asked(asks)
    sent = messages(asks.ask(LANE, 1, FRAME, 2.0, 0.0))
    assert [said.kind for _, said in sent] == ["cancelled", "asked"]
    assert len(asks) == 1


def test_a_decider_that_fails_closed_is_missed_until_it_is_back() -> None:
    """It died, so what it would have been asked is told as its silence; a goodbye is no such thing."""
    asks = with_deciders(1, failure="closed")
    assert asks.leave(key(1), "died", 0.0) == []
    assert list(asks.remembered) == ["d1"]
    assert asked(asks) == [["d1", "closed", "died", 0, b""]]
    asks.enter(key(2), Decider("d1", 1, "closed", lane_of(key(2))), ("x.*",))
    asks.lane_up(lane_of(key(2)), 0.0)
    assert list(asks.remembered) == []
    assert list(asked(asks, 2)) == [lane_of(key(2))]
    asks.leave(key(2), "left", 0.0)
    assert list(asks.remembered) == []


def test_one_that_fails_closed_is_missed_until_it_can_be_asked() -> None:
    """No ask passes between its hello and its lane, whether it had died or only says hello again."""
    asks = with_deciders(1, failure="closed")
    asks.leave(key(1), "died", 0.0)
    assert asks.enter(key(2), Decider("d1", 1, "closed", lane_of(key(2))), ("x.*",)) == []
    assert heard(asks.ask(LANE, 1, FRAME, 2.0, 0.0)) == [["d1", "closed", "died", 0, b""]]
    asks.lane_up(lane_of(key(2)), 0.0)
    assert list(asked(asks, 2)) == [lane_of(key(2))]
    asks.lane_gone(lane_of(key(2)), 1.0)
    asks.due(2.0)
    assert asks.enter(key(2), Decider("d1", 1, "closed", lane_of(key(2))), ("x.*",)) == []
    assert heard(asks.ask(LANE, 3, FRAME, 2.0, 0.0), 3) == [["d1", "closed", "unreachable", 0, b""]]


def test_a_decider_that_was_replaced_is_not_missed() -> None:
    """The death of one is no silence while another of its name is there."""
    asks = with_deciders(1, failure="closed")
    asks.enter(key(2), Decider("d1", 1, "closed", lane_of(key(2))), ("x.*",))
    asks.lane_up(lane_of(key(2)), 0.0)
    asks.leave(key(1), "died", 0.0)
    assert list(asks.remembered) == []


def test_those_that_are_remembered_are_bounded() -> None:
    """The longest remembered is given up for the latest."""
    asks = Asks()
    for number in range(DECIDERS_REMEMBERED + 1):
        asks.enter(key(number), Decider(f"d{number}", 0, "closed", lane_of(key(number))), ("x.y",))
        asks.leave(key(number), "died", 0.0)
    assert len(asks.remembered) == DECIDERS_REMEMBERED
    assert "d0" not in asks.remembered


def test_a_decider_may_change_what_it_is_asked() -> None:
    """Another hello with other patterns counts from then on; none: it is asked nothing more."""
    asks = with_deciders(1)
    sent = messages(asks.enter(key(1), Decider("d1", 1, "open", lane_of(key(1))), ()))
    assert [said.kind for _, said in sent] == ["deciding"]
    assert asked(asks) == []


def test_a_lane_may_be_up_before_its_decider_says_hello() -> None:
    """The order of the two does not matter."""
    asks = Asks()
    assert asks.lane_up(lane_of(key(1)), 0.0) == []
    sent = messages(asks.enter(key(1), Decider("d1", 1, "open", lane_of(key(1))), ("x.y",)))
    assert [said.kind for _, said in sent] == ["deciding"]
    assert list(asked(asks)) == [lane_of(key(1))]


@pytest.mark.parametrize("timeout_s", [0, -1, ASK_SECONDS + 1])
def test_the_time_of_an_ask_is_bounded(timeout_s: float) -> None:
    """No time and too much of it are refused."""
    with pytest.raises(LimitExceeded, match="time for an ask"):
        Asks().ask(LANE, 1, FRAME, timeout_s, 0.0)


def test_the_asks_under_way_are_bounded() -> None:
    """One more than the limit is refused, and there is room again when one has ended."""
    asks = Asks(limit=2)
    asks.enter(key(1), Decider("d1", 1, "open", lane_of(key(1))), ("x.y",))
    asks.lane_up(lane_of(key(1)), 0.0)
    asked(asks, 1)
    asked(asks, 2)
    with pytest.raises(LimitExceeded, match="2 asks are under way"):
        asked(asks, 3)
    asks.cancel(LANE, 1)
    asked(asks, 3)


def test_an_ask_has_so_many_deciders_and_no_more() -> None:
    """Those beyond the limit are told as unreachable, not left out."""
    asks = with_deciders(*range(ASKED + 2))
    tokens = asked(asks)
    assert len(tokens) == ASKED
    rows = heard(asks.due(5.0))
    assert [row[2] for row in rows] == ["timeout"] * ASKED + ["unreachable"] * 2


def test_deadlines_of_ended_asks_do_not_pile_up() -> None:
    """Thousands of quick asks with an hour of time each leave a bounded table."""
    asks = with_deciders(1)
    lane = lane_of(key(1))
    for request in range(5_000):
        token = asked(asks, request, timeout_s=3_600.0)[lane]
        asks.answer(answers_on(1), token, b"", None, 0.0)
    assert len(asks._deadlines) <= 2 * DECIDERS_REMEMBERED


def test_matches_are_remembered_within_a_bound() -> None:
    """Ten thousand topics and more are asked about and none is answered wrongly."""
    asks = with_deciders(1)
    for number in range(10_005):
        assert len(asks.ask(LANE, number, b"0x.t%d\0" % number, 1.0, 0.0)) == 1
        asks.cancel(LANE, number)
    assert len(asks._found) <= 10_000


def test_a_stranger_s_lanes_do_not_pile_up() -> None:
    """Lanes of deciders that never say hello are forgotten, the oldest first."""
    asks = with_deciders(1)
    for number in range(2, 20_010):
        asks.lane_up(lane_of(key(number)), 0.0)
    assert len(asks._up) <= 20_000


@pytest.mark.parametrize(
    "peer, expected",
    [(lane_of(key(1)), True), (answers_on(1), False), (key(1), False), (LANE, False), (b"\0\1\2\3\4", False)],
)
def test_the_lane_of_a_decider_is_known_by_its_name(peer: bytes, expected: bool) -> None:
    """Its key and one byte more; nothing else is one."""
    assert is_decider_lane(peer) == expected


class Conversations(RuleBasedStateMachine):
    """Askers and deciders that do anything in any order, against a count of what must be answered."""

    def __init__(self) -> None:
        super().__init__()
        self.asks = Asks()
        self.now = 0.0
        self.request = 0
        self.tokens: dict[int, bytes] = {}  # of asks that a decider still has
        self.waiting: set[tuple[bytes, int]] = set()
        self.deadline: dict[tuple[bytes, int], float] = {}

    def see(self, actions: list[Action]) -> None:
        """Each answer ends one ask that is waited for, once."""
        for peer, said in messages(actions):
            if said.kind == "asked":
                self.tokens[said.request] = peer
            elif said.kind == "answered":
                assert (peer, said.request) in self.waiting, "answered twice, or nobody asked"
                self.waiting.discard((peer, said.request))
            elif said.kind == "cancelled":
                assert self.tokens.pop(said.request) == peer

    @rule(number=st.integers(0, 3), failure=st.sampled_from(["open", "closed"]), idle=st.booleans())
    def enter(self, number: int, failure: Any, idle: bool) -> None:
        """A decider says hello."""
        decider = Decider(f"d{number % 2}", number, failure, lane_of(key(number)))
        self.see(self.asks.enter(key(number), decider, () if idle else ("x.*",)))

    @rule(number=st.integers(0, 3))
    def lane_up(self, number: int) -> None:
        """A decider's lane comes up."""
        self.see(self.asks.lane_up(lane_of(key(number)), 0.0))

    @rule(number=st.integers(0, 3), how=st.sampled_from(["died", "left"]))
    def leave(self, number: int, how: Any) -> None:
        """A decider goes."""
        self.see(self.asks.leave(key(number), how, self.now))

    @rule(number=st.integers(0, 3))
    def cut(self, number: int) -> None:
        """A decider's lane is cut."""
        self.see(self.asks.lane_gone(lane_of(key(number)), self.now))

    @rule(lane=st.integers(0, 2), timeout_s=st.sampled_from([0.5, 2.0, 60.0]))
    def ask(self, lane: int, timeout_s: float) -> None:
        """Somebody asks."""
        self.request += 1
        peer = ASKER + bytes([lane]) if lane else ASKER
        self.waiting.add((peer, self.request))
        self.deadline[peer, self.request] = self.now + timeout_s
        self.see(self.asks.ask(peer, self.request, FRAME, timeout_s, self.now))

    @precondition(lambda self: self.tokens)
    @rule(data=st.data(), fails=st.booleans(), foreign=st.booleans())
    def answer(self, data: st.DataObject, fails: bool, foreign: bool) -> None:
        """A decider answers something that it was asked, in time or not, or another one does."""
        token = data.draw(st.sampled_from(sorted(self.tokens)))
        owner = self.tokens[token][:KEY_BYTES]
        lane = (key(9) if foreign else owner) + b"\x02"
        if not foreign:
            del self.tokens[token]
        self.see(self.asks.answer(lane, token, b"", "failed" if fails else None, self.now))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """An asker waits no longer."""
        peer, request = data.draw(st.sampled_from(sorted(self.waiting)))
        self.waiting.discard((peer, request))
        self.see(self.asks.cancel(peer, request))

    @rule()
    def asker_goes(self) -> None:
        """The asker ends with all its lanes."""
        self.waiting.clear()
        self.see(self.asks.asker_gone(ASKER))

    @rule(seconds=st.sampled_from([0.1, 1.0, 30.0]))
    def time_passes(self, seconds: float) -> None:
        """What is due by now ends."""
        self.now += seconds
        self.see(self.asks.due(self.now))
        assert all(self.deadline[each] > self.now for each in self.waiting)

    @invariant()
    def all_that_wait_are_under_way(self) -> None:
        """An ask is under way exactly as long as somebody waits for it."""
        assert len(self.asks) == len(self.waiting)
        counts = self.asks.counts
        assert counts["asked"] == counts["answered"] + counts["cancelled"] + len(self.waiting)

    def teardown(self) -> None:
        """In the end nothing is left of all of it."""
        self.see(self.asks.due(self.now + 100))
        assert not self.waiting
        assert len(self.asks) == 0
        assert not self.asks._asked
        assert not self.asks._of
        assert not self.asks._lost
        assert not any(self.asks._open.values())
        assert {lane for lanes in self.asks._lanes.values() for lane in lanes} == set(self.asks._open)


TestConversations = Conversations.TestCase
TestConversations.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(st.binary(max_size=40))
def test_any_lane_may_be_cut(peer: bytes) -> None:
    """The end of a connection that never asked is no error."""
    assert Asks().lane_gone(peer, 0.0) == []


@pytest.mark.parametrize(
    "frame",
    [b"", b"0", b"8x.y\0", b"/x.y\0", b"0x..y\0", b"0$inbox.x\0", b"0x.y", b"0x.y\0" + bytes(FRAME_BYTES)],
)
def test_a_frame_that_begins_like_no_event_s_is_refused(frame: bytes) -> None:
    """An ask is about an event: key, depth and size are looked at, and nothing is asked."""
    asks = with_deciders(1)
    asked(asks)
    with pytest.raises(DecodeError):
        asks.ask(LANE, 2, frame, 2.0, 0.0)
    assert len(asks) == 1


def test_lanes_that_ask_do_not_pile_up() -> None:
    """When there are too many, those that have nothing under way are forgotten, and no other."""
    asks = with_deciders(1)
    asked(asks, 1, lane=ASKER + b"busy")
    for number in range(LANES_KNOWN + 5):
        lane = ASKER + number.to_bytes(3, "big")
        asked(asks, 1, lane=lane)
        asks.cancel(lane, 1)
    assert len(asks._open) <= LANES_KNOWN
    assert len(asks) == 1


def test_closed_deciders_of_a_broker_before_are_missed() -> None:
    """What one broker has written down, the next one denies until they are back."""
    before = with_deciders(1, 2, failure="closed")
    before.enter(key(3), Decider("open", 0, "open", lane_of(key(3))), ("x.y",))
    before.enter(key(4), Decider("idle", 0, "closed", lane_of(key(4))), ())
    assert before.closed == [ClosedDecider("d1", 1, ("x.*",)), ClosedDecider("d2", 2, ("x.*",))]
    asks = Asks()
    asks.miss(before.closed)
    assert list(asks.remembered) == ["d1", "d2"]
    assert [row[:3] for row in asked(asks)] == [["d1", "closed", "died"], ["d2", "closed", "died"]]
    assert asks.closed == before.closed
    changes = asks.changes
    asks.enter(key(1), Decider("d1", 1, "closed", lane_of(key(1))), ("x.*",))
    assert asks.changes > changes
    asks.lane_up(lane_of(key(1)), 0.0)
    assert list(asks.remembered) == ["d2"]
