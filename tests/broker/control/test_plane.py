"""The control plane, message by message, and against a simple model."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.control.actions import Action, Forget, Inject, Measure, Send, Watch
from broker.control.bounds import STATUS_WAITERS, STATUS_WAITERS_EACH
from broker.control.plane import ControlPlane
from broker.control.rates import Forwarded
from broker.protocol.beacons import Beacon, encode_beacons
from broker.protocol.control import FIELDS, Message, decode_message, encode_message
from broker.protocol.envelope import encode_event
from broker.protocol.limits import PEER_SILENCE_SECONDS
from broker.protocol.topics import Pattern

EPOCH = b"e" * 16
FRAME = encode_event("a.b", b"p" * 16, 1, 5, b"{}")


def new_plane() -> ControlPlane:
    """A control plane that began at 0."""
    return ControlPlane(
        epoch=EPOCH, release="0.1.0", pid=5, now=0.0, limits={"payload": 1}, about={"runtime_dir": "/x"}
    )


def hello(role: str = "subscriber", request: int = 0, **changes: Any) -> bytes:
    """A hello as bytes."""
    body = {
        "role": role,
        "name": "n",
        "pid": 7,
        "release": "0.1.0",
        "patterns": ["a.*"] if role == "subscriber" else [],
        "batches": True,
        "publisher": b"p" * 16 if role == "publisher" else None,
        **changes,
    }
    return encode_message("hello", request, **body)


def said(actions: list[Action], to: bytes = b"1") -> list[Message]:
    """What ``actions`` tell the peer ``to``, decoded."""
    return [decode_message(a.data) for a in actions if isinstance(a, Send) and a.peer == to]


def refusal(actions: list[Action]) -> tuple[int, str, str]:
    """Request, code and message of the one error that ``actions`` consist of."""
    (error,) = said(actions)
    assert len(actions) == 1
    assert error.kind == "error"
    return error.request, error.body["code"], error.body["message"]


def test_a_hello_is_welcomed() -> None:
    """The welcome repeats the request and tells epoch, release, pid, limits and batches."""
    plane = new_plane()
    (welcome,) = said(plane.handle(b"1", hello(request=3), 1.0))
    assert welcome.kind == "welcome"
    assert welcome.request == 3
    assert welcome.body == {
        "epoch": EPOCH,
        "release": "0.1.0",
        "pid": 5,
        "limits": {"payload": 1},
        "batches": True,
    }


def test_a_peer_on_this_machine_is_watched_by_the_kernels_word() -> None:
    """The process that the kernel names is watched; none is when the kernel names none or a foreign one."""
    plane = new_plane()
    assert Watch(b"1", 42) in plane.handle(b"1", hello(pid=9), 0.0, 42)
    assert not any(isinstance(a, Watch) for a in plane.handle(b"2", hello(pid=9), 0.0, 0))
    assert not any(isinstance(a, Watch) for a in plane.handle(b"3", hello(pid=9), 0.0, None))
    assert [peer["pid"] for peer in plane.status(0.0)["peers"]] == [42, 9, 9]


def test_a_wrong_hello_is_refused_and_counted() -> None:
    """A hello with a bad pattern is answered with the topic error, and its peer is not registered."""
    plane = new_plane()
    request, code, message = refusal(plane.handle(b"1", hello(request=4, patterns=["a..b"]), 0.0))
    assert (request, code) == (4, "bad_topic")
    assert "position 2" in message
    assert plane.refusals.counts == {"bad_topic": 1}
    assert len(plane.roster) == 0


@pytest.mark.parametrize(
    "data,request_number",
    [
        (msgpack.packb([9, "greeting", 12, {}]), 12),
        (msgpack.packb([9]), 0),
        (b"\x94\x09\xc1 nothing that this version could read", 0),
        (msgpack.packb([9, "hello", 3, {}]) + b"trailing", 3),
    ],
)
def test_another_version_is_told_both_versions(data: bytes, request_number: int) -> None:
    """A message of version 9 is refused naming 9 and ours, even where the rest cannot be read."""
    plane = new_plane()
    request, code, message = refusal(plane.handle(b"1", data, 0.0))
    assert (request, code) == (request_number, "wrong_version")
    assert "9" in message
    assert "1" in message
    assert plane.refusals.counts == {"version": 1}


def test_garbage_is_answered_under_its_request_number() -> None:
    """A malformed message whose request number can be read is refused under that number."""
    plane = new_plane()
    assert refusal(plane.handle(b"1", msgpack.packb([1, "dance", 8, {}]), 0.0))[:2] == (8, "bad_message")
    assert plane.refusals.counts == {"kind": 1}


@pytest.mark.parametrize("kind", ["welcome", "hold", "published", "error"])
def test_the_brokers_own_words_are_refused(kind: str) -> None:
    """A client that says what only a broker says is refused."""
    bodies: dict[str, dict[str, Any]] = {
        "welcome": {"epoch": b"", "release": "", "pid": 1, "limits": {}, "batches": True},
        "hold": {},
        "published": {"matching": 1},
        "error": {"code": "", "message": ""},
    }
    actions = new_plane().handle(b"1", encode_message(kind, 1, **bodies[kind]), 0.0)
    assert refusal(actions)[1] == "bad_message"


def test_a_probe_goes_through_the_data_plane() -> None:
    """A probe leads to one frame to the private inbox and to no reply, whoever asks."""
    actions = new_plane().handle(b"1", encode_message("probe", inbox="token-1_X"), 0.0)
    assert actions == [Inject(b"0$inbox.token-1_X\0", b"1")]


@pytest.mark.parametrize("inbox", ["", "a.b", "a\0b", "ä", "x" * 129, "a b"])
def test_a_probe_to_an_odd_inbox_is_refused(inbox: str) -> None:
    """An inbox that could be another key is refused."""
    assert refusal(new_plane().handle(b"1", encode_message("probe", inbox=inbox), 0.0))[1] == "bad_message"


def test_a_publish_is_injected_and_then_acknowledged() -> None:
    """The event goes in first; the reply counts the subscribers whose patterns match."""
    plane = new_plane()
    plane.handle(b"s", hello(patterns=["a.*", "*"]), 0.0)
    plane.handle(b"t", hello(patterns=["b"]), 0.0)
    (inject,) = plane.handle(b"1", encode_message("publish", 6, frame=FRAME, retain=False), 0.0)
    assert inject == Inject(FRAME, b"1", 6, "a.b", False)
    assert isinstance(inject, Inject)
    (reply,) = said(plane.injected(inject, True))
    assert reply == Message("published", 6, {"matching": 1})
    assert len(plane.retained) == 0


def test_a_publish_without_a_request_number_has_no_reply() -> None:
    """Request number 0 means that nobody waits."""
    plane = new_plane()
    (inject,) = plane.handle(b"1", encode_message("publish", frame=FRAME, retain=True), 0.0)
    assert isinstance(inject, Inject)
    assert plane.injected(inject, True) == []
    assert len(plane.retained) == 1


def test_a_full_data_plane_is_an_error_and_retains_nothing() -> None:
    """When the frame did not go in, whoever waits hears so; otherwise it is only counted."""
    plane = new_plane()
    inject = Inject(FRAME, b"1", 6, "a.b", True)
    assert refusal(plane.injected(inject, False))[:2] == (6, "queue_full")
    assert plane.injected(inject._replace(request=0), False) == []
    assert plane.refusals.counts == {"queue_full": 2}
    assert len(plane.retained) == 0


def test_a_publish_that_is_no_event_is_refused() -> None:
    """The frame of a publish has to be an event within the depth."""
    plane = new_plane()
    for frame in (b"", b"8" + FRAME[1:], b"0$canary\0", b"0~a.b\0" + FRAME[5:]):
        message = encode_message("publish", 2, frame=frame, retain=False)
        assert refusal(plane.handle(b"1", message, 0.0))[:2] == (2, "bad_message")


def test_a_retained_value_is_read_back() -> None:
    """What was published with retain is found by pattern, and only so."""
    plane = new_plane()
    plane.injected(Inject(FRAME, b"1", 0, "a.b", True), True)
    ask = encode_message("retained", 3, patterns=["a.*"], after=0)
    assert said(plane.handle(b"1", ask, 0.0)) == [Message("values", 3, {"frames": [FRAME], "next": None})]
    ask = encode_message("retained", 3, patterns=["b.*"], after=0)
    assert said(plane.handle(b"1", ask, 0.0)) == [Message("values", 3, {"frames": [], "next": None})]
    ask = encode_message("retained", 3, patterns=["b..*"], after=0)
    assert refusal(plane.handle(b"1", ask, 0.0))[1] == "bad_topic"


def test_a_beacon_is_injected_if_it_is_one() -> None:
    """A beacon over the control plane reaches the subscribers; anything else in its place is refused."""
    plane = new_plane()
    (frame,) = encode_beacons(Beacon(b"p" * 16, "me", True, {"a.b": (1, 1)}))
    assert plane.handle(b"1", encode_message("beacon", frame=frame), 0.0) == [Inject(frame, b"1")]
    assert plane.injected(Inject(frame, b"1"), True) == []
    assert refusal(plane.handle(b"1", encode_message("beacon", frame=FRAME), 0.0))[1] == "bad_message"


def test_a_closing_beacon_is_said_again() -> None:
    """Subscribers whose queue was full when a publisher closed hear its last words later."""
    plane = new_plane()
    last, usual = (
        next(encode_beacons(Beacon(b"p" * 16, "me", closing, {"a.b": (1, 1)}))) for closing in (True, False)
    )
    plane.handle(b"1", hello(role="publisher", patterns=[]), 0.0)
    assert plane.handle(b"1", encode_message("beacon", frame=last), 0.0) == []  # it has sent it itself
    assert plane.handle(b"1", encode_message("beacon", frame=usual), 0.0) == [Inject(usual, b"1")]
    plane.handle(b"1", encode_message("bye"), 0.0)
    said = [
        [action for action in plane.tick(now) if isinstance(action, Inject)]
        for now in (1.0, 2.0, 9.0, 31.0, 99.0)
    ]
    assert said == [[], [Inject(last, b"")], [Inject(last, b"")], [Inject(last, b"")], []]


def test_a_report_is_shown_in_the_status() -> None:
    """The last report of a subscriber stands in the status under its name."""
    plane = new_plane()
    plane.handle(b"1", hello(name="audit"), 0.0)
    assert plane.handle(b"1", encode_message("report", counters={"received": 4}), 2.0) == []
    (shown,) = plane.status(5.0)["subscribers"]
    assert (shown["name"], shown["received"], shown["reported_s"]) == ("audit", 4, 3.0)


def test_a_report_from_a_stranger_asks_for_a_hello() -> None:
    """Whoever reports to a broker that does not know it is told to say hello, outside any request."""
    plane = new_plane()
    actions = plane.handle(b"1", encode_message("report", counters={}), 0.0)
    assert refusal(actions)[:2] == (0, "unknown_peer")


def test_the_status_waits_for_fresh_counters() -> None:
    """A request for the status measures first; every waiting request is then answered once."""
    plane = new_plane()
    ask = encode_message("status", 3)
    assert plane.handle(b"1", ask, 0.0) == plane.handle(b"2", ask, 0.0) == [Measure()]
    actions = plane.measured(Forwarded(1, 2, 3, 4), 1.0)
    (status,) = said(actions)
    assert status.kind == "status_is"
    assert status.request == 3
    assert len(said(actions, b"2")) == 1
    assert status.body["status"]["forwarded"] == {
        "frames_in": 1,
        "bytes_in": 2,
        "frames_out": 3,
        "bytes_out": 4,
    }
    assert status.body["status"]["broker"]["epoch"] == EPOCH.hex()
    assert status.body["status"]["broker"]["runtime_dir"] == "/x"
    assert plane.measured(Forwarded(), 2.0) == []


def test_the_summary_is_the_status_in_a_few_numbers() -> None:
    """For the log there are the totals, the number of peers and the number of refusals."""
    plane = new_plane()
    plane.handle(b"1", hello(), 0.0)
    plane.handle(b"2", b"garbage", 0.0)
    assert plane.summary()["frames_in"] == 0
    plane.measured(Forwarded(1, 2, 3, 4), 1.0)
    assert plane.summary() == {
        "registered": 1,
        "refused": 1,
        "frames_in": 1,
        "bytes_in": 2,
        "frames_out": 3,
        "bytes_out": 4,
    }


def test_waiting_for_the_status_is_bounded() -> None:
    """Beyond the bound a request for the status is refused at once."""
    plane = new_plane()
    for number in range(STATUS_WAITERS):
        assert plane.handle(b"%d" % number, encode_message("status", 1), 0.0) == [Measure()]
    assert refusal(plane.handle(b"1", encode_message("status", 2), 0.0))[:2] == (2, "limit_exceeded")
    assert len(plane.measured(Forwarded(), 1.0)) == STATUS_WAITERS


def test_one_peer_cannot_take_the_status_from_the_others() -> None:
    """A peer that asks again and again without waiting for the answers is refused before others are."""
    plane = new_plane()
    for number in range(STATUS_WAITERS):
        plane.handle(b"greedy", encode_message("status", number + 1), 0.0)
    assert plane.handle(b"1", encode_message("status", 2), 0.0) == [Measure()]
    assert len(plane.measured(Forwarded(), 1.0)) == STATUS_WAITERS_EACH + 1


def test_a_goodbye_ends_a_registration_in_order() -> None:
    """Whoever says goodbye is forgotten and not lost; a stranger's goodbye changes nothing."""
    plane = new_plane()
    plane.handle(b"1", hello("publisher"), 0.0, 42)
    assert plane.handle(b"1", encode_message("bye"), 1.0) == [Forget(b"1")]
    assert plane.handle(b"1", encode_message("bye"), 1.0) == []
    assert plane.status(1.0)["lost_publishers"] == []
    assert plane.status(1.0)["registered"] == 0


def test_a_publisher_that_dies_is_lost_by_name() -> None:
    """A publisher whose process ended without a goodbye is listed with its last report; others are not."""
    plane = new_plane()
    plane.handle(b"1", hello("publisher", name="agent"), 0.0, 42)
    plane.handle(b"1", encode_message("report", counters={"published": 9}), 1.0)
    plane.handle(b"2", hello("subscriber"), 0.0, 42)
    assert plane.gone(b"1", 2.0) == [Forget(b"1")]
    assert plane.gone(b"2", 2.0) == [Forget(b"2")]
    assert plane.gone(b"2", 2.0) == []
    (lost,) = plane.status(3.0)["lost_publishers"]
    assert (lost["name"], lost["published"], lost["how"], lost["ended_s"]) == ("agent", 9, "died", 1.0)


def test_a_goodbye_that_comes_after_the_end_still_counts() -> None:
    """A process may end before its last message is read: its publisher is not lost then."""
    plane = new_plane()
    plane.handle(b"1", hello("publisher"), 0.0, 42)
    plane.gone(b"1", 1.0)
    assert plane.handle(b"1", encode_message("bye"), 1.0) == []
    assert plane.status(1.0)["lost_publishers"] == []


def test_a_publisher_that_comes_back_is_not_lost() -> None:
    """A publisher that was silent or disconnected and says hello again is lost no longer."""
    plane = new_plane()
    plane.handle(b"1", hello("publisher"), 0.0)
    plane.gone(b"1", 1.0, "disconnected")
    assert [lost["how"] for lost in plane.status(1.0)["lost_publishers"]] == ["disconnected"]
    plane.handle(b"2", hello("publisher"), 2.0)
    assert plane.status(2.0)["lost_publishers"] == []


def test_the_silent_are_forgotten() -> None:
    """A peer of which nothing is heard for the stated time is gone; any message of it keeps it."""
    plane = new_plane()
    plane.handle(b"1", hello("publisher"), 0.0)
    plane.handle(b"2", hello("subscriber"), 0.0)
    plane.handle(b"2", encode_message("report", counters={}), PEER_SILENCE_SECONDS)
    assert plane.tick(PEER_SILENCE_SECONDS) == []
    assert plane.tick(PEER_SILENCE_SECONDS + 0.1) == [Forget(b"1")]
    assert [lost["how"] for lost in plane.status(30.0)["lost_publishers"]] == ["silent"]
    assert plane.status(30.0)["registered"] == 1


def test_publishers_hear_when_batches_become_possible_or_not() -> None:
    """Each registered publisher is told when that changes, and nobody when it does not."""
    plane = new_plane()
    plane.handle(b"p", hello("publisher"), 0.0)
    assert said(plane.handle(b"1", hello(batches=False), 0.0), b"p") == [
        Message("batches", 0, {"batches": False})
    ]
    assert said(plane.handle(b"2", hello(batches=False), 0.0), b"p") == []
    assert said(plane.handle(b"1", encode_message("bye"), 0.0), b"p") == []
    assert said(plane.gone(b"2", 0.0), b"p") == [Message("batches", 0, {"batches": True})]


def test_a_drain_asks_everybody_to_hold() -> None:
    """Registered peers are told once, later ones with their welcome; acknowledged publishing is refused."""
    plane = new_plane()
    plane.handle(b"1", hello("publisher"), 0.0)
    assert said(plane.hold()) == [Message("hold", 0, {})]
    assert [m.kind for m in said(plane.handle(b"2", hello(), 0.0), b"2")] == ["welcome", "hold"]
    message = encode_message("publish", 2, frame=FRAME, retain=False)
    assert refusal(plane.handle(b"1", message, 0.0))[:2] == (2, "draining")
    assert plane.status(1.0)["broker"]["draining"]


@given(st.binary(max_size=200), st.integers(0, 3))
def test_any_bytes_are_answered_or_acted_upon(data: bytes, peer: int) -> None:
    """No bytes raise anything; garbage is answered with exactly one error and counted once."""
    plane = new_plane()
    actions = plane.handle(b"%d" % peer, data, 1.0)
    assert [message.kind for message in said(actions, b"%d" % peer)] == ["error"]
    assert sum(plane.refusals.counts.values()) == 1


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.binary() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
OF_TYPE: dict[type, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(-(2**63), 2**63 - 1),
    bytes: st.binary() | st.just(FRAME),
    bool: st.booleans(),
    list: st.lists(ANYTHING, max_size=4),
    dict: st.dictionaries(st.text() | st.binary(), ANYTHING, max_size=4),
    type(None): st.none(),
}


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """A message of some kind whose fields have the right types, or nearly so."""
    kind = draw(st.sampled_from(sorted(FIELDS)))
    body = {}
    for name, types in FIELDS[kind].items():
        options = types if isinstance(types, tuple) else (types,)
        body[name] = draw(st.one_of(*(OF_TYPE[option] for option in options), ANYTHING))
    request = draw(st.integers(0, 5))
    return encode_message(kind, request, **body)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 2), messages()), max_size=6))
def test_any_well_formed_message_leads_to_actions(received: list[tuple[int, bytes]]) -> None:
    """Whatever well-typed messages hold, the plane answers; every action can be performed."""
    plane = new_plane()
    for peer, data in received:
        for action in plane.handle(b"%d" % peer, data, 1.0):
            assert isinstance(action, Action)
            if isinstance(action, Inject):
                plane.injected(action, True)
    plane.measured(Forwarded(), 2.0)
    assert msgpack.packb(plane.status(3.0))


TOPICS = st.sampled_from(["a.b", "a.c", "b"])
KEYS = st.sampled_from([b"1", b"2", b"3", b"4"])
WANTED = st.lists(st.sampled_from(["*", "a.*", "a.b", "b", "*.c"]), min_size=1, max_size=3, unique=True)


class Conversation(RuleBasedStateMachine):
    """Peers come, go, fall silent and publish; a model says who should be known and what was retained."""

    @initialize()
    def begin(self) -> None:
        """An empty plane and an empty model."""
        self.plane = new_plane()
        self.now = 0.0
        self.subscribers: dict[bytes, tuple[list[str], bool]] = {}
        self.publishers: set[bytes] = set()
        self.heard: dict[bytes, float] = {}
        self.retained: dict[str, bytes] = {}
        self.told: dict[bytes, bool] = {}
        self.watched: set[bytes] = set()
        self.lost: set[bytes] = set()
        self.sequence = 0

    def do(self, actions: list[Action]) -> list[Action]:
        """Keep the model's view of what peers were told and of who is watched."""
        for action in actions:
            if isinstance(action, Send):
                message = decode_message(action.data)
                if message.kind in ("welcome", "batches"):
                    self.told[action.peer] = message.body["batches"]
            elif isinstance(action, Watch):
                self.watched.add(action.peer)
            elif isinstance(action, Forget):
                self.watched.discard(action.peer)
        return actions

    def drop(self, key: bytes, lost: bool) -> None:
        """The model forgets a peer."""
        self.subscribers.pop(key, None)
        self.heard.pop(key, None)
        if key in self.publishers:
            self.publishers.discard(key)
            if lost:
                self.lost.add(key)

    @rule(key=KEYS, patterns=WANTED, batches=st.booleans())
    def subscribe(self, key: bytes, patterns: list[str], batches: bool) -> None:
        """A subscriber says hello, perhaps again, perhaps after having been a publisher."""
        self.do(self.plane.handle(key, hello(patterns=patterns, batches=batches), self.now, 9))
        self.drop(key, lost=False)
        self.lost.discard(key)
        self.subscribers[key] = patterns, batches
        self.heard[key] = self.now

    @rule(key=KEYS)
    def join(self, key: bytes) -> None:
        """A publisher says hello under an id of its own."""
        self.sequence += 1
        identity = b"%016d" % self.sequence
        self.do(self.plane.handle(key, hello("publisher", publisher=identity), self.now, 9))
        self.drop(key, lost=False)
        self.lost.discard(key)
        self.publishers.add(key)
        self.heard[key] = self.now

    @rule(key=KEYS)
    def say_goodbye(self, key: bytes) -> None:
        """A peer ends in order."""
        self.do(self.plane.handle(key, encode_message("bye"), self.now))
        self.drop(key, lost=False)
        self.lost.discard(key)

    @rule(key=KEYS)
    def die(self, key: bytes) -> None:
        """A peer's process ends."""
        self.do(self.plane.gone(key, self.now))
        self.drop(key, lost=True)

    @rule(seconds=st.sampled_from([1.0, 15.0, 21.0]))
    def wait(self, seconds: float) -> None:
        """Time passes; the silent are forgotten."""
        self.now += seconds
        self.do(self.plane.tick(self.now))
        for key, heard in list(self.heard.items()):
            if self.now - heard > PEER_SILENCE_SECONDS:
                self.drop(key, lost=True)

    @rule(key=KEYS)
    def report(self, key: bytes) -> None:
        """A peer gives a sign of life; a stranger is asked for a hello."""
        actions = self.plane.handle(key, encode_message("report", counters={"n": 1}), self.now)
        assert bool(actions) == (key not in self.heard)
        if key in self.heard:
            self.heard[key] = self.now

    @rule(key=KEYS, topic=TOPICS, retain=st.booleans(), room=st.booleans())
    def publish(self, key: bytes, topic: str, retain: bool, room: bool) -> None:
        """Somebody publishes with an acknowledgement; the count is that of the matching subscribers."""
        self.sequence += 1
        frame = encode_event(topic, b"p" * 16, self.sequence, 5, b"{}")
        message = encode_message("publish", 1, frame=frame, retain=retain)
        (inject,) = self.plane.handle(key, message, self.now)
        if key in self.heard:
            self.heard[key] = self.now
        assert isinstance(inject, Inject)
        (reply,) = said(self.plane.injected(inject, room), key)
        if not room:
            assert reply.body["code"] == "queue_full"
            return
        wanted = [p for p, _ in self.subscribers.values() if any(Pattern(text).matches(topic) for text in p)]
        assert reply.body["matching"] == len(wanted)
        if retain:
            self.retained.pop(topic, None)
            self.retained[topic] = frame

    @invariant()
    def who_is_known_is_right(self) -> None:
        """Registrations, watches, retained values and what publishers were told agree with the model."""
        known = {key for key, _ in self.plane.roster}
        assert known == set(self.heard) == set(self.subscribers) | self.publishers
        assert self.watched == known
        assert [frame for _, frame in self.plane.retained._values.values()] == list(self.retained.values())
        batches = all(decodes for _, decodes in self.subscribers.values())
        assert all(self.told[key] == batches for key in self.publishers)
        assert sorted(lost.key for lost in self.plane.roster.lost) == sorted(self.lost)


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=50, stateful_step_count=30)
